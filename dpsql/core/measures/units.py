"""UNITS: privacy units that are present in a group.

Claim: an id adds 1 to each of its groups, and nothing to others. A replaced row takes 1 from a group and gives 1 to
    another.
Why: a unit is in a group or not, whatever rows it has there.
When it would be false: a number of groups of an id that nothing enforces.
Not proved: ids counted in a group
Tested by: tests/core/noise/test_sensitivity.py, tests/deep/core/analysis/test_public_groups.py
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import UnitCount
from dpsql.core.measures.measure_rule import MeasureRule, Norms


class UnitsRule(MeasureRule[UnitCount]):
    """Each id of a group adds 1."""

    __slots__ = ()

    name = "COUNT(DISTINCT {unit})"
    counts = "ids"

    def largest(self, c: UnitCount, limits: Contribution) -> Norms:
        """1 for each group."""
        return Norms(limits.most_groups, limits.most_groups, 1)

    def replaced(self, c: UnitCount, fixed: bool) -> Norms:
        """One id each, in one group or in two."""
        return Norms(2, 2, 1)
