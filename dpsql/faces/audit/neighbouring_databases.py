"""Neighbouring databases from a few choices: how many rows one unit has, and what stands in their columns.

A *block* is the rows of one privacy unit in all tables. A database is blocks of other units and, on one side only, the
block of the unit that the databases differ in. Rows that would break a promise of the policy are left out, so that
both databases are ones that the plan may meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dpsql.core.ir.types import INTEGER, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table, TableDomain
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit
from dpsql.engines.literals import NULL, fresh
from dpsql.engines.synthetic import Row
from dpsql.faces.audit.plan_reading import Place, PlanReading
from dpsql.faces.audit.world import World
from dpsql.faces.audit.worst_values import another, between_ends, pool

Mode = Literal["same", "group", "row"]
Tables = Mapping[str, tuple[Row, ...]]
MINE, INSTEAD, OTHERS, CROWD, AROUND = 1, 2, 11, 1001, 10_001
"""Numbers of blocks."""


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Which value of its pool a column has: one, or the next one for every group or every row."""

    at: int = 0
    mode: Mode = "same"


@dataclass(frozen=True, slots=True)
class Profile:
    """A block: for each table groups × rows per group, for each column a choice."""

    sizes: Mapping[str, tuple[int, int]]
    choices: Mapping[Place, ColumnChoice]


@dataclass(frozen=True, slots=True)
class CandidatePair:
    """Two neighbouring databases. In both there are `others` blocks like `beside`, and `crowd` ones in the groups of
    those that differ; in one there is `mine`.

    around: further blocks of the unit in both, so many of each kind. instead: where units are replaced, the block that
    the other database has; else None.
    """

    unit: str
    mine: Profile
    beside: Profile
    others: int = 1
    instead: Profile | None = None
    crowd: int = 0
    around: tuple[tuple[Profile, int], ...] = ()

    @property
    def beside_them(self) -> int:
        """How many units stand in the same groups as those that differ."""
        return self.crowd + sum(times for _, times in self.around)


@dataclass(frozen=True, slots=True)
class NeighbouringDatabases:
    """The rows of the private tables of both databases; they differ in one unit: it has `mine` or `instead`."""

    a: Tables
    b: Tables
    mine: Tables
    instead: Tables


class DatabaseMaker:
    """Makes databases for a plan."""

    def __init__(self, policy: Policy, plan_reads: PlanReading, world: World) -> None:
        self.policy, self.reads, self.world = policy, plan_reads, world
        self.tables = _ordered(policy, plan_reads.private)
        self.pools: dict[Place, tuple[str, ...]] = {}
        self.looked_up = {t.name: list(self._looked_up(t)) for t in self.tables}
        self._ids = [v for t in self.tables if t.id_column for v in self._listed((t.name, t.id_column.name))]
        for table in self.tables:
            world.table_sql(table.name)
            for column in table.columns.values():
                place = (table.name, column.name)
                found = pool(column, self._listed(place), plan_reads.compared.get(place, ()))
                between = between_ends(column) if place in plan_reads.ordered else ()
                self.pools[place] = tuple(dict.fromkeys((*found[:2], *between, *found[2:])))

    def _listed(self, place: Place) -> list[str]:
        """Values that match those of public tables."""
        table, column = self.policy.tables[place[0]], self.policy.tables[place[0]].columns[place[1]]
        public = [p for p in self.reads.partners.get(place, ()) if self.policy.tables[p[0]].public]
        for key in table.foreign_keys:
            if column.name in key.columns and key.table in self.reads.public:
                public.append((key.table, key.references[key.columns.index(column.name)]))
        relevant = self.reads.used | self.reads.keys | self.reads.varied
        if isinstance(column.domain, TableDomain) and place in relevant:
            public.append((column.domain.table, column.domain.column))
        found = [v for p in public for v in self.world.public_values(*p)[:8]]
        return [*found, *self.reads.listed.get(place, ())]

    def _looked_up(self, table: Table) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
        """Sets of columns that are joined to one public table together, and some of its rows there."""
        by_table: dict[str, dict[str, str]] = {}
        for column in table.columns:
            for other, key in sorted(self.reads.partners.get((table.name, column), ())):
                if self.policy.tables[other].public:
                    by_table.setdefault(other, {})[column] = key
        for other, columns in by_table.items():
            if len(columns) > 1:
                yield tuple(columns), self.world.public_rows(other, list(columns.values()))[:8]

    def id_of(self, number: int, type_: SqlType) -> str:
        """The id of a block; one that public tables know, where the query looks ids up there."""
        at = {MINE: 0, INSTEAD: 1}.get(number, number - OTHERS + 2)
        return self._ids[at] if at < len(self._ids) else fresh(number, type_)

    def of_unit(self, unit: str) -> list[Table]:
        """The tables that change with a unit."""
        return [t for t in self.tables if t.unit == unit]

    def make(self, candidate: CandidatePair) -> NeighbouringDatabases:
        """The rows of both databases."""
        sides = []
        for number, profile in ((MINE, candidate.mine), (INSTEAD, candidate.instead)):
            filler = _Filler(self)
            for i in range(candidate.others):
                filler.block(candidate.beside, OTHERS + i, self.tables)
            alike = [_thinned(p) for p in (candidate.mine, candidate.instead) if p is not None]
            for i in range(candidate.crowd):
                filler.block(alike[i % len(alike)], CROWD + i, self.of_unit(candidate.unit))
            around = (own for own, times in candidate.around for _ in range(times))
            for i, own in enumerate(around):
                filler.block(own, AROUND + i, self.of_unit(candidate.unit))
            before = {name: len(rows) for name, rows in filler.rows.items()}
            if profile is not None:
                filler.block(profile, number, self.of_unit(candidate.unit))
            new = {n: tuple(rows[before.get(n, 0) :]) for n, rows in filler.rows.items()}
            sides.append(({t.name: tuple(filler.rows.get(t.name, ())) for t in self.tables}, new))
        (a, mine), (b, instead) = sides
        return NeighbouringDatabases(
            a, b, {n: r for n, r in mine.items() if r}, {n: r for n, r in instead.items() if r}
        )


def _thinned(profile: Profile) -> Profile:
    """A block in the same groups, with one row in each."""
    return replace(profile, sizes={name: (groups, min(rows, 1)) for name, (groups, rows) in profile.sizes.items()})


def one_row_per_id(table: Table) -> bool:
    """Whether the policy promises it."""
    return isinstance(table.protection, IdUnit) and any(
        k.columns == (table.protection.column,) and k.assumed for k in table.keys
    )


def _ordered(policy: Policy, names: Iterable[str]) -> list[Table]:
    """Tables after those that they refer to."""
    wanted, done = [policy.tables[n] for n in names], list[Table]()
    while wanted:
        left = {t.name for t in wanted}
        ready = [t for t in wanted if not left & (_referred(t) - {t.name})] or wanted[:1]
        done += ready
        wanted = [t for t in wanted if t not in ready]
    return done


def _referred(table: Table) -> set[str]:
    found = {key.table for key in table.foreign_keys}
    if isinstance(table.protection, PathUnit):
        found.add(table.protection.path[0].table)
    return found


@dataclass(slots=True)
class _Filler:
    """Writes blocks row by row and keeps promises."""

    maker: DatabaseMaker
    rows: dict[str, list[Row]] = field(default_factory=dict)
    counts: dict[tuple[str, tuple[str, ...], tuple[str, ...]], int] = field(default_factory=dict)
    numbers: dict[Place, int] = field(default_factory=dict)
    periods: dict[tuple[str, int], str] = field(default_factory=dict)

    def block(self, profile: Profile, number: int, tables: list[Table]) -> None:
        own: dict[str, list[dict[str, str]]] = {}
        for table in tables:
            groups, rows = profile.sizes.get(table.name, (0, 0))
            for group in range(groups):
                for at in range(rows):
                    row = self._row(table, profile, number, group, group * rows + at, own)
                    if row is not None and self._keeps(table, row, number):
                        own.setdefault(table.name, []).append(row)
                        self.rows.setdefault(table.name, []).append(tuple(row.values()))

    def _row(
        self, table: Table, profile: Profile, number: int, group: int, at: int, own: dict[str, list[dict[str, str]]]
    ) -> dict[str, str] | None:
        set_: dict[str, str] = {}
        match table.protection:
            case IdUnit():
                owner = table.id_column
                assert owner is not None
                set_[owner.name] = self.maker.id_of(number, owner.sql_type or INTEGER)
                if table.per is not None and table.grows is not None:  # all rows of the unit are of one period
                    place = (table.name, table.grows.by)
                    days = [day for day in self.maker.pools[place] if day != NULL]
                    chosen = days[profile.choices.get(place, ColumnChoice()).at % len(days)]
                    set_[table.grows.by] = self.periods.setdefault((table.unit or "", number), chosen)
            case PathUnit(path=path):
                if not own.get(path[0].table):
                    return None
                target = own[path[0].table][group % len(own[path[0].table])]
                set_ |= {c: target[r] for c, r in zip(path[0].columns, path[0].references, strict=True)}
            case RowUnit() | None:
                pass
        for key in table.foreign_keys:
            targets = own.get(key.table)
            if targets and not set_.keys() & set(key.columns):
                target = targets[group % len(targets)]
                set_ |= {c: target[r] for c, r in zip(key.columns, key.references, strict=True)}
        for columns, rows in self.maker.looked_up[table.name]:
            choice = profile.choices.get((table.name, columns[0]), ColumnChoice())
            index = choice.at + {"same": 0, "group": group, "row": at}[choice.mode]
            if index < len(rows):
                set_ = dict(zip(columns, rows[index], strict=True)) | set_
        row = {}
        unique = {k.columns for k in table.keys if k.assumed}
        for column in table.columns.values():
            place = (table.name, column.name)
            if column.name in set_:
                row[column.name] = set_[column.name]
            elif (column.name,) in unique:
                self.numbers[place] = self.numbers.get(place, 0) + 1
                row[column.name] = fresh(self.numbers[place], column.sql_type or INTEGER)
            else:
                row[column.name] = self._chosen(place, profile.choices.get(place, ColumnChoice()), group, at)
        return row

    def _chosen(self, place: Place, choice: ColumnChoice, group: int, at: int) -> str:
        values = self.maker.pools[place]
        if choice.mode == "same":
            return values[choice.at % len(values)]
        index = choice.at + (group if choice.mode == "group" else at)
        column = self.maker.policy.tables[place[0]].columns[place[1]]
        if index < len(values) or column.domain is not None or column.bounds is not None:
            return values[index % len(values)]
        return another(column, index)

    def _keeps(self, table: Table, row: dict[str, str], number: int) -> bool:
        """Whether the row keeps every promise; if so it is counted."""
        limits: list[tuple[tuple[str, ...], int]] = [(k.columns, 1) for k in table.keys if k.assumed]
        limits += [(f.columns, f.rows) for f in table.max_frequency if f.assumed]
        found = {(c, tuple(row[x] for x in c)): most for c, most in limits if all(row[x] != NULL for x in c)}
        limit = table.max_rows_per_unit
        if limit is not None and limit.assumed:
            found[("unit of",), (str(number),)] = limit.rows
        if any(self.counts.get((table.name, *key), 0) >= most for key, most in found.items()):
            return False
        for key in table.foreign_keys:
            wanted = tuple(row[c] for c in key.columns)
            if NULL not in wanted and not self._refers(key.table, key.references, wanted):
                return False
        for counted in found:
            self.counts[table.name, *counted] = self.counts.get((table.name, *counted), 0) + 1
        return True

    def _refers(self, table: str, columns: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
        if table in self.maker.reads.public:
            return all(w in self.maker.world.public_values(table, c) for c, w in zip(columns, wanted, strict=True))
        if table not in self.maker.reads.private:
            return True
        if any(k.columns == columns and k.assumed for k in self.maker.policy.tables[table].keys):
            return self.counts.get((table, columns, wanted), 0) > 0
        names = list(self.maker.policy.tables[table].columns)
        at = [names.index(c) for c in columns]
        return any(tuple(row[i] for i in at) == wanted for row in self.rows.get(table, ()))
