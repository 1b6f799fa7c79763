"""The quantile behind intervals of averages is convex, and the hull is that of a dense grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpsql.accuracy.tails import TermNoise, curvature, tail, worthwhile
from dpsql.frontend.aggregates.avg import Ratio
from dpsql.frontend.aggregates.intervals.mean_intervals import AverageIntervals
from tests.frontend.aggregates.test_average_intervals import LEVEL, measurement, two_laplace_tail

scales = st.floats(0.01, 1000)


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
        measurement(Fraction(b_sum), center=center), measurement(Fraction(b_count)), ratio.lo, ratio.hi, level
    )
    (found,) = interval([total], [count])
    assert low <= found[0] <= found[1] <= high
    thetas = np.linspace(low - center, high - center, 2001)
    noises = TermNoise(b_sum, 0, 1), TermNoise(b_count, 0, 1)
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
