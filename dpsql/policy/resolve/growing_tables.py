"""`grows:` of a table, read together with its column, its unit and what else the table says."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence

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
    read = _read(column, columns)
    if not _is_day(scope, (*loc, "by"), column, read):
        return None
    return _from_period(
        scope, loc, said, column, "; ".join([column.made_of, *(f"{c.name}: {c.made_of}" for c in read)])
    )


def _read(column: Column, columns: Mapping[str, Column]) -> list[Column]:
    """The columns that are made of the data's and that a computed one may name."""
    text = "" if column.computed is None else column.computed.text.casefold()

    def named(name: str) -> bool:
        return any(re.search(rf"(?<!\w){re.escape(n.casefold())}(?!\w)", text) for n in (name, name.replace('"', '""')))

    return [c for c in columns.values() if c.derived is not None and named(c.name)]


def _is_day(scope: PolicyScope, loc: Loc, column: Column, read: Sequence[Column]) -> bool:
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
    zones = [c.derived.zone for c in (column, *read) if c.derived is not None and c.derived.zone]
    text = "" if column.computed is None else column.computed.text
    zones += ["a zone"] * (len(_ZONE.findall(text)) > len(_UTC.findall(text)))
    for zone in zones:
        if zone.upper() != "UTC":
            scope.issues.add(
                loc, f"names `{column.name}`, which is read by the clock of {zone}: its rules change, and "
                "with them the period of a row", "AT TIME ZONE 'UTC', or store the day in the table",
            )  # fmt: skip
            return False
    return True


_ZONE = re.compile("zone", re.IGNORECASE)
_UTC = re.compile(r"(?<!\w)time\s*zone\s*\(?\s*'utc'", re.IGNORECASE)
"""The one zone of which an expression may read the clock: every other word is taken for another one."""


def _from_period(scope: PolicyScope, loc: Loc, said: GrowsFile, column: Column, made_of: str) -> Growth | None:
    first = dt.date.fromisoformat(said.from_)
    growth = Growth(column.name, said.every, first, said.keep, made_of)
    if growth.begins(first) != first:
        scope.issues.add(
            (*loc, "from"), f"must be the first day of a {said.every}, got {first}", f"from: {growth.begins(first)}"
        )
        return None
    return growth
