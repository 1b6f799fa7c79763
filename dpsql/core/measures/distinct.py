"""DISTINCT: different values of the argument.

Claim: an id adds at most its rows in all, and to a group at most its rows there, or the V values that are counted.
    Where values are cut over all groups, all of them may be in one. A replaced row takes 1 from a group and gives 1 to
    another.
Why: a group counts each of its values once, however often; a row brings one value.
When it would be false: more than V values of a group that count (`values`: core/printing/forms/few_values.py), or a
    limit on distinct values, that the emitted SQL does not apply.
Proved by: Release.distinct_count_moves. Not proved: under limits, replaced rows
Tested by: tests/core/noise/test_sensitivity.py, tests/deep/core/analysis/test_public_groups.py
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import DistinctCount, DistinctSum
from dpsql.core.ir.contributions import UnitTotal
from dpsql.core.measures.measure_rule import MeasureRule, Norms, at_most, groups_of_a_unit


class DistinctRule(MeasureRule[DistinctCount | DistinctSum]):
    """Each value of a group adds 1."""

    __slots__ = ()

    name = "COUNT(DISTINCT {argument})"
    counts = "values"

    def kept(self, c: DistinctCount | DistinctSum, limits: Contribution) -> int:
        """How many of its different (group, value) an id keeps: those that may count."""
        if c.of_unit is not None:
            return DistinctRule.limited(self, c, c.of_unit, limits).in_all
        return DistinctRule.largest(self, c, limits).in_all

    def values_in_group(self, c: DistinctCount | DistinctSum, limits: Contribution) -> int:
        """Those that are kept, or that its rows there bring."""
        return DistinctRule.largest(self, c, limits).in_group

    def largest(self, c: DistinctCount | DistinctSum, limits: Contribution) -> Norms:
        """One for each row, as far as there are values."""
        rows = limits.rows
        alike = rows if limits.scaled else limits.rows_in_one_group  # values are cut over all groups
        return at_most(rows, limits.most_groups, alike if c.values is None else min(alike, c.values))

    def limited(self, c: DistinctCount | DistinctSum, total: UnitTotal, limits: Contribution) -> Norms:
        """So many values in all, and no more in a group than there are."""
        most, groups = total.most, groups_of_a_unit(limits)
        return at_most(most, most if groups is None else groups, most if c.values is None else min(most, c.values))

    def replaced(self, c: DistinctCount | DistinctSum, fixed: bool) -> Norms:
        """One value each, in one group or in two."""
        return Norms(2, 2, 1)
