"""LARGEST: public values, chosen one after another by the number of units that have them, without these numbers.

What `GROUP BY k ORDER BY COUNT(DISTINCT id) DESC LIMIT j` shows, where nothing shows the counts. The score of a value v
is s(v) = 2·(n - n(v)), n(v): the units that have it, n: the largest of them. A pick chooses among all values but those
that earlier picks chose.

Claim: one unit more moves the scores of a pick, but for a number that they have in common, by 0 to 2. That is ± 1,
    whatever the rows of the unit are, and nothing needs to limit them. Where one unit replaces another it is ± 2. Each
    pick is paid for itself.
Why: a unit is counted once for each value, so that it raises any number of counts by 1, and no count by more. What one
    unit takes from counts and another adds moves them by -1 to 1. The values that are left are public: noise chose
    those that are gone, and losses of picks that know the earlier ones add up.
When it would be false: values that depend on the data; a unit counted twice for a value; values taken away that no
    noise chose; two picks that share one price.
Not proved: scores
Tested by: tests/core/measures/test_largest.py, tests/deep/core/noise/test_largest_neighbours.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component, LargestChoice
from dpsql.core.measures.measure_rule import MeasureRule, Norms


class LargestRule(MeasureRule[LargestChoice]):
    """Each unit raises the counts of its values."""

    __slots__ = ()

    name = "{argument} BY COUNT(DISTINCT {unit})"
    counts = "ids"
    chosen = True

    def largest(self, c: LargestChoice, limits: Contribution) -> Norms:
        """1 for the one choice that there is."""
        return Norms(1, 1, 1)

    def replaced(self, c: LargestChoice, fixed: bool) -> Norms:
        """Of rows as units there is none: each is one value's."""
        raise AssertionError("rows that are units of their own are counted, not picked by")

    def known(self, c: LargestChoice, size: int) -> int:
        """Of no unit at all: no choice."""
        return 0

    def options(self, c: LargestChoice) -> int:
        """The values that earlier picks left; at least 1, where they are yet to be read."""
        return max(1, len(c.choices.keys) - c.pick.place)


def is_later_pick(c: Component) -> bool:
    """Whether it is one of several picks, and not the first, which says it for all."""
    return isinstance(c, LargestChoice) and c.pick.place > 0


def other_picks(components: Sequence[Component], place: int) -> list[int]:
    """Places of the other picks from the same list as this one; none of what is no pick."""
    own = components[place]
    if not isinstance(own, LargestChoice):
        return []
    picks = ((i, c) for i, c in enumerate(components) if isinstance(c, LargestChoice) and i != place)
    return [i for i, c in picks if replace(c, pick=own.pick) == own]
