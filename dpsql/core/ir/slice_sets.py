"""Slice sets of a release: conditions in order, of which a row counts in the first that it satisfies.

A set is part of the plan. The price reads it (`core/noise/parallel_composition.py`), and the printer makes it true
(`core/printing/forms/sliced.py`); both read nothing else of what conditions mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.components import Component
from dpsql.core.ir.expressions import Expr
from dpsql.core.value_classes import value


@value(frozen=True, slots=True)
class SliceSet:
    """slices: in order, each the numbers of the components that count its rows. Their filter, which is one, is its
    condition.
    """

    slices: tuple[tuple[int, ...], ...]

    @property
    def members(self) -> dict[int, int]:
        """Component → the number of its slice."""
        return {i: number for number, own in enumerate(self.slices) for i in own}

    def conditions(self, components: Sequence[Component]) -> list[Expr]:
        """The condition of each slice, in order."""
        found = [components[own[0]].filter for own in self.slices]
        return [condition for condition in found if condition is not None]


def before(sets: Sequence[SliceSet], components: Sequence[Component], place: int) -> tuple[Expr, ...]:
    """The conditions that come before that of a component in its set: a row that satisfies one counts there."""
    for each in sets:
        number = each.members.get(place)
        if number is not None:
            return tuple(each.conditions(components)[:number])
    return ()
