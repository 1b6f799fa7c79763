"""No optimizer leaves out a clip because of what it believes of a sum, as one of DuckDB's would."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.policy.load import parse_policy

POLICY = """\
version: 1
name: m
ledger: ":memory:"
database: m.duckdb
tables:
  log:
    unit: {of: person, column: id}
    max_rows_per_unit: 5
    columns:
      id: {type: bigint, nullable: false}
      code: {type: integer, nullable: false}
      x: {type: integer, bounds: [0, 10], nullable: false}
  codes:
    public: true
    primary_key: [code]
    columns: {code: {type: integer}, title: {type: integer}}
units: {person: {}}
budgets: {total: {epsilon: 1e30}}
"""
MADE = """
CREATE TABLE codes AS SELECT i::INT AS code, 5 AS title FROM range(3) s(i);
CREATE TABLE log AS SELECT 1::BIGINT AS id, 1 AS code, 10 AS x FROM range(1000);
"""
SIDES = ("(SELECT * FROM codes WHERE title = 99) o ON o.code = log.code", "codes o ON o.title > 90")
CLIPPED = (
    "SELECT AVG(n) AS a FROM (SELECT id, LEAST(SUM(x), 20) AS n FROM log LEFT JOIN {} GROUP BY id)",
    "SELECT SUM(n) AS a FROM (SELECT id, CLIP(SUM(x), 0, 20) AS n FROM log LEFT JOIN {} GROUP BY id)",
)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("sql", CLIPPED)
@pytest.mark.parametrize("passed", [False, True], ids=["opened by us", "passed in"])
def test_a_sum_over_a_join_with_nothing_is_clipped(tmp_path: Path, sql: str, side: str, passed: bool) -> None:
    (tmp_path / "m.yaml").write_text(POLICY)
    with duckdb.connect(str(tmp_path / "m.duckdb")) as data:
        data.execute(MADE)
    own = duckdb.connect(str(tmp_path / "m.duckdb"), read_only=True) if passed else None
    path = tmp_path / "m.yaml"
    with dpsql.connect(path) if own is None else dpsql.connect(own, policy=path, optimizers="ours") as con:
        (row,) = con.sql(sql.format(side)).run(epsilon=1e20).rows
    if own is not None:
        own.close()
    assert row == (20,)


@pytest.mark.parametrize("side", SIDES)
def test_a_sum_over_a_join_with_nothing_does_not_wrap(side: str) -> None:
    """8 rows of 2⁶¹ are 2⁶⁴; in 64 bits they would be 0."""
    with duckdb.connect() as own:
        own.execute(MADE)
        own.execute(
            "CREATE OR REPLACE TABLE log AS SELECT 1::BIGINT AS id, 1 AS code, 2305843009213693952 AS x FROM range(8)"
        )
        sql = f"SELECT LEAST(SUM(x), 20) FROM log LEFT JOIN {side}"
        policy = parse_policy(POLICY.replace("x: {type: integer", "x: {type: bigint"))
        with dpsql.connect(own, policy=policy, optimizers="ours") as con:
            (row,) = con.sql(CLIPPED[0].format(side)).run(epsilon=1e20).rows
        assert row == (20,)
        assert own.execute(sql).fetchall() == [(0,)], "what DuckDB says of itself, with its own optimizers"
