"""Which privacy units have an account for each period."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import RowUnit, Unit


def why_not_by_period(unit: Unit, tables: Mapping[str, Table]) -> str | None:
    """Why a unit has one account for ever; None if it has one for each period.

    Several rows, replaced rows and ids are in several periods: each period by itself would let them lose as many times
    the cap (enumerated). An id in one period is not. Two tables may have the same rows, by different dates.
    """
    if unit.kind != "rows":
        if any(tables[name].per is None for name in unit.tables):
            return "its rows are those of an id, which is in many periods"
        replaced = unit.neighbours == "replace_one"
        return "an id is replaced by another one, which may be of another period" if replaced else None
    if len(unit.tables) > 1:
        return f"it has several tables ({', '.join(unit.tables)}): a row that two of them read would have two periods"
    table = tables[unit.tables[0]]
    if table.grows is None:
        return f"{table.name} does not grow"
    assert isinstance(table.protection, RowUnit)
    if table.protection.rows > 1:
        return f"it is {table.protection.rows} rows, which may be of as many periods"
    if unit.neighbours == "replace_one":
        return "a row is replaced by another one, which may be of another period"
    return None
