"""DP_INTERVAL_LOW and DP_INTERVAL_HIGH: an end of the 95 % confidence interval of another aggregate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.ir.components import Component
from dpsql.core.ir.types import SqlType
from dpsql.core.numbers.confidence import LEVEL
from dpsql.frontend.aggregates.formula import Bounds, Formula, Parts

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease


@dataclass(frozen=True, slots=True)
class End(Formula):
    """The lower or upper end of the interval of another formula: post-processing of the same noisy numbers."""

    no_interval: ClassVar[str | None] = ""

    of: Formula
    high: bool

    @property
    def components(self) -> tuple[int, ...]:
        """Those of the other."""
        return self.of.components

    @property
    def own(self) -> tuple[int, ...]:
        """Those of the other."""
        return self.of.own

    @property
    def splits(self) -> bool:
        """As the other."""
        return self.of.splits

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the components at other places."""
        return replace(self, of=self.of.moved(to))

    def values(self, noisy: NoisyRelease, type_: SqlType) -> list[object]:
        """The end of each interval; NULL where there is none."""
        ends = (bounds[self.high] for bounds in self.of.intervals(noisy, LEVEL))
        return [end if math.isfinite(end) else None for end in ends]

    @property
    def nullable(self) -> bool:
        """Where there is no interval, or one without ends."""
        return True

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """The whole of it."""
        return self.of.intervals(noisy, level)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Not known."""
        return False

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As the other."""
        return self.of.variance(components, spread)

    def with_count(self, centred: Callable[[int], tuple[int, int] | None]) -> Self:
        """As the other."""
        return replace(self, of=self.of.with_count(centred))

    def with_parts(self, parts: Parts) -> Self:
        """As the other."""
        return replace(self, of=self.of.with_parts(parts))
