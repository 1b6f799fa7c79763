"""Statements that are no query: SHOW budget, history, summaries, …, and EXPLAIN in its forms, all of which are free;
batches; and what is about a summary, a counter or the periods of a growing table."""

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
from dpsql.frontend.text import counter_statements as c
from dpsql.frontend.text import period_statements as p
from dpsql.frontend.text.batch_statement import batch_statement
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
    r"SHOW\s+(?:(?:dpsql\s*\.\s*)?(budget|history|summaries|counters|periods)|dpsql\s*\.\s*(tables))\s*;?",
    re.IGNORECASE,
)


OwnStatement = SummaryStatement | c.CounterStatement | p.PeriodStatement
_TAGS: Final[dict[type[OwnStatement], str]] = {
    CreateSummary: CREATE, DropSummary: DROP, c.CreateCounter: c.CREATE, c.DropCounter: c.DROP,
    c.ReceiveCounter: c.RECEIVE, c.TickCounter: c.TICK, p.ClosePeriods: p.CLOSE, p.ReopenPeriods: p.REOPEN,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spoken:
    """sql: the query that is meant, at its place in the statement. form: of an EXPLAIN; None for what is answered.

    command: the first word of its tag. batch: of `DP BATCH (…)`, whether "all" of its queries have to be answered, or
    those that are refused are left out ("skip"); empty of anything else. own: what is about a summary, a counter or
    periods, also one that is explained.
    """

    sql: str
    form: Form | None = None
    command: str = "SELECT"
    batch: Members = ""
    own: OwnStatement | None = None


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
    if (periods := p.period_statement(sql)) is not None:
        return Spoken(sql, command=_TAGS[type(periods)], own=periods)
    match special(sql, DIALECT):
        case Explain(sql=text):
            own = _explained(text, form, written)
            return _batched(text, form, "EXPLAIN") or Spoken(text, form, "EXPLAIN", own=own)
        case (
            CreateSummary() | DropSummary() | c.CreateCounter() | c.DropCounter() | c.ReceiveCounter() | c.TickCounter()
        ) as own:
            return Spoken(sql, command=_TAGS[type(own)], own=own)
    return _batched(sql, None, "BATCH") or Spoken(sql)


def _batched(sql: str, form: Form | None, command: str) -> Spoken | None:
    """What `DP BATCH [SKIP REFUSED] (…)` asks; None for anything else. Raises Rejected DP010, DP903, DP902."""
    read = batch_statement(sql)
    if read is None:
        return None
    if form == "json":
        raise reject("DP903", "a batch is explained as text", help=["EXPLAIN DP BATCH (…)"])
    settings_before(Source(sql), DIALECT)  # where one stands that would not hold
    return Spoken(sql, form, command, "skip" if read.skip_refused else "all")


def _explained(text: str, form: Form, sql: str) -> OwnStatement | None:
    """The summary or counter that is explained; None for anything else. Raises Rejected DP010, DP012, DP903."""
    try:
        own = summary_statement(text) or c.counter_statement(text) or p.period_statement(text)
    except Rejected as refusal:
        refusal.diagnostics = tuple(in_full(d, sql) for d in refusal.diagnostics)
        raise
    match own:
        case DropSummary():
            raise reject("DP012", "dropping a summary is free: there is nothing to explain", help=[own.sql])
        case c.DropCounter():
            raise reject("DP012", "dropping a counter is free: there is nothing to explain", help=[own.sql])
        case p.ClosePeriods() | p.ReopenPeriods():
            raise reject("DP012", "closing periods is free: there is nothing to explain", help=[text.strip()])
    if own is not None and form == "json":
        what = "summary" if isinstance(own, CreateSummary) else "counter"
        raise reject("DP903", f"a {what} is explained as text", help=[f"EXPLAIN {own.sql}"])
    return own


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
