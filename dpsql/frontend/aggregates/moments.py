"""Covariances and regressions from noisy integers: exact arithmetic on public numbers, a whole column at a time.

*Claim.* Each number is the one that the formula gives in fractions, rounded once, a root once more. *Why.* Numerators
and denominators are Python integers. *Tested by* tests/frontend/aggregates/test_covariances.py, against fractions.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np

from dpsql.core.noise.integer_columns import Array, Floats, Integers, quotients

if TYPE_CHECKING:
    from dpsql.core.noise.measurement import Measurement
    from dpsql.core.release.noisy import NoisyRelease
    from dpsql.frontend.aggregates.covariance import Covariance, Moment, Regression

_LARGEST = sys.float_info.max


class Exact:
    """The noisy numbers of a release. With e the denominator of the count's unit, n = N/e.

    It divides as if it were at least `least`; the shift of each product is put back for as many rows as were counted,
    so that of no row nothing is left.
    """

    def __init__(self, noisy: NoisyRelease, count: int, least: int) -> None:
        self._noisy = noisy
        unit = self._measured(count).unit
        self._e = unit.denominator
        self._counted = self._column(count) * unit.numerator
        self._n = np.maximum(self._counted, least * self._e)

    def _measured(self, place: int) -> Measurement:
        return self._noisy.planned.measured.measurements[place]

    def _column(self, place: int) -> Array:
        return self._noisy.columns[place].array.astype(object)

    def moment(self, m: Moment) -> tuple[Array, int]:
        """n·Σab - Σa·Σb: integers, and the one number to divide them by."""
        first, second, product = map(self._measured, (m.first, m.second, m.product))
        middle = product.component.shift * product.component.worth
        of_product, of_count = product.unit / self._e, middle / self._e**2
        of_sums = first.unit * second.unit
        whole = math.lcm(of_product.denominator, of_count.denominator, of_sums.denominator)
        found = self._n * (self._column(m.product) * int(of_product * whole) + self._counted * int(of_count * whole))
        return found - self._column(m.first) * self._column(m.second) * int(of_sums * whole), whole

    def _mean(self, place: int) -> tuple[Array, int]:
        """n times the mean of a sum's values: integers of e·n, and the one number to divide them by."""
        m = self._measured(place)
        center, unit = m.component.center * m.component.grid, m.unit * self._e
        whole = math.lcm(center.denominator, unit.denominator)
        return self._n * int(center * whole) + self._column(place) * int(unit * whole), whole

    def covariance(self, recipe: Covariance) -> Floats:
        """The moment over n², n·(n-1) or n."""
        (moment,) = recipe.moments
        above, whole = self.moment(moment)
        e, n = self._e, self._n
        below = n if recipe.over == "sum" else n * (n - e if recipe.over == "samp" else n)
        found = _divided(above * (e if recipe.over == "sum" else e * e), below * whole)
        top = _LARGEST if recipe.greatest is None else float(recipe.greatest)
        shown: Floats = np.clip(found, 0.0 if recipe.square else -top, top)
        return shown

    def regression(self, recipe: Regression) -> Floats:
        """Its number; NaN where a noisy moment that it divides by is not above 0."""
        moments = [self.moment(m) for m in recipe.moments]
        (yx, a), (xx, b) = moments[:2]
        missing = xx <= 0
        match recipe.number:
            case "slope":
                above, below = yx * b, xx * a
            case "intercept":
                (y, c), (x, d) = self._mean(recipe.moments[0].first), self._mean(recipe.moments[0].second)
                above, below = y * (xx * (a * d)) - x * (yx * (b * c)), self._n * (xx * (a * c * d))
            case _:
                ((yy, c),) = moments[2:]
                missing = missing | (yy <= 0)
                above, below = yx * yx * (b * c), xx * yy * a**2
        missing = missing.astype(np.bool_)
        found = _divided(np.where(missing, 0, above), np.where(missing, 1, below))
        if recipe.number in ("corr", "r2"):
            found = np.minimum(found, 1.0)
        if recipe.number == "corr":
            found = np.where((yx < 0).astype(np.bool_), -1.0, 1.0) * np.sqrt(found)
        shown: Floats = np.where(missing, np.nan, np.clip(found, -_LARGEST, _LARGEST))
        return shown


def _divided(above: Array, below: Array) -> Floats:
    return quotients(Integers(above), Integers(below))
