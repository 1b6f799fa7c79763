"""Confidence intervals of averages, by test inversion (Fieller 1954).

With θ the true centred mean and Ŝ, N̂ the noisy sum and count, Ŝ - θN̂ is noise alone: X + θY, with X and Y the
independent noises of the two, each Laplace or Gaussian. The interval is the hull of all θ in [L, U] at which the
p-value P(|X + θY| ≥ |Ŝ - θN̂|) is at least 1 - level, so it covers with at least the level whatever the counts, small
groups and empty ones included. `accuracy/tails.py` gives the p-value, discreteness allowed for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.tails import Floats, TermNoise, curvature, tail, worthwhile
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms.mechanism import MARGIN
from dpsql.frontend.aggregates.intervals.outward_rounding import above, below

_STEPS = 60
_CLOSE = 2.0**-30
"""An edge is looked for until it is known to this part of its distance from an accepted point."""
AT_ONCE = 2048
"""Rows worked on at a time: their arrays stay in the processor's cache."""


class AverageIntervals:
    """Intervals of averages as a function of their noisy sums and counts, in the components' integer units."""

    def __init__(self, total: Measurement, count: Measurement, lo: Fraction, hi: Fraction, level: Fraction) -> None:
        self._units = float(total.unit), float(count.unit)
        noises = TermNoise.of(total, total.unit), TermNoise.of(count, count.unit)
        center = total.component.center * total.component.grid
        self._center = float(center)
        self._ends = below(lo), above(hi)
        self._hull = MeanHull(noises, (below(lo - center), above(hi - center)), float(1 - level))

    def __call__(self, totals: Sequence[int], counts: Sequence[int]) -> list[tuple[float, float]]:
        """For each pair the hull of all averages in [L, U] that it does not reject; [L, U] if it rejects them all."""
        s = Integers.of(totals).floats() * self._units[0]
        n = Integers.of(counts).floats() * self._units[1]
        parts = [self._hull(s[i : i + AT_ONCE], n[i : i + AT_ONCE]) for i in range(0, len(s), AT_ONCE)]
        lower, upper = (np.concatenate(side) for side in zip(*parts, strict=True)) if parts else (s, s)
        low, high = self._hull.ends
        bounds = np.clip(
            [
                np.where(lower <= low, self._ends[0], lower + self._center),
                np.where(upper >= high, self._ends[1], upper + self._center),
            ],
            *self._ends,
        ).tolist()
        return list(zip(bounds[0], bounds[1], strict=True))


@dataclass(frozen=True, slots=True)
class MeanHull:
    """The hull of all centred means θ between `ends` whose p-value is at least `least`; all, if none has that.

    noises: of the sum and the count, in the units in which these are given.
    """

    noises: tuple[TermNoise, TermNoise]
    ends: tuple[float, float]
    least: float

    def __call__(self, s: Floats, n: Floats) -> tuple[Floats, Floats]:
        """(lower, upper) for noisy sums and counts.

        The quantile of |X + θY| is convex in θ (Meyer & Reisner 1991 for symmetric convex bodies, of whose marginals
        symmetric log-concave laws are limits). Between the points below |Ŝ - θN̂| is linear and the tail of one way;
        hence what is accepted between two neighbouring points lies at the ends of that stretch, and one bisection
        finds the hull's edge.
        """
        at_zero = np.divide(s, n, out=np.zeros_like(s), where=n != 0)
        bend = curvature(self.noises[:1], (1.0,))
        limit = float(worthwhile(bend, self.noises[1], self.least))
        points = np.stack([np.full_like(s, at) for at in (*self.ends, 0.0, -limit, limit)] + [at_zero])
        points = np.sort(np.clip(points, *self.ends), axis=0)
        return hull(lambda theta: self._accepts(s, n, theta, bend, limit), points)

    def _accepts(self, s: Floats, n: Floats, theta: Floats, bend: Floats, limit: float) -> NDArray[np.bool_]:
        rounding = MARGIN * (np.abs(s) + np.abs(theta * n))
        distance = np.maximum(np.abs(s - theta * n) - rounding, 0)
        accepted: NDArray[np.bool_] = tail(self.noises, (1.0, theta), distance, bend, limit) >= self.least * (
            1 - MARGIN
        )
        return accepted


def hull(accepts: Callable[[Floats], NDArray[np.bool_]], points: Floats, steps: int = _STEPS) -> tuple[Floats, Floats]:
    """The ends of the hull of what is accepted, rounded outwards; the outermost points where nothing is.

    points: along the first axis, increasing; what is accepted between two neighbours must lie at the ends of that
    stretch. They are given to `accepts` as a whole first, single values in the shape of the other axes later.
    steps: how often a stretch is halved.
    """
    accepted = accepts(points)
    lower = _edge(accepts, points, accepted, steps)
    return lower, _edge(accepts, points[::-1], accepted[::-1], steps)


def _edge(
    accepts: Callable[[Floats], NDArray[np.bool_]], points: Floats, accepted: NDArray[np.bool_], steps: int
) -> Floats:
    """The end of the hull on the side where `points` begins."""
    first = accepted.argmax(axis=0)  # 0 also where nothing is accepted: then the answer is the outermost point, too
    inside = np.take_along_axis(points, first[None], axis=0)[0]
    outside = np.take_along_axis(points, np.maximum(first - 1, 0)[None], axis=0)[0]
    start = inside
    for _ in range(steps):
        if bool(((first == 0) | (np.abs(outside - inside) <= _CLOSE * np.abs(outside - start))).all()):
            break
        middle = (outside + inside) / 2
        inner = accepts(middle)
        inside, outside = np.where(inner, middle, inside), np.where(inner, outside, middle)
    found: Floats = np.where(first == 0, points[0], outside)
    return found
