"""What may be asked besides queries: `SET epsilon = 0.2`, `RESET epsilon`, `SHOW epsilon`, `EXPLAIN SELECT …`,
`CREATE DP SUMMARY …`, `DROP DP SUMMARY …` and `SHOW dpsql.summaries`, and the same of counters.

One reader for cursors and the shell. None of them spends anything but those that make or receive a summary or a
counter, and nothing of their text reaches an engine but what a query's would.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpsql.core.privacy_loss import show_spent
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Error, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.parse import MAX_LENGTH
from dpsql.frontend.text.counter_statements import CounterStatement, counter_statement
from dpsql.frontend.text.split import split_statements
from dpsql.frontend.text.summary_statements import SummaryStatement, summary_statement

SETTINGS: Final = ("epsilon", "delta", "rho", "confidence", "allow_dearer", "coverage", "consistent_totals", "limits")
"""What SHOW tells, and SET sets where a query does not say more: in Python all but the confidence, of which each query
and each answer is told its own."""

_PERHAPS: Final = re.compile(r"\b(?:SET|RESET|SHOW|EXPLAIN)\b", re.IGNORECASE)
_END: Final = r"(?:\s|--[^\r\n]*+|(?>/\*.*?\*/))*+"
"""Spaces and comments, which the tokenizer takes for part of a command. Each is read in one way only: else the time
would double with each comment."""
_SET: Final = re.compile(
    r"SET\s+(?:SESSION\s+)?(?P<name>\w+)(?:\s*=\s*|\s+TO\s+)"
    rf"(?:'(?P<text>[^']*)'|\"(?P<quoted>[^\"]*)\"|(?P<bare>.+?)){_END}",
    re.IGNORECASE | re.DOTALL,
)
_RESET: Final = re.compile(rf"RESET\s+(\w+){_END}", re.IGNORECASE | re.DOTALL)
_SHOW: Final = re.compile(rf"SHOW\s+({'|'.join(SETTINGS)}){_END}", re.IGNORECASE | re.DOTALL)
_SHOW_ALL: Final = re.compile(rf"SHOW\s+ALL{_END}", re.IGNORECASE | re.DOTALL)
_SHOW_SUMMARIES: Final = re.compile(rf"SHOW\s+(?:dpsql\s*\.\s*)?summaries{_END}", re.IGNORECASE | re.DOTALL)
_SHOW_COUNTERS: Final = re.compile(rf"SHOW\s+(?:dpsql\s*\.\s*)?counters{_END}", re.IGNORECASE | re.DOTALL)
_LONGEST: Final = 1_000
"""Characters of a SET; what is longer is no amount."""
_EXPLAIN: Final = re.compile(r"EXPLAIN\b\s*(\(?\s*ANALY[SZ]E\b)?", re.IGNORECASE)
_NOT_A_LINE_END: Final = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Set:
    """amount: as it was written, to be read by dpsql.core.privacy_loss; None to go back to what held at first."""

    name: str
    amount: str | None


@dataclass(frozen=True, slots=True)
class Show:
    """name: one of SETTINGS."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowSummaries:
    """The summaries that there are."""


@dataclass(frozen=True, slots=True)
class ShowCounters:
    """The counters that there are."""


@dataclass(frozen=True, slots=True)
class Explain:
    """sql: the query to explain, behind as many characters as stand before it: spaces, and comments of dpsql."""

    sql: str


Special = Set | Show | Explain | ShowSummaries | ShowCounters | SummaryStatement | CounterStatement


def special(sql: str, dialect: str = "duckdb") -> Special | None:
    """The statement if it is one of these; None for what is to be read as a query.

    Comments around it and its semicolon count for nothing. Raises Rejected: DP906 for EXPLAIN ANALYZE, DP903 for SHOW
    ALL, which SQL's parser cannot read; DP010 for a summary or a counter that cannot be read.
    """
    if len(sql) > MAX_LENGTH:
        return None
    if known := summary_statement(sql) or counter_statement(sql):
        return known
    if not _PERHAPS.search(sql):
        return None
    statements = split_statements(sql, dialect)
    if not statements:
        return None
    first, *others = statements
    if found := _EXPLAIN.match(first.text):
        if found[1]:
            raise _analyze(sql, Span(*found.span(1)).moved(first.start))
        start = first.start + found.end()
        before = first.start - len(first.lead)
        blank = [_NOT_A_LINE_END.sub(" ", part) for part in (sql[:before], sql[first.start : start])]
        return Explain(blank[0] + first.lead + blank[1] + sql[start:])
    if others or len(first.text) > _LONGEST:
        return None
    if found := _SET.fullmatch(first.text):
        bare = found["bare"]
        amount = bare if bare is not None else found["text"] if found["quoted"] is None else found["quoted"]
        return Set(found["name"].lower(), None if bare is not None and bare.upper() == "DEFAULT" else amount)
    if found := _RESET.fullmatch(first.text):
        return Set(found[1].lower(), None)
    if found := _SHOW.fullmatch(first.text):
        return Show(found[1].lower())
    if _SHOW_SUMMARIES.fullmatch(first.text):
        return ShowSummaries()
    if _SHOW_COUNTERS.fullmatch(first.text):
        return ShowCounters()
    if _SHOW_ALL.fullmatch(first.text):
        help = f"SHOW {SETTINGS[0]}  (or {', '.join(SETTINGS[1:])})"
        raise reject("DP903", "settings are shown one by one, not with SHOW ALL", help=[help])
    return None


def _analyze(sql: str, span: Span) -> Error:
    return reject(
        "DP906", "EXPLAIN ANALYZE is refused: it shows times and numbers of rows, which depend on private rows",
        span=span, source=Source(sql), help=["leave ANALYZE out:  EXPLAIN SELECT …"],
        notes=[NOTHING_RAN],
    )  # fmt: skip


def in_full(found: Diagnostic, sql: str) -> Diagnostic:
    """A finding about an Explain's query, shown in the statement that it was taken from."""
    if found.source is None or found.source.name != Source("").name or len(found.source.text) != len(sql):
        return found
    return replace(found, source=Source(sql))


def setting_text(now: Fraction | bool | str) -> str:
    """A setting as a user would write it."""
    if isinstance(now, str):
        return now
    if isinstance(now, bool):
        return "on" if now else "off"
    return amount_text(now)


def amount_text(amount: Fraction) -> str:
    """A setting as a user would write it, exactly: 0.25, 1e-9, 1/3."""
    text = show_spent(amount, 20)
    return text if Fraction(text) == amount else str(amount)
