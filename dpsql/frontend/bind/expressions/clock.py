"""CURRENT_DATE, NOW() and the like: constants of a query, bound once by the policy's clock, like a parameter."""

from __future__ import annotations

import datetime as dt
import re

from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import DATE, TIMESTAMP
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.note import Note, Rank, Topic

DATES = frozenset({"current_date", "today"})
TIMES = frozenset(
    {
        "now",
        "current_timestamp",
        "get_current_timestamp",
        "transaction_timestamp",
        "localtimestamp",
        "current_localtimestamp",
    }
)
_WORDS = re.compile(rf"\b(?:{'|'.join(sorted(DATES | TIMES))})\b", re.IGNORECASE)


def may_ask(text: str) -> bool:
    """Whether a query may ask what time it is. Nothing else in it depends on when it is asked."""
    return _WORDS.search(text) is not None


def moment() -> dt.datetime:
    """Now, in UTC, to the second: asked again within it, a question is the same question."""
    return dt.datetime.now(dt.UTC).replace(microsecond=0, tzinfo=None)


def value(name: str, asked: dt.datetime, span: Span) -> Literal | None:
    """What a function of the clock gives in a query that was asked then; None if it is none."""
    if name in DATES:
        return Literal(asked.date(), DATE, span)
    return Literal(asked, TIMESTAMP, span) if name in TIMES else None


def told(name: str, asked: dt.datetime, zone: str) -> Note:
    """What the reader of a plan and of its answer is told."""
    now = asked.date() if name in DATES else asked
    return Note(f"{name} is {now} ({zone}): a constant of this query", Rank.SOURCE, Topic.CLOCK, name)
