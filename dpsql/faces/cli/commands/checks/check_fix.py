"""`dpsql check --fix` and `--diff`: repairs in the files, or what they would change."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.layout import inert
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.check_settings import CheckSettings
from dpsql.faces.check.examine.examine_text import check_text, findings_of
from dpsql.faces.check.examine.run_check import examine_documents, load
from dpsql.faces.check.report.finding import Finding
from dpsql.faces.check.report.fixing import FixedText, fix_text, fixes_of, write_fixed
from dpsql.faces.cli import exits


def repaired(documents: Sequence[Document], settings: CheckSettings, unsafe: bool) -> list[tuple[Document, FixedText]]:
    """The documents that repairs change, each with its text after them. Raises CannotOpen, Rejected DP903."""
    examined = examine_documents(documents, settings)
    found = []
    for document in documents:
        examination = examined.get(document.text)
        if examination is None or document.sql is not None:
            continue
        findings = findings_of(document, examination, settings.options)
        if not fixes_of(findings, unsafe):
            continue
        fixed = fix_text(document.text, partial(_find, document, load(settings), settings), unsafe)
        if fixed.text != document.text:
            found.append((document, fixed))
    return found


def _find(document: Document, policy: Policy, settings: CheckSettings, text: str) -> Sequence[Finding]:
    return check_text(replace(document.source, text=text), policy, settings.options)


def write(
    documents: Sequence[Document], settings: CheckSettings, unsafe: bool, stdin: str | None
) -> tuple[list[Document], list[Diagnostic]]:
    """Repair the files; the documents as they are now, and why some could not be written.

    What came on standard input (`stdin`: what it is called) is printed, repaired or not.
    """
    now = {document.name: document for document in documents}
    failed: list[Diagnostic] = []
    count = 0
    for document, fixed in repaired(documents, settings, unsafe):
        try:
            if document.name != stdin:
                write_fixed(document.name, document.text, fixed.text)
        except Rejected as refusal:
            failed += refusal.diagnostics
            continue
        count += fixed.count
        now[document.name] = replace(document, source=replace(document.source, text=fixed.text))
    if stdin is not None and stdin in now:
        sys.stdout.write(now[stdin].text)
    if count:
        exits.say(f"repaired {count} finding{'' if count == 1 else 's'}")
    return list(now.values()), failed


def diff(documents: Sequence[Document], settings: CheckSettings, unsafe: bool) -> int:
    """Print what repairs would change, as `diff -u` does. 1 if there is anything, else 0."""
    changed = repaired(documents, settings, unsafe)
    for document, fixed in changed:
        before, after = (text.splitlines(keepends=True) for text in (document.text, fixed.text))
        for line in difflib.unified_diff(before, after, document.name, document.name):
            sys.stdout.write(inert(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"))
    return exits.CHECK_FINDINGS if changed else exits.OK
