"""What can be measured of each declaration of a policy: promises with their limit, and what answers leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

from dpsql.core.engine import Engine
from dpsql.core.ir.types import DOUBLE, Kind, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Bound, Column, Key, Table, TableDomain, ValuesDomain
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit
from dpsql.engines import promises as measured
from dpsql.engines import public_facts as public
from dpsql.policy.tools.assumptions import DANGLING, MISSED, SHARED, as_units
from dpsql.policy.tools.unsaid import home_column

Measure = Callable[[Engine], int]

_CORRECT = "correct the data, or take the promise out of the policy"
_REFUSED = "a query that joins on it is refused when it runs (DP409)"


@dataclass(frozen=True, slots=True)
class Check:
    """One declaration, named as `policy audit` names it.

    measure: gives the number that `measures` describes; None if the data cannot tell.
    promised: what the number may be at most (or exactly: `exact`); None if nothing is promised about it.
    enforced: the plan makes it true, so it is not measured.
    claim, when_false: for what the audit does not list.
    of: gives the number that it is a part of, where that tells more.
    doubted: whether number and whole speak against a declaration that no data can refute; it is told only then.
    """

    kind: str
    table: str
    loc: Loc
    claim: str = ""
    measures: str = ""
    measure: Measure | None = None
    promised: int | None = None
    exact: bool = False
    enforced: bool = False
    when_false: str = ""
    repair: str = ""
    of: Measure | None = None
    doubted: Callable[[int, int], bool] | None = None


def checks(policy: Policy) -> Iterator[Check]:
    """Every declaration of a policy whose types are known, table by table in the policy's order."""
    for table in policy.tables.values():
        loc: Loc = ("tables", table.name)
        yield (
            Check("public", table.name, (*loc, "public")) if table.public else Check("unit", table.name, (*loc, "unit"))
        )
        yield from _unit(table, loc)
        yield from _doubts(policy, table, loc)
        yield from _keys(policy, table, loc)
        yield from _foreign_keys(table, loc)
        yield from _frequencies(table, loc)
        yield from _limits(table, loc)
        for column in table.columns.values():
            yield from _column(table, column, (*loc, "columns", column.name))


def _unit(table: Table, loc: Loc) -> Iterator[Check]:
    """Rows that reach no id, and the key that the first hop of a path refers to (the others: at the next table)."""
    name = table.name
    match table.protection:
        case IdUnit(column=column):
            path: tuple[measured.Step, ...] = ()
            id_column, nobodys = column, f"rows of {name} whose {column} is NULL"
        case PathUnit(name=unit, path=hops, id_column=id_column):
            path, hop = hops, hops[0]
            nobodys = f"rows of {name} that lead to no {unit}"
            columns = _names(hop.references)
            yield Check(
                "path", name, (*loc, "unit", "path", 0, "references"),
                f"no two rows of {hop.table} share {columns}: each row of {name} leads to one {unit}",
                f"most rows of {hop.table} that share {columns}",
                partial(public.frequency, table=hop.table, columns=hop.references), 1,
                when_false=f"one row of {name} belongs to several units at once: ε is larger than stated",
                repair=f"correct {hop.table}; a key that a path refers to cannot be enforced",
            )  # fmt: skip
        case RowUnit() | None:
            return
    yield Check(
        "no_id", name, (*loc, "unit"), f"{nobodys} are left out of every answer", nobodys,
        partial(measured.without_id, table=name, path=path, id_column=id_column),
    )  # fmt: skip


_FEW: Final = 10
"""Fewer ids than these may each have one row by chance."""


def _doubts(policy: Policy, table: Table, loc: Loc) -> Iterator[Check]:
    """Signs that a column does not hold the ids of its unit: a visit's, say, where patients are to be protected."""
    if not isinstance(table.protection, IdUnit):
        return
    name, column, unit = table.name, table.protection.column, policy.units[table.protection.name]
    own, named = table.column(column), home_column(policy, name)
    less = as_units("n", policy.privacy.accountant == "zcdp")
    consequence = (
        f"each {column} is protected, not each {unit.name}: somebody with n of them is protected at {less} only"
    )
    one = f"  unit: {{column: {named}}}" if named is not None else ""
    repair = f"name the column that holds the ids of a {unit.name}{':' if one else ''}{one}"
    home = None if unit.table is None else policy.tables.get(unit.table)
    key = None if home is None or unit.key is None else home.column(unit.key)
    if home is not None and home is not table and key is not None and own is not None and own.sql_type == key.sql_type:
        target = f"{home.name}({key.name})"
        yield Check(
            "unit_in_doubt", name, (*loc, "unit"), f"{column} may be no id of a {unit.name}",
            f"rows of {name} whose {column} is not in {target}",
            partial(measured.dangling, table=name, step=((column,), home.name, (key.name,))),
            of=partial(measured.present, table=name, column=column),
            doubted=lambda strange, rows: 0 < rows <= 2 * strange, when_false=consequence, repair=repair,
        )  # fmt: skip
    limit = table.max_rows_per_unit.rows if table.max_rows_per_unit is not None else table.max_rows_per_group
    if limit is not None and limit > 1:
        place: dict[str, Any] = {"table": name, "path": (), "id_column": column}
        yield Check(
            "unit_in_doubt", name, (*loc, "unit"),
            f"{column} never repeats, although up to {limit} rows of one {unit.name} are to count",
            f"rows of {name} that have a {column} of their own",
            partial(measured.ids, **place), of=partial(measured.owned_rows, **place),
            doubted=lambda ids, rows: ids == rows >= _FEW, when_false=consequence,
            repair=f"{repair}; if it is true that nobody has two rows, say so:  max_rows_per_unit: 1",
        )  # fmt: skip


def _keys(policy: Policy, table: Table, loc: Loc) -> Iterator[Check]:
    named: list[tuple[str, Loc, Key]] = []
    if table.primary_key is not None:
        named.append(("primary_key", (*loc, "primary_key"), table.primary_key))
    named += [("unique", (*loc, "unique", i), key) for i, key in enumerate(table.unique)]
    for kind, where, key in named:
        columns = _names(key.columns)
        claim = f"no two rows of {table.name} share {columns}"
        if not key.assumed:
            yield Check(kind, table.name, where, claim, enforced=True)
            continue
        referred = any(
            hop.table == table.name and set(key.columns) <= set(hop.references)
            for other in policy.tables.values()
            if isinstance(other.protection, PathUnit)
            for hop in other.protection.path
        )
        form = f"{kind}: {{}}" if kind == "primary_key" else f"{kind}: [{{}}]"
        repair = f"{_CORRECT}; or name the columns that do make a row of {table.name} its own:  {form.format('[…]')}"
        if _may_enforce(table, key.columns) and not referred:
            enforced = f"{{columns: [{', '.join(key.columns)}], enforce: truncate}}"
            repair += f"; or have the plan keep one row of each:  {form.format(enforced)}"
        yield Check(
            kind, table.name, where, claim, f"most rows of {table.name} that share {columns}",
            partial(public.frequency, table=table.name, columns=key.columns), 1, when_false=_REFUSED, repair=repair,
        )  # fmt: skip


def _foreign_keys(table: Table, loc: Loc) -> Iterator[Check]:
    for i, key in enumerate(table.foreign_keys):
        where: Loc = (*loc, "foreign_keys", i)
        columns, target = _names(key.columns), f"{key.table}({', '.join(key.references)})"
        claim = f"every {columns} of {table.name} occurs in {target}"
        yield Check(
            "foreign_key", table.name, where, claim, f"rows of {table.name} whose {columns} is not in {target}",
            partial(measured.dangling, table=table.name, step=(key.columns, key.table, key.references)), 0,
            when_false=DANGLING, repair=_CORRECT,
        )  # fmt: skip


def _frequencies(table: Table, loc: Loc) -> Iterator[Check]:
    for i, f in enumerate(table.max_frequency):
        where: Loc = (*loc, "max_frequency", i)
        claim = f"at most {f.rows} rows of {table.name} share {_names(f.columns)}"
        if not f.assumed:
            yield Check("max_frequency", table.name, where, claim, enforced=True)
            continue
        repair = "correct the data, or promise a number that holds in any other year, too"
        if _may_enforce(table, f.columns):
            repair += ", or let the plan cut the excess:  enforce: truncate"
        yield Check(
            "max_frequency", table.name, where, claim, f"most rows of {table.name} that share {_names(f.columns)}",
            partial(public.frequency, table=table.name, columns=f.columns), f.rows, when_false=_REFUSED, repair=repair,
        )  # fmt: skip


def _limits(table: Table, loc: Loc) -> Iterator[Check]:
    name, limit = table.name, table.max_rows_per_unit
    if limit is not None:
        claim = f"no {table.unit} has more than {limit.rows} rows of {name}"
        where: Loc = (*loc, "max_rows_per_unit")
        measure: Measure | None = None
        match table.protection:
            case IdUnit(column=column) if limit.assumed or limit.nobody_has_more:
                measure = partial(measured.rows_per_id, table=name, path=(), id_column=column)
            case PathUnit(path=path, id_column=column) if limit.assumed or limit.nobody_has_more:
                measure = partial(measured.rows_per_id, table=name, path=path, id_column=column)
            case _:
                pass
        if measure is not None and not limit.assumed:
            yield Check(
                "nobody_has_more", name, (*where, "nobody_has_more"), claim,
                f"most rows of {name} of one {table.unit}", measure, limit.rows, when_false=MISSED,
                repair="leave out nobody_has_more, or raise the limit to a number that nobody exceeds",
            )  # fmt: skip
        if measure is None or not limit.assumed:
            yield Check("max_rows_per_unit", name, where, claim, enforced=True)
            yield from _taken(table, where, limit.rows, f"more than {limit.rows} rows of {name}")
        else:
            yield Check(
                "max_rows_per_unit", name, where, claim, f"most rows of {name} of one {table.unit}", measure,
                limit.rows,
                repair=f"let the plan bound it, as it does by default:  max_rows_per_unit: {limit.rows}",
            )  # fmt: skip
    for kind, number, what in (
        ("max_groups_per_unit", table.max_groups_per_unit, "contributes to more than {} groups"),
        ("max_rows_per_group", table.max_rows_per_group, "contributes more than {} rows to a group"),
    ):
        if number is not None:
            yield Check(kind, name, (*loc, kind), f"no {table.unit} {what.format(number)}", enforced=True)
            yield from _taken_of_groups(table, kind, (*loc, kind), number)
    if limit is None and table.max_rows_per_group is not None and table.max_groups_per_unit is not None:
        rows = table.max_rows_per_group * table.max_groups_per_unit
        more = f"more rows of {name} than {table.max_groups_per_unit} groups of {table.max_rows_per_group} hold"
        yield from _taken(table, (*loc, "max_rows_per_group"), rows, more)
    for i, column in enumerate(table.belongs_to_unit):
        if (place := _place(table)) is not None:
            yield Check(
                "belongs_to_unit", name, (*loc, "belongs_to_unit", i), "",
                f"values of {name}.{column} that rows of several {table.unit}s have",
                partial(measured.shared_values, **place, column=column), 0, when_false=SHARED, repair=_CORRECT,
            )  # fmt: skip
    if table.size is not None:
        yield Check(
            "size", name, (*loc, "size"), "", f"rows of {name}", partial(public.row_count, table=name), table.size,
            exact=True, repair="correct the number if it is public, or remove `size`",
        )  # fmt: skip


def _taken(table: Table, where: Loc, most: int, above: str) -> Iterator[Check]:
    """What an enforced limit takes away, of everything there is."""
    if (place := _place(table)) is None:
        return
    yield Check(
        "above_limit", table.name, where, f"a {table.unit} may have {above}", f"{table.unit}s with {above}",
        partial(measured.ids, **place, above=most), of=partial(measured.ids, **place),
    )  # fmt: skip
    yield Check(
        "rows_above_limit", table.name, where, f"so many rows of {table.name} are missing from totals",
        f"rows of {table.name} above it",
        partial(measured.owned_rows, **place, above=most), of=partial(measured.owned_rows, **place),
    )  # fmt: skip


def _taken_of_groups(table: Table, kind: str, where: Loc, most: int) -> Iterator[Check]:
    """What a limit on groups takes away where rows are grouped by one column whose groups are listed."""
    if (place := _place(table)) is None:
        return
    for column in table.columns.values():
        if column.domain is None or (isinstance(table.protection, IdUnit) and column.name == table.protection.column):
            continue
        grouped = {**place, "column": column.name, "above": most}
        if kind == "max_groups_per_unit":
            more = f"in more than {most} groups of {column.name}"
            yield Check(
                "above_groups", table.name, where, f"a {table.unit} may be {more}", f"{table.unit}s {more}",
                partial(measured.ids_in_more_groups, **grouped), of=partial(measured.ids, **place),
            )  # fmt: skip
        else:
            yield Check(
                "rows_above_group", table.name, where, f"so many rows of {table.name} are missing from its groups",
                f"rows of {table.name} above {most} of one {table.unit} in a group of {column.name}",
                partial(measured.rows_above_in_groups, **grouped), of=partial(measured.owned_rows, **place),
            )  # fmt: skip


def _place(table: Table) -> dict[str, Any] | None:
    """Where the ids of a table's rows are found; None where rows have none."""
    match table.protection:
        case IdUnit(column=column):
            return {"table": table.name, "path": (), "id_column": column}
        case PathUnit(path=path, id_column=column):
            return {"table": table.name, "path": path, "id_column": column}
        case _:
            return None


def _column(table: Table, column: Column, loc: Loc) -> Iterator[Check]:
    name, full = table.name, f"{table.name}.{column.name}"
    if not column.is_nullable:
        primary = column.nullable is None
        yield Check(
            "not_null", name, (*loc, "nullable"), "", f"rows where {full} is NULL",
            partial(measured.nulls, table=name, column=column.name), 0,
            repair="correct the data, or "
            + ("declare the key as `unique` instead of `primary_key`" if primary else "say  nullable: true"),
        )  # fmt: skip
    yield from _bounds(table, column, (*loc, "bounds"))
    match column.domain:
        case ValuesDomain(values=values, null=null):
            assert column.sql_type is not None, full
            literals = tuple((value, column.sql_type) for value in values)
            yield _domain(
                table, full, loc,
                partial(measured.outside_list, table=name, column=column.name, literals=literals, null=null),
            )  # fmt: skip
        case TableDomain(table=other, column=key, null=null):
            if not table.public:
                yield Check("public", name, (*loc, "domain"))
            yield _domain(
                table, full, loc,
                partial(measured.outside_column, table=name, column=column.name, other=(other, key), null=null),
            )  # fmt: skip
        case None:
            pass
    if column.max_length is not None and column.is_list:
        longer = f"rows of {name} whose {column.name} has more than {column.max_length} elements"
        yield Check(
            "max_length", name, (*loc, "max_length"), f"{longer} are unnested in part", longer,
            partial(measured.longer_lists, table=name, column=column.name, most=column.max_length),
        )  # fmt: skip


def _bounds(table: Table, column: Column, loc: Loc) -> Iterator[Check]:
    """How many values a sum or an average clips. Lists, and times with a zone, have none."""
    kind = None if column.sql_type is None else column.sql_type.kind
    if column.bounds is None or kind is None or kind in (Kind.LIST, Kind.TIMESTAMPTZ):
        return
    assert column.sql_type is not None
    ends = [None if end is None else _end(end, kind, column.sql_type) for end in column.bounds]
    if ends == [None, None]:
        return
    full, double = f"{table.name}.{column.name}", kind in (Kind.DOUBLE, Kind.DECIMAL)
    yield Check(
        "clipped", table.name, loc, f"values of {full} outside of its bounds are clipped to them",
        f"values of {full} outside of its bounds",
        partial(measured.outside_bounds, table=table.name, column=column.name, ends=ends, double=double),
        of=partial(measured.present, table=table.name, column=column.name),
    )  # fmt: skip


def _end(end: Bound, kind: Kind, type_: SqlType) -> measured.Literal:
    match end:
        case Fraction() if kind is Kind.INTEGER and end.denominator == 1:
            return int(end), type_
        case Fraction():
            return float(end), DOUBLE
        case _:
            return end, type_


def _domain(table: Table, full: str, loc: Loc, measure: Measure) -> Check:
    return Check(
        "domain", table.name, (*loc, "domain"), f"rows where {full} is not in its domain are left out of its groups",
        f"rows where {full} is not in its domain", measure,
    )  # fmt: skip


def _may_enforce(table: Table, columns: tuple[str, ...]) -> bool:
    """Whether the policy would accept `enforce` on these columns: cutting must move no other unit's rows."""
    match table.protection:
        case RowUnit():
            return True
        case IdUnit(column=column):
            return column in columns
        case PathUnit() | None:
            return False


def _names(columns: tuple[str, ...]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
