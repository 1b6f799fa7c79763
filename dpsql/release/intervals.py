"""Confidence intervals of released numbers, from public facts and noisy values alone.

They speak of the *bounded* truth: what the query would give without noise, clips and contribution limits in place.

Counts and sums: value ± the exact quantile of the discrete noise, so the coverage is at least the level.

Averages: test inversion (Fieller 1954). With θ the true centred mean and Ŝ, N̂ the noisy sum and count, Ŝ - θN̂ is
noise alone: X + θY, with X and Y independent Laplace variables of scales b_S and b_N. The interval is the hull of all θ
in [L, U] at which the p-value P(|X + θY| ≥ |Ŝ - θN̂|) is at least 1 - level, so it covers with at least the level
whatever the counts, small groups and empty ones included. Discreteness: a discrete Laplace variable is the difference
of the integer parts of two exponentials, so it differs by less than one unit from a continuous one; |Ŝ - θN̂| is made
smaller by one unit of the sum and |θ| units of the count.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import assert_never

from dpsql.measure.allocate import Measurement
from dpsql.plan.nodes import Count, Output, Ratio, Sum
from dpsql.release.noisy import NoisyRelease

Bounds = tuple[float, float]

_STEPS = 60
_MARGIN = 1e-9
"""Relative allowance for the rounding of floating-point numbers, far above it; always widens."""


def output_intervals(noisy: NoisyRelease, output: Output, level: Fraction) -> list[Bounds]:
    """One (low, high) per row of the release for one output column, at confidence `level` in (0, 1)."""
    measurements = noisy.planned.measured.measurements
    match output.recipe:
        case Count(component=i) | Sum(component=i):
            m = measurements[i]
            width = m.mechanism.half_width(level)
            return [(_below((row[i] - width) * m.unit), _above((row[i] + width) * m.unit)) for row in noisy.values]
        case Ratio(sum=s, count=n) as ratio:
            inverse = AverageInterval(measurements[s], measurements[n], ratio, level)
            return [inverse(row[s], row[n]) for row in noisy.values]
        case _:
            assert_never(output.recipe)


def _below(x: Fraction) -> float:
    """The greatest float ≤ x."""
    near = float(x)
    return near if near <= x else math.nextafter(near, -math.inf)


def _above(x: Fraction) -> float:
    """The least float ≥ x."""
    near = float(x)
    return near if near >= x else math.nextafter(near, math.inf)


class AverageInterval:
    """The interval of one average, as a function of its noisy sum and count (in the components' integer units)."""

    def __init__(self, total: Measurement, count: Measurement, ratio: Ratio, level: Fraction) -> None:
        self._sum_unit, self._count_unit = float(total.unit), float(count.unit)
        self._sum_scale = float(total.mechanism.scale) * self._sum_unit
        self._count_scale = float(count.mechanism.scale) * self._count_unit
        center = total.component.center * total.component.grid
        self._center = float(center)
        self._ends = _below(ratio.lo), _above(ratio.hi)
        self._low, self._high = _below(ratio.lo - center), _above(ratio.hi - center)
        self._least = float(1 - level) * (1 - _MARGIN)

    def __call__(self, total: int, count: int) -> Bounds:
        """The hull of all averages in [L, U] that the noisy pair does not reject; [L, U] if it rejects them all.

        The quantile of |X + θY| is convex in θ (Meyer & Reisner 1991 for symmetric convex bodies, of whose marginals
        symmetric log-concave laws are limits). Between the points below |Ŝ - θN̂| is linear; hence what is accepted
        between two neighbouring points lies at the ends of that stretch, and one bisection finds the hull's edge.
        """
        s, n = total * self._sum_unit, count * self._count_unit
        points = [self._low, self._high]
        if self._low < 0 < self._high:
            points.append(0.0)
        if n and self._low < s / n < self._high:
            points.append(s / n)
        points.sort()
        accepted = [self._accepts(s, n, theta) for theta in points]
        if not any(accepted):
            return self._ends
        return self._edge(s, n, points, accepted, 0), self._edge(s, n, points[::-1], accepted[::-1], 1)

    def _edge(self, s: float, n: float, points: list[float], accepted: list[bool], side: int) -> float:
        """The end of the hull on the side where `points` begins, rounded outwards."""
        if accepted[0]:
            return self._ends[side]
        last = accepted.index(True)
        outside, inside = points[last - 1], points[last]
        for _ in range(_STEPS):
            middle = (outside + inside) / 2
            if self._accepts(s, n, middle):
                inside = middle
            else:
                outside = middle
        found = outside + self._center
        return min(self._ends[1], max(self._ends[0], found))

    def _accepts(self, s: float, n: float, theta: float) -> bool:
        size = abs(theta)
        slack = self._sum_unit + size * self._count_unit + _MARGIN * (abs(s) + size * abs(n))
        distance = abs(s - theta * n) - slack
        return distance <= 0 or two_laplace_tail(self._sum_scale, size * self._count_scale, distance) >= self._least


def two_laplace_tail(a: float, b: float, w: float) -> float:
    """P(|X + Y| > w) for w ≥ 0 and independent Laplace X, Y of scales a, b ≥ 0 (0: no noise); within 1e-9, or above.

    (a²·e^(-w/a) - b²·e^(-w/b)) / (a² - b²), and for b = a its limit e^(-w/a)·(1 + w/(2a)).
    """
    a, b = max(a, b), min(a, b)
    if a == 0:
        return 0.0
    if b == 0:
        return math.exp(-w / a)
    if a - b < a * 1e-6:  # the difference below would lose its digits; the limit at the larger scale is above it
        return math.exp(-w / a) * (1 + w / (2 * a))
    return (a * a * math.exp(-w / a) - b * b * math.exp(-w / b)) / (a * a - b * b)
