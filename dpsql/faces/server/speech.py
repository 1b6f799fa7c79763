"""Statements that are no query: SHOW budget, history or summaries, and EXPLAIN in its forms, all of which are free;
batches; and what makes or drops a summary."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from dpsql.api.session_statements import Explain, in_full, special
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, SqlType
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.faces.server.asked import DIALECT
from dpsql.frontend.text.batch_statement import batch_statement
from dpsql.frontend.text.counter_statements import CreateCounter, DropCounter, ReceiveCounter, TickCounter
from dpsql.frontend.text.query_comments import settings_before
from dpsql.frontend.text.split import split_statements
from dpsql.frontend.text.summary_statements import (
    CREATE,
    DROP,
    CreateSummary,
    DropSummary,
    SummaryStatement,
    summary_statement,
)

Form = Literal["text", "json", "cost"]

Members = Literal["", "all", "skip"]

_OPTIONS: Final = re.compile(r"(EXPLAIN\b\s*)\((?!\s*(?:SELECT|WITH|VALUES|FROM)\b)([^()]*)\)", re.IGNORECASE)
_FORMS: Final[dict[str, Form]] = {
    "FORMAT TEXT": "text",
    "FORMAT JSON": "json",
    "COST": "cost",
    "COSTS": "text",
    "VERBOSE": "text",
}
_SHOW: Final = re.compile(
    r"SHOW\s+(?:(?:dpsql\s*\.\s*)?(budget|history|summaries)|dpsql\s*\.\s*(tables))\s*;?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """sql: the query that is meant, at its place in the statement. form: of an EXPLAIN; None for what is answered.

    command: the first word of its tag. batch: of `DP BATCH (…)`, whether "all" of its queries have to be answered, or
    those that are refused are left out ("skip"); empty of anything else. summary: what makes or drops one, or,
    explained, would make it.
    """

    sql: str
    form: Form | None = None
    command: str = "SELECT"
    batch: Members = ""
    summary: SummaryStatement | None = None


@lru_cache(maxsize=64)
def spoken(sql: str) -> Spoken:
    """What a statement asks, read once for all steps on its way.

    Raises Rejected: DP906 for EXPLAIN ANALYZE, DP903 for an unknown option; DP010 for what is begun and not ended;
    DP902 for a comment that sets nothing.
    """
    form: Form = "text"
    written = sql
    first = next(iter(split_statements(sql, DIALECT)), None)
    if first is not None and (shown := _SHOW.fullmatch(first.text)):
        return Spoken(f"SELECT * FROM dpsql.{shown[1] or shown[2]}", command="SHOW")
    found = None if first is None else _OPTIONS.match(first.text)
    if first is not None and found is not None and "ANALY" not in found[2].upper():
        form = _form(found[2])
        start, end = first.start + found.start(2) - 1, first.start + found.end()
        sql = sql[:start] + " " * (end - start) + sql[end:]
    match special(sql, DIALECT):
        case Explain(sql=text):
            summary = _explained(text, form, written)
            return _batched(text, form, "EXPLAIN") or Spoken(text, form, "EXPLAIN", summary=summary)
        case CreateSummary() as made:
            return Spoken(sql, command=CREATE, summary=made)
        case DropSummary() as dropped:
            return Spoken(sql, command=DROP, summary=dropped)
        case CreateCounter() | DropCounter() | ReceiveCounter() | TickCounter():
            raise _not_here()
    return _batched(sql, None, "BATCH") or Spoken(sql)


def _not_here() -> Rejected:
    return reject(
        "DP012", "counters are made, received and dropped where the data is opened, not at a server",
        help=["dpsql query POLICY \"CREATE DP COUNTER …\""],
    )  # fmt: skip


def _batched(sql: str, form: Form | None, command: str) -> Spoken | None:
    """What `DP BATCH [SKIP REFUSED] (…)` asks; None for anything else. Raises Rejected DP010, DP903, DP902."""
    read = batch_statement(sql)
    if read is None:
        return None
    if form == "json":
        raise reject("DP903", "a batch is explained as text", help=["EXPLAIN DP BATCH (…)"])
    settings_before(Source(sql), DIALECT)  # where one stands that would not hold
    return Spoken(sql, form, command, "skip" if read.skip_refused else "all")


def _explained(text: str, form: Form, sql: str) -> CreateSummary | None:
    """The summary that is explained; None for anything else. Raises Rejected DP010, DP012, DP903."""
    try:
        summary = summary_statement(text)
    except Rejected as refusal:
        refusal.diagnostics = tuple(in_full(d, sql) for d in refusal.diagnostics)
        raise
    if isinstance(summary, DropSummary):
        raise reject("DP012", "dropping a summary is free: there is nothing to explain", help=[summary.sql])
    if summary is not None and form == "json":
        raise reject("DP903", "a summary is explained as text", help=[f"EXPLAIN {summary.sql}"])
    return summary


def _form(options: str) -> Form:
    form: Form = "text"
    for option in options.split(","):
        word = " ".join(option.upper().split())
        known = _FORMS.get(word)
        if known is None:
            raise reject(
                "DP903", f"EXPLAIN has no option {word}", help=["EXPLAIN (COST) SELECT …", "EXPLAIN (FORMAT JSON) …"]
            )
        form = known if known != "text" else form
    return form


EXPLAINED: Final[dict[Form, tuple[tuple[str, SqlType], ...]]] = {
    "text": (("QUERY PLAN", VARCHAR),),
    "json": (("QUERY PLAN", VARCHAR),),
    "cost": (
        ("price", VARCHAR),
        ("column", VARCHAR),
        ("error", DOUBLE),
        ("left", VARCHAR),
        ("queries_left", BIGINT),
    ),
}
"""The columns of each form."""
