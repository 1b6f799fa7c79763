"""What is shown of counters: their list, and what a statement about one gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpsql.answers.results.summary_rows import Columns
from dpsql.core.ir.types import BOOLEAN, DATE, VARCHAR

LISTED: Columns = (
    ("name", VARCHAR),
    ("on_table", VARCHAR),
    ("first_day", DATE),
    ("last_day", DATE),
    ("made_by", VARCHAR),
    ("price", VARCHAR),
    ("held", BOOLEAN),
    ("state", VARCHAR),
    ("query", VARCHAR),
)
"""Of `SHOW dpsql.counters`. last_day: the last that is counted. price: of each period from the first day on."""
DONE: Columns = (("counter", VARCHAR), ("price", VARCHAR), ("last_day", DATE), ("remark", VARCHAR))
"""Of a statement about one. price: what was charged now, of each period."""

CLOSED: Columns = (("name", VARCHAR), ("first_day", DATE), ("last_day", DATE), ("remark", VARCHAR))
"""Of a statement that closes periods: the days of the table that queries read, then those that each of its counters has
counted."""


def listed(counters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """A row for each `KnownCounter`."""
    return [
        (c.name, c.table, c.first, c.through, c.analyst, str(c.price), c.held, c.state or "goes on", c.query)
        for c in counters
    ]
