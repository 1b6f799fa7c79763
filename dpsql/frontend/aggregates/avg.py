"""AVG(x): a centred sum and a count.

No noise is drawn here: both components get theirs in core/release/noisy.py (`_noised`), and `Ratio.values` divides.

Intervals: `intervals/mean_intervals.py`; over a public number of rows only the sum is noisy, and its interval is
divided by that number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, DistinctCount, DistinctSum, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.recipes import Terms
from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.core.numbers.interval import Interval, interval
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.arguments import bounded
from dpsql.frontend.aggregates.count import counted
from dpsql.frontend.aggregates.formula import Bounds, Formula
from dpsql.frontend.aggregates.intervals.outward_rounding import above, below
from dpsql.frontend.aggregates.weighted_sum import squared

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Floats
    from dpsql.core.noise.measurement import Measurement
    from dpsql.core.release.noisy import NoisyRelease


@dataclass(frozen=True, slots=True)
class Ratio(Formula):
    """center + sum / max(1, count), clamped to [lo, hi]."""

    to_plan: ClassVar[str] = "select the SUM and the COUNT that it is made of, too, and name those in max_error"

    sum: int
    count: int
    lo: Fraction
    hi: Fraction

    @property
    def components(self) -> tuple[int, ...]:
        """The sum, then the count."""
        return self.sum, self.count

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the components at other places."""
        return replace(self, sum=to[self.sum], count=to[self.count])

    @property
    def span(self) -> Interval:
        """What it is clamped to: rounding keeps the order."""
        return interval(Fraction(float(self.lo)), Fraction(float(self.hi)))

    def noisy_terms(self, components: Sequence[Component], known: Sequence[int | None]) -> Terms | None:
        """Over a public number of rows the sum alone."""
        rows = known[self.count]
        if rows is None:
            return None
        s, n = components[self.sum], components[self.count]
        return ((self.sum, s.worth / s.weight / max(Fraction(1), rows * n.worth / n.weight)),)

    def values(self, noisy: NoisyRelease, type_: SqlType) -> list[object]:
        """Rounded once."""
        return list(self._shown(noisy).tolist())

    def _shown(self, noisy: NoisyRelease) -> Floats:
        from dpsql.frontend.aggregates.released_numbers import averages

        total, count = (noisy.planned.measured.measurements[i] for i in self.components)
        center = total.component.center * total.component.grid
        units = total.unit, count.unit
        return averages(noisy.columns[self.sum], noisy.columns[self.count], units, center, (self.lo, self.hi))

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """Within the bounds of the column."""
        from dpsql.frontend.aggregates.intervals.mean_intervals import AverageIntervals
        from dpsql.frontend.aggregates.released_numbers import holding

        total, count = (noisy.planned.measured.measurements[i] for i in self.components)
        if count.known is not None:
            return _over_known(total, count, self, level, noisy.columns[self.sum])
        found = AverageIntervals(total, count, self.lo, self.hi, level)
        return holding(found(noisy.columns[self.sum], noisy.columns[self.count]), self._shown(noisy))

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Where no value is negative."""
        return self.lo >= 0

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As if the group were large and its true mean anywhere in its bounds alike: E θ² of a centred mean."""
        return spread[self.sum] + squared((self.hi - self.lo) / 2) / 3 * spread[self.count]

    @property
    def rows(self) -> int:
        """Its count."""
        return self.count

    def with_missing(self, ends: tuple[Floats, Floats], part: Floats, counted: Floats) -> tuple[Floats, Floats]:
        """1 - f times what is there, and f times one within the bounds."""
        low, high = ends
        return low - part * (low - below(self.lo)), high + part * (above(self.hi) - high)

    @property
    def as_mean(self) -> tuple[int, Fraction]:
        """The sum, in half the bounds."""
        return self.sum, (self.hi - self.lo) / 2


def _over_known(
    total: Measurement, count: Measurement, ratio: Ratio, level: Fraction, totals: Sequence[int]
) -> list[Bounds]:
    """Averages over a public number of rows, within the bounds [lo, hi] of the column; [lo, hi] if outside of them."""
    import numpy as np

    from dpsql.core.noise.integer_columns import Integers
    from dpsql.frontend.aggregates.released_numbers import around, shifted

    assert count.known is not None
    center = total.component.center * total.component.grid
    unit = total.unit / max(Fraction(1), count.known * count.unit)
    sums, width = Integers.of(totals), total.noise.half_width(level) * unit
    low, high = around(sums, unit, center, width)
    ends = below(ratio.lo), above(ratio.hi)
    # Outside: low > hi or high < lo, compared exactly.
    over, under = shifted(sums, unit, center - width)
    outside = over.array > math.floor(ratio.hi * under)
    over, under = shifted(sums, unit, center + width)
    outside = outside | (over.array < math.ceil(ratio.lo * under))
    low = np.where(outside, ends[0], np.maximum(low, ends[0]))
    high = np.where(outside, ends[1], np.minimum(high, ends[1]))
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Ratio:
    value = bounded(call, facts)
    assert call.arg is not None and value.interval.lo is not None and value.interval.hi is not None
    low, high = Fraction(value.interval.lo), Fraction(value.interval.hi)
    if call.distinct:
        total = shared(DistinctSum(call.arg, call.filter, contribution=Weighing.PAIRED))
        count = shared(DistinctCount(call.arg, call.filter))
        return Ratio(total, count, low, high)
    total = shared(ValueSum(call.arg, call.filter, contribution=Weighing.PAIRED))
    return Ratio(total, shared(counted(call.arg, call, facts)), low, high)


AVG = AggregateFunction(
    "avg",
    "avg(x: number) → double",
    "Mean; x needs bounds, declared or by CLIP(x, low, high). DISTINCT takes each value of a group once.",
    lambda arg: DOUBLE,
    _bind,
    distinct=True,
)
