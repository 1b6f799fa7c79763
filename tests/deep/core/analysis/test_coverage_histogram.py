"""Coverage: a unit is in one cell of its histogram, the cell that its own rows say, and moves nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from dpsql.core.ir.nodes import Release
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.analysis.test_contribution_bounding import _worlds
from tests.support.neighbour_oracle import Vector, change, exact, plan_of, violations
from tests.support.random_databases import Store, World

Rows = list[tuple[str, str]]
"""(group, value) of each row of one id, as SQL literals."""
Above = Callable[[Rows], bool]


def in_all(most: int) -> Above:
    return lambda rows: len(rows) > most


def in_one(most: int) -> Above:
    return lambda rows: max(Counter(group for group, _ in rows).values(), default=0) > most


def groups(most: int) -> Above:
    return lambda rows: len({group for group, _ in rows}) > most


def different(most: int) -> Above:
    """Values in each group."""
    return lambda rows: len(set(rows)) > most


def different_in_all(most: int) -> Above:
    return lambda rows: len({x for _, x in rows}) > most


C, M, G = {"max_rows_per_unit": 2}, {"max_rows_per_group": 2}, {"max_groups_per_unit": 1}
FORMS: dict[str, tuple[dict[str, Any], str, list[list[Above]]]] = {
    # name: (the table's limits, query, what its histograms tell apart)
    "rows": (C, "SELECT COUNT(*), SUM(x) FROM t", [[in_all(2)]]),
    "rows, groups": (C, "SELECT g, COUNT(*), AVG(x) FROM t GROUP BY g", [[in_all(2)]]),
    "rows, private groups": (C, "SELECT h, COUNT(*) FROM t GROUP BY h", [[in_all(2), groups(2)]]),
    "one group": (M, "SELECT COUNT(*) FROM t", [[in_all(2)]]),
    "M and G": (M | G, "SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g", [[in_one(2), groups(1)]]),
    "one row in a group": (
        {"max_rows_per_group": 1, "max_groups_per_unit": 2},
        "SELECT g, COUNT(*) FROM t GROUP BY g",
        [[in_one(1), groups(2)]],
    ),
    "few groups": (M | {"max_groups_per_unit": 3}, "SELECT g, COUNT(*) FROM t GROUP BY g", [[in_one(2)]]),
    "private groups": (M | G, "SELECT h, COUNT(*) FROM t GROUP BY h", [[in_one(2), groups(1)]]),
    "units": (M | G, "SELECT g, COUNT(DISTINCT pid) FROM t GROUP BY g", [[groups(1)]]),
    "units under C": (C, "SELECT g, COUNT(DISTINCT pid) FROM t GROUP BY g", [[groups(2)]]),
    "units and rows": (M | G, "SELECT g, COUNT(DISTINCT pid), COUNT(*) FROM t GROUP BY g", [[in_one(2), groups(1)]]),
    "own totals": (
        G, "SELECT g, SUM(x, contribution_bounds_per_group => (-3, 5)) FROM t GROUP BY g", [[groups(1)]],
    ),
    "distinct": ({"max_rows_per_unit": 1}, "SELECT COUNT(DISTINCT x) FROM t", [[different_in_all(1)]]),
    "distinct in groups": (C, "SELECT g, COUNT(DISTINCT x) FROM t GROUP BY g", [[groups(2)], [different(2)]]),
    "a set of groups each": (
        M | G, "SELECT g, COUNT(*) FROM t GROUP BY ROLLUP (g)", [[in_one(2), groups(1)], [in_all(2)]],
    ),
    "an inner release": (
        C, "SELECT COUNT(*) FROM t WHERE x > (SELECT AVG(x) FROM t)", [[in_all(2)], [in_all(2)]],
    ),
}  # fmt: skip


def shown(world: World, database: int) -> dict[str, Rows]:
    """Id → its rows."""
    found: dict[str, Rows] = {}
    for (pid, group, _, x), mask in world.tables[0].rows:
        if mask >> database & 1:
            found.setdefault(pid, []).append((group, x))
    return found


def expected(world: World, database: int, above: list[Above]) -> Vector:
    owned = list(shown(world, database).values())
    if above[0].__qualname__.startswith("different"):  # a value that is NULL counts as none, and so does its row
        owned = [valued for rows in owned if (valued := [row for row in rows if row[1] != "NULL"])]
    counted = Counter(tuple(test(rows) for test in above) for rows in owned)
    return {cell: [n] for cell, n in counted.items()}


def without_empty(vector: Vector) -> Vector:
    return {tuple(map(bool, key)): numbers for key, numbers in vector.items() if numbers != [0]}


@pytest.mark.parametrize("form", [name for name in FORMS if name != "an inner release"])
def test_each_unit_is_in_the_cell_of_its_own_rows(form: str) -> None:
    """Over every row set of one id: the histograms are right, within their claims, and reach them."""
    limits, sql, told = FORMS[form]
    store, most = Store(), 0
    for world, count in _worlds(limits, 3):
        store.load(world)
        plan = plan_of(store, FactStore(store), world, sql, coverage=True)
        assert len(plan.coverage) == len(told)
        for c, above in zip(plan.coverage, told, strict=True):
            assert len(c.limits) == len(above)
            planned, vectors = plan.releases[c.place], []
            for db in range(count + 1):
                store.show(db)
                vectors.append(exact(planned, store))
                assert without_empty(vectors[-1]) == expected(world, db, above), (form, db)
            for vector in vectors[1:]:
                assert not list(violations(planned, vectors[0], vector)), form
                most = max(most, change(vectors[0], vector, 0).l1)
            (m,) = planned.measured.measurements
            assert (m.sensitivity.l1, m.sensitivity.l2_squared) == (1, 1)
    store.close()
    assert most == 1


@pytest.mark.parametrize("form", ["rows, groups", "M and G", "distinct in groups"])
def test_a_replaced_unit_moves_two_cells_at_most(form: str) -> None:
    limits, sql, _ = FORMS[form]
    store, most = Store(), 0
    for world, count in _worlds(limits, 3, neighbours="replace_one"):
        store.load(world)
        plan = plan_of(store, FactStore(store), world, sql, coverage=True)
        for c in plan.coverage:
            planned, vectors = plan.releases[c.place], []
            for db in range(1, count + 1):
                store.show(db)
                vectors.append(exact(planned, store))
            (m,) = planned.measured.measurements
            assert (m.sensitivity.l1, m.sensitivity.l2_squared) == (2, 2)
            for one, other in combinations(vectors, 2):
                assert not list(violations(planned, one, other)), form
                most = max(most, change(one, other, 0).l1)
    store.close()
    assert most == 2


@pytest.mark.parametrize("form", FORMS)
def test_the_answer_is_measured_as_without_it(form: str) -> None:
    """The same releases, and all that is lost is what was asked: coverage is about a tenth of it."""
    limits, sql, told = FORMS[form]
    world, _ = _worlds(limits, 1)[0]
    store = Store()
    store.load(world)
    alone = plan_of(store, FactStore(store), world, sql)
    plan = plan_of(store, FactStore(store), world, sql, coverage=True)
    store.close()
    shown_alone = [(r.measured.node, r.label) for r in alone.releases]
    assert [(r.measured.node, r.label) for r in plan.releases[: len(alone.releases)]] == shown_alone
    assert {c.place for c in plan.coverage} == set(range(len(alone.releases), len(plan.releases)))
    for each in (plan, alone):  # of Gaussian noise, a hair less
        assert 1 - Fraction(1, 10**9) < each.loss.epsilon <= 1 and each.loss.delta <= Fraction(1, 10**6)
    assert len(plan.coverage) == len(told)
    own = [m.loss for c in plan.coverage for m in plan.releases[c.place].measured.measurements]
    every = [m.loss for r in plan.releases for m in r.measured.measurements]
    lost, in_all = (sum(loss.epsilon or loss.rho for loss in losses) for losses in (own, every))
    assert abs(lost / in_all - Fraction(1, 10)) < Fraction(1, 1000)
    assert all(isinstance(c.tree.node, Release) for c in plan.coverage)


def test_where_no_limit_takes_anything_away() -> None:
    """One row per unit, or a unit that counts once: nothing is asked, and nothing is paid for it."""
    for limits, sql in (
        ({"max_rows_per_unit": {"rows": 1, "enforce": "assume"}}, "SELECT COUNT(*) FROM t"),
        (C, "SELECT COUNT(DISTINCT pid) FROM t"),
    ):
        world, _ = _worlds(limits, 1)[0]
        store = Store()
        store.load(world)
        alone = plan_of(store, FactStore(store), world, sql, ContributionLimits())
        plan = plan_of(store, FactStore(store), world, sql, ContributionLimits(), coverage=True)
        store.close()
        assert plan.coverage == () and plan.cost == alone.cost
        assert "coverage: no limit takes anything away from these numbers" in plan.notes
