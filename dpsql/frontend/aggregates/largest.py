"""What `ORDER BY COUNT(DISTINCT id) DESC LIMIT j` shows where no count is shown: the groups of the most units.

How far the answer is from the truth is known in units: each of them has so many fewer than the largest that is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpsql.core.ir.components import LargestChoice
from dpsql.core.ir.types import SqlType
from dpsql.frontend.aggregates.mode import Mode

if TYPE_CHECKING:
    from dpsql.core.release.noisy import NoisyRelease


@dataclass(frozen=True, slots=True)
class Largest(Mode):
    """The value that was picked."""

    no_interval: ClassVar[str] = "the error of a choice is a number of units"
    off: ClassVar[str] = "a count is at most {rows} below the largest that is left"
    doubt: ClassVar[str] = "a count may be {rows} below the largest that is left"

    def values(self, noisy: NoisyRelease, type_: SqlType) -> list[object]:
        """As they are listed, also where no row counts."""
        measured = noisy.planned.measured
        own = measured.node.components[self.component]
        assert isinstance(own, LargestChoice)
        if measured.measurements[self.component].known is not None:  # all have as many: none
            return [own.choices.keys[own.pick.place][0]] * len(noisy.keys)
        return [own.choices.keys[at][0] for at in noisy.columns[self.component]]
