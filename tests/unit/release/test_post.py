"""Answers that only rename released columns are made without an engine; through SQL they are the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.engine.duckdb import DuckDBEngine
from dpsql.engine.scratch import Scratch
from dpsql.release.noisy import measure_release
from dpsql.release.post import post_process
from dpsql.session.connection import Connection

RENAMED = [
    "SELECT city, COUNT(*) AS n, SUM(fee) AS s, AVG(age) AS a FROM members GROUP BY city",
    "SELECT AVG(age) AS a, city AS c, COUNT(*) AS n, city FROM members GROUP BY city",
    "SELECT COUNT(*) AS n FROM members GROUP BY city",
    "SELECT COUNT(*) AS n, COUNT(*) AS m FROM members",
    "SELECT joined, COUNT(*) AS n FROM members WHERE joined < DATE '2020-02-01' GROUP BY joined",
    "SELECT age > 50 AS old, city, COUNT(DISTINCT id) AS n FROM members GROUP BY 1, 2",
    "SELECT age // 10 AS decade, AVG(fee) AS n FROM members GROUP BY decade",
    "SELECT note, COUNT(*) AS n FROM members GROUP BY note",
    "SELECT x.city, x.n FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY city) AS x",
]
COMPUTED = [
    "SELECT city, COUNT(*) AS n FROM members GROUP BY city ORDER BY n",
    "SELECT city, COUNT(*) + 1 AS n FROM members GROUP BY city",
    "SELECT city, COUNT(*) AS n FROM members GROUP BY city HAVING COUNT(*) > 0",
    "SELECT country, n FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY city) AS x JOIN cities USING (city)",
]


@pytest.mark.parametrize("sql", RENAMED)
def test_both_ways_give_the_same_rows(shared: Connection, sql: str) -> None:
    plan = shared.sql(sql).plan(epsilon=100, delta="1e-6")
    assert plan.post.renamed is not None
    engine = shared._engine
    assert isinstance(engine, DuckDBEngine)
    receipt = shared._reserve(plan)
    scratch = Scratch()
    try:
        noisy = [measure_release(r, engine, receipt, 7) for r in plan.releases]
        direct = post_process(plan, noisy, engine, scratch)
        through = post_process(replace(plan, post=replace(plan.post, renamed=None)), noisy, engine, scratch)
    finally:
        scratch.close()
    assert direct.rows and len(direct.rows) == len(direct.origin)
    by_row = dict(zip(through.origin, through.rows, strict=True))
    assert sorted(by_row) == sorted(direct.origin)  # type: ignore[type-var]
    assert [by_row[origin] for origin in direct.origin] == list(direct.rows)
    assert [[type(v) for v in row] for row in through.rows] == [[type(v) for v in row] for row in direct.rows]


@pytest.mark.parametrize("sql", COMPUTED)
def test_whatever_computes_runs_in_the_scratch_database(shared: Connection, sql: str) -> None:
    plan = shared.sql(sql).plan(epsilon=1)
    assert plan.post.renamed is None and "members" not in plan.post.sql


def test_order_limit_and_nulls_are_the_engines(shared: Connection) -> None:
    sql = "SELECT city, COUNT(*) AS n FROM members GROUP BY city ORDER BY n {} LIMIT 2 OFFSET 1"
    for direction in ("ASC", "DESC"):
        rows = shared.sql(sql.format(direction)).run(epsilon=100).fetchall()
        values = [n for _, n in rows]
        assert len(rows) == 2 and values == sorted(values, reverse=direction == "DESC")
    assert shared.sql(sql.format("ASC").replace("OFFSET 1", "OFFSET 5")).run(epsilon=1).fetchall() == []
