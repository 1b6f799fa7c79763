"""Norms of every measure under every kind of limit: the table of the semantics, and brute force over tiny vectors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Literal

import pytest

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import (
    Comoment,
    Component,
    DistinctCount,
    DistinctSum,
    Factor,
    ProductSum,
    RowCount,
    UnitCount,
    ValueSum,
)
from dpsql.core.ir.contributions import PerGroup, UnitTotal
from dpsql.core.ir.expressions import Literal as Constant
from dpsql.core.ir.types import INTEGER
from dpsql.core.noise.sensitivity import known, sensitivity

ONE = Constant(1, INTEGER)
COUNT, UNITS, DISTINCT = RowCount(), UnitCount(), DistinctCount(ONE)
truths = DistinctCount(ONE, values=2)


def total(lo: int, hi: int, weight: int = 1) -> Component:
    return ValueSum(ONE, lo=lo, hi=hi, weight=weight)


def different(lo: int, hi: int, values: int | None = None) -> Component:
    """A sum of different values."""
    return DistinctSum(ONE, lo=lo, hi=hi, values=values)


def products(lo: int, hi: int, least: int, most: int, weight: int = 1) -> Component:
    """Of factors of [lo, hi] and [least, most]."""
    return ProductSum(ONE, lo=lo, hi=hi, weight=weight, times=Factor(ONE, lo=least, hi=most))


def comoment(rows: int, step: int = 1) -> Component:
    """Of so many rows, of factors 7 and 11 wide."""
    return Comoment(ONE, lo=-3, hi=4, times=Factor(ONE, lo=-6, hi=5), rows=rows, step=step)


OWN = Contribution(None, scaled=True, scaled_over_groups=True)


def limited(component: Component, most: int, norm: Literal["l1", "l2"] = "l1") -> Component:
    return replace(component, contribution=UnitTotal(most, norm))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("component", "limits", "grouped", "l1", "l2_squared", "linf"),
    [
        (COUNT, Contribution(1), False, 1, 1, 1),
        (COUNT, Contribution(3), False, 3, 9, 3),
        (COUNT, Contribution(3), True, 3, 9, 3),
        (total(-4, 10), Contribution(3), True, 30, 900, 30),
        (total(-40, 10), Contribution(3), True, 120, 14400, 120),
        (COUNT, Contribution(None, 4, 5), True, 20, 80, 4),
        (COUNT, Contribution(None, 4, 5), False, 4, 16, 4),
        (total(0, 10), Contribution(None, 4, 5), True, 200, 8000, 40),
        (total(0, 10, 256), Contribution(None, 4, 5), True, 51200, 5 * (4 * 2560) ** 2, 10240),
        (products(-3, 4, -2, 5), Contribution(1), False, 20, 400, 20),
        (products(-3, 4, -6, 5), Contribution(1), False, 24, 576, 24),
        (products(-3, 4, -6, 5), Contribution(1, replaces_rows=True, size=9), False, 44, 44**2, 44),
        (products(-3, 4, -6, 5), Contribution(1, replaces_rows=True), True, 48, 44**2, 44),
        (products(-3, 4, -2, 5, 256), Contribution(None, 4, 5), True, 20 * 20 * 256, 5 * (80 * 256) ** 2, 80 * 256),
        (replace(products(-3, 4, -6, 5), step=4, shift=-1), Contribution(1), False, 6, 36, 6),
        (UNITS, Contribution(None, 4, 5), True, 5, 5, 1),
        (UNITS, Contribution(None, 4, 5), False, 1, 1, 1),
        (UNITS, Contribution(7), True, 7, 7, 1),
        (DISTINCT, Contribution(None, 4, 5, scaled=True), True, 20, 400, 20),  # values are cut over all groups
        (DISTINCT, Contribution(None, 1, 5), True, 5, 5, 1),
        (DISTINCT, Contribution(7), False, 7, 49, 7),
        (different(-4, 10), Contribution(None, 4, 5, scaled=True), True, 200, 40000, 200),
        (different(-4, 10), Contribution(None, 1, 5), True, 50, 500, 10),
        (different(-4, 10), Contribution(7), False, 70, 4900, 70),
        (different(0, 1, 2), Contribution(7), False, 2, 4, 2),
        (different(-4, 10, 3), Contribution(7), True, 70, 42**2 + 28**2, 42),  # a sum that is cut, of both signs
        # one id's rows replaced by another's
        (different(2, 10), Contribution(3, ids=2), True, 60, 1800, 30),
        (different(-4, 10), Contribution(3, ids=2), True, 60, 42**2 + 18**2, 42),
        (different(-9, 10), Contribution(1, scaled=True, ids=2), True, 20, 19**2 + 1, 19),
        (different(-9, 10), Contribution(1, scaled=True, ids=2), False, 19, 361, 19),
        (different(-4, 10, 2), Contribution(7, ids=2), False, 28, 28**2, 28),
        (COUNT, Contribution(3, ids=2), False, 3, 9, 3),
        (COUNT, Contribution(None, 4, 5, ids=2), True, 40, 160, 4),
        (total(2, 10), Contribution(3, ids=2), True, 60, 1800, 30),
        (total(-4, 10), Contribution(3, ids=2), False, 42, 42**2, 42),
        (total(-4, 10), Contribution(3, ids=2), True, 60, 1800, 42),
        (total(-9, 10), Contribution(3, ids=2), True, 60, 9 * 19**2, 57),
        (total(-9, 10), Contribution(3, scaled=True, ids=2), True, 60, 3600, 60),
        (UNITS, Contribution(None, 4, 5, ids=2), True, 10, 10, 1),
        (DISTINCT, Contribution(None, 4, 5, scaled=True, ids=2), True, 40, 800, 20),
        # few groups are shown, or a unit is in few of them
        (UNITS, Contribution(50, groups=3, released_groups=3), True, 3, 3, 1),
        (UNITS, Contribution(50, groups=3, released_groups=12, ids=2), True, 6, 6, 1),
        (UNITS, Contribution(50, groups=3, released_groups=4, ids=2), True, 4, 4, 1),
        (COUNT, Contribution(50, groups=3, released_groups=3), True, 50, 2500, 50),
        (COUNT, Contribution(None, 4, 5, ids=2, released_groups=6), True, 24, 96, 4),
        (COUNT, Contribution(7, released_groups=1), True, 7, 49, 7),
        (COUNT, Contribution(3, replaces_rows=True, size=9, released_groups=1), True, 3, 9, 3),
        (total(4, 10), Contribution(3, replaces_rows=True, released_groups=1), True, 30, 900, 30),
        # few values are counted
        (truths, Contribution(7), False, 2, 4, 2),
        (truths, Contribution(7), True, 7, 13, 2),
        (truths, Contribution(7, released_groups=3), True, 6, 12, 2),
        (truths, Contribution(7, released_groups=9), True, 7, 13, 2),
        (truths, Contribution(1, released_groups=9), True, 1, 1, 1),
        (truths, Contribution(None, 4, 5, scaled=True, released_groups=9), True, 10, 20, 2),
        (truths, Contribution(7, groups=2, ids=2, released_groups=9), True, 8, 16, 2),
        (truths, Contribution(7, groups=2, ids=2, released_groups=3), True, 6, 12, 2),
        (truths, Contribution(3, replaces_rows=True), False, 2, 4, 2),
        (truths, Contribution(3, replaces_rows=True, released_groups=9), True, 6, 12, 2),
        # limits of a component's own on what an id adds
        (limited(COUNT, 5), OWN, True, 5, 25, 5),
        (limited(COUNT, 5), Contribution(2, scaled=True, scaled_over_groups=True), True, 5, 25, 5),
        (replace(limited(COUNT, 5), weight=4), OWN, True, 20, 400, 20),
        (limited(COUNT, 5), replace(OWN, ids=2), True, 10, 50, 5),
        (limited(COUNT, 5), replace(OWN, ids=2, scaled_over_groups=False), False, 5, 25, 5),
        (limited(total(-9, 9), 5), OWN, True, 5, 25, 5),
        (limited(total(-9, 9), 5), replace(OWN, ids=2), True, 10, 100, 10),
        (limited(total(-9, 9), 5), replace(OWN, ids=2), False, 10, 100, 10),
        (limited(total(-9, 0), 5), replace(OWN, ids=2), True, 10, 50, 5),
        (limited(total(1, 9), 5), replace(OWN, ids=2), False, 5, 25, 5),
        (limited(total(0, 9), 5, "l2"), replace(OWN, released_groups=3), True, 9, 25, 5),
        (limited(total(0, 9, 8), 5, "l2"), replace(OWN, released_groups=3), True, 72, 1600, 40),
        (limited(total(0, 9), 5, "l2"), replace(OWN, released_groups=3, ids=2), True, 15, 50, 5),
        (limited(total(-9, 9), 5, "l2"), replace(OWN, released_groups=3, ids=2), True, 18, 100, 10),
        (limited(total(-9, 9, 2), 5, "l2"), OWN, True, 100, 100, 10),
        (limited(COUNT, 5, "l2"), Contribution(None, None, 3, scaled=True, released_groups=9), True, 9, 25, 5),
        (limited(DISTINCT, 5), OWN, True, 5, 25, 5),
        (limited(DISTINCT, 5), replace(OWN, ids=2), True, 10, 50, 5),
        (limited(truths, 7), replace(OWN, released_groups=3), True, 6, 12, 2),
        # rows replaced one by one
        (COUNT, Contribution(3, replaces_rows=True), False, 3, 9, 3),
        (COUNT, Contribution(3, replaces_rows=True, size=9), False, 0, 0, 0),
        (COUNT, Contribution(3, replaces_rows=True, size=9), True, 6, 18, 3),
        (DISTINCT, Contribution(3, replaces_rows=True, size=9), False, 3, 9, 3),
        (DISTINCT, Contribution(3, replaces_rows=True, size=9), True, 6, 18, 3),
        (UNITS, Contribution(3, replaces_rows=True, size=9), True, 6, 18, 3),
        (different(5, 10), Contribution(3, replaces_rows=True, size=9), False, 30, 900, 30),  # the old value may stay
        (different(-4, 10), Contribution(3, replaces_rows=True, size=9), True, 60, 1800, 42),
        (different(-4, 10, 2), Contribution(3, replaces_rows=True, size=9), False, 28, 784, 28),
        (total(4, 10), Contribution(3, replaces_rows=True, size=9), False, 18, 324, 18),
        (total(4, 10), Contribution(3, replaces_rows=True), False, 30, 900, 30),
        (total(-4, 10), Contribution(3, replaces_rows=True), False, 42, 42**2, 42),
        (total(-4, 10), Contribution(1, replaces_rows=True, size=9), True, 20, 200, 14),
        (total(-9, 10), Contribution(1, replaces_rows=True, size=9), True, 20, 361, 19),
        (total(-5, 5), Contribution(1, replaces_rows=True, size=9), True, 10, 100, 10),
        (total(4, 10), Contribution(3, replaces_rows=True, size=9), True, 60, 1800, 30),  # it may leave its group
        (comoment(9), Contribution(1, replaces_rows=True, size=9), False, 8 * 77, (8 * 77) ** 2, 8 * 77),
        (comoment(9), Contribution(3, replaces_rows=True, size=9), False, 24 * 77, (24 * 77) ** 2, 24 * 77),
        (comoment(9, step=5), Contribution(3, replaces_rows=True, size=9), False, 372, 372**2, 372),
        (comoment(1), Contribution(1, replaces_rows=True, size=1), False, 0, 0, 0),
        (UnitCount(weight=8), Contribution(None, 4, 5), True, 40, 320, 8),
    ],
)
def test_the_table(
    component: Component, limits: Contribution, grouped: bool, l1: int, l2_squared: int, linf: int
) -> None:
    found = sensitivity(replace(component, every_row=True), limits, grouped)
    assert (found.l1, found.l2_squared, found.linf) == (l1, l2_squared, linf)


@pytest.mark.parametrize(
    ("limits", "grouped", "every"),
    [
        (Contribution(1), False, True),
        (Contribution(1, ids=2), False, True),
        (Contribution(1, replaces_rows=True), False, True),
        (Contribution(1, replaces_rows=True, size=8), False, True),
        (Contribution(1, replaces_rows=True, size=9), True, True),
        (Contribution(1, replaces_rows=True, size=9), False, False),
    ],
)
def test_a_comoment_has_a_price_only_where_all_rows_stay(limits: Contribution, grouped: bool, every: bool) -> None:
    with pytest.raises(AssertionError, match="a comoment of"):
        sensitivity(replace(comoment(9), every_row=every), limits, grouped)


def test_a_public_size_helps_only_where_every_row_counts() -> None:
    kept = Contribution(1, replaces_rows=True, size=9)
    assert sensitivity(COUNT, kept, False).l1 == 1
    assert sensitivity(total(4, 10), kept, False).l1 == 10
    every = replace(total(4, 10), every_row=True)
    assert sensitivity(every, kept, False).l1 == 6
    assert sensitivity(replace(every, filter=ONE), kept, False).l1 == 10
    assert known(COUNT, kept) == 9 and known(total(4, 4), kept) == 36 and known(total(0, 0), Contribution(3)) == 0


@pytest.mark.parametrize(
    "limits", [Contribution(1), Contribution(3), Contribution(None, 2, 2), Contribution(None, 1, 3)]
)
@pytest.mark.parametrize("bounds", [(0, 1), (-2, 1), (-1, 3), (0, 0)])
def test_no_vector_exceeds_the_norms(limits: Contribution, bounds: tuple[int, int]) -> None:
    """All ways of placing one unit's rows, of all values, in three groups: none moves the sums further, one as far."""
    values = range(bounds[0], bounds[1] + 1)
    found = sensitivity(total(*bounds), limits, True)
    most = [0, 0, 0]
    for rows in range(limits.rows + 1):
        for groups in product(range(3), repeat=rows):
            counts = [groups.count(g) for g in range(3)]
            if limits.by_rows is None:
                assert limits.per_group is not None and limits.groups is not None
                if max(counts) > limits.per_group or sum(c > 0 for c in counts) > limits.groups:
                    continue
            for x in product(values, repeat=rows):
                vector = [sum(v for v, g in zip(x, groups, strict=True) if g == at) for at in range(3)]
                norms = sum(map(abs, vector)), sum(v * v for v in vector), max(map(abs, vector))
                most = [max(a, b) for a, b in zip(most, norms, strict=True)]
    assert most == [found.l1, found.l2_squared, found.linf]
    smaller = sensitivity(total(*bounds), Contribution(max(1, limits.rows - 1)), True)  # a wrong rule would be seen
    assert limits.rows == 1 or bounds == (0, 0) or smaller.l1 < most[0]


def test_norms_are_consistent() -> None:
    for component, limits, grouped in product(
        (COUNT, UNITS, DISTINCT, total(-3, 8), total(-3, 8, 512)),
        (
            Contribution(1),
            Contribution(9),
            Contribution(None, 4, 5),
            Contribution(2, ids=2),
            Contribution(6, groups=3),
            Contribution(2, replaces_rows=True),
        ),
        (False, True),
    ):
        s = sensitivity(component, limits, grouped)
        assert 0 < s.linf <= s.l1 <= s.l0 * s.linf and Fraction(s.linf) ** 2 <= s.l2_squared <= Fraction(s.l1) ** 2
        assert s.l2_squared <= s.l1 * s.linf  # l2² ≤ l1·l∞ for every vector


@pytest.mark.parametrize(
    ("component", "limits", "l0"),
    [
        (COUNT, Contribution(None, 4, 5, scaled=True), 5),
        (COUNT, Contribution(None, 4, 5, scaled=True, scaled_over_groups=True), 20),  # in each of twenty groups by one
        (COUNT, Contribution(None, 4, 5, scaled=True, ids=2), 10),
        (COUNT, Contribution(3, replaces_rows=True), 6),
        (UNITS, Contribution(3), 3),
    ],
)
def test_groups_that_can_change(component: Component, limits: Contribution, l0: int) -> None:
    assert sensitivity(component, limits, True).l0 == l0


@pytest.mark.parametrize("ids", [1, 2])
@pytest.mark.parametrize("ends", [(-2, 3), (2, 3), (0, 2), (-3, -1), (-1, 1)])
def test_no_clipped_total_exceeds_the_norms(ends: tuple[int, int], ids: int) -> None:
    """An id's total is within the ends in at most two of four groups, and 0 where it has no rows."""
    component = ValueSum(ONE, lo=-9, hi=9, contribution=PerGroup((Fraction(ends[0]), Fraction(ends[1]))))
    found = sensitivity(component, Contribution(None, 4, 2, scaled=True, ids=ids), True)
    totals = sorted({0, *range(ends[0], ends[1] + 1)})
    of_one = [v for v in product(totals, repeat=4) if sum(map(bool, v)) <= 2]
    other = of_one if ids == 2 else [(0, 0, 0, 0)]
    changes = {tuple(a - b for a, b in zip(v, w, strict=True)) for v in of_one for w in other}
    assert max(sum(map(bool, v)) for v in changes) == found.l0
    assert max(sum(map(abs, v)) for v in changes) == found.l1
    assert max(sum(x * x for x in v) for v in changes) <= found.l2_squared
    assert max(max(map(abs, v)) for v in changes) == found.linf


@pytest.mark.parametrize("grouped", [False, True])
def test_ends_of_totals_that_are_the_wrong_way_round(grouped: bool) -> None:
    """Bounds of -1 to -1 over values that are never negative end as 0 to -1: every total is printed as -1."""
    component = ValueSum(ONE, lo=0, hi=1, contribution=PerGroup((Fraction(0), Fraction(-1))))
    found = sensitivity(component, Contribution(None, 1, 1, scaled=True), grouped)
    assert (found.l0, found.l1, found.l2_squared, found.linf) == (1, 1, 1, 1)


@pytest.mark.parametrize("ids", [1, 2])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("ends", [(-9, 9), (0, 9), (-9, 0)])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_limited_unit_exceeds_the_norms(
    most: int, ends: tuple[int, int], norm: Literal["l1", "l2"], ids: int
) -> None:
    """All vectors over three groups that the limit allows, and all their differences: some reach each norm of l1."""
    component = limited(total(*ends), most, norm)
    values = range(max(-most, ends[0]), min(most, ends[1]) + 1)
    size = {"l1": lambda v: sum(map(abs, v)) <= most, "l2": lambda v: sum(x * x for x in v) <= most**2}[norm]
    for groups in (1, 3):
        found = sensitivity(component, replace(OWN, released_groups=groups, ids=ids), True)
        of_one = [v for v in product(values, repeat=groups) if size(v)]
        other = of_one if ids == 2 else [(0,) * groups]
        changes = {tuple(a - b for a, b in zip(v, w, strict=True)) for v in of_one for w in other}
        norms = (
            max(sum(map(abs, v)) for v in changes),
            max(sum(x * x for x in v) for v in changes),
            max(max(map(abs, v)) for v in changes),
        )
        assert all(a <= b for a, b in zip(norms, (found.l1, found.l2_squared, found.linf), strict=True))
        assert norms[1:] == (found.l2_squared, found.linf)
        assert norm == "l2" or norms[0] == found.l1
        assert max(sum(map(bool, v)) for v in changes) <= found.l0


def test_a_limit_that_no_statement_enforces_has_no_price() -> None:
    with pytest.raises(AssertionError, match="no statement"):
        sensitivity(limited(COUNT, 5), Contribution(None), True)
