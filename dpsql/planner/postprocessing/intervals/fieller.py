"""Confidence intervals of linear numbers and of their quotients (Fieller 1954), from the noise that they share.

Of a number the interval is its noisy value ± the quantile of its noise. Of a quotient of a and b it is the set of all r
with |â - r·b̂| ≤ w(r), w(r) the quantile of the noise of a - r·b: what both have in common cancels or adds up. For the
true r, â - r·b̂ is noise alone, so the set holds it with the level. It is an interval if 0 is not in b's own interval at
the level; if it is, the set is everything, or everything but an interval: then there is none.

w(x, y), the quantile of the noise of x·a + y·b, grows in proportion to (x, y) and is convex for symmetric log-concave
noise, like a norm. It is computed in directions that lie evenly where it hardly changes (where the deviation is the
same), and taken as linear between two of them, which for a convex function is above it. Where units are coarse beside
the noise it is convex only nearly: there are more directions then, each with the largest value beside it and a little
more, in proportion to the distance of two directions and to the units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.accuracy.quantiles_of_sums import reaches
from dpsql.core.noise.integer_columns import Floats
from dpsql.core.noise.mechanisms.mechanism import MARGIN
from dpsql.planner.postprocessing.intervals.linear import Flags, LinearColumn, Noises, Places, TooMany
from dpsql.planner.postprocessing.intervals.noise_classes import NoiseClasses, classes

_DIRECTIONS, _MANY_DIRECTIONS = 16, 96
_COARSE = 0.1
"""Units larger than this, in deviations, are coarse."""
_AT_ONCE = 1 << 20
_MOST_CLASSES = 3000
"""Quantiles that are computed for one column."""


def widths(noises: Noises, number: LinearColumn, outside: Fraction) -> Floats:
    """Half the width of each interval. Raises TooMany."""
    found = classes(noises, [number])
    return _reaches(noises, found, found.coefficients[0], outside)[found.of] * found.scales[0]


def linear_bounds(noises: Noises, number: LinearColumn, outside: Fraction) -> tuple[Floats, Floats]:
    """(low, high) of each row. Raises TooMany."""
    value, error = number.valued()
    reach = widths(noises, number, outside) + error
    return value - reach, value + reach


def quotient_bounds(
    noises: Noises, above: LinearColumn, below: LinearColumn, outside: Fraction, nonnegative: bool
) -> tuple[Floats, Floats, Flags]:
    """(low, high) of each row, and where the divisor may be 0, so that there is none. Raises TooMany.

    nonnegative: without noise the divisor is never below 0.
    """
    found = classes(noises, [above, below])
    (a, a_error), (b, b_error) = above.valued(), below.valued()
    noisy = a / found.scales[0], b / found.scales[1]
    errors = a_error / found.scales[0], b_error / found.scales[1]
    moments = _Moments.of(noises, found)
    low, high, zero = np.zeros(len(a)), np.zeros(len(a)), np.zeros(len(a), dtype=np.bool_)
    for own in (moments.units > _COARSE, moments.units <= _COARSE):
        chosen = np.flatnonzero(own)
        rows = np.flatnonzero(own[found.of])
        if not len(rows):
            continue
        norms = _Norms.of(noises, found, chosen, moments, outside)
        place = np.cumsum(own) - 1
        most = max(1, _AT_ONCE // norms.x.shape[1])
        for i in range(0, len(rows), most):
            at = rows[i : i + most]
            own_noisy, own_errors = ((x[at], y[at]) for x, y in (noisy, errors))
            low[at], high[at], zero[at] = norms.solved(place[found.of[at]], own_noisy, own_errors, nonnegative)
    # The same noise above and below cancels altogether.
    same = moments.same[found.of]
    exactly = (moments.ab / moments.bb)[found.of]
    same &= np.abs(noisy[0] - exactly * noisy[1]) <= errors[0] + np.abs(exactly) * errors[1] + MARGIN * np.abs(noisy[0])
    low, high = np.where(same, exactly, low), np.where(same, exactly, high)
    ratio = found.scales[0] / found.scales[1]
    return low * ratio, high * ratio, zero


def _reaches(noises: Noises, found: NoiseClasses, coefficients: Floats, outside: Fraction) -> Floats:
    if len(coefficients) > _MOST_CLASSES:
        raise TooMany
    return reaches(noises.laws, found.law, found.count, coefficients, float(outside))


@dataclass(frozen=True, slots=True)
class _Moments:
    """Variances and covariance of each class; where a number has no noise, a variance of 1 stands for it.

    units: the largest unit, in deviations. same: the noise of a is that of b, but for a factor.
    """

    aa: Floats
    ab: Floats
    bb: Floats
    units: Floats
    same: Flags

    @classmethod
    def of(cls, noises: Noises, found: NoiseClasses) -> _Moments:
        a, b = found.coefficients
        variances = np.array([m.variance() for m in noises.laws])[found.law] if noises.laws else np.ones(a.shape)
        weights = np.maximum(variances, 1e-6) * found.count
        aa, ab, bb = ((weights * p * q).sum(axis=1) for p, q in ((a, a), (a, b), (b, b)))
        same = (aa > 0) & (bb > 0) & (aa * bb - ab**2 <= 1e-12 * aa * bb)
        aa, bb = np.where(aa > 0, aa, 1.0), np.where(bb > 0, bb, 1.0)
        largest = [np.abs(c * (found.count > 0)).max(axis=1) / np.sqrt(v) for c, v in ((a, aa), (b, bb))]
        return cls(aa, ab, bb, np.maximum(*largest), same)


@dataclass(frozen=True, slots=True)
class _Norms:
    """w(x, y) of each class (rows) in its directions (columns), from (0, 1) by x > 0 to (0, -1)."""

    x: Floats
    y: Floats
    w: Floats

    @classmethod
    def of(cls, noises: Noises, found: NoiseClasses, chosen: Places, moments: _Moments, outside: Fraction) -> _Norms:
        """Of these classes, whose units are all coarse or all fine."""
        a, b = (c[chosen] for c in found.coefficients)
        law, count = found.law[chosen], found.count[chosen]
        aa, ab, bb, units = (m[chosen] for m in (moments.aa, moments.ab, moments.bb, moments.units))
        # Of two numbers with the same noise a direction has none: it is kept from being infinitely long.
        rest = np.maximum(bb - ab**2 / aa, bb * 1e-12)
        coarse = units > _COARSE
        number = _MANY_DIRECTIONS if coarse.any() else _DIRECTIONS
        angles = (np.arange(number) + 0.5) * math.pi / number - math.pi / 2
        # x·a + y·b of deviation 1: y = sin/√rest, and x is what is left of it.
        y = np.sin(angles) / np.sqrt(rest)[:, None]
        x = (np.cos(angles) - (ab / np.sqrt(aa))[:, None] * y) / np.sqrt(aa)[:, None]
        x, y = x * np.where(x < 0, -1, 1), y * np.where(x < 0, -1, 1)
        order = np.argsort(-y / np.maximum(x, 1e-300), axis=1)
        x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
        upright = np.stack([np.zeros(len(a)), 1 / np.sqrt(bb)])[:, :, None]
        x, y = np.concatenate([upright[0], x], axis=1), np.concatenate([upright[1], y], axis=1)
        mixed = x[:, :, None] * a[:, None, :] + y[:, :, None] * b[:, None, :]
        if len(a) * number > _MOST_CLASSES * _DIRECTIONS:
            raise TooMany
        laws, counts = (np.repeat(each, number + 1, axis=0) for each in (law, count))
        w = reaches(noises.laws, laws, counts, mixed.reshape(-1, a.shape[1]), float(outside)).reshape(x.shape)
        x, y = np.concatenate([x, upright[0]], axis=1), np.concatenate([y, -upright[1]], axis=1)
        beside = np.concatenate([w[:, -1:], w, w[:, :1], w[:, 1:2]], axis=1)
        w = np.concatenate([w, w[:, :1]], axis=1)
        wider = np.maximum(np.maximum(beside[:, :-2], beside[:, 2:]), w)
        wider = wider * (1 + math.pi / number * np.minimum(units, 1.2))[:, None]
        return cls(x, y, np.where(coarse[:, None], wider, w) * (1 + MARGIN))

    def solved(
        self, of: Places, noisy: tuple[Floats, Floats], errors: tuple[Floats, Floats], nonnegative: bool
    ) -> tuple[Floats, Floats, Flags]:
        """The ends of what is accepted, and where there are none."""
        a, b = noisy
        x, y, w = self.x[of], self.y[of], self.w[of]
        w = w + np.abs(x) * errors[0][:, None] + np.abs(y) * errors[1][:, None]
        own = w[:, 0] / y[:, 0]
        zero = (b <= own) if nonnegative else (np.abs(b) <= own)
        sign = np.where(b < 0, -1.0, 1.0)
        f = (x * a[:, None] + y * b[:, None]) * sign[:, None]
        # From above w, where r is far below the quotient, to below -w.
        rows = np.arange(len(a))
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.maximum((f <= w).argmax(axis=1), 1)
            low = _between(x, y, f - w, rows, inside - 1, inside)
            last = f.shape[1] - 1
            inside = np.minimum(last - (-f <= w)[:, ::-1].argmax(axis=1), last - 1)
            high = _between(x, y, -f - w, rows, inside + 1, inside)
        return low - np.abs(low) * MARGIN, high + np.abs(high) * MARGIN, zero


def _between(x: Floats, y: Floats, excess: Floats, rows: Places, outer: Places, inner: Places) -> Floats:
    """The quotient in the direction between two in which what is in excess becomes 0."""
    over, under = excess[rows, outer], excess[rows, inner]
    part = np.clip(over / (over - under), 0.0, 1.0)
    at = [(1 - part) * c[rows, outer] + part * c[rows, inner] for c in (x, y)]
    found: Floats = -at[1] / at[0]
    return found
