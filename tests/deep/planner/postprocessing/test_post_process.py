"""Answers that only rename released columns are made without an engine; through SQL they are the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from dpsql.answers.stored.resolve import resolve
from dpsql.api.connection import Connection
from dpsql.core.release.noisy import NoisyRelease, draw_release
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.frontend.aggregates.formula import output_intervals
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import released_columns
from dpsql.planner.postprocessing.run import post_process

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
    engine = shared.service.engine
    assert isinstance(engine, DuckDBEngine)
    receipt = shared.service.account(shared.analyst).charge(plan, resolve(plan, None).given).receipt
    scratch = Scratch()
    try:
        noisy = [draw_release(r, engine, receipt, 7) for r in plan.releases]
        direct = post_process(plan.post, noisy, engine, scratch)
        through = post_process(replace(plan.post, renamed=None), noisy, engine, scratch)
    finally:
        scratch.close()
    assert direct.rows and direct.derived is not None and through.derived is not None
    (rows,) = through.derived.traces[-1].hidden
    assert sorted(rows) == list(range(len(direct.rows)))
    assert [direct.rows[row] for row in rows] == list(through.rows)
    assert [[type(v) for v in row] for row in through.rows] == [[type(v) for v in row] for row in direct.rows]
    for at, column in enumerate(plan.columns):
        here, there = (
            r.derived.intervals(column.uid, r.columns[at], Fraction("0.9"), bounded=True) for r in (direct, through)
        )
        assert [here.bounds[row] for row in rows] == there.bounds


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


STACKED = [
    "SELECT city, age > 50 AS old, COUNT(*) AS n, AVG(age) AS a FROM members GROUP BY CUBE (city, old) ORDER BY n",
    "SELECT n FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY ROLLUP (city)) WHERE n > 100 ORDER BY n LIMIT 3",
    "SELECT COUNT(*) AS n FROM members UNION ALL SELECT -1000000 UNION ALL SELECT SUM(age) FROM members",
    "SELECT 'x' AS c, SUM(fee) AS n FROM members UNION ALL (SELECT city, COUNT(*) FROM members GROUP BY city LIMIT 2)",
    "SELECT n, rank() OVER (ORDER BY n) AS r FROM (SELECT COUNT(*) AS n FROM members UNION ALL SELECT SUM(age) "
    "FROM members) QUALIFY r <= 2",
    "SELECT COUNT(*) AS n FROM members UNION ALL (SELECT COUNT(*) FROM members UNION ALL SELECT SUM(age) FROM members)",
]


@pytest.mark.parametrize("sql", STACKED)
def test_rows_one_below_the_other_keep_their_own_intervals(shared: Connection, sql: str) -> None:
    """Each shown number is one of a release, with the interval that it has there; a constant has none."""
    plan = shared.sql(sql).plan(epsilon=4)
    answer = shared.run(plan)
    released: set[tuple[float, float, float]] = set()
    # With R of N rows left by noisy numbers, at 1 - 5 % · R/N.
    level = 1 - Fraction(5, 100) * Fraction(len(answer), shared.run(unchosen(shared, sql))._table.height)
    for noisy in answer._noisy:
        for output, column in zip(noisy.planned.measured.node.outputs, released_columns(noisy), strict=True):
            bounds = output_intervals(noisy, output, level)
            released |= {(float(value), *ends) for value, ends in zip(column, bounds, strict=True)}  # type: ignore[arg-type]
    assert len(plan.post.branches) > 1
    compared = 0
    for row, found in zip(answer.to_dict()["n"], answer.intervals(bounded=True), strict=True):
        ends = found["n"]
        assert (ends is None) == (row == -1_000_000)  # no noise is that large
        if ends is not None:
            assert (float(row), *ends) in released and ends[0] <= float(row) <= ends[1]
            compared += 1
    assert compared >= 2


def unchosen(con: Connection, sql: str) -> Plan:
    """The same question without the conditions on noisy numbers."""
    for chosen in (" WHERE n > 100 ORDER BY n LIMIT 3", " QUALIFY r <= 2"):
        sql = sql.replace(chosen, "")
    return con.sql(sql).plan(epsilon=4)


def test_intervals_differ_from_branch_to_branch(shared: Connection) -> None:
    sql = "SELECT 'n' AS what, COUNT(*) AS x FROM members UNION ALL SELECT 'age', SUM(age) FROM members ORDER BY what"
    answer = shared.sql(sql).run(epsilon=4)
    (ages, count) = ([high - low for low, high in (row["x"],) if row["x"]] for row in answer.intervals(bounded=True))
    assert ages[0] > 50 * count[0] > 0
    assert [set(row) for row in answer.intervals(bounded=True)] == [{"what", "x"}] * 2
    known = shared.sql(sql).accuracy(epsilon=4)
    assert known["x"] == pytest.approx(ages[0] / 2)


def test_rows_without_a_release_of_their_own_have_no_interval(shared: Connection) -> None:
    for operator in ("UNION", "INTERSECT", "EXCEPT ALL"):
        sql = f"SELECT COUNT(*) AS n FROM members {operator} SELECT SUM(age) FROM members"
        plan = shared.sql(sql).plan(epsilon=4)
        assert plan.post.branches == () and shared.sql(sql).accuracy(epsilon=4) == {}
        answer = shared.run(plan)
        assert all(row == {"n": None} for row in answer.intervals(bounded=True))
        why = "equal rows are put together, and noisy numbers decide which are equal"
        assert answer.gaps() == [{"n": why}] * len(answer) and f"n has no interval: {why}" in answer.notes


@pytest.mark.parametrize("shown", ["AVG(age)", "VAR_SAMP(age)", "STDDEV_POP(age)"])
def test_an_interval_holds_the_number_shown(shared: Connection, shown: str) -> None:
    """Also where noise has left no count to speak of, and the number is an end of what it may be."""
    (planned,) = shared.sql(f"SELECT {shown} AS a FROM members").plan(epsilon=4).releases
    measurements = planned.measured.measurements
    far = [int(1000 / m.unit) for m in measurements]
    steps = [range(-f, f + 1, max(1, f // 8)) for f in far[:-1]]
    rows = list(product(*steps, range(-3, 9)))
    noisy = NoisyRelease.of_rows(planned, [()] * len(rows), rows)
    ((column,), (output,)) = released_columns(noisy), planned.measured.node.outputs
    bounds = output_intervals(noisy, output, Fraction(95, 100))
    assert all(low <= value <= high for value, (low, high) in zip(column, bounds, strict=True))  # type: ignore[operator]
    assert len(set(bounds)) > 10


def test_columns_of_a_public_table_that_nobody_reads(shared: Connection) -> None:
    """They are not loaded, and counting the rows that noisy numbers chose does without them."""
    counts = "SELECT city, COUNT(*) AS n FROM members GROUP BY city"
    answer = shared.sql(f"SELECT c.city, n FROM cities AS c JOIN ({counts}) AS x ON x.city = c.city AND n > 0").run(
        epsilon=100
    )
    assert len(answer) == 2 and all(row["n"] is not None for row in answer.intervals(bounded=True))
