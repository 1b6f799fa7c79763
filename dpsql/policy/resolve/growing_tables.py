"""`grows:` of a table, read together with its column, its unit and what else the table says."""

from __future__ import annotations

import datetime as dt

from dpsql.core.ir.types import Kind
from dpsql.core.policy.growing import Growth
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Column
from dpsql.policy.file.file_format import GrowsFile, TableFile
from dpsql.policy.resolve.policy_names import PolicyScope


def resolve_growth(scope: PolicyScope, name: str, spec: TableFile, columns: dict[str, Column]) -> Growth | None:
    """How a table grows; None if it does not, or where a mistake was noted."""
    said, loc = spec.grows, ("tables", name, "grows")
    if said is None:
        return None
    for wrong, why in (
        (spec.public, "is for private tables: a public one is read as it is"),
        (spec.prepared not in (None, False), "cannot stand beside  prepared: a copy does not grow"),
        (spec.size is not None, "cannot stand beside  size: a table that grows has no public number of rows"),
    ):
        if wrong:
            scope.issues.add(loc, why, "leave one of the two out")
            return None
    found = scope.column_names((*loc, "by"), name, [said.by])
    if found is None:
        return None
    column = columns[found[0]]
    if not _is_day(scope, (*loc, "by"), column):
        return None
    return _from_period(scope, loc, said, column)


def _is_day(scope: PolicyScope, loc: Loc, column: Column) -> bool:
    """Notes a column of which a row's period cannot be read on every engine alike."""
    if column.sql_type is not None and column.sql_type.kind is not Kind.DATE:
        scope.issues.add(
            loc, f"names `{column.name}`, which is {column.sql_type}: a period is told by a date",
            f"a column made of it:  day: {{type: date, from: cast({column.name} AS date)}}",
        )  # fmt: skip
        return False
    if column.sql_type is None:
        scope.issues.add(loc, f"names `{column.name}`, whose type the policy must say", "type: date")
        return False
    zone = "" if column.derived is None else column.derived.zone
    if zone and zone.upper() != "UTC":
        scope.issues.add(
            loc, f"names `{column.name}`, which is read by the clock of {zone}: its rules change, and with them the "
            "period of a row", "AT TIME ZONE 'UTC', or store the day in the table",
        )  # fmt: skip
        return False
    return True


def _from_period(scope: PolicyScope, loc: Loc, said: GrowsFile, column: Column) -> Growth | None:
    first = dt.date.fromisoformat(said.from_)
    growth = Growth(column.name, said.every, first, said.keep, column.made_of)
    if growth.begins(first) != first:
        scope.issues.add(
            (*loc, "from"), f"must be the first day of a {said.every}, got {first}", f"from: {growth.begins(first)}"
        )
        return None
    return growth
