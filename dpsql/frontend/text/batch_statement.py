"""`DP BATCH (SELECT …; SELECT …)` and `DP BATCH SKIP REFUSED (…)`, as a value.

No parser of queries knows it. Its queries are read by those who answer them, at their places in the statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.lexer import tokens

_NOT_A_LINE_END: Final = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class BatchStatement:
    """queries: what stands in its brackets, behind as many blanks as stand before it. skip_refused: whether queries
    that are refused are left out; else all of them are."""

    queries: str
    skip_refused: bool


def batch_statement(sql: str) -> BatchStatement | None:
    """The batch if a text is one; None for any other. Raises Rejected DP010: it cannot be read."""
    if "batch" not in sql.lower():
        return None
    parts = [t for t in tokens(sql) if t.kind != "comment"]
    if [p.upper for p in parts[:2]] != ["DP", "BATCH"]:
        return None
    while parts[-1].text == ";":
        parts.pop()
    skip = [p.upper for p in parts[2:4]] == ["SKIP", "REFUSED"]
    opening, last = parts[2:][2 * skip :][:1], parts[-1]
    if not opening or opening[0].text != "(" or last.text != ")":
        what = "a batch ends with its bracket" if opening and opening[0].text == "(" else "a batch stands in brackets"
        raise reject(
            "DP010", what, span=Span(parts[0].start, (opening or parts[-1:])[0].end), source=Source(sql),
            help=["DP BATCH (SELECT …; SELECT …)"], notes=[NOTHING_RAN],
        )  # fmt: skip
    inner = opening[0].end
    return BatchStatement(_NOT_A_LINE_END.sub(" ", sql[:inner]) + sql[inner : last.start], skip)
