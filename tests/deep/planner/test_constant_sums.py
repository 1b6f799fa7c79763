"""SUM of a constant over neighbouring databases: c · COUNT(*) in each of them, and no further apart than is claimed."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.ir.components import RowCount
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.count import Count
from dpsql.planner.plan import Plan
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Tally, Vector, Violation, attack, change, exact, plan_of
from tests.support.random_databases import Store, World, id_world, row_world

CONSTANTS = ("1", "5", "-3", "2.5", "CAST(0.25 AS DOUBLE)", "-0.01")
FILTERS = ("", " FILTER (WHERE flag)", " FILTER (WHERE age > 0)")


def _query(rng: random.Random, world: World) -> tuple[str, Fraction]:
    """(query, its constant): SUM(c) beside COUNT(*), both of the same rows."""
    constant, where = rng.choice(CONSTANTS), rng.choice(FILTERS)
    key = rng.choice(("", "", "flag", "age"))
    keys, group = (f"{key} AS k, ", f" GROUP BY {key}") if key else ("", "")
    table = rng.choice([t.name for t in world.private])
    times = Fraction(constant.removeprefix("CAST(").removesuffix(" AS DOUBLE)"))
    return f"SELECT {keys}SUM({constant}){where} AS s, COUNT(*){where} AS n FROM {table} AS t{group}", times


def _apart(plan: Plan, a: Vector, b: Vector, times: Fraction) -> str:
    """What two databases' released numbers, but for noise, say against the claim."""
    (planned,) = plan.releases
    node, measurements = planned.measured.node, planned.measured.measurements
    total, count = (o.recipe for o in node.outputs)
    assert isinstance(total, Count) and isinstance(count, Count)
    ((i, worth),), ((n, each),) = (recipe.terms(node.components) for recipe in (total, count))
    if not isinstance(node.components[i], RowCount) or i != n or worth != times * each:
        return f"{total} for {times} · {count}"
    moved, claim = change(a, b, i), measurements[i].sensitivity
    if moved.l1 * abs(worth) > abs(times) * claim.l1 * measurements[n].unit:
        return f"moved by {moved.l1 * abs(worth)}"
    return ""


@pytest.mark.parametrize("seed", range(6))
def test_a_constant_sum_moves_as_its_count_does(seed: int) -> None:
    rng, store, tally, moved = random.Random(seed), Store(), Tally(), 0
    for make in (id_world, row_world) * 2:
        world = make(rng)
        store.load(world)
        facts = FactStore(store)
        for _ in range(6):
            sql, times = _query(rng, world)
            attack(store, facts, world, sql, tally)
            try:
                plan = plan_of(store, facts, world, sql)
            except Rejected:
                continue
            (planned,) = plan.releases
            vectors = []
            for db in range(world.neighbours + 1):
                store.show(db)
                vectors.append(exact(planned, store))
            store.show(0)
            for vector in vectors[1:]:
                assert not _apart(plan, vectors[0], vector, times), sql
                moved += vector != vectors[0]
    store.close()
    assert tally.planned > 10 and tally.equal > 5 and moved > 20


def test_over_rows_it_is_the_sum_of_duckdb() -> None:
    """The number itself, without limits: every database of some worlds, NULL where DuckDB has no rows left out."""
    rng, store, compared = random.Random(7), Store(), 0
    for _ in range(4):
        world = row_world(rng, replace_one=False)
        store.load(world)
        for _ in range(8):
            constant, where, table = rng.choice(CONSTANTS), rng.choice(FILTERS), rng.choice(world.private)
            plan = plan_of(store, FactStore(store), world, f"SELECT SUM({constant}){where} AS s FROM {table.name}")
            (planned,) = plan.releases
            ((i, worth),) = planned.measured.node.outputs[0].recipe.terms(planned.measured.node.components)  # type: ignore[arg-type]
            for db in range(world.neighbours + 1):
                store.show(db)
                ours = exact(planned, store)[()][i] * worth
                theirs = store.fetch(f"SELECT SUM({constant}){where} FROM {table.shown}").columns[0][0]
                assert ours == Fraction(theirs or 0)
                compared += 1
    store.close()
    assert compared > 60


@pytest.mark.parametrize("broken", [Fraction(2), Fraction(1, 2), Fraction(-1)])
def test_another_factor_is_noticed(broken: Fraction) -> None:
    """The twin that must fail: each unit of the count counted twice, half, or the other way."""
    store = Store()
    world = row_world(random.Random(1), replace_one=False)
    store.load(world)
    sql = f"SELECT SUM(5) AS s, COUNT(*) AS n FROM {world.private[0].name}"
    plan = plan_of(store, FactStore(store), world, sql)
    (planned,) = plan.releases
    vector = exact(planned, store)
    assert not _apart(plan, vector, vector, Fraction(5))
    node = planned.measured.node
    first, *rest = node.outputs
    assert isinstance(first.recipe, Count)
    outputs = (replace(first, recipe=replace(first.recipe, times=first.recipe.times * broken)), *rest)
    measured = replace(planned.measured, node=replace(node, outputs=outputs))
    wrong = plan.with_releases([replace(planned, measured=measured)])
    assert _apart(wrong, vector, vector, Fraction(5))
    store.close()


def test_a_count_that_is_claimed_too_small_is_noticed() -> None:
    """The other twin: the oracle sees a sensitivity that is too small."""
    store, world = Store(), id_world(random.Random(3), replace_one=False)
    store.load(world)

    def halved(plan: Plan) -> Plan:
        def small(m):  # type: ignore[no-untyped-def]
            s = m.sensitivity
            return replace(m, sensitivity=replace(s, l1=s.l1 // 4, linf=s.linf // 4, l2_squared=s.l2_squared / 16))

        (planned,) = plan.releases
        measured = replace(planned.measured, measurements=tuple(map(small, planned.measured.measurements)))
        return plan.with_releases([replace(planned, measured=measured)])

    with pytest.raises(Violation):
        for table in world.private:
            attack(store, FactStore(store), world, f"SELECT SUM(5) AS s FROM {table.name}", Tally(), surgery=halved)
    store.close()
