"""Aggregates that are weighted sums of their components: counts and sums.

Their interval is value ± the exact quantile of the discrete noise, so that the coverage is at least the level.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.accuracy.widths import linear_width
from dpsql.core.ir.components import Component
from dpsql.core.ir.recipes import Terms
from dpsql.core.ir.types import SqlType
from dpsql.frontend.aggregates.formula import Bounds, Formula

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease

_LARGEST = Fraction(10**150)


def chose_itself(terms: Terms, chose: int | None) -> bool:
    """Whether a number is that which decided on its group, and nothing else. chose: the place of the latter."""
    return chose is not None and len(terms) == 1 and terms[0][0] == chose and terms[0][1] > 0


class WeightedSum(Formula):
    """Σ worth · integer over some components."""

    __slots__ = ()

    @abstractmethod
    def terms(self, components: Sequence[Component]) -> Terms:
        """Components, each with what one of its integers is worth."""

    def values(self, noisy: NoisyRelease, type_: SqlType) -> Sequence[object]:
        """Exact where the type is, else rounded once."""
        from dpsql.frontend.aggregates.released_numbers import linear, typed

        parts = self.terms(noisy.planned.measured.node.components)
        return typed(*linear(parts, noisy.columns, len(noisy.keys)), type_)

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """The value less and plus one width; less more where it decided itself that it is shown."""
        from dpsql.frontend.aggregates.numbers_that_chose import lower_ends
        from dpsql.frontend.aggregates.released_numbers import around, linear

        measurements = noisy.planned.measured.measurements
        width = linear_width(self, measurements, level)
        assert width is not None
        terms = self.terms([m.component for m in measurements])
        values, whole = linear(terms, noisy.columns, len(noisy.keys))
        low, high = around(values, Fraction(1, whole), Fraction(0), width)
        low = lower_ends(noisy, terms, low, level)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """That of independent terms."""
        unit = {i: components[i].worth / components[i].weight for i, _ in self.terms(components)}
        return sum(squared(worth / unit[i]) * spread[i] for i, worth in self.terms(components))


def squared(x: Fraction) -> float:
    """x², at most 1e300, which a float can hold: of two forms with such errors neither is of use."""
    return float(min(abs(x), _LARGEST)) ** 2
