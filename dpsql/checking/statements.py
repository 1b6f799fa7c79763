"""One text: its statements, each of them against the policy, with findings that point into the whole text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.checking.finding import Finding
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.policy.models import Policy
from dpsql.session.check import check
from dpsql.sql.split import Statement, split_statements


@dataclass(frozen=True, slots=True)
class Options:
    """How a text is checked, beyond the policy."""

    dialect: str = "duckdb"


def check_text(source: Source, policy: Policy, options: Options | None = None) -> list[Finding]:
    """The findings of every statement of a text, in order. Raises Rejected DP903 for an unknown dialect."""
    options = options or Options()
    parts = split_statements(source.text, options.dialect)
    return [finding for part in parts for finding in check_statement(source, part, policy, options)]


def check_statement(source: Source, part: Statement, policy: Policy, options: Options) -> list[Finding]:
    """The findings of one statement of a text, their places counted in the text."""
    found = []
    for d in check(part.text, policy, dialect=options.dialect, name=source.name):
        if d.source is None or d.source.text == part.text:
            span = d.span if d.span is not None and d.source is not None else Span(0, len(part.text.split("\n", 1)[0]))
            d = replace(d, source=source, span=Span(span.start + part.start, span.end + part.start))
        found.append(Finding(d, part.text))
    return found
