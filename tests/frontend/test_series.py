"""generate_series and range in FROM are the rows that DuckDB counts; of days they are days, which join with days."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

POLICY = policy("t: {public: true, columns: {i: {type: integer}}}")
PRIVATE = """
version: 1
name: visits
tables:
  visits:
    unit: {rows: 1}
    columns: {day: {type: date, bounds: [2024-01-01, 2024-01-09]}, cost: {type: integer, bounds: [0, 9]}}
budgets:
  total: {epsilon: 1e18}
"""


@pytest.mark.parametrize(
    "series",
    [
        "generate_series(1, 5)", "generate_series(5, 1, -2)", "range(3)", "range(1, 9, 3)", "generate_series(2, 2)",
        "generate_series(-3000000000, -2999999999)",
        "generate_series(DATE '2024-01-30', DATE '2024-02-02', INTERVAL 1 DAY)",
        "generate_series(DATE '2024-01-31', DATE '2024-06-30', INTERVAL 1 MONTH)",
        "range(DATE '2024-03-01', DATE '2024-01-01', INTERVAL '-7 days')",
        "generate_series(TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-02', INTERVAL '90 minutes')",
    ],
)  # fmt: skip
def test_rows_are_those_that_duckdb_counts(series: str) -> None:
    query = f"SELECT x FROM {series} AS g(x)"
    with duckdb.connect() as plain:
        ours = plain.execute(static_plan(Source(query), POLICY).post.sql).fetchall()
        theirs = plain.execute(query).fetchall()
    assert [_time(x) for (x,) in ours] == [_time(x) for (x,) in theirs] and len(ours) > 0


def _time(x: object) -> object:
    return dt.datetime.combine(x, dt.time()) if isinstance(x, dt.date) and not isinstance(x, dt.datetime) else x


def test_the_column_is_called_as_the_relation() -> None:
    for dialect in ("duckdb", "postgres"):
        plan = static_plan(Source("SELECT g + 1 AS n FROM generate_series(1, 2) AS g"), POLICY, dialect=dialect)
        with duckdb.connect() as plain:
            assert plain.execute(plan.post.sql).fetchall() == [(2,), (3,)]


def test_a_calendar_shows_days_without_rows(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PRIVATE, encoding="utf-8")
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE visits (day DATE, cost INTEGER)")
        plain.executemany("INSERT INTO visits VALUES (?, 1)", [(dt.date(2024, 1, 2 + i // 2),) for i in range(4)])
        with dpsql.connect(plain, policy=tmp_path / "p.yaml", ledger=MemoryLedger(), optimizers="ours") as con:
            sql = (
                "SELECT g.day, COUNT(v.cost) AS n "
                "FROM generate_series(DATE '2024-01-01', DATE '2024-01-04', INTERVAL 1 DAY) AS g(day) "
                "LEFT JOIN visits AS v ON v.day = g.day GROUP BY g.day ORDER BY g.day"
            )
            found = con.sql(sql).run(epsilon=10**9).rows
    assert [(day.day, n) for day, n in found] == [(1, 0), (2, 2), (3, 2), (4, 0)]


@pytest.mark.parametrize(
    ("series", "code"),
    [
        ("generate_series(1, 9, 0)", "DP106"), ("generate_series(3, 1)", "DP101"),
        ("generate_series(1, 9999)", "DP101"),
        ("generate_series(1, 2.5)", "DP106"), ("generate_series(DATE '2024-01-01', DATE '2024-01-02')", "DP106"),
        ("generate_series(TRUE, FALSE)", "DP106"), ("read_csv('x')", "DP101"),
    ],
)  # fmt: skip
def test_others_are_refused(series: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        static_plan(Source(f"SELECT * FROM {series} AS g(x)"), POLICY)
    assert refusal.value.diagnostics[0].code == code and refusal.value.diagnostics[0].help
