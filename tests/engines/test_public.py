"""Facts of public tables against what a join itself would do."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.public_facts import frequency, key_list, row_count


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    with duckdb.connect() as con:
        con.execute('CREATE TABLE pub (k VARCHAR, "odd ""n" INTEGER, d DOUBLE, h HUGEINT, day DATE)')
        con.execute(
            "INSERT INTO pub VALUES ('a', 1, 'nan', 5, '2024-01-01'), ('A', 1, 'nan', 5, '2024-01-01'),"
            "('a', 2, 0.0, 6, NULL),"
            "(NULL, 3, -0.0, 6, NULL), (NULL, 4, NULL, NULL, NULL), (NULL, NULL, 1.5, 6, '2024-01-02'),"
            "('é', 3, 0.0, 7, NULL)"
        )
        con.execute("CREATE TABLE nothing (x INTEGER)")
        opened = DuckDBEngine.wrap(con, optimizers="ours")
        yield opened
        opened.close()


@pytest.mark.parametrize(
    ("columns", "most"),
    [(["k"], 2), (['odd "n'], 2), (["d"], 3), (["h"], 3), (["k", 'odd "n'], 1), (["day"], 2), (["h", "day"], 2)],
)
def test_frequency_is_what_a_join_meets(engine: DuckDBEngine, columns: list[str], most: int) -> None:
    quoted = ['"' + c.replace('"', '""') + '"' for c in columns]
    on = " AND ".join(f"a.{c} = b.{c}" for c in quoted)
    table = engine.table_sql("pub")
    join = f"SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {table} AS a JOIN {table} AS b ON {on} GROUP BY a.rowid)"
    assert frequency(engine, "pub", columns) == most == engine.fetch(join).columns[0][0]


def test_edges(engine: DuckDBEngine) -> None:
    assert frequency(engine, "pub", []) == row_count(engine, "pub") == 7
    assert frequency(engine, "nothing", ["x"]) == row_count(engine, "nothing") == 0
    assert key_list(engine, "nothing", ["x"], 0) == []


def test_keys_are_sorted_distinct_and_capped(engine: DuckDBEngine) -> None:
    assert key_list(engine, "pub", ["k"], 10) == [("A",), ("a",), ("é",), (None,)]
    assert key_list(engine, "pub", ["k"], 4) is not None
    assert key_list(engine, "pub", ["k"], 3) is None
    pairs = key_list(engine, "pub", ["h", "k"], 100)
    assert pairs == [(5, "A"), (5, "a"), (6, "a"), (6, None), (7, "é"), (None, None)]
