"""Made-up databases: neighbours in exactly one unit, and kept promises, whatever the choices."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.types import parse_type
from dpsql.core.policy.tables import Column
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.synthetic import SyntheticEngine
from dpsql.faces.audit.neighbouring_databases import DatabaseMaker
from dpsql.faces.audit.pair_search import PairSearch
from dpsql.faces.audit.plan_reading import reading
from dpsql.faces.audit.run_audit import keeps_promises
from dpsql.faces.audit.world import World
from dpsql.faces.audit.worst_values import pool
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.support.audited_queries import CASES, policy


def searched(name: str) -> tuple[Plan, Policy, World, PairSearch]:
    case = CASES[name]
    world = World(policy(case.policy), None)
    settings = QuerySettings(Fraction(1), None if case.policy == "replaced" else Fraction(1, 20))
    plan = FactStore(world).compile(
        lambda public: compile_query(Source(case.sql), world.policy, public, settings, (), world.table_sql)
    )
    unit = sorted(plan.cost)[0]
    return (
        plan,
        world.policy,
        world,
        PairSearch(plan, DatabaseMaker(world.policy, reading(plan, world.policy), world), unit, 80),
    )


def test_a_broken_promise_is_noticed() -> None:
    plan, declared, world, search = searched("direct, a promise")
    pair = next(p for c in search.starts() if (p := search.look(c)) is not None)
    one = pair.databases.a["promised"][0]
    broken = replace(pair, databases=replace(pair.databases, a={"promised": (one,) * 8}))
    assert keeps_promises(declared, reading(plan, declared), world, pair)
    assert not keeps_promises(declared, reading(plan, declared), world, broken)


def test_as_many_rows_are_tried_as_a_limit_of_a_total_lets_count() -> None:
    """Of a sum, as many as reach it."""
    declared = parse_policy(OPEN, "open.yaml")
    world = World(declared, None)
    source = Source("SELECT COUNT(*) AS n, SUM(x) AS s FROM log")

    def planned(found: dict[str, int]) -> Plan:
        settings = QuerySettings(Fraction(1), search=True, found=found)
        return FactStore(world).compile(
            lambda public: compile_query(source, declared, public, settings, (), world.table_sql)
        )

    searches = planned({}).searches
    assert searches is not None
    count, total = (s.limit.label for s in searches.limits)
    assert {8, 26} <= set(reading(planned({count: 8, total: 512}), declared).numbers)


OPEN = """
version: 1
name: open
database: open.duckdb
tables:
  log:
    unit: {column: id}
    columns:
      id: {type: integer}
      x: {type: integer, bounds: [-10, 20]}
budgets: {total: {epsilon: 10}}
"""


@pytest.mark.parametrize("bounds", [
    ("date", dt.date(2024, 1, 1), dt.date(2024, 12, 31)),
    ("timestamp", dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 31, 12)),
    ("timestamptz", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)),
    ("decimal(9,2)", Fraction(-5, 4), Fraction(5, 2)),
    ("tinyint", Fraction(-128), Fraction(127)),
    ("integer", Fraction(0), None),
])  # fmt: skip
def test_bounds_of_every_kind_are_values_that_the_engine_takes(bounds: tuple[str, Any, Any]) -> None:
    name, low, high = bounds
    type_ = parse_type(name)
    assert type_ is not None
    engine = SyntheticEngine()
    engine.create("t", [("c", type_.name)])
    engine.fill("t", [(v,) for v in pool(Column("c", name, type_, (low, high)))])
    ends = ", ".join(f"CAST('{e}' AS {type_.name})" for e in (low, high) if isinstance(e, dt.date))
    if ends:
        (found,) = engine.fetch(f"SELECT COUNT(DISTINCT c) FROM {engine.table_sql('t')} WHERE c IN ({ends})").columns
        assert found == [2]
    engine.close()


def test_a_pool_holds_the_ends_and_what_lies_beyond() -> None:
    bounds = (Fraction(-3), Fraction(10))
    found = pool(Column("c", "double", parse_type("double"), bounds), literals=(5,))
    assert found[:2] == ("CAST('10.0' AS DOUBLE)", "CAST('-3.0' AS DOUBLE)")
    beyond = (
        "CAST('nan' AS DOUBLE)",
        "CAST('-inf' AS DOUBLE)",
        "CAST('21.0' AS DOUBLE)",
        "NULL",
        "CAST('6.0' AS DOUBLE)",
    )
    assert set(beyond) <= set(found)
    assert "NULL" not in pool(Column("c", "integer", parse_type("integer"), is_nullable=False))


def test_public_tables_are_made_up_as_declared() -> None:
    world = World(policy("limits"), None)
    words, countries = world.public_values("words", "word"), world.public_values("countries", "id")
    assert world.made_up == ["words", "countries"] and len(words) == len(countries) == 8
    (rows,) = world.fetch(
        f"SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM {world.table_sql('words')} GROUP BY word)"
    ).columns
    assert rows == [4]
    world.close()


def test_public_tables_are_read_where_there_are_any_and_private_ones_never() -> None:
    source = SyntheticEngine()
    source.create("words", [("word", "VARCHAR"), ("topic", "VARCHAR")])
    source.fill("words", [("'a'", "'x'"), ("'it''s'", "'x'")])
    asked: list[str] = []

    class Watched(World):
        def _read(self, table):  # type: ignore[no-untyped-def]
            asked.append(table.name)
            return super()._read(table)

    world = Watched(policy("limits"), source)
    assert world.public_values("words", "word") == ["'a'", "'it''s'"]
    world.table_sql("people")
    assert asked == ["words"] and world.made_up == []
    world.close()
    source.close()


def test_columns_that_are_not_known_are_a_refusal() -> None:
    world = World(policy("clinic"), None)
    with pytest.raises(Rejected) as refusal:
        world.table_sql("icd10")
    assert refusal.value.diagnostics[0].code == "DP005"
    world.close()
