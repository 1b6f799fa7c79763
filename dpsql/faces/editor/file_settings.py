"""What holds for one file in an editor: the policy, the dialect and what is ignored, as `dpsql check` would read them.

Read anew at every look, and the policy whenever its file has changed, so that nothing has to be watched to be right.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Error
from dpsql.faces.check.documents.checkout import load_own
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.documents.document_sources import DocumentMaking
from dpsql.faces.check.examine.check_settings import Asked, settle
from dpsql.faces.check.examine.examine_text import TextOptions, check_document
from dpsql.faces.check.report.finding import Finding


@dataclass(frozen=True, slots=True)
class Setting:
    """The policy and the options for a file, and what makes a document of its text: a template is rendered."""

    policy: Policy
    options: TextOptions
    document: Callable[[Source], Document] = Document


@dataclass(slots=True)
class FileSettings:
    """The settings of files, with every policy loaded once for each state of its file.

    asked: what the command line of the server, or the editor, says; it is stronger than configuration files.
    """

    asked: Asked = field(default_factory=Asked)
    _policies: dict[str, tuple[tuple[int, int], Policy]] = field(default_factory=dict)
    _templates: tuple[str, Callable[[Source], Document]] = ("", Document)

    def setting(self, folder: Path) -> Setting:
        """What holds for files in this folder. Raises Error: no policy is named, or it or the settings are wrong."""
        settings = settle(self.asked, folder)
        policy = self._policy(os.path.abspath(folder / settings.policy), settings.root)
        return Setting(policy, settings.options, self._document(settings.making))

    def _document(self, making: DocumentMaking) -> Callable[[Source], Document]:
        if making.templater == "none":
            return Document
        key = repr(making)
        if self._templates[0] != key:
            from dpsql.faces.check.documents.templates import Templater, Templates

            self._templates = key, Templater(Templates(making.variables, making.macros)).document
        return self._templates[1]

    def _policy(self, path: str, root: Path | None) -> Policy:
        try:
            status = os.stat(path)
            state = status.st_mtime_ns, status.st_size
        except OSError:
            return load_own(path, root)  # which says what is wrong
        known = self._policies.get(path)
        if known is None or known[0] != state:
            known = state, load_own(path, root)
            self._policies[path] = known
        return known[1]


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to say about a text. trouble: why nothing could be found out; it may point into other files.

    rendered: the SQL was made from a template, so that edits of the SQL are no edits of the text.
    """

    text: str
    setting: Setting | None = None
    findings: tuple[Finding, ...] = ()
    trouble: tuple[Diagnostic, ...] = ()
    rendered: bool = False


def look(project: FileSettings, path: Path, text: str) -> Look:
    """Check a text as if it stood in the file at `path`. Never raises: what was found in another text must not stay."""
    text = readable(text)
    setting = None
    try:
        setting = project.setting(path.parent)
        document = setting.document(Source(text, str(path)))
        findings = check_document(document, setting.policy, setting.options)
    except Error as error:
        return Look(text, setting, trouble=error.diagnostics)
    except Exception:
        return Look(text, setting, trouble=(_failed(path, text),))
    return Look(text, setting, tuple(findings), rendered=document.sql is not None)


def _failed(path: Path, text: str) -> Diagnostic:
    return Diagnostic(
        "DP904",
        "dpsql itself failed on this text; this is an error in dpsql",
        Source(text, str(path)),
        help=("report the query and the policy, without data",),
    )


def readable(text: str) -> str:
    """The text with a blank in place of a byte order mark: every offset stays."""
    return " " + text[1:] if text.startswith("\ufeff") else text
