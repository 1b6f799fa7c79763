"""V (F5): the most different values that a COUNT or SUM(DISTINCT x) counts in a group.

*Claim.* Of a group a COUNT(DISTINCT x) counts at most V values, whatever x gives, and a SUM(DISTINCT x) lies within
what V values give. Under limits an id keeps at most V values in each group, and at most `MeasureRule.kept` in all of
them. *Why.* Without limits the number itself is cut, which moves no further than what is cut. Under them both
conditions are on the rows (id, group, x), x a column of theirs: what satisfies both satisfies each. *When it would be
false.* One of the two alone: of all groups together an id could have V·G values in one; of each group V in any number
of groups. A sum of both signs that is cut and priced as V·B: it lies between V·L and V·U.
*Not proved:* different values under limits.
*Tested by*
tests/core/printing/test_few_values.py, tests/deep/core/printing/test_guessed_values.py.

V is a guess of the planner's. What is above it is missing from the answer. On every engine:

    LEAST(COUNT(DISTINCT e.a0), V)
    ROW_NUMBER() OVER (PARTITION BY u …) <= min(D, V·G) AND ROW_NUMBER() OVER (PARTITION BY u, k0 …) <= V
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.components import DistinctCount, DistinctSum
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.forms.kept_first import first


def at_most_values(d: Dialect, counted: str, c: DistinctCount | DistinctSum) -> str:
    """The number of different values of a group, or their sum, cut to what V of them give."""
    if c.values is None:
        return counted
    if isinstance(c, DistinctCount):
        return d.least(counted, str(c.values))
    low, high = (d.wide(str(c.values * end)) for end in (min(c.lo, 0), max(c.hi, 0)))
    return d.least(d.greatest(counted, low), high)


def kept_values(d: Dialect, most: int, c: DistinctCount | DistinctSum, group: Sequence[Typed], value: Typed) -> str:
    """The condition on windows that keeps `most` values of an id, and V of each of its groups.

    group: the id, then the keys. value: x.
    """
    what = [*group, value]
    found = first(d, most, group[0][0], what)
    if c.values is None or c.values >= most or len(group) == 1:
        return found
    return f"{found} AND {first(d, c.values, ', '.join(sql for sql, _ in group), what)}"
