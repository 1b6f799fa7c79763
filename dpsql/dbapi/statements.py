"""What a cursor understands besides queries: `SET epsilon = 0.2`, `RESET epsilon`, `EXPLAIN SELECT …`.

None of them spends anything, and nothing of their text reaches an engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_START = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_SET = re.compile(
    r"(?:SET\s+(?:SESSION\s+)?(?P<set>\w+)\s*(?:=|\bTO\b)\s*(?P<value>'[^']*'|[^\s;']+)|RESET\s+(?P<reset>\w+))\s*;?\s*",
    re.IGNORECASE,
)
_EXPLAIN = re.compile(r"EXPLAIN\b\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Set:
    """amount: as it was written, to be read by dpsql.loss; None to go back to what the session was opened with."""

    name: str
    amount: str | None


@dataclass(frozen=True, slots=True)
class Explain:
    """sql: the query to explain."""

    sql: str


def special(sql: str) -> Set | Explain | None:
    """The statement if it is one of these; None for what is to be read as a query."""
    start = _START.match(sql)
    at = 0 if start is None else start.end()
    if found := _SET.fullmatch(sql, at):
        if found["reset"]:
            return Set(found["reset"].lower(), None)
        value = found["value"].strip("'")
        return Set(found["set"].lower(), None if value.upper() == "DEFAULT" else value)
    if found := _EXPLAIN.match(sql, at):
        return Explain(sql[found.end() :])
    return None
