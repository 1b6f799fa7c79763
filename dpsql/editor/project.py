"""What holds for one file in an editor: the policy, the dialect and what is ignored, as `dpsql check` would read them.

Read anew at every look, and the policy whenever its file has changed, so that nothing has to be watched to be right.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.checking.document import Document
from dpsql.checking.finding import Finding
from dpsql.checking.settings import Asked, settle
from dpsql.checking.statements import Options, check_document
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Error
from dpsql.policy.load import load_policy
from dpsql.policy.models import Policy


@dataclass(frozen=True, slots=True)
class Setting:
    """The policy and the options for a file."""

    policy: Policy
    options: Options


@dataclass(slots=True)
class Project:
    """The settings of files, with every policy loaded once for each state of its file.

    asked: what the command line of the server, or the editor, says; it is stronger than configuration files.
    """

    asked: Asked = field(default_factory=Asked)
    _policies: dict[str, tuple[tuple[int, int], Policy]] = field(default_factory=dict)

    def setting(self, folder: Path) -> Setting:
        """What holds for files in this folder. Raises Error: no policy is named, or it or the settings are wrong."""
        settings = settle(self.asked, folder)
        return Setting(self._policy(os.path.abspath(folder / settings.policy)), settings.options)

    def _policy(self, path: str) -> Policy:
        try:
            status = os.stat(path)
            state = status.st_mtime_ns, status.st_size
        except OSError:
            return load_policy(path)  # which says what is wrong
        known = self._policies.get(path)
        if known is None or known[0] != state:
            known = state, load_policy(path)
            self._policies[path] = known
        return known[1]


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to say about a text. trouble: why nothing could be found out; it may point into other files."""

    text: str
    setting: Setting | None = None
    findings: tuple[Finding, ...] = ()
    trouble: tuple[Diagnostic, ...] = ()


def look(project: Project, path: Path, text: str) -> Look:
    """Check a text as if it stood in the file at `path`. Never raises an Error."""
    text = readable(text)
    try:
        setting = project.setting(path.parent)
        findings = check_document(Document(Source(text, str(path))), setting.policy, setting.options)
    except Error as error:
        return Look(text, trouble=error.diagnostics)
    return Look(text, setting, tuple(findings))


def readable(text: str) -> str:
    """The text with a blank in place of a byte order mark: every offset stays."""
    return " " + text[1:] if text.startswith("\ufeff") else text
