"""A later release reads what was released, in every type."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from tests.planner.postprocessing.test_noisy_rows import POLICY


@pytest.fixture
def con(tmp_path: Path) -> dpsql.Connection:
    with duckdb.connect(str(tmp_path / "small.duckdb")) as made:
        made.execute("CREATE TABLE t (word VARCHAR, day DATE, x DOUBLE, d DECIMAL(9, 2))")
        made.execute(
            "INSERT INTO t SELECT CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'it''s' WHEN 2 THEN '' END, "
            "DATE '2024-01-01' + CAST(i % 3 AS INTEGER), (i % 5) - 2.0, i % 6 FROM range(240) r(i)"
        )
    (tmp_path / "small.yaml").write_text(POLICY, encoding="utf-8")
    return dpsql.connect(tmp_path / "small.yaml")


@pytest.mark.parametrize("key", ["word", "day", "x > 0"])
@pytest.mark.parametrize("value", ["COUNT(*)", "SUM(d)", "AVG(x)", "SUM(x)"])
def test_a_later_release_reads_what_was_released(con: dpsql.Connection, key: str, value: str) -> None:
    """Rows are counted that lie above their group's released number; groups are matched by every kind of key."""
    limit = {"COUNT(*)": "d * 30", "SUM(d)": "d * 60", "AVG(x)": "x", "SUM(x)": "x * 20"}[value]
    sql = (
        f"SELECT COUNT(*) FROM (SELECT {key} AS k, x, d FROM t) AS t "
        f"JOIN (SELECT {key} AS k, {value} AS v FROM t GROUP BY 1) AS g ON t.k = g.k WHERE {limit} > g.v + 0.001"
    )
    with con:
        plan = con.sql(sql).plan(epsilon=1_000_000)
        assert [s.reads("r0") for r in plan.releases for s in r.statements] == [False, True]
        ((found,),) = con.run(plan).fetchall()
        engine = duckdb.connect(str(con.policy.database_path), read_only=True)
    assert (found,) == engine.execute(sql).fetchone()
    engine.close()
