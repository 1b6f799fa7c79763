"""What a check finds: findings that point into the user's files, and the report that a format prints."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its diagnostic's source is the file as the user knows it, its span is counted in that file.

    `statement` is the text of the statement it is about; `shape` is a hash of it that white space, comments and the
    place in the file do not change (baselines are kept by it).
    """

    diagnostic: Diagnostic
    statement: str
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run: findings in order of files and places, how much was read, and what could not be read.

    `known`: how many findings a baseline holds, which are not among `findings`. `names` are the files that were read,
    in order, as the user knows them: those without findings, too.
    """

    findings: tuple[Finding, ...]
    files: int = 0
    statements: int = 0
    unreadable: tuple[Diagnostic, ...] = ()
    known: int = 0
    names: tuple[str, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error and not a warning."""
        return any(finding.diagnostic.severity == "error" for finding in self.findings)
