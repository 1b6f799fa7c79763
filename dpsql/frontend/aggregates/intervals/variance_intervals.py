"""Confidence intervals of variances, by test inversion in two steps.

Let Q, S, N be the true Σy² (less `middle` per row), Σy and count; Q̂, Ŝ, N̂ the noisy ones with noises X, Y, Z. With the
true mean μ of y and the true variance v,

    D(μ, v) = Q̂ - 2μŜ + (middle + μ² - v)·N̂  =  X - 2μY + (middle + μ² - v)·Z

is noise alone, of a law that (μ, v) determines: the true counts and sums drop out, so this holds for groups of any
size. Of a sample variance v' = v·N/(N-1), D has (middle + μ²)·N̂ - v'·(N̂-1) as its last term, and the noise is the same
with v' for v.

Of the error probability 1 - level a part of 1/20 goes to μ: M is the interval of the mean (`mean_intervals.py`). v is
accepted if for some μ in M the p-value P(|X - 2μY + …Z| ≥ |D(μ, v)|) is at least the remaining 19/20; the interval is
the hull of all accepted v up to the largest variance that values in [L, U] with mean μ can have, (U-μ)(μ-L) (Bhatia &
Davis 2000). It covers unless M misses μ, or D is in its own tail: together at most 1 - level.

*How wide.* With μ̂ = Ŝ/N̂ and v̂ the variance by Q̂, Ŝ, N̂: D = N̂·((μ-μ̂)² + v̂ - v). Where N̂ is large M is narrow,
(μ-μ̂)²·N̂ vanishes against the noise, and the coverage is that of one exact test, 1 - 19/20 of the error. In small
groups the square makes the upper end conservative; where M is everything the interval may be everything.

M is cut into pieces; over each one D is bounded by its range and the noise by its largest coefficients, so that no μ
between is overlooked. The p-values come from `accuracy/tails.py`, discreteness allowed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.tails import Floats, TermNoise, curvature, tail, worthwhile
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms.mechanism import MARGIN
from dpsql.frontend.aggregates.intervals.mean_intervals import AT_ONCE, MeanHull, hull
from dpsql.frontend.aggregates.intervals.outward_rounding import above, below

if TYPE_CHECKING:
    from dpsql.frontend.aggregates.variance import Variance

_TO_MEAN = Fraction(1, 20)
"""Part of the error probability that the interval of the mean gets."""
_PIECES, _FEW_PIECES = 8, 2
_NARROW = 0.02
"""Means known this well, in half widths of the bounds, are cut into few pieces."""
_STEPS = 40
_ROOM = 2.0**-50


class VarianceIntervals:
    """Intervals of variances as a function of noisy sums, sums of squares and counts, in the components' units.

    Everything is computed in half widths of the argument's bounds, so that no bounds are too wide or too narrow for
    floating-point numbers.
    """

    def __init__(
        self, total: Measurement, squares: Measurement, count: Measurement, recipe: Variance, level: Fraction
    ) -> None:
        self._recipe = recipe
        self._half = (recipe.hi - recipe.lo) / 2
        if not self._half:
            return
        self._units = total.unit / self._half, squares.unit / self._half**2, count.unit
        parts = zip((total, squares, count), self._units, strict=True)
        of_sum, of_squares, of_count = (TermNoise.of(m, unit) for m, unit in parts)
        self._noises = of_squares, of_sum, of_count
        center = total.component.center * total.component.grid
        self._ends = below((recipe.lo - center) / self._half), above((recipe.hi - center) / self._half)
        self._middle = float(squares.component.shift * squares.component.worth / self._half**2)
        error = 1 - level
        self._means = MeanHull((of_sum, of_count), self._ends, float(error * _TO_MEAN))
        self._least = float(error * (1 - _TO_MEAN)) * (1 - MARGIN)

    def __call__(
        self, totals: Sequence[int], squares: Sequence[int], counts: Sequence[int]
    ) -> list[tuple[float, float]]:
        """For each triple the interval of what the recipe gives: a variance, or its root."""
        if not self._half:
            return [(0.0, 0.0)] * len(totals)
        columns = [
            Integers.of(column).floats() * float(unit)
            for column, unit in zip((totals, squares, counts), self._units, strict=True)
        ]
        found: list[tuple[float, float]] = []
        for start in range(0, len(totals), AT_ONCE):
            some = [c[start : start + AT_ONCE] for c in columns]
            mean = np.stack(self._means(some[0], some[2]))
            low, high = np.empty_like(mean)
            narrow = mean[1] - mean[0] <= _NARROW
            for chosen, pieces in ((narrow, _FEW_PIECES), (~narrow, _PIECES)):
                low[chosen], high[chosen] = self._hulls(mean[:, chosen], pieces, *(c[chosen] for c in some))
            found += zip(*(ends.tolist() for ends in self._released(low, high)), strict=True)
        return found

    def _released(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """In the unit of the released number, rounded outwards: the four roundings on the way are less than _ROOM."""
        half = float(self._half)
        low = np.maximum(np.nextafter(low * half * half * (1 - _ROOM), -np.inf), 0.0)
        high = np.nextafter(high * half * half * (1 + _ROOM), np.inf)
        if self._recipe.root:
            low, high = np.maximum(np.nextafter(np.sqrt(low), -np.inf), 0.0), np.nextafter(np.sqrt(high), np.inf)
        return low, np.minimum(high, self._recipe.greatest)

    def _hulls(self, mean: Floats, number: int, s: Floats, q: Floats, n: Floats) -> tuple[Floats, Floats]:
        """Hulls of variances, in squared half widths; mean: lowest and highest, cut into this number of pieces."""
        edges = np.linspace(mean[0], mean[1], number + 1)
        edges[0], edges[-1] = mean
        pieces = _Pieces.of(edges[:-1], edges[1:], s, q, n, self._middle, self._recipe.sample, self._ends)
        bend = curvature(self._noises[:2], (1.0, 2 * pieces.nearest))
        limit = worthwhile(bend, self._noises[2], self._least)
        switched = np.stack([pieces.shares[1] - limit, pieces.shares[0] + limit])
        points = np.sort(np.clip(np.concatenate([pieces.points, switched]), 0, pieces.most), axis=0)
        accepted = self._accepts(pieces, points, bend, limit).any(axis=0)
        low, high = hull(lambda v: self._accepts(pieces, v, bend, limit), points, _STEPS)
        low = np.where(accepted, low, np.inf).min(axis=0)
        high = np.where(accepted, high, -np.inf).max(axis=0)
        nothing = ~accepted.any(axis=0)
        return np.where(nothing, 0.0, low), np.where(nothing, np.inf, high).clip(max=pieces.most.max(axis=0))

    def _accepts(self, pieces: _Pieces, v: Floats, bend: Floats, limit: Floats) -> NDArray[np.bool_]:
        coefficients = (1.0, np.broadcast_to(2 * pieces.largest, v.shape), pieces.shares_of(v))
        accepted: NDArray[np.bool_] = tail(self._noises, coefficients, pieces.distance(v), bend, limit) >= self._least
        return accepted


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of means beside each other along the first axis, rows along the second.

    nearest, largest: |μ| at least and at most. shares: least and largest middle + μ², from which v is subtracted.
    ends: least and largest D(μ, 0). weight: what v is multiplied by. rounding: of D(μ, 0). most: the largest v.
    points: v between which the distance is linear and the noise's scale convex.
    """

    nearest: Floats
    largest: Floats
    shares: tuple[Floats, Floats]
    ends: tuple[Floats, Floats]
    weight: Floats
    rounding: Floats
    most: Floats

    @classmethod
    def of(
        cls, low: Floats, high: Floats, s: Floats, q: Floats, n: Floats, middle: float, sample: bool,
        ends: tuple[float, float],
    ) -> _Pieces:  # fmt: skip
        """The pieces [low, high] for noisy numbers s, q, n of values between `ends`."""
        vertex = np.clip(np.divide(s, n, out=np.zeros_like(s), where=n != 0), low, high)
        at = np.stack([q + middle * n - 2 * mu * s + mu**2 * n for mu in (low, high, vertex)])
        largest = np.maximum(np.abs(low), np.abs(high))
        nearest = np.clip(0.0, low, high)
        rounding = MARGIN * (np.abs(q) + (middle + largest**2) * np.abs(n) + 2 * largest * np.abs(s))
        between = np.clip(sum(ends) / 2, low, high)
        most = np.maximum((ends[1] - between) * (between - ends[0]), 0) * (1 + MARGIN)
        return cls(
            np.abs(nearest), largest, (middle + nearest**2, middle + largest**2), (at.min(axis=0), at.max(axis=0)),
            n - 1 if sample else n, rounding, most * (2 if sample else 1),
        )  # fmt: skip

    @property
    def points(self) -> Floats:
        shape = self.most.shape
        k = np.broadcast_to(self.weight, shape)
        at_zero = [np.divide(end, k, out=np.zeros(shape), where=k != 0) for end in self.ends]
        return np.stack([np.zeros(shape), self.most, *at_zero, (self.shares[0] + self.shares[1]) / 2])

    def shares_of(self, v: Floats) -> Floats:
        """The largest |middle + μ² - v|."""
        found: Floats = np.maximum(np.abs(self.shares[0] - v), np.abs(self.shares[1] - v))
        return found

    def distance(self, v: Floats) -> Floats:
        """How far D(μ, v) is from 0 at least."""
        moved = v * self.weight
        rounding = self.rounding + MARGIN * np.abs(moved)
        found: Floats = np.maximum(np.maximum(self.ends[0] - moved, moved - self.ends[1]) - rounding, 0)
        return found
