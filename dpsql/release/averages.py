"""Confidence intervals of averages, by test inversion (Fieller 1954).

With θ the true centred mean and Ŝ, N̂ the noisy sum and count, Ŝ - θN̂ is noise alone: X + θY, with X and Y independent
Laplace variables of scales b_S and b_N. The interval is the hull of all θ in [L, U] at which the p-value
P(|X + θY| ≥ |Ŝ - θN̂|) is at least 1 - level, so it covers with at least the level whatever the counts, small groups and
empty ones included. Discreteness: a discrete Laplace variable is the difference of the integer parts of two
exponentials, so it differs by less than one unit from a continuous one; |Ŝ - θN̂| is made smaller by one unit of the sum
and |θ| units of the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.measure.allocate import Measurement
from dpsql.plan.components import Ratio
from dpsql.release.outwards import above, below

Floats = NDArray[np.float64]

_STEPS = 60
_MARGIN = 1e-9
"""Relative allowance for the rounding of floating-point numbers, far above it; always widens."""
_TINY = 1e-300


class AverageIntervals:
    """Intervals of averages as a function of their noisy sums and counts, in the components' integer units."""

    def __init__(self, total: Measurement, count: Measurement, ratio: Ratio, level: Fraction) -> None:
        self._sum_unit, self._count_unit = float(total.unit), float(count.unit)
        self._sum_scale = float(total.mechanism.scale) * self._sum_unit
        self._count_scale = float(count.mechanism.scale) * self._count_unit
        center = total.component.center * total.component.grid
        self._center = float(center)
        self._ends = below(ratio.lo), above(ratio.hi)
        self._low, self._high = below(ratio.lo - center), above(ratio.hi - center)
        self._least = float(1 - level) * (1 - _MARGIN)

    def __call__(self, totals: Sequence[int], counts: Sequence[int]) -> list[tuple[float, float]]:
        """For each pair the hull of all averages in [L, U] that it does not reject; [L, U] if it rejects them all.

        The quantile of |X + θY| is convex in θ (Meyer & Reisner 1991 for symmetric convex bodies, of whose marginals
        symmetric log-concave laws are limits). Between the four points below |Ŝ - θN̂| is linear; hence what is accepted
        between two neighbouring points lies at the ends of that stretch, and one bisection finds the hull's edge.
        """
        s = np.array([float(t) for t in totals]) * self._sum_unit
        n = np.array([float(c) for c in counts]) * self._count_unit
        at_zero = np.divide(s, n, out=np.zeros_like(s), where=n != 0)
        points = np.stack([np.full_like(s, self._low), np.full_like(s, self._high), np.zeros_like(s), at_zero])
        points = np.sort(np.clip(points, self._low, self._high), axis=0)
        accepted = self._accepts(s, n, points)
        lower = self._edge(s, n, points, accepted, self._ends[0])
        upper = self._edge(s, n, points[::-1], accepted[::-1], self._ends[1])
        bounds = np.clip([lower, upper], *self._ends).tolist()
        return list(zip(bounds[0], bounds[1], strict=True))

    def _edge(self, s: Floats, n: Floats, points: Floats, accepted: NDArray[np.bool_], end: float) -> Floats:
        """The end of the hull on the side where `points` begins, rounded outwards; `end` where all is accepted."""
        last = accepted.argmax(axis=0)  # 0 also where nothing is accepted: then the answer is `end`, too
        inside = np.take_along_axis(points, last[None], axis=0)[0]
        outside = np.take_along_axis(points, np.maximum(last - 1, 0)[None], axis=0)[0]
        for _ in range(_STEPS):
            middle = (outside + inside) / 2
            inner = self._accepts(s, n, middle)
            inside, outside = np.where(inner, middle, inside), np.where(inner, outside, middle)
        return np.where(last == 0, end, outside + self._center)

    def _accepts(self, s: Floats, n: Floats, theta: Floats) -> NDArray[np.bool_]:
        size = np.abs(theta)
        slack = self._sum_unit + size * self._count_unit + _MARGIN * (np.abs(s) + size * np.abs(n))
        distance = np.maximum(np.abs(s - theta * n) - slack, 0)
        p = two_laplace_tail(self._sum_scale, size * self._count_scale, distance)
        accepted: NDArray[np.bool_] = (distance == 0) | (p >= self._least)
        return accepted


def two_laplace_tail(a: float, b: Floats, w: Floats) -> Floats:
    """P(|X + Y| > w) for w ≥ 0 and independent Laplace X, Y of scales a, b ≥ 0 (0: no noise); within 1e-9, or above.

    (a²·e^(-w/a) - b²·e^(-w/b)) / (a² - b²), and for b = a its limit e^(-w/a)·(1 + w/(2a)).
    """
    larger = np.maximum(np.maximum(a, b), _TINY)
    r, t = np.minimum(a, b) / larger, w / larger
    first = np.exp(-t)
    # Where the scales nearly agree the difference would lose its digits; the limit at the larger one is above it.
    near = r > 1 - 1e-6
    rest = 1 - np.where(near, 0, r) ** 2
    with np.errstate(over="ignore"):
        second = r**2 * np.exp(-t / np.maximum(r, _TINY))
    return np.where(near, first * (1 + t / 2), (first - second) / rest)
