"""Variances from noisy moments: the numbers themselves, and intervals by test inversion against a dense search."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.ir.components import Component, ProductSum, RowCount, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, NoNoise
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.frontend.aggregates.intervals.variance_intervals import VarianceIntervals
from dpsql.frontend.aggregates.variance import Variance
from tests.support.reference_formulas import variance

LEVEL = Fraction(95, 100)
HALF = 20
RECIPE = Variance(0, 1, 2, Fraction(100 - HALF), Fraction(100 + HALF))
SUM = ValueSum(Literal(1, BIGINT), center=100, lo=-HALF, hi=HALF, contribution=Weighing.PAIRED)
SQUARES = ProductSum(SUM.arg, center=SUM.center, lo=-HALF, hi=HALF, shift=HALF**2 // 2)
Mechanism = DiscreteLaplace | DiscreteGaussian | NoNoise


def measured(component: Component, mechanism: Mechanism) -> Measurement:
    return Measurement(component, Sensitivity(1, 1, Fraction(1), 1), mechanism)


def intervals(
    mechanisms: tuple[Mechanism, Mechanism, Mechanism], recipe: Variance = RECIPE, level: Fraction = LEVEL
) -> VarianceIntervals:
    components = SUM, SQUARES, RowCount()
    return VarianceIntervals(*map(measured, components, mechanisms), recipe, level)


def moments(values: list[int]) -> tuple[int, int, int]:
    """Σy, Σ(y² - shift), count."""
    return sum(values), sum(y * y - SQUARES.shift for y in values), len(values)


# --- the numbers -----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-HALF, HALF), min_size=2, max_size=30))
def test_without_noise_it_is_the_variance(values: list[int]) -> None:
    total, squares, count = map(Fraction, moments(values))
    for sample, expected in ((False, statistics.pvariance), (True, statistics.variance)):
        recipe = replace(RECIPE, sample=sample)
        found = variance(total, squares, count, recipe, Fraction(SQUARES.shift))
        assert found == expected([Fraction(v) for v in values]) <= recipe.top


@given(*[st.integers(-(10**6), 10**6)] * 3, st.booleans())
def test_whatever_the_noise_it_is_a_variance_of_values_within_the_bounds(s: int, q: int, n: int, sample: bool) -> None:
    recipe = replace(RECIPE, sample=sample, root=True)
    found = variance(Fraction(s), Fraction(q), Fraction(n), recipe, Fraction(200))
    assert 0 <= found <= recipe.top
    assert math.sqrt(found) <= recipe.greatest


def test_few_rows_count_as_one_or_two() -> None:
    given_ = Fraction(0), Fraction(150), Fraction(-7)
    assert variance(*given_, RECIPE, Fraction(200)) == 350
    assert variance(*given_, replace(RECIPE, sample=True), Fraction(200)) == 2 * (75 + 200)


# --- intervals -------------------------------------------------------------------------------------------------------

LAPLACE = DiscreteLaplace(Fraction(9 * HALF)), DiscreteLaplace(Fraction(9 * 200)), DiscreteLaplace(Fraction(9))


def test_rows_do_not_depend_on_each_other() -> None:
    found = intervals(LAPLACE)
    totals, squares, counts = (
        [0, 10, -400_000, 2**90, 5, -70, 900],
        [0, -50, 9_000, 2**99, 3, 0, 4],
        [0, 3, 9, 7, 0, -5, 4000],
    )
    rows = list(zip(totals, squares, counts, strict=True))
    assert found(totals, squares, counts) == [found([s], [q], [n])[0] for s, q, n in rows]
    assert found([], [], []) == []


def test_a_root_is_the_root_of_the_ends() -> None:
    given_ = [500], [-60_000], [900]
    ((low, high),) = intervals(LAPLACE)(*given_)
    ((root_low, root_high),) = intervals(LAPLACE, replace(RECIPE, root=True))(*given_)
    assert root_low == pytest.approx(math.sqrt(low)) and root_high == pytest.approx(math.sqrt(high))
    assert root_low**2 <= low and root_high**2 >= high


def test_noise_that_fits_nothing_says_everything() -> None:
    assert intervals(LAPLACE)([0], [10**9], [50]) == [(0, HALF**2)]
    sample = replace(RECIPE, sample=True)
    assert intervals(LAPLACE, sample)([0], [10**9], [50]) == [(0, 2 * HALF**2)]


def test_a_column_of_one_value_has_no_variance() -> None:
    recipe = replace(RECIPE, lo=Fraction(7), hi=Fraction(7))
    assert intervals((NoNoise(), NoNoise(), LAPLACE[2]), recipe)([0, 0], [0, 0], [3, -4]) == [(0, 0), (0, 0)]


def test_without_noise_the_interval_is_a_point_but_for_rounding() -> None:
    values = [1, 5, -7, 12, 20, -20, 3] * 100
    s, q, n = moments(values)
    ((low, high),) = intervals((NoNoise(), NoNoise(), NoNoise()))([s], [q], [n])
    true = statistics.pvariance(values)
    assert low <= true <= high and high - low < 1e-3


@pytest.mark.parametrize("unit", [Fraction(1, 2**300), Fraction(2**300)])
def test_bounds_of_any_size(unit: Fraction) -> None:
    """In other units the same interval, whether the squares fit a floating-point number as they are or not."""
    components = [replace(c, grid=unit) for c in (SUM, SQUARES)]
    recipe = replace(RECIPE, lo=RECIPE.lo * unit, hi=RECIPE.hi * unit, root=True)
    parts = [measured(c, m) for c, m in zip((*components, RowCount()), LAPLACE, strict=True)]
    ((low, high),) = VarianceIntervals(*parts, recipe, LEVEL)([500], [-60_000], [900])
    ((one_low, one_high),) = intervals(LAPLACE, replace(RECIPE, root=True))([500], [-60_000], [900])
    assert low / float(unit) == pytest.approx(one_low) and high / float(unit) == pytest.approx(one_high)
