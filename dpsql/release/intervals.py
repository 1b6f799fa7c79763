"""Confidence intervals of released numbers, from public facts and noisy values alone.

They speak of the *bounded* truth: what the query would give without noise, clips and contribution limits in place.

Counts and sums: value ± the exact quantile of the discrete noise, so the coverage is at least the level.

Averages: test inversion (Fieller 1954). With θ the true centred mean and Ŝ, N̂ the noisy sum and count, Ŝ - θN̂ is
noise alone: a sum of two independent Laplace variables with scales a = b_S and |θ|·b_N. The interval is the hull of all
θ in [L, U] with |Ŝ - θN̂| ≤ w(θ), the quantile of that sum, so it covers with at least the level whatever the counts,
small groups included. Discreteness: a discrete Laplace variable is the integer part difference of two exponentials, so
it differs by less than one unit from a continuous one; w is enlarged by one unit of the sum and |θ| units of the count.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.measure.allocate import Measurement
from dpsql.plan.nodes import Count, Output, Ratio, Sum
from dpsql.release.noisy import NoisyRelease

Bounds = tuple[float, float]


def output_intervals(noisy: NoisyRelease, output: Output, level: Fraction) -> list[Bounds]:
    """One (low, high) per row of the release for one output column, at confidence `level` in (0, 1)."""
    measurements = noisy.planned.measured.measurements
    match output.recipe:
        case Count(component=i) | Sum(component=i):
            m = measurements[i]
            width = m.mechanism.half_width(level)
            return [(float((row[i] - width) * m.unit), float((row[i] + width) * m.unit)) for row in noisy.values]
        case Ratio(sum=s, count=n):
            ratio = output.recipe
            inverse = _Fieller(measurements[s], measurements[n], ratio, float(level))
            return [inverse.interval(row[s], row[n]) for row in noisy.values]


class _Fieller:
    """Interval of one average by test inversion; scales and bounds in the column's own unit."""

    def __init__(self, total: Measurement, count: Measurement, ratio: Ratio, level: float) -> None:
        self.sum_unit, self.count_unit = float(total.unit), float(count.unit)
        self.sum_scale = float(total.mechanism.scale) * self.sum_unit
        self.count_scale = float(count.mechanism.scale) * self.count_unit
        self.center = float(total.component.center * total.component.grid)
        self.low, self.high = float(ratio.lo) - self.center, float(ratio.hi) - self.center
        self.tail = 1 - level

    def interval(self, total: int, count: int) -> Bounds:
        """The hull of all averages in [L, U] that the noisy pair does not reject."""
        s, n = total * self.sum_unit, count * self.count_unit

        def excess(theta: float) -> float:
            slack = self.sum_unit + abs(theta) * self.count_unit
            return abs(s - theta * n) - self._quantile(abs(theta)) - slack

        guess = s / max(n, self.count_unit)
        inside = min(self.high, max(self.low, guess))
        if excess(inside) > 0:
            # No average in [L, U] fits: the noise was larger than the level allows for. Say all we know.
            return self.low + self.center, self.high + self.center
        return (
            self._edge(inside, self.low, excess) + self.center,
            self._edge(inside, self.high, excess) + self.center,
        )

    def _edge(self, inside: float, outside: float, excess: object) -> float:
        """The last point from `inside` towards `outside` that is not rejected (rounded outwards)."""
        assert callable(excess)
        if excess(outside) <= 0:
            return outside
        for _ in range(60):
            middle = (inside + outside) / 2
            if excess(middle) <= 0:
                inside = middle
            else:
                outside = middle
        return outside

    def _quantile(self, theta: float) -> float:
        """w with P(|X + θY| > w) = tail for independent Laplace X, Y of the two scales (0 scales are constants)."""
        a, b = self.sum_scale, theta * self.count_scale
        a, b = max(a, b), min(a, b)
        if a == 0:
            return 0.0
        if b < a * 1e-9:
            return -a * math.log(self.tail)

        def tail(w: float) -> float:
            if a - b < a * 1e-6:  # equal scales: the limit of the formula below
                return math.exp(-w / a) * (1 + w / (2 * a))
            return (a * a * math.exp(-w / a) - b * b * math.exp(-w / b)) / (a * a - b * b)

        low, high = 0.0, a
        while tail(high) > self.tail:
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) > self.tail else (low, middle)
        return high
