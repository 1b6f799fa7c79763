"""`search: auto`: limits of rows in a group, and of groups, cap what a search finds of all groups together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore
from tests.core.printing.test_unit_totals import SMALL, Cell, some_rows
from tests.planner.test_roots_of_squares import APPROX, PURE, ZCDP, Open, norms, vectors
from tests.support.neighbour_oracle import change, violations
from tests.support.random_databases import Store, World

HEAVY: tuple[tuple[Cell, ...], ...] = (
    tuple(("a", "1", True) for _ in range(25)),
    tuple(("ab"[i % 2], "1", True) for i in range(24)),
    tuple(("abc"[i % 3], "1", None) for i in range(7)),
)
IDS = Open("BIGINT", (*some_rows(SMALL, 1), *HEAVY))
SQL = "SELECT g, COUNT(*) AS n, COUNT(*) FILTER (WHERE f) AS m, COUNT(DISTINCT x) AS d FROM t GROUP BY g"
M4_G5 = {"max_rows_per_group": 4, "max_groups_per_unit": 5}


def under(ledger: Mapping[str, Any], limit: Mapping[str, Any], neighbours: str = "add_remove") -> Open:
    return replace(IDS, ledger={**ledger, "search": "auto"}, limit=limit, neighbours=neighbours)


def compiled(store: Store, world: World, sql: str = SQL, **settings: Any) -> Plan:
    wanted = QuerySettings(Fraction(1), **settings)
    return FactStore(store).compile(
        lambda public: compile_query(Source(sql), world.policy, public, wanted, (), store.table_sql)
    )


def caps(ids: Open, sql: str = SQL, **settings: Any) -> list[tuple[str, int | None]] | None:
    """(norm, the most that it may find) of each search; None: nothing is searched."""
    store, world = Store(), ids.world
    store.load(world)
    try:
        plan = compiled(store, world, sql, **settings)
    finally:
        store.close()
    return None if plan.searches is None else [(s.limit.norm, s.limit.at_most) for s in plan.searches.limits]


@pytest.mark.parametrize(
    ("ledger", "limit", "expected"),
    [
        (PURE, M4_G5, [("l1", 20)] * 3),
        (PURE, {**M4_G5, "max_rows_per_unit": 18}, [("l1", 18)] * 3),
        (PURE, {**M4_G5, "max_rows_per_unit": 90}, [("l1", 20)] * 3),
        (PURE, {**M4_G5, "max_rows_per_unit": 15}, None),
        (PURE, {"max_rows_per_group": 5, "max_groups_per_unit": 3}, None),
        (PURE, {"max_rows_per_group": 1, "max_groups_per_unit": 50}, None),
        # A root of M·√G = √80; C is on the rows in all groups, so that there is none beside it.
        (ZCDP, M4_G5, [("l2", 8), ("l2", 8), ("l1", 20)]),
        (ZCDP, {**M4_G5, "max_rows_per_unit": 18}, [("l1", 18)] * 3),
    ],
)
def test_what_a_search_may_find(
    ledger: Mapping[str, Any], limit: Mapping[str, Any], expected: list[tuple[str, int]] | None
) -> None:
    ids = under(ledger, limit)
    assert caps(ids) == expected
    assert caps(ids, search=False) is None
    if "max_rows_per_unit" not in limit:
        assert caps(ids, search=True) is None, "who asks for a search keeps M and G"
    if limit == M4_G5 and ledger is not PURE:
        private = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"
        assert caps(ids, private) == [("l2", 8)], "numbers of keys that are shown first, as of public ones"
        assert caps(ids, private, search=True) is None


def test_a_sum_is_capped_by_what_such_rows_add() -> None:
    ids = under(ZCDP, M4_G5)
    assert caps(ids, "SELECT g, SUM(CLIP(x, -2, 3)) AS s FROM t GROUP BY g") == [("l2", 24)]
    assert caps(ids, "SELECT g, SUM(x) AS s FROM t GROUP BY g") == [("l2", None)], "nothing bounds a value"


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("ledger", [PURE, APPROX, ZCDP], ids=["pure_dp", "approx_dp", "zcdp"])
def test_no_id_moves_an_answer_by_more_than_was_priced(ledger: Mapping[str, Any], neighbours: str) -> None:
    ids = under(ledger, M4_G5, neighbours)
    store, world = Store(), ids.world
    store.load(world)
    first = compiled(store, world)
    assert first.searches is not None
    reached = set()
    for most in (1, 3, 8, 20):
        found = {s.limit.label: min(most, s.limit.at_most or most) for s in first.searches.limits}
        (release,) = compiled(store, world, found=found, family=first.searches.settings.family).releases
        seen = vectors(store, world, release)
        pairs = combinations(seen, 2) if neighbours == "replace_one" else ((seen[0], one) for one in seen[1:])
        for one, other in pairs:
            assert not list(violations(release, one, other))
            for i, m in enumerate(release.measured.measurements):
                moved, claimed = change(one, other, i), m.sensitivity
                if claimed.l1 in (moved.l1,) or claimed.l2_squared == moved.l2_squared:
                    reached.add((most, i))
    store.close()
    assert neighbours == "replace_one" or {(most, 0) for most in (1, 3, 8)} <= reached, "and by as much it does"
    assert norms(first).count("l2") == (2 if ledger is ZCDP else 0)
