"""Whether a text is in a public list is asked of groups in place of rows; the integers of groups are the same."""

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
      kind:  {type: varchar, domain: [x, "it's", '']}
      town:  {type: varchar, domain: [a, b], nullable: false}
      size:  {type: integer, domain: [1, 5, 9]}
      price: {type: double, bounds: [0, 50]}
  towns:
    public: true
    primary_key: [town]
    columns: {town: {type: varchar}, land: {type: varchar}}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
GROUPS = [
    ("SELECT kind, COUNT(*), SUM(price) FROM sales GROUP BY kind", 1),
    ("SELECT town, COUNT(*), AVG(price) FROM sales WHERE price > 3 GROUP BY town", 1),
    ("SELECT kind, town, COUNT(price) FROM sales GROUP BY 1, 2", 2),
    ("SELECT k, COUNT(*) FROM (SELECT kind AS k, price FROM sales) AS s GROUP BY k", 1),
    ("SELECT kind, size, COUNT(*) FROM sales GROUP BY 1, 2", 1),
    ("SELECT kind, SUM(price), MEDIAN(price) FROM sales GROUP BY kind", 1),
]
ROWS = [
    "SELECT size, COUNT(*) FROM sales GROUP BY size",
    "SELECT upper(kind), COUNT(*) FROM sales GROUP BY 1",
    "SELECT kind, COUNT(*) FROM sales JOIN towns USING (town) GROUP BY kind",
    "SELECT kind, MEDIAN(price) FROM sales GROUP BY kind",
]


def statements(folder: Path, sql: str) -> list[str]:
    path = folder / "shop.yaml"
    path.write_text(POLICY)
    plan = static_plan(Source(sql), load_policy(path), settings=settled({"epsilon": 1}, QuerySettings()))
    return [s.sql for r in plan.releases for s in r.statements]


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    dice = random.Random(5)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE sales (kind VARCHAR, town VARCHAR, size INTEGER, price DOUBLE)")
        connection.execute("CREATE TABLE towns AS SELECT * FROM (VALUES ('a', 'l'), ('c', 'm')) AS t(town, land)")
        kinds, towns = ["x", "it's", "", "X", "z", "x ", None], ["a", "b", "c", None]
        for _ in range(400):
            row = dice.choice(kinds), dice.choice(towns), dice.choice([1, 5, 7, 9, None])
            price = dice.choice([None, float("nan"), float("inf"), -7.0, 0.0, 1.25, 49.5, 1e9])
            connection.execute("INSERT INTO sales VALUES (?, ?, ?, ?)", (*row, price))
        yield connection


@pytest.mark.parametrize(("sql", "asked"), GROUPS)
def test_the_integers_are_those_of_asking_rows(
    sql: str, asked: int, tmp_path: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = statements(tmp_path, sql)
    assert later[0].partition("HAVING")[2].count(" IN (") == asked
    monkeypatch.setattr(DuckDB, "having_member", lambda *_: None)
    before = statements(tmp_path, sql)
    assert not any("HAVING" in text for text in before) and later[1:] == before[1:]
    found = [[sorted(map(repr, tables.execute(text).fetchall())) for text in texts] for texts in (later, before)]
    assert found[0] == found[1] and len(found[0][0]) >= 2


@pytest.mark.parametrize("sql", ROWS)
def test_rows_are_asked_where_that_is_the_less_work(sql: str, tmp_path: Path) -> None:
    assert not any("HAVING" in text for text in statements(tmp_path, sql))


def test_postgres_asks_rows(tmp_path: Path) -> None:
    """Its planner has no dictionary of a column to lose."""
    assert Postgres().having_member("k", ["'a'"]) is None
