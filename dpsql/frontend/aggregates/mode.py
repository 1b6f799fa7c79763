"""MODE: the most frequent value, chosen from a public list by the exponential mechanism.

How far the answer is from the most frequent value is known in rows: its count lies so many below the largest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, ModeChoice
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.types import SqlType
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.formula import Bounds, Formula

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease


@dataclass(frozen=True, slots=True)
class Mode(Formula):
    """The value that was chosen; NULL of rows that are known to be none."""

    no_interval: ClassVar[str] = "the error of a MODE is a number of rows"
    off: ClassVar[str] = "the count of the answer is at most {rows} below the largest"
    doubt: ClassVar[str] = "the count of its answer may be {rows} below the largest"

    component: int

    @property
    def components(self) -> tuple[int, ...]:
        """One."""
        return (self.component,)

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the component at another place."""
        return replace(self, component=to[self.component])

    def values(self, noisy: NoisyRelease, type_: SqlType) -> list[object]:
        """As they are listed."""
        if noisy.planned.measured.measurements[self.component].known is not None:
            return [None] * len(noisy.keys)
        own = noisy.planned.measured.node.components[self.component]
        assert isinstance(own, ModeChoice) and own.choices is not None
        return [own.choices.keys[at][0] for at in noisy.columns[self.component]]

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """None is known."""
        return [(math.nan, math.nan)] * len(noisy.keys)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Not known."""
        return False

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As of the counts."""
        return spread[self.component]


def _bind(call: AggregateCall, facts: Facts, shared: Shared) -> Mode:
    assert call.arg is not None
    return Mode(shared(ModeChoice(call.arg, call.filter)))


MODE = AggregateFunction(
    "mode", "mode(x)", "The most frequent value of x, which needs a public list of values.", lambda arg: arg, _bind,
    numeric=False,
)  # fmt: skip
