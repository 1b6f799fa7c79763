"""Intervals of averages by test inversion: the tail of two Laplace variables, and the hull, against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from dpsql.accuracy.tails import two_laplace_tail as tail_of_arrays
from dpsql.core.ir.components import ValueSum
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteLaplace, NoNoise
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.frontend.aggregates.intervals.mean_intervals import AverageIntervals

LEVEL = Fraction(95, 100)


def measurement(scale: Fraction | None, *, center: int = 0, grid: Fraction = Fraction(1)) -> Measurement:
    component = ValueSum(Literal(1, BIGINT), center=center, grid=grid)
    mechanism = NoNoise() if scale is None else DiscreteLaplace(scale)
    return Measurement(component, Sensitivity(1, 1, Fraction(1), 1), mechanism)


def two_laplace_tail(a: float, b: float, w: float) -> float:
    (found,) = tail_of_arrays(a, np.array([b]), np.array([w]))
    return float(found)


def by_integration(a: float, b: float, w: float) -> float:
    """P(|X + Y| > w), by integrating over X."""

    def part(x: float) -> float:
        y = w - x
        upper = 0.5 * math.exp(-y / b) if y >= 0 else 1 - 0.5 * math.exp(y / b)
        return math.exp(-abs(x) / a) / (2 * a) * upper

    cuts = sorted({-60 * a, 0.0, min(w, 60 * a), 60 * a})
    pieces = pairwise(cuts)
    return 2 * sum(integrate.quad(part, low, high, limit=400)[0] for low, high in pieces)


@pytest.mark.parametrize("ratio", [1.0, 1 - 1e-7, 1 - 1e-5, 0.999, 0.5, 0.03])
@pytest.mark.parametrize("w", [0.0, 0.3, 2.0, 5.0, 12.0])
def test_tail_of_two_laplace_variables(ratio: float, w: float) -> None:
    found, expected = two_laplace_tail(2.0, 2 * ratio, w), by_integration(2.0, 2 * ratio, w)
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert found >= expected * (1 - 1e-8) - 1e-9
    assert two_laplace_tail(2 * ratio, 2.0, w) == found


@pytest.mark.parametrize("w", [0.0, 1.0, 7.5])
def test_a_scale_of_zero_is_a_constant(w: float) -> None:
    assert two_laplace_tail(2.0, 0.0, w) == two_laplace_tail(0.0, 2.0, w) == math.exp(-w / 2)
    assert two_laplace_tail(2.0, 1e-9, w) == pytest.approx(math.exp(-w / 2))
    assert two_laplace_tail(0.0, 0.0, w) == (w == 0)


def test_without_noise_the_interval_is_a_point_but_for_rounding_units() -> None:
    lo, hi = Fraction(0), Fraction(100)
    exact = AverageIntervals(measurement(None, center=50), measurement(None), lo, hi, LEVEL)
    ((low, high),) = exact([-300_000], [10_000])
    assert low < 20 < high and high - low < 0.01


def test_noise_that_fits_no_average_says_the_bounds() -> None:
    lo, hi = Fraction(0), Fraction(100)
    interval = AverageIntervals(measurement(Fraction(2), center=50), measurement(Fraction(2)), lo, hi, LEVEL)
    nothing, edge = interval([10_000, 500], [10, 10])
    assert nothing == (0, 100)
    assert 40 < edge[0] < 99 and edge[1] == 100


def test_rows_do_not_depend_on_each_other() -> None:
    lo, hi = Fraction(-30), Fraction(180)
    interval = AverageIntervals(measurement(Fraction(9000), center=75), measurement(Fraction(90)), lo, hi, LEVEL)
    totals, counts = [0, 10, -400_000, 2**100, 5, -70], [0, -50, 9_000, 2**90, 3, 0]
    assert interval(totals, counts) == [interval([t], [c])[0] for t, c in zip(totals, counts, strict=True)]
    assert interval([], []) == []
