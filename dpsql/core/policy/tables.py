"""Tables and columns as the custodian declares them, resolved: what the planner reads.

A *promise* (`enforce == "assume"`) is a claim about the data and about every neighbouring database; nothing checks it
at run time and `policy audit` lists it. An enforced limit (`truncate`, `drop`) is made true by the plan itself.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.policy.computed import Computed
from dpsql.core.policy.derived import Derived
from dpsql.core.policy.growing import Growth
from dpsql.core.policy.server_address import Stored
from dpsql.core.policy.source import SourceCall
from dpsql.core.policy.units import Hop, IdUnit, PathUnit, Protection, RowUnit

Enforce = Literal["assume", "truncate", "drop"]
"""Promised (`assume`), or made true by the plan: excess rows cut (`truncate`) or the whole key left out (`drop`)."""

Bound = Fraction | dt.date | dt.datetime
"""One end of a column's bounds: numbers are exact; DATE gives a date, TIMESTAMP a datetime, TIMESTAMPTZ one in UTC."""

FINEST, COARSEST = Fraction(1, 10**15), Fraction(10**15)
"""What `resolution` of a DOUBLE column may be."""

DomainValue = bool | int | Decimal | float | str | dt.date | dt.datetime
"""A listed value on the Python side, typed by its column: INTEGER int, DECIMAL Decimal, DOUBLE float, DATE date."""


@dataclass(frozen=True, slots=True)
class ValuesDomain:
    """A listed domain, in the custodian's order. `null`: NULL is a group key too."""

    values: tuple[DomainValue, ...]
    null: bool


@dataclass(frozen=True, slots=True)
class TableDomain:
    """The domain is what stands in `column` of the public table `table`. `null`: NULL is a group key too."""

    table: str
    column: str
    null: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column.

    type: as the policy spells it, or None if it is left to the data. sql_type: the same, understood; None if unknown.
    bounds: (lower, upper) with None for an open end; None if no bounds are declared. They become facts only where the
        plan clips.
    search_bounds: a part of ε is to find bounds, which lie within `bounds` if those are given.
    resolution: of a DOUBLE, the smallest difference that counts in a search; None: as `grid` has it.
    nullable: what the policy says, or None if it says nothing; `is_nullable` has the default filled in.
    domain: the public list of group keys, if declared.
    max_length: most elements of a LIST that UNNEST may use.
    derived: what of the data's row it is made of, by whoever reads the data; None: it is the data's column of its name.
    computed: of which columns of its table it is computed, and how. At most one of the two is given.
    """

    name: str
    type: str | None = None
    sql_type: SqlType | None = None
    bounds: tuple[Bound | None, Bound | None] | None = None
    nullable: bool | None = None
    is_nullable: bool = True
    domain: ValuesDomain | TableDomain | None = None
    max_length: int | None = None
    search_bounds: bool = False
    resolution: Fraction | None = None
    derived: Derived | None = None
    computed: Computed | None = None

    @property
    def made_of(self) -> str:
        """What `from:` says, as it is understood; empty for a column of the data."""
        return str(self.derived or self.computed or "")

    @property
    def grid(self) -> Fraction | None:
        """What one integer is worth where nobody declares bounds: 1, 10^-s of a DECIMAL, of a DOUBLE the largest power
        of two that is not above its resolution (default 2^-20). None for a column that is no number, or unknown."""
        match self.sql_type:
            case SqlType(kind=Kind.INTEGER):
                return Fraction(1)
            case SqlType(kind=Kind.DECIMAL, scale=scale):
                return Fraction(1, 10**scale)
            case SqlType(kind=Kind.DOUBLE):
                return power_of_two(self.resolution or DEFAULT_RESOLUTION)
        return None

    @property
    def is_list(self) -> bool:
        """True for a LIST column."""
        return self.sql_type is not None and self.sql_type.kind is Kind.LIST


DEFAULT_RESOLUTION = Fraction(1, 2**20)
"""Of a DOUBLE whose policy says nothing: integers up to 2⁶² reach 4.4·10¹²."""

MOST_STEPS = 2**62
"""What a search adds up is saturated to ± this many steps of a grid."""


def power_of_two(x: Fraction) -> Fraction:
    """The largest power of two that is not above a positive number."""
    found = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length())
    return found if found <= x else found / 2


@dataclass(frozen=True, slots=True)
class Key:
    """No two rows agree on `columns` (`unique`, `primary_key`). SQL's meaning: NULLs never agree."""

    columns: tuple[str, ...]
    enforce: Enforce = "assume"

    @property
    def assumed(self) -> bool:
        """True if this is a promise."""
        return self.enforce == "assume"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Every non-NULL combination of `columns` occurs in `references` of `table`: a promise that no noise rests on."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frequency:
    """At most `rows` rows agree on `columns` (`max_frequency`)."""

    columns: tuple[str, ...]
    rows: int
    enforce: Enforce = "truncate"

    @property
    def assumed(self) -> bool:
        """True if this is a promise."""
        return self.enforce == "assume"


@dataclass(frozen=True, slots=True)
class RowLimit:
    """At most `rows` rows of one unit (`max_rows_per_unit`). "truncate": bounded by the plan at the release.

    nobody_has_more: a promise beside an enforced limit, that it takes nothing away. No noise rests on it, only what
        is said of intervals.
    """

    rows: int
    enforce: Enforce = "truncate"
    nobody_has_more: bool = field(default=False, repr=False)

    @property
    def assumed(self) -> bool:
        """True if this is a promise."""
        return self.enforce == "assume"


@dataclass(frozen=True, slots=True)
class Carry:
    """A table whose columns a prepared copy carries.

    by: the columns that name its key, where several do. columns: those that are wanted beside its key; empty: all.
    """

    table: str
    by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """What a copy carries of another table (core/policy/carried.py): of the row whose `keys` are its `links`.

    links: columns of the copy. keys: columns of the other table. columns: name there → the column of the copy.
    """

    table: str
    links: tuple[str, ...]
    keys: tuple[str, ...]
    columns: Mapping[str, Column] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Copied:
    """A table as it is read from a prepared copy (core/policy/prepared.py).

    owner: a column beside the declared ones that holds the owner; None where a declared one does. hop: the foreign key
    that the owner was found through. cut: whether rows above the limit are missing. total: one that says then how many
    rows the owner had. units: name of a declared column → one beside them with its grid integers. identity: of this
    copy alone. carried: what it carries of other tables.
    """

    owner: Column | None
    hop: Hop | None
    cut: bool
    total: Column | None = None
    units: Mapping[str, Column] = field(default_factory=dict, hash=False)
    identity: str = ""
    carried: tuple[Carried, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table.

    protection: whose rows these are; None exactly for public tables.
    source: the reader call that the table is made of; None if the table lives in the policy's database or is
        registered by the user.
    size: the exact public number of rows (replace-one row units only).
    search_rows: a part of ε is to find how many rows of one unit count. `max_rows_per_unit` is then the most that it
        may find, and holds wherever nothing is searched or found.
    columns: declared name → Column, in order; empty for a public table that leaves them to the data.
    prepared: whether queries read a prepared copy; "auto": where there is one of the data as it is.
    carries: other tables whose columns the copy carries beside each row.
    copied: of a table that is read from one, what it has besides.
    stored: its place in the policy's server; None if the data is no server's.
    grows: how rows are added to it; None: it is read as it is.
    per, period_id: where the unit is one id in one period (core/policy/period_ids.py), the column that says whose a row
        is, and a further one that holds both; no query can name it.
    belongs_to_unit: columns each of whose values is one unit's own. A promise that no noise rests on; what it does, a
        plan says itself, so that nothing else compares it.
    """

    name: str
    public: bool = False
    protection: Protection | None = None
    source: SourceCall | None = None
    primary_key: Key | None = None
    unique: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    max_frequency: tuple[Frequency, ...] = ()
    max_rows_per_unit: RowLimit | None = None
    max_groups_per_unit: int | None = None
    max_rows_per_group: int | None = None
    size: int | None = None
    columns: Mapping[str, Column] = field(default_factory=dict, hash=False)
    search_rows: bool = False
    prepared: Literal["true", "auto"] | None = None
    carries: tuple[Carry, ...] = field(default=(), compare=False)
    copied: Copied | None = None
    stored: Stored | None = None
    grows: Growth | None = None
    belongs_to_unit: tuple[str, ...] = field(default=(), compare=False)
    per: str | None = field(default=None, compare=False)
    period_id: Column | None = field(default=None, compare=False)

    def column(self, name: str) -> Column | None:
        """The column of this name, whatever its case; None if it is not declared."""
        found = self.columns.get(name)
        if found is not None:
            return found
        wanted = name.casefold()
        return next((c for c in self.all_columns if c.name.casefold() == wanted), None)

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The declared columns, and those that queries cannot name: ids of a period; of a copy owners, totals, grid
        integers, and what it carries.
        """
        if self.copied is None:
            return (*self.columns.values(), *(() if self.period_id is None else (self.period_id,)))
        more = (c for c in (self.copied.owner, self.copied.total) if c is not None)
        carried = (c for each in self.copied.carried for c in each.columns.values())
        return (*self.columns.values(), *more, *self.copied.units.values(), *carried)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The primary key, if any, and all `unique` keys."""
        return (*(() if self.primary_key is None else (self.primary_key,)), *self.unique)

    @property
    def unit(self) -> str | None:
        """The name of the table's privacy unit; None if it is public."""
        return None if self.protection is None else self.protection.name

    @property
    def id_column(self) -> Column | None:
        """The column that `unit: {column: …}` names, which holds the unit's id; beside `per: period`, a part of it."""
        return self.column(self.per or self.protection.column) if isinstance(self.protection, IdUnit) else None

    @property
    def at_most(self) -> int | None:
        """The most rows of one unit that a search may find (`at_most`); None if it may find any number."""
        return self.max_rows_per_unit.rows if self.search_rows and self.max_rows_per_unit is not None else None

    @property
    def searched(self) -> bool:
        """True if a search is to find its limit, or bounds of a column."""
        return self.search_rows or any(column.search_bounds for column in self.columns.values())

    @property
    def by_rows(self) -> bool:
        """True if the unit is a number of rows."""
        return isinstance(self.protection, RowUnit)

    @property
    def by_id(self) -> bool:
        """True if the unit is an id, in a column or at the end of a path."""
        return isinstance(self.protection, (IdUnit, PathUnit))
