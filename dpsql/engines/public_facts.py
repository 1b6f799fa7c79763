"""Facts about public tables, measured by the engine: multiplicities, sizes and key lists.

Only for tables the policy declares public, or for the custodian: the answers are exact and carry no noise.
Every function may raise EngineError (DP901), and CannotOpen for a table that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsql.core.engine import Engine


def row_count(engine: Engine, table: str) -> int:
    """The number of rows of a public table."""
    return _number(engine, f"SELECT COUNT(*) FROM {engine.table_sql(table)} AS t0")


def frequency(engine: Engine, table: str, columns: Sequence[str]) -> int:
    """Most rows that agree on all `columns` in the sense of a join's `=`, 0 for an empty table.

    A NULL equals nothing, so rows with a NULL among the columns are left out. GROUP BY compares as `=` does on columns
    of one type (NaN equals NaN, 0.0 equals −0.0, a column's collation counts); the contract tests hold engines to it.
    No columns: every row agrees with every other.
    """
    if not columns:
        return row_count(engine, table)
    keys = [engine.dialect.identifier(column) for column in columns]
    present = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    groups = f"SELECT COUNT(*) AS n FROM {engine.table_sql(table)} AS t0 WHERE {present} GROUP BY {', '.join(keys)}"
    return _number(engine, f"SELECT COALESCE(MAX(n), 0) FROM ({groups}) AS g")


def key_list(engine: Engine, table: str, columns: Sequence[str], cap: int) -> list[tuple[Any, ...]] | None:
    """The distinct value combinations of `columns`, sorted with NULL (as None) last; None if there are more than `cap`.

    columns: at least one.
    """
    d = engine.dialect
    keys = f"SELECT DISTINCT {', '.join(map(d.identifier, columns))} FROM {engine.table_sql(table)} AS t0"
    order = ", ".join(d.sorted(d.identifier(column), descending=False, nulls_first=False) for column in columns)
    found = engine.fetch(f"SELECT * FROM ({keys}) AS g ORDER BY {order} LIMIT {int(cap) + 1}")
    return None if found.height > cap else list(found.rows())


def _number(engine: Engine, sql: str) -> int:
    return int(engine.fetch(sql).columns[0][0])
