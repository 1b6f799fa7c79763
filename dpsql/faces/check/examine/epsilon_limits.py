"""How much ε the queries of a repository may ask for: `max_epsilon` in one query, `max_epsilon_per_file` in one file.

What a query asks for is the ε of its privacy clause, else of a comment before it, else the policy's default. A query
for which none says anything asks for nothing yet: whoever runs it says how much, and the policy's own limits hold then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.privacy_loss import show_left, show_spent
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.faces.check.examine.examination import ExaminedStatement

_EPSILON = re.compile(r"\bepsilon\s*=\s*[0-9.][0-9.eE+-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EpsilonLimits:
    """The largest ε of one query and of all queries of one file together; None: no limit."""

    query: Fraction | None = None
    file: Fraction | None = None

    def exceeded(
        self, text: str, statements: Sequence[ExaminedStatement], dialect: str = "duckdb"
    ) -> Mapping[int, tuple[Diagnostic, ...]]:
        """Number of a statement → the findings (DP412) about its ε; the file's limit is found at the statement that
        goes beyond it first. dialect: what the text is written in."""
        found: dict[int, tuple[Diagnostic, ...]] = {}
        total = Fraction(0)
        for number, statement in enumerate(statements):
            asked = None if statement.price is None else statement.price.epsilon
            if asked is None or (self.query is None and self.file is None):
                continue
            behind = statements[number - 1].span.end if number else 0
            before, total = total, total + asked
            if self.query is not None and asked > self.query:
                alone = f"the query asks for ε = {show_spent(asked)}"
                found[number] = (_finding(text, statement, behind, alone, self.query, "query", dialect),)
            if self.file is not None and before <= self.file < total:
                whole = f"the queries of this file up to here ask for ε = {show_spent(total)} together"
                found[number] = (
                    *found.get(number, ()),
                    _finding(text, statement, behind, whole, self.file, "file", dialect),
                )
        return found


def _finding(
    text: str, statement: ExaminedStatement, before: int, asked: str, limit: Fraction, of: str, dialect: str
) -> Diagnostic:
    span, said = _place(text, statement.span, before, dialect)
    option = "max-epsilon" if of == "query" else "max-epsilon-per-file"
    repair = f"ask for less there:  epsilon = {show_left(limit)}"
    if of == "file":
        repair = "ask for less, or move queries to another file"
    elif not said:
        repair = f"ask for less in front of the query:  /* dpsql: epsilon={show_left(limit)} */"
    return Diagnostic(
        "DP412",
        f"{asked}; the check allows {show_left(limit)} in one {of}",
        None,
        span,
        "" if said else "the policy's default",
        (repair, f"or raise the check's limit:  --{option},  {option} = … in dpsql.toml"),
    )


def _place(text: str, statement: Span, before: int, dialect: str) -> tuple[Span, bool]:
    """Where the statement says its ε, and whether it does; else its first line. A column or another comment may say
    `epsilon = 1` as well: only the privacy clause counts, and comments of dpsql before it. before: where what stands
    before it begins."""
    from dpsql.frontend.parse import parse
    from dpsql.frontend.text.batch_statement import batch_statement
    from dpsql.frontend.text.query_comments import settings_before
    from dpsql.frontend.text.spans import code_of
    from dpsql.frontend.text.split import lead_of
    from dpsql.frontend.text.summary_statements import CreateSummary, summary_statement

    own = text[statement.start : statement.end]
    summary, span = summary_statement(own), None
    if isinstance(summary, CreateSummary) and summary.amounts:
        span = Span(own.rindex("("), len(own))
    elif summary is None and batch_statement(own) is None:
        clause = parse(Source(own), dialect).clause
        span = None if clause is None or clause.epsilon is None else clause.span
    if span is not None:
        match = _EPSILON.search(code_of(own), span.start, span.end)
        found = span if match is None else Span(*match.span())
        return Span(statement.start + found.start, statement.start + found.end), True
    lead = lead_of(text, before, statement.start)
    for each in settings_before(Source(lead + own), dialect):
        if each.name in ("epsilon", "rho"):
            at = statement.start - len(lead) + each.at
            return Span(at, at + len(each.name)), True
    line = own.split("\n", 1)[0].rstrip("\r")
    return Span(statement.start, statement.start + len(line)), False
