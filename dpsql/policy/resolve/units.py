"""Whose rows each table holds: `unit:` of every table, read together with `units:` and the paths between tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from dpsql.core.ir.types import Kind
from dpsql.core.policy.period_ids import hidden_name
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.units import DEFAULT_UNIT, Hop, IdUnit, Neighbours, PathUnit, Protection, RowUnit, Unit
from dpsql.policy.file.file_format import PolicyFile, TableFile, TableUnitFile
from dpsql.policy.file.form import UNITS
from dpsql.policy.issues import Issues, did_you_mean, listed
from dpsql.policy.resolve.period_units import id_of, may_be_per_period, same_periods
from dpsql.policy.resolve.policy_names import PolicyScope


@dataclass(slots=True)
class UnitResolver:
    """Resolves the protections of all tables; mistakes go to the scope's issues."""

    scope: PolicyScope
    done: dict[str, Protection | None] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    @property
    def issues(self) -> Issues:
        """Where mistakes go."""
        return self.scope.issues

    def resolve(self) -> dict[str, Protection | None]:
        """Protection of every table; None for public tables and where a mistake was noted."""
        for name in self.scope.file.tables:
            self.table(name)
        return self._one_neighbour_relation_per_unit()

    def table(self, name: str) -> Protection | None:
        """Protection of one table; remembers, so that paths may ask for tables further down."""
        if name in self.done:
            return self.done[name]
        loc: Loc = ("tables", name, "unit")
        if name in self.open:
            self.issues.add(loc, f"goes in a circle: {' → '.join([*self.open[self.open.index(name) :], name])}")
            return None
        self.open.append(name)
        self.done[name] = self._read(name, self.scope.file.tables[name], loc)
        self.open.pop()
        return self.done[name]

    def _read(self, name: str, table: TableFile, loc: Loc) -> Protection | None:
        unit = table.unit
        if table.public:
            if unit is not None:
                self.issues.add(
                    loc, "is given, but the table is public: a public table belongs to nobody; remove one of the two"
                )
            return None
        if unit is None:
            self.issues.add(loc, "is missing: the table is private, so the policy must say whose rows these are", UNITS)
            return None
        forms = [f for f in ("rows", "column", "path") if getattr(unit, f) is not None]
        if len(forms) != 1:
            got = "none" if not forms else listed(forms)
            self.issues.add(loc, f"must have exactly one of `rows`, `column` and `path`, got {got}", UNITS)
            return None
        if unit.as_ is not None and unit.column is None:
            self.issues.add((*loc, "as"), "is the type of the ids in `column`", "unit: {column: id, as: uuid}")
        if unit.per is not None and not may_be_per_period(self.scope, name, table, loc):
            return None
        if unit.rows is not None:
            return self._rows(name, unit, unit.rows, loc)
        if unit.column is not None:
            return self._column(name, unit, unit.column, loc)
        return self._path(name, unit, loc)

    def _neighbours(self, unit: TableUnitFile) -> Neighbours:
        return unit.neighbours or self.scope.file.privacy.neighbours

    def _rows(self, name: str, unit: TableUnitFile, rows: int, loc: Loc) -> Protection | None:
        if unit.of is not None and unit.of not in self.scope.file.units:
            others = {
                spec.unit.of or t for t, spec in self.scope.file.tables.items()
                if t != name and spec.unit is not None and (spec.unit.of or spec.unit.rows is not None)
            }  # fmt: skip
            if self.scope.file.units and unit.of not in others:
                hint = did_you_mean(unit.of, self.scope.file.units)
                self.issues.add(
                    (*loc, "of"), f"names unit `{unit.of}`, which neither `units` nor another table names{hint}"
                )
                return None
        return RowUnit(unit.of or name, rows, self._neighbours(unit))

    def _column(self, name: str, unit: TableUnitFile, column: str, loc: Loc) -> Protection | None:
        found = self.scope.column_names((*loc, "column"), name, [column])
        owner = self._owner(name, unit, loc)
        if found is None or owner is None:
            return None
        grows = self.scope.file.tables[name].grows
        id_ = found[0] if unit.per is None or grows is None else hidden_name(found[0], grows.every)
        return IdUnit(owner, id_, self._neighbours(unit))

    def _owner(self, name: str, unit: TableUnitFile, loc: Loc) -> str | None:
        """The name of an id unit: `of`, the unit whose home this is, the single unit, or the default."""
        declared = self.scope.file.units
        if unit.of is not None:
            if declared and unit.of not in declared:
                hint = did_you_mean(unit.of, declared) or f"; it lists {listed(declared)}"
                self.issues.add((*loc, "of"), f"names unit `{unit.of}`, which `units` does not list{hint}")
                return None
            return unit.of
        home = [
            u for u, spec in declared.items() if spec.table is not None and spec.table.casefold() == name.casefold()
        ]
        if len(home) == 1:
            return home[0]
        if len(declared) == 1:
            return next(iter(declared))
        named = {
            t.unit.of
            for t in self.scope.file.tables.values()
            if t.unit is not None and t.unit.of and t.unit.rows is None
        }
        if declared or named:
            choice = listed(sorted(declared or {n for n in named if n}))
            first = min(declared or (n for n in named if n))
            repair = f"unit: {{of: {first}, column: {unit.column}}}"
            self.issues.add(loc, f"must say whose id this is with `of:` one of {choice}", repair)
            return None
        return DEFAULT_UNIT

    def _path(self, name: str, unit: TableUnitFile, loc: Loc) -> Protection | None:
        hops: list[Hop] = []
        at = name
        for i, step in enumerate(unit.path or []):
            where: Loc = (*loc, "path", i)
            if (step.column is None) == (step.columns is None):
                self.issues.add(where, "must have one of `column` and `columns`")
                return None
            given = [step.column] if step.column is not None else list(step.columns or [])
            columns = self.scope.column_names(where, at, given)
            target = self.scope.reference((*where, "references"), step.references)
            if columns is None or target is None:
                return None
            table, referenced = target
            self.scope.same_types((*where, "references"), at, columns, table, referenced)
            if not self.scope.promised_key(table, referenced):
                self.issues.add(
                    (*where, "references"),
                    f"refers to `{step.references}`, which is not promised to be unique",
                    f"a promise, in tables.{table} (an enforced key will not do):  unique: [[{', '.join(referenced)}]]",
                )
                return None
            hops.append(Hop(columns, table, referenced))
            at = table
        return self._arrive(unit, tuple(hops), loc)

    def _arrive(self, unit: TableUnitFile, hops: tuple[Hop, ...], loc: Loc) -> Protection | None:
        first = hops[0].table
        spec = self.scope.file.tables[first]
        target = self.table(first)
        match target:
            case None:
                if spec.public:
                    self.issues.add((*loc, "path"), f"leads to `{first}`, which is public: a public table has no unit")
                return None
            case RowUnit():
                self.issues.add((*loc, "path"), f"leads to `{first}`, whose unit is a number of rows, not an id")
                return None
            case IdUnit():
                if spec.unit is not None and spec.unit.per is not None:
                    self.issues.add(
                        (*loc, "path"), f"leads to `{first}`, whose unit is an id in one period: a row has to say its",
                        "copy the id and the date into this table, and give it the same unit, with  grows  and  per",
                    )  # fmt: skip
                    return None
                rest: tuple[Hop, ...] = ()
                id_column = target.column
            case PathUnit():
                rest, id_column = target.path, target.id_column
        if hops[1:] not in ((), rest):
            self.issues.add(
                (*loc, "path"), f"must go on from `{first}` as that table's own unit does; it may end at `{first}`"
            )
            return None
        if unit.of is not None and unit.of != target.name:
            self.issues.add((*loc, "of"), f"names unit `{unit.of}`, but the path leads to unit `{target.name}`")
            return None
        neighbours = unit.neighbours or target.neighbours
        return PathUnit(target.name, (hops[0], *rest), id_column, neighbours)

    def _one_neighbour_relation_per_unit(self) -> dict[str, Protection | None]:
        """Tables of one unit change together, so they share kind and neighbours; what one says holds for all."""
        said: dict[str, tuple[str, Neighbours]] = {}
        kinds: dict[str, tuple[str, bool]] = {}
        for name, protection in self.done.items():
            if protection is None:
                continue
            loc: Loc = ("tables", name, "unit")
            by_rows = isinstance(protection, RowUnit)
            first, kind = kinds.setdefault(protection.name, (name, by_rows))
            if kind != by_rows:
                self.issues.add(
                    loc, f"is called `{protection.name}` like that of `{first}`, but one counts rows and the other ids",
                    "give one of them another name:  unit: {of: …, …}",
                )  # fmt: skip
            spec = self.scope.file.tables[name].unit
            if spec is not None and spec.neighbours is not None:
                first, relation = said.setdefault(protection.name, (name, spec.neighbours))
                if relation != spec.neighbours:
                    self.issues.add(
                        (*loc, "neighbours"), f"is {spec.neighbours}, but `{first}` of the same unit says {relation}"
                    )
        return {
            name: p if p is None or p.name not in said else replace(p, neighbours=said[p.name][1])
            for name, p in ((n, self.done[n]) for n in self.scope.file.tables)
        }


def collect_units(scope: PolicyScope, protections: dict[str, Protection | None]) -> dict[str, Unit]:
    """All units by name, with their tables; checks `units:` against the tables."""
    units: dict[str, Unit] = {}
    for name, p in protections.items():
        if p is None:
            continue
        old = units.get(p.name)
        kind: Literal["rows", "id"] = "rows" if isinstance(p, RowUnit) else "id"
        units[p.name] = Unit(p.name, kind, p.neighbours, (*(old.tables if old else ()), name))
    _same_id_types(scope, protections)
    same_periods(scope, units)
    for name, spec in scope.file.units.items():
        loc: Loc = ("units", name)
        if spec.table is None:
            if spec.key is not None:
                scope.issues.add((*loc, "key"), "is given without `table`")
            continue
        table = scope.table((*loc, "table"), spec.table)
        if table is None:
            continue
        protection = protections.get(table)
        if not isinstance(protection, IdUnit):
            if scope.file.tables[table].public or protection is not None:
                scope.issues.add(
                    (*loc, "table"),
                    f"names `{table}`, whose `unit` is no id column",
                    f"give it the column of its ids, in tables.{table}:  unit: {{column: …}}",
                )
            continue
        column = id_of(scope, table, protection)
        if spec.key is not None and spec.key.casefold() != column.casefold():
            scope.issues.add((*loc, "key"), f"is `{spec.key}`, but tables.{table}.unit.column is `{column}`")
        if protection.name != name:
            scope.issues.add((*loc, "table"), f"names `{table}`, whose rows belong to unit `{protection.name}`")
        elif name in units:
            old = units[name]
            units[name] = Unit(name, "id", old.neighbours, old.tables, table, protection.column)
    return units


def check_former_units(file: PolicyFile, units: Mapping[str, Unit], issues: Issues) -> None:
    """Notes former units that are there still, and names that no unit has now."""
    for old, new in (file.former_units or {}).items():
        loc: Loc = ("former_units", old)
        if old in units:
            issues.add(loc, "is a unit of this policy still: a former unit has no tables", key=True)
        elif new is not None and new not in units:
            hint = did_you_mean(new, units) or (f"; its units are {listed(units)}" if units else "")
            issues.add(loc, f"is called `{new}` now, but the policy has no such unit{hint}")


def _same_id_types(scope: PolicyScope, protections: dict[str, Protection | None]) -> None:
    """One unit, one kind of id: whether 7 and '07' are one person must not depend on a cast."""
    first: dict[str, tuple[str, str, Kind]] = {}
    for name, p in protections.items():
        own = id_of(scope, name, p) if isinstance(p, IdUnit) else ""
        type = scope.type(name, own) if isinstance(p, IdUnit) else None
        if not isinstance(p, IdUnit) or type is None:
            continue
        loc: Loc = ("tables", name, "unit", "column")
        table, column, kind = first.setdefault(p.name, (name, own, type.kind))
        if type.kind is Kind.LIST:
            scope.issues.add(loc, f"names `{own}`, which is {type}: an id is one value")
        elif kind is not type.kind:
            of = "" if p.name == DEFAULT_UNIT else f"of: {p.name}, "
            texts, other = (table, type) if kind is Kind.VARCHAR else (name, scope.type(table, column))
            scope.issues.add(
                loc, f"names `{own}` ({type}), but the same unit's id `{table}.{column}` is {kind.value}",
                f"read those ids as the others, in tables.{texts}, in place of its unit:  "
                f"unit: {{{of}column: {column if texts == table else own}, "
                f"as: {str(other).lower()}}}",
            )  # fmt: skip
