"""Promises measured over every kind of row, against counting by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import duckdb
import pytest

from dpsql.core.ir.types import INTEGER
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.promises import (
    dangling,
    nulls,
    outside_column,
    outside_list,
    rows_per_id,
    without_id,
)
from tests.engines.test_promises import draw, reached

PARENT = (("p", "q"), "parents", ("x", "y"))
GRAND = (("up",), "grands", ("g",))


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE children (p INT, q INT, v INT)")
        connection.execute("CREATE TABLE parents (x INT, y INT, up INT)")
        connection.execute("CREATE TABLE grands (g INT, id INT)")
        yield connection


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(60))
def test_like_counting_by_hand(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    children, parents, grands = draw(Random(seed))
    for name, rows in (("children", children), ("parents", parents), ("grands", grands)):
        con.execute(f"DELETE FROM {name}")
        if rows:
            con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    engine = DuckDBEngine.wrap(con, optimizers="ours")
    present = [c for c in children if None not in c[:2]]
    assert dangling(engine, "children", PARENT) == sum(c[:2] not in [x[:2] for x in parents] for c in present)
    assert nulls(engine, "children", "v") == sum(c[2] is None for c in children)
    ways = [reached(c, parents, grands) for c in children]
    assert without_id(engine, "children", (PARENT, GRAND), "id") == sum(not w for w in ways)
    assert without_id(engine, "children", (), "v") == sum(c[2] is None for c in children)
    most = max(Counter(i for w in ways for i in w).values(), default=0)
    assert rows_per_id(engine, "children", (PARENT, GRAND), "id") == most
    own = max(Counter(c[2] for c in children if c[2] is not None).values(), default=0)
    assert rows_per_id(engine, "children", (), "v") == own
    for null in (False, True):
        some = [(2, INTEGER), (3, INTEGER)]
        allowed = {2, 3, *([None] if null else [])}
        assert outside_list(engine, "children", "v", some, null) == sum(c[2] not in allowed for c in children)
        assert outside_list(engine, "children", "v", [], null) == sum(c[2] is not None or not null for c in children)
        listed = {x[0] for x in parents} - {None} | ({None} if null else set())
        assert outside_column(engine, "children", "v", ("parents", "x"), null) == sum(
            c[2] not in listed for c in children
        )
    engine.close()
