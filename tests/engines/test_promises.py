"""What is measured of promises, against counting by hand over every kind of row: NULLs, duplicates, dead ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import duckdb
import pytest

from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.promises import (
    dangling,
    longer_lists,
    nulls,
    outside_column,
)

Rows = Sequence[tuple[Any, ...]]


def draw(random: Random) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """children(p, q, v), parents(x, y, up), grands(g, id): few values, so that they meet, repeat and dangle."""

    def some(width: int) -> list[tuple[Any, ...]]:
        values = (None, 1, 2, 2, 3)
        return [tuple(random.choice(values) for _ in range(width)) for _ in range(random.randrange(9))]

    return some(3), some(3), some(2)


def reached(child: tuple[Any, ...], parents: Rows, grands: Rows) -> list[Any]:
    """The ids that a child's row leads to, one for each way."""
    return [
        g[1]
        for x in parents
        for g in grands
        if None not in (*child[:2], x[2]) and child[:2] == x[:2] and x[2] == g[0] and g[1] is not None
    ]


def test_the_random_tables_meet_every_case() -> None:
    """Dead ends, NULLs on the way, several ways for one row, and rows that share an id: none may be missing above."""
    seen = set()
    for seed in range(60):
        children, parents, grands = draw(Random(seed))
        for c in children:
            ways = reached(c, parents, grands)
            seen.add("nowhere" if not ways else "once" if len(ways) == 1 else "several")
            seen.add("null" if None in c[:2] else "dangling" if c[:2] not in [x[:2] for x in parents] else "found")
        seen |= {"empty"} if not children else set()
    assert seen == {"nowhere", "once", "several", "null", "dangling", "found", "empty"}


def test_values_are_compared_as_by_a_join() -> None:
    """NaN equals NaN and 0.0 equals −0.0 for the engine's `=`; text is compared byte by byte."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE l (d DOUBLE, t VARCHAR)")
        connection.executemany("INSERT INTO l VALUES (?, ?)", [(math.nan, "a"), (-0.0, "A"), (None, "á"), (1.5, None)])
        connection.execute("CREATE TABLE r AS SELECT * FROM l WHERE t IN ('a', 'A')")
        engine = DuckDBEngine.wrap(connection, optimizers="ours")
        for column, null in product("dt", (False, True)):
            join = f"SELECT COUNT(*) FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE l.{column} = r.{column})"
            missing = engine.fetch(join).columns[0][0]
            assert outside_column(engine, "l", column, ("r", column), null) == missing - null == 2 - null
            assert dangling(engine, "l", ((column,), "r", (column,))) == 1
        engine.close()


def test_odd_names_lists_and_missing_tables() -> None:
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE "a ""b" ("c ""d" INTEGER[])')
        connection.execute("""INSERT INTO "a ""b" VALUES ([]), (NULL), ([NULL, 1]), ([1, 2, 3])""")
        engine = DuckDBEngine.wrap(connection, optimizers="ours")
        assert [longer_lists(engine, 'a "b', 'c "d', n) for n in (0, 1, 2, 3)] == [2, 2, 1, 0]
        assert nulls(engine, 'a "b', 'c "d') == 1
        with pytest.raises(CannotOpen):
            nulls(engine, "nothing", "x")
        with pytest.raises(EngineError):
            nulls(engine, 'a "b', "x")
        engine.close()
