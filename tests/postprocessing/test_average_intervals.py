"""Intervals of averages by test inversion: the tail of two Laplace variables, and the hull, against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize

from dpsql.core.ir.components import Component, Measure, Ratio
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteLaplace, Exact
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.core.noise.tails import Noise, curvature, tail, worthwhile
from dpsql.core.noise.tails import two_laplace_tail as tail_of_arrays
from dpsql.postprocessing.intervals.averages import AverageIntervals

LEVEL = Fraction(95, 100)
scales = st.floats(0.01, 1000)


def measurement(scale: Fraction | None, *, center: int = 0, grid: Fraction = Fraction(1)) -> Measurement:
    component = Component(Measure.SUM, center=center, grid=grid)
    mechanism = Exact() if scale is None else DiscreteLaplace(scale)
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


@given(a=scales, b=scales, level=st.floats(0.05, 0.999))
def test_the_quantile_is_convex_in_theta(a: float, b: float, level: float) -> None:
    """What lets one bisection find each end of the hull."""

    def quantile(theta: float) -> float:
        def excess(w: float) -> float:
            return two_laplace_tail(a, theta * b, w) - (1 - level)

        return optimize.brentq(excess, 0, 50 * (a + theta * b), xtol=1e-12, rtol=1e-12)

    thetas = np.linspace(0, 4 * a / b, 33)
    found = np.array([quantile(t) for t in thetas])
    assert (np.diff(found) >= -1e-6 * found[1:]).all()
    assert (np.diff(found, 2) >= -2e-6 * found[2:]).all()


@given(
    total=st.integers(-5000, 5000), count=st.integers(-60, 300), b_sum=st.integers(1, 400), b_count=st.integers(1, 40),
    ends=st.tuples(st.integers(-60, 60), st.integers(1, 100)), level=st.sampled_from([Fraction(1, 2), LEVEL]),
)  # fmt: skip
def test_the_hull_is_that_of_a_dense_grid(
    total: int, count: int, b_sum: int, b_count: int, ends: tuple[int, int], level: Fraction
) -> None:
    low, high = ends[0], ends[0] + ends[1]
    center = (low + high) // 2
    ratio = Ratio(0, 1, Fraction(low), Fraction(high))
    interval = AverageIntervals(
        measurement(Fraction(b_sum), center=center), measurement(Fraction(b_count)), ratio, level
    )
    (found,) = interval([total], [count])
    assert low <= found[0] <= found[1] <= high
    thetas = np.linspace(low - center, high - center, 2001)
    noises = Noise(b_sum, 0, 1), Noise(b_count, 0, 1)
    bend = curvature(noises[:1], (1,))
    limit = worthwhile(bend, noises[1], float(1 - level))
    p_values = tail(noises, (1, thetas), np.abs(total - thetas * count), bend, limit)
    accepted = thetas[p_values >= float(1 - level)]
    step = thetas[1] - thetas[0]
    if not accepted.size:
        # Nothing on the grid fits: either nothing does (and all is said), or a stretch shorter than one step.
        assert found == (low, high) or found[1] - found[0] <= step * 1.01
        return
    assert found[0] <= accepted[0] + center + 1e-9 and found[1] >= accepted[-1] + center - 1e-9
    assert found[0] >= accepted[0] + center - step * 1.01 and found[1] <= accepted[-1] + center + step * 1.01


def test_without_noise_the_interval_is_a_point_but_for_rounding_units() -> None:
    ratio = Ratio(0, 1, Fraction(0), Fraction(100))
    exact = AverageIntervals(measurement(None, center=50), measurement(None), ratio, LEVEL)
    ((low, high),) = exact([-300_000], [10_000])
    assert low < 20 < high and high - low < 0.01


def test_noise_that_fits_no_average_says_the_bounds() -> None:
    ratio = Ratio(0, 1, Fraction(0), Fraction(100))
    interval = AverageIntervals(measurement(Fraction(2), center=50), measurement(Fraction(2)), ratio, LEVEL)
    nothing, edge = interval([10_000, 500], [10, 10])
    assert nothing == (0, 100)
    assert 40 < edge[0] < 99 and edge[1] == 100


def test_rows_do_not_depend_on_each_other() -> None:
    ratio = Ratio(0, 1, Fraction(-30), Fraction(180))
    interval = AverageIntervals(measurement(Fraction(9000), center=75), measurement(Fraction(90)), ratio, LEVEL)
    totals, counts = [0, 10, -400_000, 2**100, 5, -70], [0, -50, 9_000, 2**90, 3, 0]
    assert interval(totals, counts) == [interval([t], [c])[0] for t, c in zip(totals, counts, strict=True)]
    assert interval([], []) == []
