"""Totals of ids that are clipped and have no term below 0 are added up as DOUBLEs, and the integers are the same."""

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
units:
  person: {table: people, key: id}
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:     {type: bigint, nullable: false}
      region: {type: varchar, domain: [n, s, w]}
  orders:
    unit: {column: person}
    max_rows_per_unit: 3
    columns:
      person: {type: bigint}
      amount: {type: double, bounds: [0, 50]}
      signed: {type: double, bounds: [-5, 50]}
      items:  {type: integer, bounds: [1, 7]}
      kind:   {type: varchar, domain: [x, y]}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
GROUPED = POLICY.replace("max_rows_per_unit: 3", "max_groups_per_unit: 2\n    max_rows_per_group: 2")
RISING = [
    (POLICY, "SELECT SUM(amount) FROM orders"),
    (POLICY, "SELECT COUNT(*), SUM(amount), SUM(items) FILTER (WHERE kind = 'x') FROM orders"),
    (POLICY, "SELECT region, SUM(amount) FROM people JOIN orders ON id = person GROUP BY region"),
    (GROUPED, "SELECT kind, SUM(amount), SUM(items) FROM orders GROUP BY kind"),
    (GROUPED, "SELECT SUM(items) FROM orders WHERE amount > 1"),
]
EXACT = [
    (POLICY, "SELECT SUM(signed) FROM orders"),
    (POLICY, "SELECT AVG(amount), COUNT(*) FROM orders"),
    (POLICY, "SELECT kind, SUM(amount) FROM orders GROUP BY kind"),  # scaled down over all groups of an id
    (GROUPED, "SELECT kind, SUM(signed), AVG(amount) FROM orders GROUP BY kind"),
]


def statements(folder: Path, policy: str, sql: str) -> list[str]:
    path = folder / "shop.yaml"
    path.write_text(policy)
    plan = static_plan(Source(sql), load_policy(path), settings=settled({"epsilon": 1}, QuerySettings()))
    return [s.sql for r in plan.releases for s in r.statements]


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    dice = random.Random(4)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (id BIGINT, region VARCHAR)")
        connection.execute(
            "CREATE TABLE orders (person BIGINT, amount DOUBLE, signed DOUBLE, items INTEGER, kind VARCHAR)"
        )
        for i in range(40):
            connection.execute("INSERT INTO people VALUES (?, ?)", (i, dice.choice([*"nswq", None])))
        amounts = [None, float("nan"), float("inf"), -7.0, 0.0, 0.1, 1.25, 49.5, 1e9]
        for _ in range(400):
            row = dice.choice([None, *range(60)]), dice.choice(amounts), dice.choice(amounts)
            more = dice.choice([None, -3, 1, 4, 7, 2**31 - 1]), dice.choice(["x", "y", "z", None])
            connection.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", (*row, *more))
        yield connection


@pytest.mark.parametrize(("policy", "sql"), RISING)
def test_the_integers_are_those_of_exact_totals(
    policy: str, sql: str, tmp_path: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rising = statements(tmp_path, policy, sql)
    monkeypatch.setattr(DuckDB, "rising_total", lambda *_: None)
    exact = statements(tmp_path, policy, sql)
    assert rising != exact
    found = [[sorted(tables.execute(text).fetchall(), key=repr) for text in texts] for texts in (rising, exact)]
    assert found[0] == found[1]


@pytest.mark.parametrize(("policy", "sql"), EXACT)
def test_what_may_sink_or_is_not_clipped_is_exact(
    policy: str, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = statements(tmp_path, policy, sql)
    monkeypatch.setattr(DuckDB, "rising_total", lambda *_: None)
    assert statements(tmp_path, policy, sql) == one


def test_postgres_adds_integers() -> None:
    assert Postgres().rising_total("x") is None
