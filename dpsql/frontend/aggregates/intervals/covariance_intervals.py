"""Confidence intervals of covariances and regressions: what the intervals of their components allow.

Each of the m noisy components has an interval of its own at 1 - (1 - level)/m; all hold at once with the level, however
they depend on each other (Bonferroni). The interval of a covariance is its range over that box, which is exact: with
k = 1/n it is k·q - k²·s·t, increasing in q, bilinear in s and t, quadratic in k; below the least n that is divided by
only the shift of the products, `middle` for each row, still depends on n. Quotients of covariances enclose: they
have no interval where the denominator's holds 0.

Everything is computed in half widths of the arguments' bounds, so that no bounds are too wide or too narrow for
floating-point numbers, and rounded outwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpsql.core.noise.integer_columns import Floats

if TYPE_CHECKING:
    from dpsql.core.noise.measurement import Measurement
    from dpsql.core.release.noisy import NoisyRelease
    from dpsql.frontend.aggregates.covariance import Covariance, Moment, Regression

Hull = tuple[Floats, Floats]
_ROOM = 2.0**-46
"""More than all roundings on the way, relative to the largest term."""


class Boxes:
    """Simultaneous intervals of the components of one output."""

    def __init__(self, noisy: NoisyRelease, components: Sequence[int], count: int, least: int, level: Fraction) -> None:
        self._noisy = noisy
        several = sum(self._measured(i).known is None for i in components)
        self._each = 1 - (1 - level) / max(1, several)
        low, high = self._box(count, Fraction(1))
        self._n = np.maximum(low, float(least)), np.maximum(high, float(least))
        # Which part of the least number there may be, at least and at most.
        self._fewest, self._reached = np.clip(low / least, 0.0, 1.0), np.clip(high / least, 0.0, 1.0)

    def _measured(self, place: int) -> Measurement:
        return self._noisy.planned.measured.measurements[place]

    def _box(self, place: int, worth: Fraction) -> Hull:
        """A component's interval, in units of so much."""
        m = self._measured(place)
        values = self._noisy.columns[place].floats() * float(m.unit / worth)
        width = 0.0 if m.known is not None else float(m.noise.half_width(self._each) * m.unit / worth)
        return _out(values - width, values + width, np.abs(values) + width)

    def _sums(self, m: Moment) -> tuple[Hull, Hull]:
        """Σab, less its middle, and Σa·Σb."""
        a, b = (width / 2 or Fraction(1) for width in m.widths)
        q, s = self._box(m.product, a * b), self._box(m.first, a)
        return q, _squared(s) if m.first == m.second else _times(s, self._box(m.second, b))

    def _middle(self, m: Moment) -> float:
        component = self._measured(m.product).component
        a, b = (width / 2 or Fraction(1) for width in m.widths)
        return float(component.shift * component.worth / (a * b))

    def _of_rows(self, m: Moment) -> Hull:
        """The population covariance, in a quarter of the product of the widths."""
        q, p = self._sums(m)
        middle, k = self._middle(m), (1 / self._n[1], 1 / self._n[0])

        def ends(q: Floats, p: Floats) -> list[Floats]:
            turn = np.divide(q, 2 * p, out=np.zeros_like(q), where=p != 0)
            whole = [middle * self._reached + at * q - at * at * p for at in (*k, np.clip(turn, *k))]
            return [*whole, middle * self._fewest + k[1] * q - k[1] ** 2 * p]

        low, high = np.minimum.reduce(ends(q[0], p[1])), np.maximum.reduce(ends(q[1], p[0]))
        room = abs(middle) + k[1] * np.maximum(*map(np.abs, q)) + k[1] ** 2 * np.maximum(*map(np.abs, p))
        return _out(low, high, room)

    def covariance(self, recipe: Covariance) -> Hull:
        """Over n², n·(n-1) or n."""
        (m,) = recipe.moments
        if recipe.over == "sum":
            return self._total(recipe)
        n, top = self._n, float(m.top)
        low, high = self._of_rows(m)
        if recipe.over == "samp":
            low, high = _times((low, high), (n[1] / (n[1] - 1), n[0] / (n[0] - 1)))
        low, high = _out(low * top, high * top, np.maximum(np.abs(low), np.abs(high)) * top)
        most = float(recipe.greatest or 0)
        least = 0.0 if recipe.square else -most
        return np.clip(low, least, most), np.clip(high, least, most)

    def _total(self, recipe: Covariance) -> Hull:
        """middle·n + q - p/n."""
        (m,) = recipe.moments
        q, p = self._sums(m)
        middle, n, top = self._middle(m), self._n, float(m.top)

        def ends(q: Floats, p: Floats) -> list[Floats]:
            turn = np.sqrt(np.maximum(-p / middle, 0.0)) if middle else n[0]
            whole = [middle * at * self._reached + q - p / at for at in (*n, np.clip(turn, *n))]
            return [*whole, middle * self._fewest * n[0] + q - p / n[0]]

        low, high = np.minimum.reduce(ends(q[0], p[1])), np.maximum.reduce(ends(q[1], p[0]))
        room = abs(middle) * n[1] + np.maximum(*map(np.abs, q)) + np.maximum(*map(np.abs, p)) / n[0]
        low, high = _out(low, high, room)
        low, high = _out(low * top, high * top, np.maximum(np.abs(low), np.abs(high)) * top)
        return (np.maximum(low, 0.0), np.maximum(high, 0.0)) if recipe.square else (low, high)

    def regression(self, recipe: Regression) -> Hull:
        """Its number; NaN where a variance that it divides by may be 0."""
        yx, xx = recipe.moments[:2]
        c, v = self._of_rows(yx), self._of_rows(xx)
        lost = v[0] <= 0
        if recipe.number in ("corr", "r2"):
            w = self._of_rows(recipe.moments[2])
            lost = lost | (w[0] <= 0)
            v = np.sqrt(v[0] * w[0]), np.sqrt(v[1] * w[1])
        low, high = _times(c, (1 / v[1], 1 / np.where(lost, 1.0, v[0])))
        low, high = _out(low, high, np.maximum(np.abs(low), np.abs(high)))
        match recipe.number:
            case "corr":
                low, high = np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
            case "r2":
                low, high = _squared((np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)))
            case _:
                a, b = yx.widths
                per = _nearest(a / b) if b else 1.0
                low, high = low * per, high * per
                if recipe.number == "intercept":
                    low, high = self._intercept(yx, (low, high))
        return np.where(lost, np.nan, low), np.where(lost, np.nan, high)

    def _mean(self, place: int, width: Fraction) -> Hull:
        component, half = self._measured(place).component, width / 2 or Fraction(1)
        k = 1 / self._n[1], 1 / self._n[0]
        low, high = _times(self._box(place, half), k)
        center, half_ = float(component.center * component.grid), float(half)
        room = abs(center) + half_ * np.maximum(np.abs(low), np.abs(high))
        return _out(center + half_ * low, center + half_ * high, room)

    def _intercept(self, yx: Moment, slope: Hull) -> Hull:
        y, x = self._mean(yx.first, yx.widths[0]), self._mean(yx.second, yx.widths[1])
        below = _times(slope, x)
        room = np.maximum(*map(np.abs, y)) + np.maximum(*map(np.abs, below))
        return _out(y[0] - below[1], y[1] - below[0], room)


def _out(low: Floats, high: Floats, size: Floats) -> Hull:
    return low - _ROOM * size, high + _ROOM * size


def _nearest(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return np.inf


def _times(a: Hull, b: Hull) -> Hull:
    corners = np.stack([x * y for x in a for y in b])
    return corners.min(axis=0), corners.max(axis=0)


def _squared(a: Hull) -> Hull:
    low, high = np.minimum(a[0] ** 2, a[1] ** 2), np.maximum(a[0] ** 2, a[1] ** 2)
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, low), high
