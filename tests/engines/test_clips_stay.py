"""No optimizer leaves out a clip because of what it believes of a sum, as that of DuckDB 2.0.0 would."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.optimizers import unwanted
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
    with dpsql.connect(path) if own is None else dpsql.connect(own, policy=path) as con:
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
        found = own.execute(sql).fetchall()
        with dpsql.connect(own, policy=parse_policy(POLICY.replace("x: {type: integer", "x: {type: bigint"))) as con:
            (row,) = con.sql(CLIPPED[0].format(side)).run(epsilon=1e20).rows
        assert row == (20,) and own.execute(sql).fetchall() == [(20,)]
        if duckdb.__version__ == "2.0.1":
            assert found == [(0,)]  # what it says of itself, before anybody has turned the optimizer off


@pytest.mark.skipif(duckdb.__version__ != "2.0.0", reason="it is this version that does it")
def test_the_optimizer_would_leave_it_out() -> None:
    with duckdb.connect() as own:
        own.execute(MADE)
        with dpsql.connect(own, policy=parse_policy(POLICY)) as con:
            query = con.sql(CLIPPED[0].format(SIDES[0]))
            assert query.run(epsilon=1e20, fresh=True).rows == ((20,),)
            own.execute("SET disabled_optimizers = ''")
            assert query.run(epsilon=1e20, fresh=True).rows != ((20,),)


def test_what_the_user_has_disabled_stays_disabled() -> None:
    with duckdb.connect() as data:
        data.execute("SET disabled_optimizers = 'join_order'")
        DuckDBEngine.wrap(data).close()
        found = data.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        assert set(found[0][0].split(",")) == {"join_order", *unwanted(data)}
        DuckDBEngine.wrap(data).close()
        assert data.execute("SELECT current_setting('disabled_optimizers')").fetchall() == found
