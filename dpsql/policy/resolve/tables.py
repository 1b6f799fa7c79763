"""Tables and columns from the file: types understood, values read by type, promises checked against each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Literal, TypeVar

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.policy.computed import Computed
from dpsql.core.policy.derived import Derived
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.prepared import unfit
from dpsql.core.policy.server_address import names_server
from dpsql.core.policy.source import SourceCall, SourceError, parse_source
from dpsql.core.policy.tables import (
    COARSEST,
    FINEST,
    MOST_STEPS,
    Bound,
    Carry,
    Column,
    Enforce,
    ForeignKey,
    Frequency,
    Key,
    RowLimit,
    Table,
    TableDomain,
    ValuesDomain,
)
from dpsql.core.policy.units import IdUnit, PathUnit, Protection, RowUnit
from dpsql.policy.file.file_format import ColumnFile, DomainFile, ForeignKeyFile, KeyFile, RowLimitFile, TableFile
from dpsql.policy.issues import Issue, shown
from dpsql.policy.resolve.column_types import known_type, made_of
from dpsql.policy.resolve.growing_tables import resolve_growth
from dpsql.policy.resolve.period_units import id_of, period_id
from dpsql.policy.resolve.policy_names import PolicyScope
from dpsql.policy.resolve.servers import files_on_server, stored_in_server
from dpsql.policy.resolve.typed_values import ValueProblem, read_bounds, read_value

_T = TypeVar("_T")


def resolve_table(scope: PolicyScope, name: str, protection: Protection | None) -> Table:
    """One table; mistakes are noted in the scope and the part left out."""
    spec = scope.file.tables[name]
    loc: Loc = ("tables", name)
    guard = _Enforcement(scope, name, spec, protection)
    primary = None if spec.primary_key is None else _key(scope, name, (*loc, "primary_key"), spec.primary_key, guard)
    unique = [_key(scope, name, (*loc, "unique", i), k, guard) for i, k in enumerate(spec.unique)]
    foreign = [_foreign_key(scope, name, (*loc, "foreign_keys", i), k) for i, k in enumerate(spec.foreign_keys)]
    frequencies = []
    for i, f in enumerate(spec.max_frequency):
        where: Loc = (*loc, "max_frequency", i)
        enforce: Enforce = f.enforce or ("assume" if spec.public else "truncate")
        columns = scope.column_names(where, name, f.columns)
        if columns is not None and guard(where, columns, enforce, given=f.enforce is not None):
            frequencies.append(Frequency(columns, f.rows, enforce))
    _limits_fit(scope, loc, spec, protection)
    columns_of_table = _columns(scope, loc, name, spec)
    hidden = period_id(spec, protection, columns_of_table)
    own = scope.column_names((*loc, "belongs_to_unit"), name, spec.belongs_to_unit or ()) or ()
    if own and not isinstance(protection, (IdUnit, PathUnit)):
        scope.issues.add((*loc, "belongs_to_unit"), "says whose values are, and this table has no ids", "leave it out")
    return Table(
        name=name,
        public=spec.public,
        protection=protection,
        source=(
            files_on_server(scope, name, spec)
            if names_server(scope.file.database)
            else _source(scope, (*loc, "source"), spec)
        ),
        stored=stored_in_server(scope, name, spec),
        primary_key=primary,
        unique=tuple(k for k in unique if k is not None),
        foreign_keys=tuple(k for k in foreign if k is not None),
        max_frequency=tuple(frequencies),
        max_rows_per_unit=_row_limit(scope, (*loc, "max_rows_per_unit"), spec.max_rows_per_unit),
        search_rows=spec.max_rows_per_unit is not None and bool(spec.max_rows_per_unit.search),
        max_groups_per_unit=spec.max_groups_per_unit,
        max_rows_per_group=spec.max_rows_per_group,
        size=None if spec.size is None else spec.size.exact,
        columns=columns_of_table,
        prepared=_PREPARED[spec.prepared],
        carries=_carries(scope, (*loc, "carries"), name, spec),
        grows=resolve_growth(scope, name, spec, columns_of_table),
        belongs_to_unit=own,
        per=None if hidden is None or not isinstance(protection, IdUnit) else id_of(scope, name, protection),
        period_id=hidden,
    )


_PREPARED: Mapping[bool | str | None, Literal["true", "auto"] | None] = {
    None: None, False: None, True: "true", "auto": "auto"
}  # fmt: skip


def _carries(scope: PolicyScope, loc: Loc, name: str, spec: TableFile) -> tuple[Carry, ...]:
    found: list[Carry] = []
    for i, each in enumerate(spec.carries or ()):
        table = scope.table((*loc, i), each.table)
        if table is None:
            continue
        columns = scope.column_names((*loc, i, "columns"), table, each.columns or ()) or ()
        carry = Carry(table, tuple(each.by or ()), columns)
        if not spec.prepared:
            scope.issues.add((*loc, i), "is of a copy, and the table has none", "prepared: true")
        elif table == name or carry in found:
            scope.issues.add((*loc, i), f"names `{table}`, whose columns are there already", "leave it out")
        else:
            found.append(carry)
    return tuple(found)


def can_be_prepared(scope: PolicyScope, tables: Mapping[str, Table]) -> None:
    """Notes tables that say `prepared` and cannot be."""
    for name, table in tables.items():
        found = None if table.prepared is None else unfit(table, tables)
        if found is not None:
            scope.issues.add(("tables", name, found.key), found.message, found.help)


def files_have_one_unit(scope: PolicyScope, tables: Mapping[str, Table]) -> None:
    """Notes tables that read one file as rows of different units, or as public and private: the budget of one unit
    would be spent beside the other's, for the same rows. Paths are compared as they are written."""
    first: dict[str, Table] = {}
    for name, table in tables.items():
        for path in () if table.source is None else table.source.paths:
            other = first.setdefault(os.path.normpath(path), table)
            if other.unit != table.unit:
                scope.issues.add(
                    ("tables", name, "source"),
                    f"reads '{path}', which table `{other.name}` reads as {_whose(other)}: a file's rows have one unit",
                    "give both tables the same unit, or declare the file once",
                )


def _whose(table: Table) -> str:
    return "public" if table.unit is None else f"rows of unit `{table.unit}`"


class _Enforcement:
    """May the plan enforce a promise on these columns? Cutting must never move another unit's rows (semantics §2)."""

    def __init__(self, scope: PolicyScope, name: str, spec: TableFile, protection: Protection | None) -> None:
        self.scope, self.name, self.spec, self.protection = scope, name, spec, protection

    def __call__(self, loc: Loc, columns: tuple[str, ...], enforce: Enforce, *, given: bool = True) -> bool:
        """True if it may; else the mistake is noted."""
        if enforce == "assume":
            return True
        default = "" if given else " (the default)"
        if self.spec.public:
            self.scope.issues.add(
                loc, f"says enforce: {enforce}, but the table is public: it is checked, never cut", "enforce: assume"
            )
            return False
        match self.protection:
            case IdUnit() if self.spec.unit is not None and self.spec.unit.per is not None:
                self.scope.issues.add(
                    loc, f"says enforce: {enforce}{default}, but the unit is an id in one period: cutting rows would "
                    "move rows of other periods", "promise it:  enforce: assume",
                )  # fmt: skip
                return False
            case IdUnit(column=column) if column.casefold() not in {c.casefold() for c in columns}:
                self.scope.issues.add(
                    loc,
                    f"says enforce: {enforce}{default} on columns without the id `{column}`: "
                    "cutting rows there would move rows of other ids",
                    f"add `{column}` to the columns, or promise it:  enforce: assume",
                )
                return False
            case PathUnit():
                self.scope.issues.add(
                    loc,
                    f"says enforce: {enforce}{default}, but the table has no id column of its own: "
                    "cutting rows would move rows of other ids",
                    "promise it:  enforce: assume",
                )
                return False
            case _:
                return True


def _key(scope: PolicyScope, table: str, loc: Loc, spec: KeyFile, guard: _Enforcement) -> Key | None:
    columns = scope.column_names(loc, table, spec.columns)
    enforce = spec.enforce
    return None if columns is None or not guard(loc, columns, enforce) else Key(columns, enforce)


def _foreign_key(scope: PolicyScope, table: str, loc: Loc, spec: ForeignKeyFile) -> ForeignKey | None:
    columns = scope.column_names((*loc, "columns"), table, spec.columns)
    target = scope.reference((*loc, "references"), spec.references)
    if columns is None or target is None:
        return None
    other, referenced = target
    scope.same_types((*loc, "references"), table, columns, other, referenced)
    return ForeignKey(columns, other, referenced)


def _limits_fit(scope: PolicyScope, loc: Loc, spec: TableFile, protection: Protection | None) -> None:
    given = [
        n for n in ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_group") if getattr(spec, n) is not None
    ]
    for limit in given:
        if spec.public:
            scope.issues.add((*loc, limit), "is given, but a public table has no unit to limit")
        elif isinstance(protection, RowUnit):
            scope.issues.add(
                (*loc, limit), f"needs a unit that is an id; the unit here is {protection.rows} row(s)",
                "unit: {column: id}, or max_frequency: [{columns: […], rows: …}]",
            )  # fmt: skip
    if spec.size is None:
        return
    if spec.public or not isinstance(protection, RowUnit):
        if spec.public or protection is not None:
            scope.issues.add((*loc, "size"), "is public only for  unit: {rows: k, neighbours: replace_one}")
    elif protection.neighbours != "replace_one":
        scope.issues.add(
            (*loc, "size"), "needs neighbours: replace_one: under add_remove the number of rows is what is protected"
        )


def _row_limit(scope: PolicyScope, loc: Loc, spec: RowLimitFile | None) -> RowLimit | None:
    if spec is None:
        return None
    if spec.search:
        for name in ("rows", "enforce", "nobody_has_more"):
            if getattr(spec, name) is not None:
                scope.issues.add(
                    (*loc, name),
                    "cannot stand beside  search: true",
                    "max_rows_per_unit: {search: true, at_most: 1000}",
                )
        return None if spec.at_most is None else RowLimit(spec.at_most)
    if spec.at_most is not None:
        scope.issues.add(
            (*loc, "at_most"), "goes with  search: true", "max_rows_per_unit: {search: true, at_most: 1000}"
        )
    if spec.rows is None:
        scope.issues.add((*loc, "rows"), "is missing", "max_rows_per_unit: 20, or  max_rows_per_unit: search")
        return None
    if spec.enforce == "drop":
        scope.issues.add(
            (*loc, "enforce"), "must be truncate (the plan bounds what a unit contributes) or assume, got drop"
        )
    return RowLimit(spec.rows, spec.enforce or "truncate", bool(spec.nobody_has_more))


_TEXT_FILES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz", ".zst")


def _source(scope: PolicyScope, loc: Loc, spec: TableFile) -> SourceCall | None:
    if (text := spec.source) is None:
        return None
    try:
        call = parse_source(text)
    except SourceError as error:
        path = text.strip()
        advice = f"source: read_parquet('{path if path.endswith('.parquet') else 'data/visits/*.parquet'}')"
        if path.endswith(_TEXT_FILES):
            advice = f"`dpsql policy init {path}` drafts the call, which says what the file looks like"
        scope.issues.add(loc, str(error), advice)
        return None
    if not spec.public and not call.tells_schema:
        # The policy would fit the file or not, and files would open or not, by what a single row holds.
        told = "columns = {'id': 'BIGINT', 'day': 'DATE'}"
        more = "auto_detect = false, header = true, " if call.reader == "read_csv" else ""
        scope.issues.add(
            loc,
            f"lets {call.reader} guess the schema of a private table from its rows, so that one row could change it",
            f"say what the file looks like:  {call.reader}('…', {more}{told})  (`dpsql policy init FILE` drafts it)",
        )
    return call


def _columns(scope: PolicyScope, loc: Loc, table: str, spec: TableFile) -> dict[str, Column]:
    primary = set() if spec.primary_key is None else {c.casefold() for c in spec.primary_key.columns}
    columns = {}
    for name, column in spec.columns.items():
        where: Loc = (*loc, "columns", name)
        column, made = made_of(scope, loc, spec, name, column)
        sql_type = known_type(scope, (*where, "type"), column.type)
        nullable = column.nullable if column.nullable is not None else name.casefold() not in primary
        unknown = column.type is not None and sql_type is None
        columns[name] = Column(
            name=name,
            type=column.type,
            sql_type=sql_type,
            bounds=None if column.bounds is None or unknown else _bounds(scope, where, column, sql_type),
            nullable=column.nullable,
            is_nullable=nullable,
            domain=None
            if column.domain is None
            else _domain(scope, table, name, column.domain, sql_type, nullable, unknown),
            max_length=_max_length(scope, where, column, sql_type),
            search_bounds=column.bounds is not None and bool(column.bounds.search),
            resolution=_resolution(scope, (*where, "resolution"), column, sql_type),
            derived=made if isinstance(made, Derived) else None,
            computed=made if isinstance(made, Computed) else None,
        )
    return columns


def _bounds(
    scope: PolicyScope, where: Loc, column: ColumnFile, type: SqlType | None
) -> tuple[Bound | None, Bound | None] | None:
    """[lower, upper], or what a search may not leave."""
    spec, loc = column.bounds, (*where, "bounds")
    assert spec is not None
    if not spec.search:
        if spec.within is not None or spec.ends is None:
            scope.issues.add(loc, "must be [lower, upper], search or {search: true, within: [lower, upper]}")
            return None
        return _try(scope, loc, partial(read_bounds, spec.ends, type))
    if spec.ends is not None:
        scope.issues.add(
            (*loc, "ends"), "cannot stand beside  search: true", "bounds: {search: true, within: [0, 1000]}"
        )
    if type is not None and not type.numeric:
        scope.issues.add(loc, f"can be searched for numbers only, and the column is {type}", "bounds: [first, last]")
    found = None if spec.within is None else _try(scope, (*loc, "within"), partial(read_bounds, spec.within, type))
    _fits_grid(scope, (*loc, "within"), column, type, found)
    return found


def _fits_grid(
    scope: PolicyScope, loc: Loc, spec: ColumnFile, type: SqlType | None, ends: tuple[Bound | None, Bound | None] | None
) -> None:
    """Notes ends of a DOUBLE that are no integers of 63 bits on the grid of its search (DP214)."""
    grid = Column("", sql_type=type, resolution=spec.resolution).grid
    if grid is None or type is None or type.kind is not Kind.DOUBLE:
        return
    for end in ends or ():
        if isinstance(end, Fraction) and abs(end) > grid * MOST_STEPS:
            scope.issues.found.append(
                Issue(
                    loc,
                    f"{shown(end)} lies beyond 2^62 steps of {shown(grid)}, the resolution of the column",
                    about=False,
                    help=("resolution: 1, or what else is the smallest difference that counts",),
                    code="DP214",
                )
            )
            return


def _resolution(scope: PolicyScope, loc: Loc, column: ColumnFile, type: SqlType | None) -> Fraction | None:
    found = column.resolution
    if found is not None and type is not None and type.kind is not Kind.DOUBLE:
        scope.issues.add(loc, f"is for columns of type double, and the column is {type}, which has its own")
    elif found is not None and not FINEST <= found <= COARSEST:
        scope.issues.add(loc, f"must be a number from 1e-15 to 1e15, got {shown(found)}")
    return found


def _max_length(scope: PolicyScope, where: Loc, column: ColumnFile, type: SqlType | None) -> int | None:
    if column.max_length is not None and type is not None and type.kind is not Kind.LIST:
        scope.issues.add((*where, "max_length"), f"is for lists, and the column is {type}")
    return column.max_length


def _try(scope: PolicyScope, loc: Loc, read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except ValueProblem as problem:
        scope.issues.add(loc, str(problem))
        return None


def _domain(
    scope: PolicyScope, table: str, name: str, spec: DomainFile, type: SqlType | None, nullable: bool, unknown: bool
) -> ValuesDomain | TableDomain | None:
    loc: Loc = ("tables", table, "columns", name, "domain")
    null = nullable if spec.null is None else spec.null
    if spec.table is not None or spec.column is not None:
        return _table_domain(scope, loc, spec, type, null)
    values = spec.values or []
    if not values and not spec.null:
        scope.issues.add(loc, "is empty; list the values, or give a public table:  {table: …, column: …}")
        return None
    if unknown:
        return None
    typed = [_try(scope, (*loc, i), partial(read_value, v, type)) for i, v in enumerate(values)]
    known = [v for v in typed if v is not None]
    if len(set(known)) < len(known):
        double = next(v for i, v in enumerate(known) if v in known[:i])
        scope.issues.add(loc, f"lists {double!r} twice")
        return None
    return ValuesDomain(tuple(known), null)


def _table_domain(
    scope: PolicyScope, loc: Loc, spec: DomainFile, type: SqlType | None, null: bool
) -> TableDomain | None:
    if spec.values is not None or spec.table is None or spec.column is None:
        scope.issues.add(loc, "must be a list of values or {table: …, column: …}")
        return None
    other = scope.table((*loc, "table"), spec.table)
    if other is None:
        return None
    if not scope.file.tables[other].public:
        scope.issues.add(
            (*loc, "table"), f"names `{other}`, which is private: group keys must come from a public table"
        )
        return None
    found = scope.column_names((*loc, "column"), other, [spec.column])
    if found is None:
        return None
    theirs = scope.type(other, found[0])
    if type is not None and theirs is not None and type.kind is not theirs.kind:
        scope.issues.add((*loc, "column"), f"is {theirs} in `{other}`, but the column here is {type}")
    return TableDomain(other, found[0], null)
