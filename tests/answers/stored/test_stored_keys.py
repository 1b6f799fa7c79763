"""Private keys of every type come back from the file as the engine gives them: numbers measured later fit them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.api.connection import Connection, connect

COLUMNS = {
    "word": ("varchar", "CASE WHEN i % 4 > 0 THEN 'k''' || i % 4 END"),
    "money": ("decimal(9,2)", "CAST((i % 3) * 1.25 AS DECIMAL(9,2))"),
    "moment": ("timestamp", "TIMESTAMP '2024-01-01 10:00:00.123456' + INTERVAL 1 DAY * (i % 3)"),
    "day": ("date", "DATE '2024-01-01' + CAST(i % 3 AS INTEGER)"),
    "large": ("hugeint", "CAST(i % 3 AS HUGEINT) * 100000000000000000000"),
    "hour": ("time", "TIME '10:11:12.131415'"),
    "code": ("uuid", "CAST('0000000' || i % 3 || '-0000-0000-0000-000000000000' AS UUID)"),
    "flag": ("boolean", "CASE WHEN i % 3 > 0 THEN i % 3 = 1 END"),
}
POLICY = """\
version: 1
name: keys
database: keys.duckdb
units: {person: {}}
ledger_head: head
tables:
  t:
    unit: {column: id}
    primary_key: [id]
    columns:
      id: {type: bigint, nullable: false}
      one: {type: integer, bounds: [0, 1]}
"""


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder: Path = tmp_path_factory.mktemp("keys")
    with duckdb.connect(str(folder / "keys.duckdb")) as database:
        listed = ", ".join(f"{e} AS {n}" for n, (_, e) in COLUMNS.items())
        database.execute(f"CREATE TABLE t AS SELECT i AS id, 1 AS one, {listed} FROM range(1200) r(i)")
    text = POLICY + "".join(f"      {name}: {{type: '{type_}'}}\n" for name, (type_, _) in COLUMNS.items())
    (folder / "keys.yaml").write_text(text + "budgets: {total: {epsilon: 100000, delta: 0.5}}\n", encoding="utf-8")
    with connect(folder / "keys.yaml") as connection:
        yield connection


@pytest.mark.parametrize("column", COLUMNS)
def test_a_sum_over_stored_keys(con: Connection, column: str) -> None:
    """Almost without noise: the sum of ones is the count, in every group."""
    first = con.execute(f"SELECT {column} AS k, COUNT(*) AS n FROM t GROUP BY {column}", epsilon=400, delta="1e-3")
    summed = f"SELECT {column} AS k, COUNT(*) AS n, SUM(one) AS s FROM t GROUP BY {column}"
    second = con.execute(summed, epsilon=600, delta="1e-3")
    assert second.spent.epsilon == 300 and second.spent.delta == 0
    assert [row[:2] for row in second.rows] == list(first.rows) and len(first.rows) > 0
    assert all(row[1] == row[2] for row in second.rows) and sum(row[1] for row in second.rows) == 1200
    assert con.execute(summed, epsilon=600, delta="1e-3").rows == second.rows
