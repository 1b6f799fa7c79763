"""What binding counts and hands out: numbers of columns, and values of parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from dpsql.core.ir.expressions import Column, Literal, LiteralValue
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.types import DATE, SqlType
from dpsql.core.policy.growing import close_first
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.diagnostic import Mark, Span
from dpsql.diagnostics.errors import Rejected, reject, too_large
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.diagnostics.words import in_digits, small
from dpsql.frontend.bind.expressions import clock, literals
from dpsql.frontend.bind.expressions.unknown_values import Unknowns

Rows = Sequence[tuple[LiteralValue, ...]]


@dataclass(frozen=True, slots=True)
class GivenRelation:
    """Public rows under a name of the schema `dpsql`.

    version: tells rows of one name apart. of_days: for one that is asked with two days, `name(DATE '…', DATE '…')`, in
    place of its rows; None where a day is none of its days.
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    version: str
    rows: Rows = field(default=(), repr=False, compare=False)
    of_days: Callable[[dt.date, dt.date], Rows | None] | None = field(default=None, repr=False, compare=False)


MOST_COLUMNS = 20_000
"""Most columns of all parts of a query together: a WITH query is bound at each use, so nesting multiplies."""


MOST_TABLES = 100
"""Most tables a query may read, counted at each use."""
MOST_LEAVES = 1_000
"""Most relations that read no other, tables and constants, counted at each use: joined with itself in each of twelve
WITH queries, a single row is read 4,096 times."""
_REPAIR = "its WITH queries are read again at every use: use each of them fewer times"


@dataclass(slots=True)
class Numbering:
    """Gives columns their plan-wide numbers, and counts the tables that are read, and all leaves of the plan.

    lists: whether a list of quantiles was made anywhere. made: whether any table that is read has columns that the
    policy makes of values inside of others.
    """

    counter: count[int] = field(default_factory=lambda: count(1))
    tables: int = 0
    leaves: int = 0
    lists: bool = False
    made: bool = False

    def leaf(self, span: Span | None = None) -> None:
        """One more relation is read that reads no other. Raises Rejected DP101 if there are too many."""
        self.leaves += 1
        if self.leaves > MOST_LEAVES:
            raise too_large(f"the query is too large: it reads more than {MOST_LEAVES:,} relations", span, _REPAIR)

    def table(self, span: Span | None = None) -> None:
        """One more table is read. Raises Rejected DP101 if there are too many."""
        self.leaf(span)
        self.tables += 1
        if self.tables > MOST_TABLES:
            raise too_large(f"the query reads more than {MOST_TABLES} tables", span, _REPAIR)

    def column(self, name: str, type_: SqlType, span: Span | None = None) -> Column:
        """A new column. Raises Rejected DP101 if the query has too many."""
        number = next(self.counter)
        if number > MOST_COLUMNS:
            raise too_large(f"the query is too large: more than {MOST_COLUMNS:,} columns in all parts", span, _REPAIR)
        return Column(number, name, type_, span)


@dataclass(slots=True)
class Parameters:
    """Values for `?`, `$1` and `$name`, and of the clock; remembers which were used.

    asked: when the query is asked, by the clock of the zone. told: which values of the clock and of the ledger it
    reads, in words. dialect: of its text. zone: whose clock shows a TIMESTAMPTZ. closed: what is closed of a growing
    table; None: that is not known here. table: of a name. relations: that are no tables of the
    policy.
    """

    values: Sequence[Any] | Mapping[str, Any] | Unknowns
    asked: dt.datetime = field(default_factory=clock.moment)
    used: set[str] = field(default_factory=set)
    told: dict[Note, None] = field(default_factory=dict)
    dialect: str = "duckdb"
    zone: str = "UTC"
    closed: Callable[[str], Closed | None] = lambda table: None
    table: Callable[[str], Table | None] = lambda name: None
    relations: Sequence[GivenRelation] = ()

    def last_closed(self, name: str, span: Span) -> Literal:
        """The last closed day of a growing table; where nobody knows it, the last of its first period.

        Raises Rejected DP102, DP106, DP017.
        """
        table = self.table(name)
        if table is None:
            raise reject("DP102", f"table {name} does not exist", span=span, help=["last_closed('TABLE')"])
        if table.grows is None:
            raise reject(
                "DP106", f"last_closed: {table.name} does not grow", span=span,
                help=["leave it out: the table is read as it is"],
            )  # fmt: skip
        known = self.closed(table.name)
        days = table.grows.readable(known)
        if not days:
            raise reject("DP017", f"{table.name}: no period is closed yet", span=span, help=[close_first(table.name)])
        last = days[-1][1]
        if last is None:
            unknown = f"last_closed('{table.name}') is not known here: its first period stands for it"
            self.told[Note(unknown, Rank.SOURCE, Topic.CLOCK, f"last_closed('{table.name}')")] = None
            return Literal(table.grows.ends(table.grows.first), DATE, span)
        told = f"last_closed('{table.name}') is {last}: a constant of this query"
        self.told[Note(told, Rank.SOURCE, Topic.CLOCK, f"last_closed('{table.name}')")] = None
        return Literal(last, DATE, span)

    def clock(self, name: str, span: Span) -> Literal | None:
        """What CURRENT_DATE, NOW() and the like give; None for any other name."""
        found = clock.value(name, self.asked, span)
        if found is not None:
            self.told[clock.told(name, self.asked, self.zone)] = None
        return found

    def take(self, name: str, span: Span) -> Literal:
        """The literal for a placeholder (`?` was numbered by `parse`). Raises Rejected DP013 if there is none."""
        if isinstance(self.values, Unknowns):
            return self.values.take(name, span)
        return literals.from_python(self.value(name, span), span)

    def value(self, name: str, span: Span) -> Any:
        """The value itself. Raises Rejected DP013 if there is none."""
        assert not isinstance(self.values, Unknowns)
        numbered = name[:1].isdigit()
        if isinstance(self.values, Mapping):
            if name not in self.values or (numbered and (not name.isdigit() or name.startswith("0"))):
                raise self._missing(name, span)
            value = self.values[name]
        else:
            position = small(name) or 0
            if not 1 <= position <= len(self.values):
                raise self._missing(name, span)
            value = self.values[position - 1]
        self.used.add(name)
        return value

    def _missing(self, name: str, span: Span) -> Rejected:
        assert not isinstance(self.values, Unknowns)
        given = (
            f"given: {', '.join(map(in_digits, self.values)) or 'none'}"
            if isinstance(self.values, Mapping)
            else f"given: {len(self.values)}"
        )
        how = "parameters={'name': value} for $name" if not name.isdigit() else "parameters=[value, …] for ? and $1"
        return reject(
            "DP013", f"no value was given for parameter ${name}", span=span, help=[f"pass  {how}"], notes=[given],
            mark=Mark.NO_VALUE,
        )  # fmt: skip

    def unused(self) -> list[str]:
        """Names (or positions) of values that no placeholder asked for."""
        if isinstance(self.values, Unknowns):
            return []
        names = list(self.values) if isinstance(self.values, Mapping) else [str(i + 1) for i in range(len(self.values))]
        return [in_digits(n) for n in names if n not in self.used]  # a mapping's keys may be anything
