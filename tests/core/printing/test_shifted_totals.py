"""A center that is subtracted from the total, as often as there are terms, gives the integers of each term shifted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan
from dpsql.service.privacy_settings import settled

POLICY = """\
version: 1
name: shop
tables:
  sales:
    unit: {rows: 1}
    columns:
      kind:  {type: varchar, domain: [x, y, z]}
      sure:  {type: integer, bounds: [0, 100], nullable: false}
      maybe: {type: bigint, bounds: [-3, 1000000]}
      money: {type: 'decimal(12,3)', bounds: [-20, 30.5]}
      long:  {type: 'decimal(30,12)', bounds: [0, 1000000]}
      real:  {type: double, bounds: [0, 50]}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
SHIFTED = [
    "SELECT kind, COUNT(*), AVG(sure) FROM sales GROUP BY kind",
    "SELECT AVG(sure) FILTER (WHERE kind = 'x') FROM sales",
    "SELECT AVG(maybe), SUM(maybe) FROM sales",
    "SELECT kind, AVG(maybe) FILTER (WHERE sure > 50) FROM sales GROUP BY kind",
    "SELECT AVG(money) FROM sales",
    "SELECT kind, AVG(long) FROM sales GROUP BY kind",
    "SELECT AVG(CLIP(sure, 0.5, 2.5)) FROM sales",
    "SELECT AVG(sure * 3 + maybe) FROM sales",
    "SELECT AVG(maybe) FROM sales WHERE sure > 1000",
]
LEFT_ALONE = [
    "SELECT AVG(real) FROM sales",
    "SELECT SUM(maybe), SUM(sure + 1) FROM sales",
    "SELECT VAR_POP(real) FROM sales",
]


def statements(folder: Path, sql: str) -> list[str]:
    path = folder / "shop.yaml"
    path.write_text(POLICY)
    plan = static_plan(Source(sql), load_policy(path), settings=settled({"epsilon": 1}, QuerySettings()))
    return [s.sql for r in plan.releases for s in r.statements]


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    dice = random.Random(9)
    numbers = [-(2**31), 2**31 - 1, -4, -3, 0, 1, 49, 50, 51, 100, 101, 77]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE sales (kind VARCHAR, sure INTEGER, maybe BIGINT, money DECIMAL(12, 3), long DECIMAL(30, 12), "
            "real DOUBLE)"
        )
        for _ in range(400):
            kind = dice.choice(["x", "y", "w", None])
            row = [dice.choice([None, *numbers]) for _ in range(4)]
            real = dice.choice([None, float("nan"), 0.5, 1.25, 77.0])
            connection.execute("INSERT INTO sales VALUES (?, ?, ?, ? / 8, ? / 7, ?)", (kind, *row, real))
        yield connection


@pytest.mark.parametrize("sql", SHIFTED)
def test_the_integers_are_those_of_each_term_shifted(
    sql: str, tmp_path: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows whose value is NULL, though the policy says that there are none, among them."""
    once = statements(tmp_path, sql)
    monkeypatch.setattr(DuckDB, "shifts_totals", False)
    each = statements(tmp_path, sql)
    assert once != each
    found = [[sorted(tables.execute(text).fetchall(), key=repr) for text in texts] for texts in (once, each)]
    assert found[0] == found[1] and found[0][0]


@pytest.mark.parametrize("sql", LEFT_ALONE)
def test_doubles_and_sums_without_a_center_are_written_as_before(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = statements(tmp_path, sql)
    monkeypatch.setattr(DuckDB, "shifts_totals", False)
    assert once == statements(tmp_path, sql)


def test_postgres_shifts_each_term() -> None:
    assert not Postgres().shifts_totals
