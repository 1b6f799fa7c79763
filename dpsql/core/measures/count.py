"""COUNT: rows, or rows with a valid argument.

Claim: a replaced row takes 1 from a group and gives 1 to another, or changes nothing where the number of rows is public
    and all of them count in one group.
Why: each row counts once.
When it would be false: a public number of rows that a unit can change; a row that does not count (NULL, NaN, FILTER)
    taken for one that does.
Proved by: Release.measured_l1. Not proved: replaced rows
Tested by: tests/core/noise/test_sensitivity.py, tests/deep/core/analysis/test_replace_one.py
"""

from __future__ import annotations

from dpsql.core.ir.components import RowCount
from dpsql.core.measures.measure_rule import Norms, RowRule


class CountRule(RowRule[RowCount]):
    """Each row adds 1."""

    __slots__ = ()

    name = "COUNT({argument})"

    def replaced(self, c: RowCount, fixed: bool) -> Norms:
        """Nothing in one group of fixed size."""
        return Norms(2, 2, 0 if fixed else 1)

    def known(self, c: RowCount, size: int) -> int:
        """That number."""
        return size
