"""SUM: of the clipped argument in grid units, or of its squares or products with another one, in steps.

Claim: a replaced row moves one group by at most max(B, U - L), and by U - L where every row counts in it; both groups
    that it moves, together by at most 2B, their squares by at most max(2B², (U - L)²).
Why: a value of [L, U] goes and another one comes, in one group, or each in another; B is the larger of |L| and |U|.
    A product y·z is linear in each of them, so least and largest where both are at an end; steps and shift keep order.
When it would be false: a value outside of the clip; a factor that is clipped elsewhere than where the ends of the
    product are computed; division that rounds towards 0; a row that may be NULL, in either argument, where every row is
    said to count.
Proved by: Release.measured_l1, Release.weighed_l1. Not proved: replaced rows
Tested by: tests/core/noise/test_sensitivity.py, tests/deep/core/analysis/test_replace_one.py,
tests/core/printing/test_products.py, tests/deep/core/analysis/test_products_of_neighbours.py
"""

from __future__ import annotations

from dpsql.core.ir.components import ProductSum, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.measures.measure_rule import Norms, RowRule


class SumRule(RowRule[ValueSum | ProductSum]):
    """Each row adds its value."""

    __slots__ = ()

    name = "SUM({argument})"
    adds_values = True

    def replaced(self, c: ValueSum | ProductSum, fixed: bool) -> Norms:
        """By the width of the values."""
        (least, most), B = c.ends, c.magnitude
        width = most - least
        return Norms(2 * B, max(2 * B**2, width**2), width if fixed else max(B, width))

    def alone(self, c: ValueSum | ProductSum) -> bool:
        """Where its rows have no weights of their own, which they have beside a count."""
        return c.contribution not in (Weighing.PAIRED, Weighing.BY_ROW)
