"""When a SUM is made of a centred sum and a count, when it stays plain, and that the two are the same number."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.ir.components import RowCount, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.frontend.aggregates.count import Count
from dpsql.frontend.aggregates.sum import Sum
from dpsql.planner.plan import Plan
from tests.support.planning import planned, policy

POLICY = policy(
    """
people:
  unit: {rows: 1}
  columns:
    g:    {type: varchar, domain: [a, b], nullable: false}
    x:    {type: integer, bounds: [0, 200000], nullable: false}
    y:    {type: integer, bounds: [0, 5], nullable: false}
    z:    {type: 'decimal(6,2)', bounds: [-7, 7], nullable: false}
    w:    {type: double, bounds: [0, 10]}
sized:
  unit: {rows: 1, neighbours: replace_one}
  columns:
    x: {type: integer, bounds: [0, 10], nullable: false}
  size: {exact: 100}
visits:
  unit: {column: id}
  max_groups_per_unit: 2
  max_rows_per_group: 3
  columns:
    id: {type: bigint, nullable: false}
    g:  {type: varchar, domain: [a, b, c, d], nullable: false}
    x:  {type: integer, bounds: [0, 10], nullable: false}
texts:
  unit: {rows: 1}
  columns:
    w: {type: varchar}
    x: {type: integer, bounds: [0, 10], nullable: false}
alone:
  unit: {column: id}
  primary_key: [id]
  columns:
    id: {type: bigint, nullable: false}
    x:  {type: integer, bounds: [0, 10], nullable: false}
"""
)


def forms(sql: str) -> tuple[list[bool], int]:
    """Which sums are shared, and how many components are measured with noise."""
    found: Plan = planned(sql, POLICY)
    (release,) = found.releases
    recipes = [o.recipe for o in release.measured.node.outputs]
    return (
        [r.count is not None for r in recipes if isinstance(r, Sum)],
        sum(m.sensitivity.l1 > 0 for m in release.measured.measurements),
    )


@pytest.mark.parametrize(
    ("sql", "shared", "parts"),
    [
        ("SELECT SUM(x) FROM people", [False], 1),
        ("SELECT COUNT(*), SUM(x) FROM people", [True], 2),
        ("SELECT SUM(x), AVG(x) FROM people", [True], 2),
        ("SELECT g, COUNT(*), SUM(x), AVG(y) FROM people GROUP BY g", [True], 3),
        ("SELECT COUNT(*), SUM(x), AVG(x), SUM(y), AVG(y) FROM people", [True, True], 3),
        ("SELECT SUM(x), SUM(y) FROM people", [False, False], 2),  # a count of its own would cost more than it saves
        ("SELECT SUM(x), SUM(y), SUM(x + y) FROM people", [True, True, True], 4),  # here it saves more than it costs
        ("SELECT COUNT(*), SUM(z) FROM people", [False], 2),  # centred already: no better
        ("SELECT SUM(z), AVG(z) FROM people", [True], 2),  # no better by itself, but one component less
        ("SELECT COUNT(*), SUM(w) FROM people", [False], 2),  # COUNT(w) is another question
        ("SELECT COUNT(w), SUM(w) FROM people", [True], 2),
        ("SELECT COUNT(*), SUM(x) FILTER (WHERE g = 'a') FROM people", [False], 2),
        ("SELECT COUNT(*) FILTER (WHERE g = 'a'), SUM(x) FILTER (WHERE g = 'a') FROM people", [True], 2),
        ("SELECT SUM(x), COUNT(*) FROM alone", [True], 2),
        ("SELECT g, SUM(x), COUNT(*) FROM visits GROUP BY g", [False], 2),  # bounded contributions: another number
        ("SELECT SUM(x), AVG(x) FROM visits", [False], 3),
        ("SELECT y, COUNT(*), SUM(x) FROM people GROUP BY y", [True], 2),
    ],
)
def test_which_sums_are_shared(sql: str, shared: list[bool], parts: int) -> None:
    assert forms(sql) == (shared, parts)


@pytest.mark.parametrize(
    ("sql", "shared", "parts"),
    [
        ("SELECT COUNT(*), SUM(x) FROM sized", [False], 1),  # the count is public, and nothing is gained
        ("SELECT COUNT(*), SUM(x), AVG(x) FROM sized", [True], 1),  # one component in place of two
        ("SELECT x > 5, COUNT(*), SUM(x) FROM sized GROUP BY x > 5", [True], 2),
    ],
)
def test_over_a_public_number_of_rows(sql: str, shared: list[bool], parts: int) -> None:
    assert forms(sql) == (shared, parts)


def test_the_threshold_follows_its_component() -> None:
    """What is left out moves the places of the others."""
    found = planned("SELECT w, SUM(x), AVG(x), COUNT(*) FROM texts GROUP BY w", POLICY)
    node = found.releases[0].measured.node
    assert node.threshold is not None
    assert node.components[node.threshold] == RowCount()
    assert len(node.components) == 2 and any(isinstance(o.recipe, Sum) and o.recipe.count for o in node.outputs)


@given(
    ends=st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(sorted),
    rows=st.lists(st.integers(-60, 60), max_size=12),
    half=st.booleans(),
)
@settings(deadline=None)
def test_both_forms_are_one_number(ends: list[int], rows: list[int], half: bool) -> None:
    """Σ clip(x) = Σ(clip(x) - mid) + mid·count, exactly, on either grid."""
    grid = Fraction(1, 2) if half else Fraction(1)
    low, high = (int(end / grid) for end in ends)
    center = (low + high) // 2
    centred = ValueSum(
        Literal(1, BIGINT), grid=grid, center=center, lo=low - center, hi=high - center, contribution=Weighing.PAIRED
    )
    clipped = [min(high, max(low, int(x / grid))) for x in rows]
    integers = sum(x - center for x in clipped), len(rows)
    parts = Sum(0, 1).terms([centred, RowCount()])
    assert sum(integers[i] * worth for i, worth in parts) == sum(clipped) * grid


def test_weights_of_both_parts_are_divided_out() -> None:
    centred = ValueSum(
        Literal(1, BIGINT), grid=Fraction(1, 4), center=6, lo=-6, hi=6, weight=8, contribution=Weighing.PAIRED
    )
    parts = Sum(1, 0).terms([RowCount(weight=8), centred])
    assert parts == ((1, Fraction(1, 32)), (0, Fraction(6, 32)))
    assert Sum(1, 0).moved({0: 3, 1: 2}) == Sum(2, 3)
    assert Sum(1).moved({1: 0}) == Sum(0) and Count(1).moved({1: 0}) == Count(0)
