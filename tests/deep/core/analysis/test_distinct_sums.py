"""SUM(DISTINCT x) and AVG(DISTINCT x) through the whole pipeline: emitted statements on tiny neighbouring databases.

Ids that come, go or are replaced, under every form of bounding; rows that are replaced. Values of the id that others
have as well, that lie beyond the bounds, and that are NULL. What is drawn from is what SQL means where nothing is cut.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from dpsql.core.ir.components import Component
from dpsql.core.measures.distinct_sum import DistinctSumRule
from dpsql.core.measures.measure_rule import Norms
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.analysis import test_contribution_bounding
from tests.deep.core.analysis.test_contribution_bounding import _worlds
from tests.deep.core.analysis.test_replace_one import POSITIVE, TWO_SIGNS, Case, Claim, Tiny, observed
from tests.support.neighbour_oracle import Vector, change, exact, plan_of, violations
from tests.support.random_databases import Store


@pytest.fixture(autouse=True)
def values_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 is what others have as well."""
    rows = tuple(product(test_contribution_bounding.GROUPS, ("-2", "1", "9")))
    monkeypatch.setattr(test_contribution_bounding, "DISTINCT_ROWS", rows)


BOTH = "SUM(DISTINCT x), AVG(DISTINCT x)"
FORMS: dict[str, tuple[dict[str, Any], str, int]] = {
    "C": ({"max_rows_per_unit": 2}, f"SELECT {BOTH} FROM t", 3),
    "C, groups": ({"max_rows_per_unit": 2}, f"SELECT g, {BOTH} FROM t GROUP BY g", 3),
    "M and G": ({"max_rows_per_group": 1, "max_groups_per_unit": 2}, f"SELECT g, {BOTH} FROM t GROUP BY g", 3),
    "truncated groups": ({"max_rows_per_group": 2, "max_groups_per_unit": 1}, f"SELECT h, {BOTH} FROM t GROUP BY h", 3),
    "private keys": ({"max_rows_per_unit": 2}, f"SELECT h, {BOTH}, COUNT(*) FROM t GROUP BY h", 3),
    "promised": (
        {"max_rows_per_unit": {"rows": 2, "enforce": "assume"}}, f"SELECT g, {BOTH} FROM t GROUP BY g", 2,
    ),
    "few values": ({"max_rows_per_unit": 3}, "SELECT g, SUM(DISTINCT x % 2), AVG(DISTINCT x % 2) FROM t GROUP BY g", 3),
    "filters": (
        {"max_rows_per_unit": 2},
        "SELECT SUM(DISTINCT x) FILTER (WHERE g = 'a'), SUM(DISTINCT x) FILTER (WHERE g = 'b'), "
        "SUM(DISTINCT CASE WHEN g = 'a' THEN x ELSE 0 END), SUM(x) FROM t",
        3,
    ),
}  # fmt: skip


def _vectors(form: str, most: int, **unit: str) -> list[tuple[Any, list[Vector]]]:
    limits, sql, _ = FORMS[form]
    store, found = Store(), []
    for world, count in _worlds(limits, most, **unit):
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql).releases
        vectors = []
        for db in range(count + 1):
            store.show(db)
            vectors.append(exact(planned, store))
        found.append((planned, vectors))
    store.close()
    return found


@pytest.mark.parametrize("form", FORMS)
def test_an_id_that_comes_or_goes(form: str) -> None:
    """No set of its rows moves an answer by more than is claimed."""
    moved = [0] * 9
    for planned, vectors in _vectors(form, FORMS[form][2]):
        for vector in vectors[1:]:
            assert not list(violations(planned, vectors[0], vector)), (form, vectors[0], vector)
            for i in range(len(planned.measured.measurements)):
                moved[i] = max(moved[i], change(vectors[0], vector, i).l1)
    assert all(moved[: len(planned.measured.measurements)])


@pytest.mark.parametrize("form", FORMS)
def test_an_id_that_is_replaced(form: str) -> None:
    """Any two sets of at most two rows are neighbours."""
    moved = 0
    for planned, vectors in _vectors(form, 2, neighbours="replace_one"):
        assert planned.measured.contribution.ids == 2
        for one, other in combinations(vectors[1:], 2):
            assert not list(violations(planned, one, other)), (form, one, other)
            moved += one != other
    assert moved


@pytest.mark.parametrize("bounds", [TWO_SIGNS, POSITIVE])
@pytest.mark.parametrize(("k", "height"), [(1, 2), (2, 3)])
def test_a_replaced_row(bounds: tuple[int, int], k: int, height: int) -> None:
    """With a public number of rows, which says nothing of how many values there are."""
    B, R = max(map(abs, bounds)), bounds[1] - bounds[0]
    tiny, width = Tiny(height, k, bounds), max(B, R)
    alone = Case("SELECT SUM(DISTINCT x) FROM t", tiny, (Claim(width, width**2, width, ()),))
    groups = Case("SELECT g, SUM(DISTINCT x) FROM t GROUP BY g", tiny, (Claim(2 * B, max(2 * B**2, R**2), width, ()),))
    for case in (alone, groups):
        for m, seen, claim in zip(*observed(case), case.claims, strict=True):
            most = claim.of(k)
            assert (seen.l1, seen.l2_squared, seen.linf) <= (m.sensitivity.l1, m.sensitivity.l2_squared, most.linf)
            assert seen.l1 <= m.sensitivity.l1 <= most.l1 and seen.linf <= m.sensitivity.linf <= most.linf
            assert k > 1 or seen.linf == m.sensitivity.linf


def test_it_is_what_sql_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no limit and no bound takes anything away."""
    rows = tuple(product(("'a'", "NULL"), ("1", "9", "NULL")))
    monkeypatch.setattr(test_contribution_bounding, "DISTINCT_ROWS", rows)
    sql = "SELECT g, SUM(DISTINCT x) AS s, COUNT(DISTINCT x) AS n FROM t GROUP BY g"
    store, compared = Store(), 0
    for world, count in _worlds({"max_rows_per_unit": 9}, 3):
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql).releases
        for db in range(count + 1):
            store.show(db)
            held = store.table_sql("t").replace("$db", str(db))
            values = "SUM(DISTINCT least(greatest(x, -2), 3)) FILTER (x IS NOT NULL), COUNT(DISTINCT x)"
            truth = store.connection.execute(f"SELECT g, {values} FROM {held} GROUP BY g").fetchall()
            found = {key: values for key, values in exact(planned, store).items() if any(values)}
            assert found == {(g,): [s, n] for g, s, n in truth if n}
            compared += len(truth)
    store.close()
    assert compared > 150


@pytest.mark.parametrize("form", ["C, groups", "private keys"])
def test_a_price_for_one_value_is_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were an id priced for its largest value alone, the enumeration above would fail."""

    def largest(self: DistinctSumRule, c: Component, limits: object) -> Norms:
        return Norms(c.magnitude, c.magnitude**2, c.magnitude)

    monkeypatch.setattr(DistinctSumRule, "largest", largest)
    seen = [v for p, vectors in _vectors(form, 2) for w in vectors[1:] for v in violations(p, vectors[0], w)]
    assert seen
