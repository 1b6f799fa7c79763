"""`unit: {column: rider, per: period}`: the unit is one id in one period, as a hidden column that holds both.

*Claim.* Rows have one value of the column exactly if they have one id and one period; it is NULL where either is.
*Why.* It is the number of the period's first day, `/`, and the id: the number has no slash, and an id of these types is
written in one way. It is computed of the row itself (core/policy/computed.py), so that neighbours, who differ in the
rows of one such value, differ in rows of one period. *When it would be false.* If two ids were written alike, or one
in two ways; if two tables of the unit had periods of other lengths, or read the same rows by different dates: then a
row has two periods, and two budgets (policy/resolve/period_units.py). *Tested by*
tests/core/policy/test_period_ids.py, tests/deep/service/test_rider_days.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpsql.core.ir.short_text import identifier
from dpsql.core.ir.types import VARCHAR, Kind
from dpsql.core.policy.computed import Computed
from dpsql.core.policy.growing import Every
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.core.policy.units import IdUnit

KINDS: Final = frozenset({Kind.INTEGER, Kind.VARCHAR, Kind.UUID})
"""Of ids that are written in one way. A DOUBLE, or a DECIMAL without a scale, is not."""


def hidden_name(column: str, every: Every) -> str:
    """What the hidden column is called. Queries cannot name it."""
    return f"{column} of each {every}"


def hidden_column(column: str, by: str, every: Every) -> Column:
    """The hidden column of a table with this id and this date."""
    day = identifier(by) if every == "day" else f"date_trunc('{every}', {identifier(by)})"
    text = f"CAST({day} - DATE '1970-01-01' AS varchar) || '/' || CAST({identifier(column)} AS varchar)"
    return Column(hidden_name(column, every), "varchar", VARCHAR, computed=Computed(text))


def of_functions(table: Table) -> tuple[str, ...]:
    """Columns whose value follows from the hidden one: the id, and the date where each day is a period."""
    if table.per is None or table.grows is None:
        return ()
    return (table.per, table.grows.by) if table.grows.every == "day" else (table.per,)


def in_words(column: str) -> str:
    """What a column of ids holds, for messages: `rider and its day` of a hidden one."""
    id_, hidden, every = column.rpartition(" of each ")
    return f"{id_} and its {every}" if hidden else column


def whose(table: Table) -> str:
    """Whose rows a table has, in words: `rider's day`."""
    assert table.grows is not None
    return f"{table.per}'s {table.grows.every}"


def ids_of_periods(policy: Policy) -> Mapping[str, Table]:
    """Units that are one id in one period, each with the first of its tables."""
    tables = ((u.name, policy.tables[u.tables[0]]) for u in policy.units.values() if u.tables)
    return {name: table for name, table in tables if table.per is not None}


def columns_of_ids(policy: Policy) -> Mapping[str, str]:
    """Tables whose unit is one id in one period → their hidden column."""
    tables = (table for table in policy.tables.values() if table.per is not None)
    return {t.name: t.protection.column for t in tables if isinstance(t.protection, IdUnit)}
