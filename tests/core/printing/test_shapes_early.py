"""Aggregating before a join gives the integers of joining first, and is chosen only where that is proven."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.core.printing.shapes import weighted
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.plan import Plan
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
      age:    {type: integer, bounds: [0, 100]}
  homes:
    unit: {column: id}
    max_rows_per_unit: 2
    columns:
      id:   {type: bigint}
      town: {type: varchar, domain: [a, b], nullable: false}
  orders:
    unit: {column: person}
    max_rows_per_unit: 3
    columns:
      person: {type: bigint}
      amount: {type: double, bounds: [-5, 50]}
      kind:   {type: varchar, domain: [x, y]}
budgets:
  total: {epsilon: 10, delta: 1e-6}
"""
EARLY = [
    "SELECT p.region, COUNT(*), SUM(o.amount) FROM people p JOIN orders o ON p.id = o.person GROUP BY p.region",
    "SELECT p.region, AVG(o.amount), COUNT(o.amount) FROM orders o JOIN people p ON p.id = o.person GROUP BY 1",
    "SELECT p.region, SUM(o.amount) FROM orders o JOIN people p ON o.person = p.id WHERE o.kind = 'x' GROUP BY 1",
    "SELECT p.region, COUNT(*) FROM orders o, people p WHERE o.person = p.id AND amount > 1 AND kind = 'x' GROUP BY 1",
    "SELECT p.region, COUNT(*) FILTER (WHERE o.kind = 'x') FROM orders o JOIN people p ON p.id = o.person GROUP BY 1",
    "SELECT p.region, COUNT(DISTINCT p.id), COUNT(*) FROM orders o JOIN people p ON p.id = o.person GROUP BY 1",
    "SELECT p.age > 50, COUNT(*) FROM orders o JOIN people p ON p.id = o.person GROUP BY 1",
]
LATE = [
    "SELECT p.region, SUM(p.age) FROM people p JOIN orders o ON p.id = o.person GROUP BY p.region",  # reads people
    "SELECT o.kind, COUNT(*) FROM people p JOIN orders o ON p.id = o.person GROUP BY o.kind",  # groups by an order
    "SELECT p.region, COUNT(*) FROM people p JOIN orders o ON p.id = o.person WHERE p.age > 50 GROUP BY p.region",
    "SELECT p.region, COUNT(*) FROM people p JOIN orders o ON p.id = o.person WHERE p.age > o.amount GROUP BY 1",
    "SELECT p.region, COUNT(*) FROM people p JOIN orders o ON p.id = o.person AND p.age > o.amount GROUP BY 1",
    "SELECT h.town, COUNT(*) FROM homes h JOIN orders o ON h.id = o.person GROUP BY h.town",  # two homes
    "SELECT COUNT(*) FROM people p JOIN orders o ON p.id = o.person",
]


def plan_of(folder: Path, sql: str) -> Plan:
    path = folder / "shop.yaml"
    path.write_text(POLICY)
    return static_plan(Source(sql), load_policy(path), settings=settled({"epsilon": 1}, QuerySettings()))


def early_of(plan: Plan) -> bool:
    return any("before the join" in s.shape for r in plan.releases for s in r.statements)


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    dice = random.Random(3)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (id BIGINT, region VARCHAR, age INTEGER)")
    connection.execute("CREATE TABLE orders (person BIGINT, amount DOUBLE, kind VARCHAR)")
    connection.execute("CREATE TABLE homes (id BIGINT, town VARCHAR)")
    for i in range(40):
        connection.execute(
            "INSERT INTO people VALUES (?, ?, ?)", (i, dice.choice([*"nswq", None]), dice.choice([None, 7, 70]))
        )
    amounts = [None, float("nan"), float("inf"), -7.0, 0.0, 1.25, 49.5, 1e9]
    for _ in range(300):
        row = dice.choice([None, *range(60)]), dice.choice(amounts), dice.choice(["x", "y", "z", None])
        connection.execute("INSERT INTO orders VALUES (?, ?, ?)", row)
    yield connection
    connection.close()


@pytest.mark.parametrize("sql", EARLY)
def test_the_integers_are_those_of_joining_first(
    sql: str, tmp_path: Path, tables: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = plan_of(tmp_path, sql)
    monkeypatch.setattr(weighted, "early", lambda *_: None)
    late = plan_of(tmp_path, sql)
    assert early_of(soon) and not early_of(late)
    found = [
        [sorted(map(repr, tables.execute(s.sql).fetchall())) for r in plan.releases for s in r.statements]
        for plan in (soon, late)
    ]
    assert found[0] == found[1]
    assert len(found[0][0]) >= 2


@pytest.mark.parametrize("sql", LATE)
def test_it_is_left_alone_where_it_would_be_another_query(sql: str, tmp_path: Path) -> None:
    assert not early_of(plan_of(tmp_path, sql))
