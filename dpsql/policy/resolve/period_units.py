"""`per: period` of a unit: what it needs of its table, and of the other tables of the unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsql.core.ir.types import Kind
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.period_ids import KINDS, hidden_column, hidden_name
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Column, Table
from dpsql.core.policy.units import IdUnit, Protection, Unit
from dpsql.policy.file.file_format import TableFile
from dpsql.policy.issues import Issue
from dpsql.policy.resolve.policy_names import PolicyScope

GROWS = "grows: {by: day, every: day, from: 2026-01-01}"


def id_of(scope: PolicyScope, table: str, unit: IdUnit) -> str:
    """The declared column that says whose a row is."""
    said = scope.file.tables[table].unit
    if said is None or said.per is None or said.column is None:
        return unit.column
    return scope.columns[table].get(said.column.casefold(), said.column)


def may_be_per_period(scope: PolicyScope, name: str, table: TableFile, loc: Loc) -> bool:
    """Whether the unit of a table may be one id in one period; else the mistake is noted."""
    unit, issues = table.unit, scope.issues
    assert unit is not None
    if unit.column is None:
        issues.add((*loc, "per"), "needs the id in a column of the row itself", "unit: {column: rider, per: period}")
        return False
    if table.grows is None:
        issues.add(
            (*loc, "per"), f"needs a table that grows: no row of `{name}` is of a period",
            f"{GROWS};  or a unit of its own, or its columns copied into the table that grows",
        )  # fmt: skip
        return False
    type_ = scope.type(name, unit.column)
    if type_ is None or type_.kind not in KINDS:
        what = "whose type the policy must say" if type_ is None else f"which is {type_}"
        repair = f"as: {'bigint' if type_ is None or type_.kind in (Kind.DECIMAL, Kind.DOUBLE) else 'varchar'}"
        issues.add(
            (*loc, "column"), f"names `{unit.column}`, {what}: beside  per: period  an id is a whole number, a text or "
            "a UUID, which is written in one way", f"unit: {{column: {unit.column}, {repair}, per: period}}",
        )  # fmt: skip
        return False
    hidden = hidden_name(unit.column, table.grows.every)
    if hidden.casefold() in scope.columns[name]:
        issues.add((*loc, "per"), f"makes a column `{hidden}`, and the table has one", "call that one otherwise")
        return False
    return True


def same_periods(scope: PolicyScope, units: Mapping[str, Unit]) -> None:
    """Notes tables of a unit of which some are per period and others are not, or whose periods are of other lengths."""
    for unit in units.values():
        specs = {name: scope.file.tables[name] for name in unit.tables}
        per = {name: spec for name, spec in specs.items() if spec.unit is not None and spec.unit.per is not None}
        for name, spec in specs.items() if per else ():
            first = next(iter(per))
            other = per[first].grows
            assert other is not None
            if name not in per:
                scope.issues.add(
                    ("tables", name, "unit"), f"is of unit `{unit.name}`, which is an id in one period in `{first}`",
                    "grows  and  per: period  here, too;  or a unit of its own, or its columns copied into the table "
                    "that grows",
                )  # fmt: skip
            elif spec.grows is not None and spec.grows.every != other.every:
                scope.issues.add(
                    ("tables", name, "grows", "every"),
                    f"is {spec.grows.every}, and that of `{first}`, of the same unit, is {other.every}", other.every,
                )  # fmt: skip


def period_id(table: TableFile, protection: Protection | None, columns: Mapping[str, Column]) -> Column | None:
    """The hidden column of a table whose unit is one id in one period; None of any other one."""
    if table.unit is None or table.unit.per is None or table.grows is None or not isinstance(protection, IdUnit):
        return None
    named = {name.casefold(): name for name in columns}
    found = [named.get((name or "").casefold()) for name in (table.unit.column, table.grows.by)]
    return None if found[0] is None or found[1] is None else hidden_column(found[0], found[1], table.grows.every)


def rows_have_one_period(policy: Policy, catalogue: Catalogue) -> Iterator[Issue]:
    """A mistake (DP004) for each table of ids in one period that reads the rows of another one, by another date.

    Through a view a date may be another one, whatever it is called.
    """
    first: dict[str, tuple[Table, str]] = {}
    for name, table in policy.tables.items():
        found = catalogue.table(name)
        for base in () if found is None or table.per is None else found.reads:
            other, relation = first.setdefault(base, (table, found.reads[0] if found else ""))
            own, its = table.grows, other.grows
            assert found is not None and own is not None and its is not None
            if found.reads[0] != relation or (own.by, own.made_of) != (its.by, its.made_of):
                yield Issue(
                    ("tables", name, "grows", "by"), f"is `{own.by}`, and `{other.name}` tells the period of the same "
                    f"rows by its `{its.by}`: a row would have two periods, and two budgets", about=False, key=True,
                    help=("declare the rows once",), code="DP004",
                )  # fmt: skip
                break
