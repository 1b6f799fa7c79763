# ruff: noqa: E501
"""Medians, quantiles, modes and values at an extreme of each unit, below another aggregate, are those of the engine."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.diagnostics.errors import Rejected
from dpsql.policy.load import parse_policy

POLICY = parse_policy(
    """
version: 1
name: visits
database: visits.duckdb
budgets: {total: {epsilon: 1e15}}
units: {person: {}}
tables:
  visits: {unit: {of: person, column: id}, max_rows_per_unit: 9, columns: {id: {type: bigint, nullable: false}, x: {type: integer, bounds: [-9, 9]}, y: {type: double, bounds: [0, 100]}, s: {type: varchar, domain: [a, b, c]}, day: {type: date, bounds: [2024-01-01, 2024-12-31]}}}
  codes: {public: true, columns: {code: {type: integer}, name: {type: varchar}}}
"""
)
EACH = {
    "median": "MEDIAN(x)",
    "median of doubles": "MEDIAN(y)",
    "quantile": "QUANTILE_CONT(y, 0.3)",
    "quantile of integers": "QUANTILE_CONT(x, 0.9)",
    "disc": "QUANTILE_DISC(x, 0.5)",
    "disc near an end": "QUANTILE_DISC(y, 0.05)",
    "disc from above": "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY x DESC)",
    "cont from above": "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY x DESC)",
    "filtered": "MEDIAN(x) FILTER (WHERE y > 40)",
    "two of one": "MEDIAN(x) + QUANTILE_DISC(x, 0.9)",
    "beside others": "MEDIAN(x) + MAX(x) - COUNT(x)",
    "computed": "MEDIAN(x * 2 + 1)",
    "greatest": "ARG_MAX(x, day)",
    "least": "ARG_MIN(y, day)",
    "max_by": "MAX_BY(x, y)",
    "filtered greatest": "ARG_MAX(x, day) FILTER (WHERE y < 60)",
}
TEXTS = {
    "mode": ("MODE(s)", "(SELECT MIN(s) FROM (SELECT s, COUNT(*) AS n, MAX(COUNT(*)) OVER () AS m FROM visits AS w WHERE w.id = v.id AND s IS NOT NULL GROUP BY s) WHERE n = m)"),
    "at the last day": ("ARG_MAX(s, day)", "ARG_MAX(s, day)"),
    "at the first day": ("ARG_MIN(s, day)", "ARG_MIN(s, day)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def visits() -> Iterator[tuple[Connection, duckdb.DuckDBPyConnection]]:
    own, rng = duckdb.connect(), random.Random(48)
    own.execute("CREATE TABLE visits (id BIGINT, x INTEGER, y DOUBLE, s VARCHAR, day DATE)")
    own.execute("CREATE TABLE codes AS SELECT CAST(i AS INTEGER) AS code, 'n' || i AS name FROM range(5) AS t(i)")
    for person in range(60):
        days = rng.sample(range(300), rng.randint(1, 9))  # different ones, so that no two rows are at an extreme
        for day in days:
            x = rng.choice([None, *range(-3, 4)])
            row = (person, x, None if day % 9 == 0 else day / 3, rng.choice("abc"), day)
            own.execute("INSERT INTO visits SELECT $1, $2, $3, $4, DATE '2024-01-01' + CAST($5 AS INTEGER)", row)
    with dpsql.connect(own, policy=POLICY, ledger=":memory:", optimizers="ours") as con:
        yield con, own


def shown(con: Connection, sql: str) -> list[tuple[object, ...]]:
    return sorted(con.sql(sql).run(epsilon=10**9).fetchall(), key=repr)


@pytest.mark.parametrize("name", EACH)
def test_numbers(name: str, visits: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    con, own = visits
    rows = f"SELECT COUNT(v) AS n, SUM(CLIP(v, -200, 200)) AS s FROM (SELECT id, {EACH[name]} AS v FROM visits GROUP BY id)"
    count, total = own.sql(rows.replace("CLIP(v, -200, 200)", "v")).fetchall()[0]
    ((n, s),) = shown(con, rows)
    assert n == count and s == pytest.approx(total, abs=1e-3)


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, visits: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    con, own = visits
    written, exact = TEXTS[name]
    ours = shown(con, f"SELECT v, COUNT(*) FROM (SELECT id, {written} AS v FROM visits GROUP BY id) GROUP BY v")
    each = f"SELECT v, COUNT(*) FROM (SELECT DISTINCT id, {exact} AS v FROM visits AS v {'' if 'SELECT' in exact else 'GROUP BY id'}) GROUP BY v"
    assert [row for row in ours if row[1]] == sorted(own.sql(each).fetchall(), key=repr)


def test_of_equal_ones_no_order_of_rows_decides(visits: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    con, own = visits
    for written, exact in (
        ("ARG_MAX(x, s)", "MAX(x) FILTER (WHERE s = m)"),
        ("ARG_MIN(x, s)", "MIN(x) FILTER (WHERE s = l)"),
    ):
        ends = "MAX(s) FILTER (WHERE x IS NOT NULL) OVER (PARTITION BY id) AS m, MIN(s) FILTER (WHERE x IS NOT NULL) OVER (PARTITION BY id) AS l"
        sums = "SELECT SUM(v) FROM (SELECT id, {} AS v FROM {} GROUP BY id)"
        ((ours,),) = shown(con, sums.format(written, "visits"))
        ((theirs,),) = own.sql(sums.format(exact, f"(SELECT *, {ends} FROM visits)")).fetchall()
        assert ours == theirs


def test_public_and_released_rows_have_them_too(visits: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    con, own = visits
    public = "SELECT ARG_MAX(name, code), ARG_MIN(name, code) FROM codes"
    assert con.sql(public).run().fetchall() == own.sql(public).fetchall()
    released = "SELECT ARG_MAX(s, n) FROM (SELECT s, COUNT(*) AS n FROM visits GROUP BY s)"
    assert shown(con, released) == own.sql(released).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ARG_MAX(x, day) FROM visits",
        "SELECT s, ARG_MAX(x, day) FROM visits GROUP BY s",
        "SELECT ARG_MAX(x, day, 2) FROM visits",
        "SELECT AVG(v) FROM (SELECT s, MEDIAN(x) AS v FROM visits GROUP BY s, id) WHERE s = (SELECT ARG_MAX(s, day) FROM visits)",
    ],
)
def test_one_person_decides_nothing(sql: str, visits: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    with pytest.raises(Rejected):
        visits[0].sql(sql).plan(epsilon=1)
