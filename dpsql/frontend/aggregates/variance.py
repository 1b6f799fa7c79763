"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP: a centred sum, a sum of squares and a count.

Intervals: `intervals/variance_intervals.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, ProductSum, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.core.numbers.interval import Interval, interval
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.arguments import CLIP, bounded
from dpsql.frontend.aggregates.count import counted
from dpsql.frontend.aggregates.formula import Bounds, Formula

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Floats
    from dpsql.core.release.noisy import NoisyRelease


@dataclass(frozen=True, slots=True)
class Variance(Formula):
    """From Σy, Σy² and the count (y = x - center).

    v = Σy²/n - (Σy/n)², clamped to [0, (hi-lo)²/4]; of a sample times n/(n-1); root: its square root (STDDEV).
    lo, hi: ends of the argument.
    """

    sum: int
    squares: int
    count: int
    lo: Fraction
    hi: Fraction
    sample: bool = False
    root: bool = False

    @property
    def components(self) -> tuple[int, ...]:
        """The sum, the squares, the count."""
        return self.sum, self.squares, self.count

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the components at other places."""
        return replace(self, sum=to[self.sum], squares=to[self.squares], count=to[self.count])

    @property
    def top(self) -> Fraction:
        """The largest variance that values in [lo, hi] can have (Popoviciu); of a sample of two, twice that."""
        return (self.hi - self.lo) ** 2 / (2 if self.sample else 4)

    @property
    def greatest(self) -> float:
        """The largest number that can be released."""
        return math.sqrt(self.top) if self.root else float(self.top)

    @property
    def span(self) -> Interval:
        """What it is clamped to."""
        return interval(Fraction(0), Fraction(self.greatest))

    def values(self, noisy: NoisyRelease, type_: SqlType) -> list[object]:
        """Rounded once, a root once more."""
        return list(self._shown(noisy).tolist())

    def _shown(self, noisy: NoisyRelease) -> Floats:
        from dpsql.frontend.aggregates.released_numbers import variances

        total, squares, count = (noisy.planned.measured.measurements[i] for i in self.components)
        middle = squares.component.shift * squares.component.worth
        s, q, n = (noisy.columns[i] for i in self.components)
        return variances(s, q, n, (total.unit, squares.unit, count.unit), self, middle)

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """From 0 to the largest that there can be."""
        from dpsql.frontend.aggregates.intervals.variance_intervals import VarianceIntervals
        from dpsql.frontend.aggregates.released_numbers import holding

        total, squares, count = (noisy.planned.measured.measurements[i] for i in self.components)
        s, q, n = (noisy.columns[i] for i in self.components)
        return holding(VarianceIntervals(total, squares, count, self, level)(s, q, n), self._shown(noisy))

    @property
    def rows(self) -> int:
        """Its count."""
        return self.count

    def with_missing(self, ends: tuple[Floats, Floats], part: Floats, counted: Floats) -> tuple[Floats, Floats]:
        """v is (1 - f)·v₁ + f·v₂ + f·(1 - f)·(m₁ - m₂)², with v₂ ≤ R²/4 and |m₁ - m₂| ≤ R, R the width of the bounds.

        Of a sample each is n/(n - 1) times that of all, which is most for the least n.
        """
        import numpy as np

        low, high = (end**2 if self.root else end for end in ends)
        most, part = float((self.hi - self.lo) ** 2), np.minimum(part, 0.5)  # from there on R²/4 is less
        factor = counted / np.maximum(counted - 1, 1e-9) if self.sample else np.ones(len(counted))
        few = self.sample & (counted < 2)
        low = np.where(few, 0.0, (1 - part) * low / factor)
        high = np.minimum(most / 4, (1 - part) * high + part * most / 4 + part * (1 - part) * most)
        high = np.minimum(float(self.top), np.where(few, float(self.top), high * factor))
        return (np.sqrt(low), np.sqrt(high)) if self.root else (low, high)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Always."""
        return True

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As its sum of squares."""
        return spread[self.squares]

    @property
    def as_mean(self) -> tuple[int, Fraction]:
        """The squares, in half of what they can be."""
        return self.squares, self.top / 2


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Variance:
    value = bounded(call, facts)
    lo, hi = value.interval.lo, value.interval.hi
    arg = call.arg
    assert arg is not None and lo is not None and hi is not None
    if (hi - lo) ** 2 >= 2**1023:
        raise reject(
            "DP410", f"{call.function.upper()} of these bounds could be larger than any DOUBLE", span=call.span,
            help=[CLIP],
        )  # fmt: skip
    total = shared(ValueSum(arg, call.filter, contribution=Weighing.PAIRED))
    squares = shared(ProductSum(arg, call.filter))
    count = shared(counted(call.arg, call, facts))
    sample, root = call.function.endswith("samp"), call.function.startswith("stddev")
    return Variance(total, squares, count, Fraction(lo), Fraction(hi), sample, root)


VARIANCES = tuple(
    AggregateFunction(name, f"{name}(x: number) → double", f"{summary}; x needs bounds.", lambda arg: DOUBLE, _bind)
    for name, summary in (
        ("var_pop", "Population variance"),
        ("var_samp", "Sample variance"),
        ("stddev_pop", "Population standard deviation"),
        ("stddev_samp", "Sample standard deviation"),
    )
)
