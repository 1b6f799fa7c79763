"""What a member is told of a number: its value in the type of its column, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.core.ir.types import Kind, SqlType
from dpsql.frontend.aggregates.formula import Bounds
from dpsql.frontend.aggregates.intervals.outward_rounding import above, below
from dpsql.planner.batch.estimate import Measured, Parts, half_width
from dpsql.planner.batch.quantities import Form, LinearNumber, Quantity
from dpsql.planner.batch.workload import Marginal, Number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Cells = Mapping[Marginal, "NDArray[np.float64]"]
"""The noisy cells of each marginal."""


@dataclass(frozen=True, slots=True)
class ToldNumber:
    """A number of an answer. rows: which rows it counts. measured: of each quantity, what was measured, or will be."""

    form: Form
    rows: Number
    type: SqlType
    measured: Mapping[Quantity, Measured]

    def _noise(self, *terms: tuple[Quantity, float]) -> Parts:
        return [part for q, factor in terms if q in self.measured for part in self.measured[q].parts(self.rows, factor)]

    def variance(self) -> float | None:
        """Of the estimate; None of a mean, which depends on the data."""
        if not isinstance(self.form, LinearNumber):
            return None
        terms = [(q, factor) for q, factor in self.form.terms if q in self.measured]
        return sum(float(factor) ** 2 * self.measured[q].variance(self.rows) for q, factor in terms)

    def width(self, level: float) -> float:
        """t with P(|error| ≤ t) ≥ level. Of a mean that of its total, which is to be divided by the number of rows."""
        if isinstance(self.form, LinearNumber):
            return half_width(self._noise(*((q, float(factor)) for q, factor in self.form.terms)), level)
        return half_width(self._noise((self.form.total, 1.0), (self.form.count, float(self.form.reach))), level)

    def values(self, cells: Mapping[Quantity, Cells]) -> tuple[float, ...]:
        """The estimate; of a mean that of its total, and that of its count."""
        if isinstance(self.form, LinearNumber):
            return (sum(float(factor) * self._estimate(q, cells) for q, factor in self.form.terms),)
        return self._estimate(self.form.total, cells), self._estimate(self.form.count, cells)

    def _estimate(self, of: Quantity, cells: Mapping[Quantity, Cells]) -> float:
        return self.measured[of].estimate(self.rows, cells[of]) if of in cells else 0.0

    def shown(self, values: tuple[float, ...]) -> int | Decimal | float:
        """What the answer says."""
        if isinstance(self.form, LinearNumber):
            return _of_type(values[0], self.type)
        total, count = values
        mean = float(self.form.total.center) + total / max(1.0, count)
        return min(max(mean, float(self.form.lo)), float(self.form.hi))

    def bounds(self, values: tuple[float, ...], level: float) -> Bounds:
        """(low, high) that hold the true number at this confidence, and what is shown."""
        shown = self.shown(values)
        if isinstance(self.form, LinearNumber):
            width = self.width(level)
            if isinstance(shown, float):
                return shown - width, shown + width
            step = _step(self.type)
            reach = (math.ceil(width / float(step) + 0.5)) * step
            if isinstance(shown, int) and isinstance(reach, int):
                return shown - reach, shown + reach
            return below(Fraction(shown) - Fraction(reach)), above(Fraction(shown) + Fraction(reach))
        return self.mean_bounds(values, self.mean_widths(level))

    def mean_widths(self, level: float) -> tuple[float, float]:
        """w(0) and w(reach) of `mean_bounds`."""
        assert not isinstance(self.form, LinearNumber)
        return half_width(self._noise((self.form.total, 1.0)), level), self.width(level)

    def mean_bounds(self, values: tuple[float, ...], widths: tuple[float, float]) -> Bounds:
        """The hull of all θ that the test |total - θ·count| ≤ w(θ) does not reject (Fieller 1954).

        w(θ), the quantile of |error of the total - θ·error of the count|, is convex in θ (Meyer & Reisner 1991 for
        symmetric log-concave noise), and even: so it lies below the line from w(0) to w at the reach, on either side.
        With that line in its place no θ is rejected that w(θ) would not reject, and what is left are inequalities of
        the first degree. Where all are rejected, all are given.
        """
        form, (total, count), (base, furthest) = self.form, values, widths
        assert not isinstance(form, LinearNumber)
        reach, center = float(form.reach), float(form.total.center)
        steep = max(0.0, furthest - base) / reach if reach else 0.0
        found: list[float] = []
        for sign in (1.0, -1.0):  # θ = sign·t with 0 ≤ t ≤ reach
            low, high = 0.0, reach
            # sign·total - t·count ≤ base + steep·t, and its opposite
            for slope, limit in ((count + steep, sign * total - base), (steep - count, -sign * total - base)):
                if slope > 0:
                    low = max(low, limit / slope)
                elif slope < 0:
                    high = min(high, limit / slope)
                elif limit > 0:
                    high = -1.0
            if low <= high:
                found += [sign * low, sign * high]
        found = found or [-reach, reach]
        ends = float(form.lo), float(form.hi)
        shown = float(self.shown(values))
        low, high = max(ends[0], center + min(found)), min(ends[1], center + max(found))
        return min(low, shown), max(high, shown)


def _step(type_: SqlType) -> int | Decimal:
    return Decimal(1).scaleb(-type_.scale) if type_.kind is Kind.DECIMAL and type_.scale else 1


def _of_type(value: float, type_: SqlType) -> int | Decimal | float:
    if type_.kind is Kind.DOUBLE:
        return value
    if type_.kind is Kind.DECIMAL:
        return Decimal(round(value * 10**type_.scale)).scaleb(-type_.scale)
    return round(value)
