"""DISTINCT_SUM: of the different values of the clipped argument, in grid units.

Claim: an id adds at most D·B in all, D the values that it has in all groups together, as many as COUNT(DISTINCT …)
    counts of it, and B the largest |value|; and to a group at most as many values times B, of V that count at most.
    Without limits a group is cut to V values: to [V·min(L, 0), V·max(U, 0)], and moves by at most V times its width w.
    Where ids are replaced, a group moves by at most that many times the width w of the values with 0 among them. A
    replaced row moves one group by at most max(B, U - L), or two by B each.
Why: a group adds each of its values once, however often. What an id adds to it are those of its own values that nobody
    else has there, all of [L, U]: any part of them, so Σ|v| ≤ D·B, whatever their signs. Of two ids one takes its part
    away and the other adds its own. Each part lies between D·min(L, 0) and D·max(U, 0), which are D·w apart. Where
    values have both signs both parts can point the same way, so that squares of them add as (|v| + |w|)², at most twice
    as much as |v|² + |w|². A row brings one value, of which any other row may keep the same one there: then a replaced
    row takes nothing away, and adds up to B.
When it would be false: a value outside of the clip, or of another grid in the statement than in the price; a limit on
    different values that the emitted SQL does not apply, or applies after values of several ids were merged; a V that
    it does not apply, or that is priced as V·B where both signs are cut; a public number of rows taken for a number of
    values.
Not proved: sums of different values
Tested by: tests/core/measures/test_distinct_sum.py, tests/core/noise/test_sensitivity.py,
tests/deep/core/analysis/test_distinct_sums.py
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import DistinctCount, DistinctSum
from dpsql.core.ir.contributions import UnitTotal
from dpsql.core.measures.distinct import DistinctRule
from dpsql.core.measures.measure_rule import Norms, at_most


class DistinctSumRule(DistinctRule):
    """Each value of a group adds itself."""

    __slots__ = ()

    name = "SUM(DISTINCT {argument})"
    adds_values = True

    def largest(self, c: DistinctCount | DistinctSum, limits: Contribution) -> Norms:
        """So many values, each of them the largest."""
        values, B = super().largest(c, limits), c.magnitude
        if c.values is not None and not limits.scaled:
            each = min(limits.rows_in_one_group * B, c.values * c.span)
            return at_most(limits.rows * B, limits.most_groups, each)
        return Norms(values.in_all * B, values.squares * B**2, values.in_group * B)

    def limited(self, c: DistinctCount | DistinctSum, total: UnitTotal, limits: Contribution) -> Norms:
        """No search finds how many there are."""
        raise AssertionError("a limit of its own on a sum of different values")

    def replaced(self, c: DistinctCount | DistinctSum, fixed: bool) -> Norms:
        """By the width of the values, or by a value that comes or goes alone."""
        (least, most), B = c.ends, c.magnitude
        width = max(B, most - least)
        return Norms(2 * B, max(2 * B**2, width**2), width)

    def known(self, c: DistinctCount | DistinctSum, size: int) -> int:
        """Of zeros alone, or of no row."""
        return 0
