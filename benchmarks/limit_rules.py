"""Ways to bound what one unit adds to a sum, each as it would answer again and again: the contestants of `limits.py`.

A way is told the totals of all units as a database would be, and gives the errors of its answers in percent of the true
sum; None where it does not answer. Noise is drawn by the sampler that draws every noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.planner.postprocessing.searches.octaves import MOST, Octaves, largest_octave, limit_of_sum, noise_per_unit

SHARE = Fraction(1, 4)
"""What a search has of ε."""
_FINE = 20
"""Integer units are halved up to so often, so that rounding to them is no part of the error."""
Errors = list[float | None]
T = TypeVar("T")


@dataclass(frozen=True)
class Totals:
    """What each unit has in all, in integer units, from the least."""

    sorted: NDArray[np.int64]

    @cached_property
    def octaves(self) -> list[int]:
        """How many units are in each."""
        found = Counter((int(total) - 1).bit_length() for total in self.sorted)
        return [found[b] for b in range(MOST + 1)]

    @cached_property
    def sums(self) -> NDArray[np.int64]:
        """Of the least i totals."""
        return np.concatenate([[0], np.cumsum(self.sorted)])

    @property
    def true(self) -> int:
        """The sum."""
        return int(self.sums[-1])

    def clipped(self, limit: int) -> int:
        """The sum if no unit has more."""
        below = int(np.searchsorted(self.sorted, limit, side="right"))
        return int(self.sums[below]) + limit * (len(self.sorted) - below)

    def raised(self, low: int, high: int) -> int:
        """The sum if no unit has less than `low` or more than `high`."""
        below = int(np.searchsorted(self.sorted, low, side="left"))
        return self.clipped(high) - int(self.sums[below]) + low * below


def drawn(scale: Fraction, exact: int, runs: int) -> list[Fraction]:
    """A number with noise, again and again."""
    halvings = max(0, min(_FINE, 50 - math.floor(scale).bit_length()))
    noisy = DiscreteLaplace(scale * 2**halvings).add_noise([exact << halvings] * runs)
    return [Fraction(int(x), 1 << halvings) for x in noisy]


def percent(totals: Totals, answers: Sequence[Fraction]) -> list[float]:
    """How far off they are."""
    return [100 * float(abs(answer - totals.true) / totals.true) for answer in answers]


def known(limit: int, totals: Totals, epsilon: Fraction, runs: int) -> Errors:
    """A limit that was declared."""
    return list(percent(totals, drawn(limit / epsilon, totals.clipped(limit), runs)))


def searched(totals: Totals, epsilon: Fraction, runs: int) -> Errors:
    """No limit declared: an octave histogram finds it."""
    rest = epsilon * (1 - SHARE)
    found = limits_found(totals, epsilon, runs)
    return _answered(found, lambda limit, n: drawn(limit / rest, totals.clipped(limit), n), totals)


def limits_found(totals: Totals, epsilon: Fraction, runs: int) -> list[int | None]:
    """What searches find; None where they find nothing."""
    noise, later = DiscreteLaplace(1 / (epsilon * SHARE)), DiscreteLaplace(1 / (epsilon * (1 - SHARE)))
    cost, largest = noise_per_unit(later, 1), largest_octave(later, 1, lambda limit: limit)
    noisy = [int(x) for x in noise.add_noise(totals.octaves * runs)]
    width = MOST + 1
    found = []
    for run in range(runs):
        counts = tuple(noisy[run * width : (run + 1) * width])
        found.append(limit_of_sum(Octaves("", "", "", counts, noise, width), cost, largest))
    return found


def approximate_bounds(totals: Totals, epsilon: Fraction, runs: int) -> Errors:
    """As published by Google (differential-privacy library, approximate bounds): own re-make, half of ε for each part.

    A histogram of powers of two of both signs; the bounds are the ends of the outermost bins whose noisy count reaches
    the threshold that empty bins stay below with probability 1 - 10⁻⁹. Totals are clamped to both.
    """
    half = epsilon / 2
    bins = 2 * (MOST + 1)
    threshold = -math.log(2 - 2 * (1 - 1e-9) ** (1 / (bins - 1))) / float(half)
    exact = [0] * (MOST + 1) + totals.octaves
    counts = np.array([int(x) for x in DiscreteLaplace(1 / half).add_noise(exact * runs)]).reshape(runs, bins)
    limits: list[tuple[int, int] | None] = []
    for run in counts:
        found = np.flatnonzero(run >= threshold) - (MOST + 1)
        limits.append(_ends(int(found.min()), int(found.max())) if len(found) else None)

    def answers(ends: tuple[int, int], n: int) -> list[Fraction]:
        return drawn(max(map(abs, ends)) / half, totals.raised(*ends), n)

    return _answered(limits, answers, totals)


def _ends(low: int, high: int) -> tuple[int, int]:
    """Of the bins -63…-1 of negative totals and 0…62 of positive ones."""
    lower = -(1 << -low - 1) if low < 0 else 1 << low - 1 if low else 0
    return lower, 1 << high if high >= 0 else 0


def _answered(limits: Sequence[T | None], answers: Callable[[T, int], list[Fraction]], totals: Totals) -> Errors:
    """Runs with the same limit are drawn together."""
    found: Errors = []
    for limit, n in Counter(limits).items():
        found += [None] * n if limit is None else percent(totals, answers(limit, n))
    return found


def oracle(totals: Totals, epsilon: Fraction) -> int:
    """The limit with the least mean error, of all: what nobody knows who does not look at the data.

    |bias + Laplace noise| of scale s has the mean bias + s·e^(-bias/s).
    """

    def mean(limit: int) -> float:
        bias, scale = float(totals.true - totals.clipped(limit)), limit / float(epsilon)
        return bias + scale * math.exp(-bias / scale)

    return min({int(x) for x in np.unique(totals.sorted)[-20_000:]}, key=mean)
