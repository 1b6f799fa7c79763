"""MODE: a public value, chosen with a probability that grows with the number of rows that have it.

The score of a value v is s(v) = 2·(n - n(v)), n(v): the weight of the rows with this value, n: the largest of them. How
far the score of another group or database is moved as a whole changes no probability: only differences count.

Claim: one row more, of weight w, moves the scores of a group, but for a number that they have in common, by 0 to 2w.
    That is ± w, as far as a COUNT moves. A replaced row of weight 1 moves those of one group by 0 to 4, which is ± 2,
    or those of two groups as one row more or less each.
Why: one count grows by w and all others stay, so s falls by 2w for one value. A row that goes from v to v' takes 1 from
    n(v) and gives 1 to n(v'). The rows of an id in a group raise the counts of several values, each by no more than all
    of them weigh together.
When it would be false: values that depend on the data; weights of fewer rows than those that divide them; a row that
    counts for two values; two modes that share one price.
Not proved: scores
Tested by: tests/core/measures/test_mode.py, tests/deep/core/noise/test_mode_neighbours.py
"""

from __future__ import annotations

from dpsql.core.ir.components import ModeChoice
from dpsql.core.measures.measure_rule import Norms, RowRule


class ModeRule(RowRule[ModeChoice]):
    """Each row raises the count of its value."""

    __slots__ = ()

    name = "MODE({argument})"
    chosen = True

    def replaced(self, c: ModeChoice, fixed: bool) -> Norms:
        """By ± 2 in one group, or by ± 1 in two."""
        return Norms(2, 4, 2)

    def known(self, c: ModeChoice, size: int) -> int:
        """Of no row at all: no value."""
        return 0

    def options(self, c: ModeChoice) -> int:
        """The listed values; at least 1, where they are yet to be read."""
        assert c.choices is not None
        return max(1, len(c.choices.keys))
