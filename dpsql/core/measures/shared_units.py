"""SHARED UNITS: privacy units that are present in a group, one in K groups with a weight w(K) in each.

Claim: an id in K ≤ G groups adds w(K) to each of them, and K·w(K)² ≤ F²; one in more groups adds nothing. So its vector
    has an l2 norm of at most F, however many groups it is in, and none of its numbers is above F.
Why: w is a step function that the statement spells as integers: from one step to the next K is at most its end a, and
    w = ⌊√(F²/a)⌋. Σ w(K) over its groups is at most F·√K, by Cauchy and Schwarz.
When it would be false: a root that is rounded up, or computed as a DOUBLE; a K that does not count the groups that w is
    added to: rows for (id, group), which would count one group twice, or groups without NULL keys; a filter.
Not proved: weights by steps
Tested by: tests/deep/core/analysis/test_keys_first.py, tests/core/measures/test_shared_units.py
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import Final

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import SharedUnits
from dpsql.core.measures.measure_rule import MeasureRule, Norms

EXACT_UP_TO: Final = 8
"""From here on one weight serves an eighth more groups."""


class SharedUnitsRule(MeasureRule[SharedUnits]):
    """Each id of a group adds its weight."""

    __slots__ = ()

    name = "COUNT(DISTINCT {unit}), weighed by its groups"
    counts = "ids"

    def largest(self, c: SharedUnits, limits: Contribution) -> Norms:
        """A vector of norm 1, over as many groups as are kept."""
        return Norms(isqrt(limits.most_groups - 1) + 1, 1, 1)

    def replaced(self, c: SharedUnits, fixed: bool) -> Norms:
        """Rows that are units have no groups to share."""
        raise AssertionError("units that are single rows are in one group each")


@lru_cache(maxsize=64)
def steps(weight: int, groups: int) -> tuple[tuple[int, int], ...]:
    """(a, w) in order: an id in K groups weighs w in each, of the first a ≥ K. weight: F. groups: the most."""
    found, end = [], 0
    while end < groups:
        end = min(groups, end + max(1, end // EXACT_UP_TO))
        found.append((end, isqrt(weight**2 // end)))
    return tuple(found)
