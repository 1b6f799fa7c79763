"""Policy + catalogue → policy with every type known; where the two disagree, the run stops (DP004)."""

from __future__ import annotations

from typing import Any

from dpsql.core.ir.types import Kind, SqlType, parse_type
from dpsql.core.policy.catalogue import Catalogue, CatalogueTable
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Column, Table
from dpsql.core.policy.units import DEFAULT_UNIT, IdUnit
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.issues import Issue, did_you_mean
from dpsql.policy.resolve.one_unit import rows_have_one_unit
from dpsql.policy.resolve.period_units import rows_have_one_period
from dpsql.policy.resolve.policy import attempt


def complete(policy: Policy, catalogue: Catalogue) -> Policy:
    """Fill in column types and the columns of public tables that list none.

    A declared type has to be the data's own (whatever its spelling). Raises CannotOpen (DP004) with every table and
    column that is not there, every type that differs, every bound or domain that does not fit a type filled in, and
    every table whose rows are those of another table with another unit.
    """
    issues: list[Issue] = []
    tables: dict[str, Any] = {}
    for name, table in policy.tables.items():
        spec = dict(policy.document["tables"][name])
        found = catalogue.table(name)
        if found is None:
            hint = did_you_mean(name, [t.name for t in catalogue.tables])
            issues.append(_issue(("tables", name), f"there is no such table in the data{hint}", key=True))
        elif table.public and not table.columns:
            spec["columns"] = _all_columns(found)
        else:
            spec["columns"] = _typed_columns(table, spec.get("columns", {}), found, issues)
        tables[name] = spec
    issues += rows_have_one_unit(policy, catalogue)
    issues += rows_have_one_period(policy, catalogue)
    if issues:
        raise CannotOpen(_diagnostics(policy, issues))
    completed, later = attempt({**policy.document, "tables": tables}, policy.places, policy.path)
    if completed is None or later:
        raise CannotOpen(_diagnostics(policy, later))
    return completed


def _diagnostics(policy: Policy, issues: list[Issue]) -> list[Diagnostic]:
    found = [Issue(i.loc, i.message, i.about, i.key, i.help, "DP004").diagnostic(policy.places) for i in issues]
    return sorted(found, key=lambda d: (-1 if d.span is None else d.span.start, d.message))


def _issue(loc: Loc, message: str, *, key: bool = False, help: tuple[str, ...] = ()) -> Issue:
    return Issue(loc, message, about=False, key=key, help=help, code="DP004")


def _all_columns(found: CatalogueTable) -> dict[str, Any]:
    """A public table's columns as the data has them; those of a type dpsql does not know do not exist."""
    known = [(c, t) for c in found.columns if (t := parse_type(c.type)) is not None]
    return {c.name: {"type": t.name.lower(), **({} if c.nullable else {"nullable": False})} for c, t in known}


def _typed_columns(table: Table, specs: dict[str, Any], found: CatalogueTable, issues: list[Issue]) -> dict[str, Any]:
    columns = {}
    for name, column in table.columns.items():
        loc: Loc = ("tables", table.name, "columns", name)
        spec = dict(specs[name])
        if column.computed is not None:
            columns[name] = spec
            continue
        theirs = found.column(name)
        if theirs is None:
            hint = did_you_mean(name, [c.name for c in found.columns])
            issues.append(_issue(loc, f"there is no such column in the data{hint}", key=True))
            continue
        if column.derived is not None:
            columns[name] = spec  # the engine made it of this type
            continue
        actual = parse_type(theirs.type)
        if actual is None:
            kind = theirs.type.partition("(")[0]
            help = (
                ("or make columns of its fields:  city: {from: address.city, type: varchar}",)
                if kind == "STRUCT"
                else ()
            )
            help = (
                ("or of its texts:  city: {from: \"profile ->> '$.city'\", type: varchar}",) if kind == "JSON" else help
            )
            what, _, repair = theirs.why.partition("; ")
            help = (f"or {repair}",) if repair else help
            message = f"its type in the data, {what or kind}, cannot be used; leave the column out"
            issues.append(_issue(loc, message, key=True, help=help))
        elif column.sql_type is None:
            spec["type"] = actual.name.lower()
        elif column.sql_type != actual:
            where: Loc = (*loc, "type")
            message = f"type is {column.type} in the policy but {actual.name.lower()} in the data"
            repairs = _type_repairs(table, column, actual)
            issues.append(Issue(where, message.removeprefix("type "), help=repairs, code="DP004"))
        columns[name] = spec
    return columns


def _type_repairs(table: Table, column: Column, actual: SqlType) -> tuple[str, ...]:
    """The data's own type; for ids that are texts here alone, how they are read as those of other tables."""
    own = f"type: {actual.name.lower()}"
    if column.bounds is not None and not (actual.numeric or actual.temporal):
        own += "  and take its bounds out"
    owner, declared = table.protection, column.sql_type
    if (
        not isinstance(owner, IdUnit)
        or owner.column != column.name
        or actual.kind is not Kind.VARCHAR
        or declared is None
    ):
        return (own,)
    of = "" if owner.name == DEFAULT_UNIT else f"of: {owner.name}, "
    return (
        f"read the ids as those of other tables, in tables.{table.name}, in place of its unit:  "
        f"unit: {{{of}column: {column.name}, as: {declared.name.lower()}}}",
        f"or, if they are texts in every table of the unit:  {own}",
    )
