"""What the first rows of a table tell whoever drafts a policy, besides names and types: no value is told."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from dpsql.core.engine import Engine
from dpsql.diagnostics.errors import CannotOpen, EngineError

FIRST = 20_000


def whole(engine: Engine, table: str, columns: Sequence[str]) -> frozenset[str]:
    """Those DOUBLE columns of which all of the first rows hold whole numbers. Of a table that cannot be read: none."""
    names = [engine.dialect.identifier(column) for column in columns]
    counts = ", ".join(f"COUNT(CASE WHEN {n} <> FLOOR({n}) THEN 1 END), COUNT({n})" for n in names)
    with contextlib.suppress(CannotOpen, EngineError):
        rows = f"SELECT {', '.join(names)} FROM {engine.table_sql(table)} AS t0 LIMIT {FIRST}"
        (row,) = engine.fetch(f"SELECT {counts} FROM ({rows}) AS g").rows() if columns else ((),)
        return frozenset(c for c, broken, all in zip(columns, row[::2], row[1::2], strict=True) if all and not broken)
    return frozenset()


def never_repeating(engine: Engine, table: str, columns: Sequence[str]) -> frozenset[str]:
    """Those columns of which no two of the first rows share a value. Of a table that cannot be read: none."""
    if not columns:
        return frozenset()
    names = [engine.dialect.identifier(column) for column in columns]
    counts = ", ".join(f"COUNT({name}), COUNT(DISTINCT {name})" for name in names)
    with contextlib.suppress(CannotOpen, EngineError):
        rows = f"SELECT {', '.join(names)} FROM {engine.table_sql(table)} AS t0 LIMIT {FIRST}"
        (row,) = engine.fetch(f"SELECT {counts} FROM ({rows}) AS g").rows()
        pairs = zip(columns, row[::2], row[1::2], strict=True)
        return frozenset(column for column, present, different in pairs if present == different > 1)
    return frozenset()


def of_one_each(engine: Engine, table: str, unit: str, columns: Sequence[str]) -> frozenset[str]:
    """Those columns of which, in the first rows, each value stands with one value of `unit`. Of a table that cannot be
    read: none."""
    found = set[str]()
    owner = engine.dialect.identifier(unit)
    for column in columns:
        name = engine.dialect.identifier(column)
        rows = f"SELECT {name} AS k, {owner} AS u FROM {engine.table_sql(table)} AS t0 LIMIT {FIRST}"
        values = f"SELECT COUNT(DISTINCT u) AS units FROM ({rows}) AS g WHERE k IS NOT NULL GROUP BY k"
        with contextlib.suppress(CannotOpen, EngineError):
            ((most, number),) = engine.fetch(f"SELECT MAX(units), COUNT(*) FROM ({values}) AS v").rows()
            if most == 1 < number:
                found.add(column)
    return frozenset(found)
