"""Roots of squares on neighbouring databases"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from dpsql.planner.costs.privacy_cost import cost_of
from tests.core.printing.test_unit_totals import BY_G, GROUPS, SMALL, agrees, by_definition, some_rows
from tests.planner.test_roots_of_squares import (
    APPROX,
    ONE,
    PLANTED,
    ZCDP,
    Open,
    compiled,
    limited,
    norms,
    octaves_of_roots,
    told,
    vectors,
)
from tests.support.neighbour_oracle import change, violations
from tests.support.random_databases import Store


@pytest.mark.parametrize(("half", "neighbours"), [(1, "add_remove"), (0, "replace_one")])
def test_each_id_is_in_the_octave_of_its_root(half: int, neighbours: str) -> None:
    octaves_of_roots(half, neighbours)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("ledger", [APPROX, ZCDP], ids=["approx_dp", "zcdp"])
def test_whatever_root_is_found_costs_what_was_reserved(ledger: Mapping[str, Any], neighbours: str) -> None:
    ids = replace(ONE, ledger=ledger, neighbours=neighbours)
    sql = "SELECT CLIP(x, 0, 10000) % 2000 AS r, COUNT(*), SUM(x) FROM t GROUP BY r"
    store, world = Store(), ids.world
    store.load(world)
    plan = compiled(store, world, sql)
    assert norms(plan) == ["l2", "l2"]
    for k in (0, 1, 9, 30, 62):
        releases = [r.measured for r in (*plan.first.releases, *limited(store, world, sql, 2**k).releases)]
        assert cost_of(releases, world.policy)["person"].within(plan.cost["person"])
    store.close()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_id_moves_an_answer_by_more_than_its_limit(neighbours: str) -> None:
    ids = Open("BIGINT", tuple(some_rows(SMALL, 2)), neighbours=neighbours)
    store, world = Store(), ids.world
    store.load(world)
    reached = set()
    for most in (1, 2, 3, 8, 64):
        (release,) = limited(store, world, BY_G, most).releases
        assert [m.component.of_unit and m.component.of_unit.most for m in release.measured.measurements] == [most] * 4
        found = vectors(store, world, release)
        pairs = combinations(found, 2) if neighbours == "replace_one" else ((found[0], one) for one in found[1:])
        for one, other in pairs:
            assert not list(violations(release, one, other))
            for i, m in enumerate(release.measured.measurements):
                if change(one, other, i).l2_squared == m.sensitivity.l2_squared:
                    reached.add(i)
        agrees(ids, release, found)
    store.close()
    assert neighbours == "replace_one" or reached == {0, 1, 2, 3}


def test_no_planted_value_makes_an_answer_fail() -> None:
    store, ids = Store(), replace(PLANTED, ids=PLANTED.ids[-24:])
    world = ids.world
    store.load(world)
    for most in (1, 2**31, 2**62):
        (release,) = limited(store, world, BY_G, most).releases
        for cells, vector in zip(((), *ids.ids), vectors(store, world, release), strict=True):
            for i, m in enumerate(release.measured.measurements):
                wanted = by_definition(m.component, cells, grouped=True)
                assert sum(row[i] ** 2 for row in vector.values()) <= m.sensitivity.l2_squared
                for g in GROUPS:
                    n, found = wanted.get((g,), 0), vector[g,][i]
                    # The root of a DOUBLE may be larger by its rounding, never smaller.
                    assert found * n >= 0 and 0 <= abs(n) - abs(found) <= 1 + abs(n) // 2**44
    store.close()


@pytest.mark.parametrize("sql", [BY_G, "SELECT g, SUM(x) FROM t GROUP BY g"])
def test_octaves_and_answer_lose_together_what_was_charged(sql: str) -> None:
    """Gaussian noise loses Σ Δ²/2σ², which adds up: for every limit, whatever it was read from."""
    ids = Open("BIGINT", tuple(some_rows(SMALL, 2)))
    store, world = Store(), ids.world
    store.load(world)
    plan = compiled(store, world, sql)
    (charged,) = plan.cost.values()
    first = [vectors(store, world, release) for release in plan.first.releases]
    rests = [limited(store, world, sql, 2**k) for k in range(4)]
    most = halved = Fraction(0)
    for k, rest in enumerate(rests):
        numbers = [vectors(store, world, release) for release in rest.releases]
        for db in range(1, world.neighbours + 1):
            searches = sum(told(r, v[0], v[db]) for r, v in zip(plan.first.releases, first, strict=True))
            most = max(most, searches + sum(told(r, v[0], v[db]) for r, v in zip(rest.releases, numbers, strict=True)))
            smaller = rests[max(0, k - 1)].releases
            halved = max(halved, searches + sum(told(r, v[0], v[db]) for r, v in zip(smaller, numbers, strict=True)))
    store.close()
    assert charged.rho * Fraction(9, 10) <= most <= charged.rho, "it is reached"
    assert halved > charged.rho, "noise for half the limit is told apart"
