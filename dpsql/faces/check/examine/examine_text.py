"""One text: its statements against the policy, what is ignored taken out, findings that point into the user's file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.documents.parameter_values import Values
from dpsql.faces.check.examine.epsilon_limits import EpsilonLimits
from dpsql.faces.check.examine.examination import Examination, ExaminedStatement, examine
from dpsql.faces.check.examine.ignores import apply_ignores
from dpsql.faces.check.examine.selection import CodeSelection
from dpsql.faces.check.report.finding import Finding
from dpsql.faces.check.report.fixing import with_removal


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How a text is checked, beyond the policy: its dialect, what is shown, how much ε may be asked for, values for
    parameters that it gives none for itself, and whether limits are searched."""

    dialect: str = "duckdb"
    selection: CodeSelection = field(default_factory=CodeSelection)
    limits: EpsilonLimits = field(default_factory=EpsilonLimits)
    parameters: Values = field(default_factory=dict)
    search: bool | None = None


def check_text(source: Source, policy: Policy, options: TextOptions | None = None) -> list[Finding]:
    """The findings of every statement of a text, in order; what its comments and the options ignore is left out.

    Raises Rejected DP903 for an unknown dialect.
    """
    return check_document(Document(source), policy, options or TextOptions())


def check_document(document: Document, policy: Policy, options: TextOptions) -> list[Finding]:
    """`check_text` of SQL that may have been made from the user's file. Raises Rejected DP903."""
    examination = examine(document.text, policy, options.dialect, options.parameters, options.search)
    return findings_of(document, examination, options)


def findings_of(document: Document, examination: Examination, options: TextOptions) -> list[Finding]:
    """What is shown of an examination of this document's text, in the order of places."""
    hidden = options.selection.hidden_in(document.name)
    return [
        replace(finding, diagnostic=document.pointed(finding.diagnostic))
        for finding in _all(document.text, examination, options)
        if options.selection.shows(finding.diagnostic.code, hidden)
    ]


def _all(text: str, examination: Examination, options: TextOptions) -> list[Finding]:
    """What no comment hides: statement by statement in the order of the analysis, and what is wrong with comments."""
    asked = options.limits.exceeded(text, examination.statements, options.dialect)
    found: list[tuple[int, Finding]] = []
    for number, statement in enumerate(examination.statements):
        diagnostics = [*statement.diagnostics, *asked.get(number, ())]
        left, unused = apply_ignores(examination.remarks, number, diagnostics)
        unused = [with_removal(text, examination.remarks, d) for d in unused]
        start = statement.span.start
        found += [(start, Finding(d, _text(text, statement), statement.shape)) for d in (*left, *unused)]
    for remark in examination.remarks:
        about = None if remark.statement is None else examination.statements[remark.statement]
        comment = text[remark.span.start : remark.span.end]
        for mistake in remark.mistakes:
            statement_text, shape = (comment, "") if about is None else (_text(text, about), about.shape)
            found.append((remark.span.start, Finding(mistake, statement_text, shape)))
    return [finding for _, finding in sorted(found, key=lambda placed: placed[0])]


def _text(text: str, statement: ExaminedStatement) -> str:
    return text[statement.span.start : statement.span.end]
