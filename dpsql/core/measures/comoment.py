"""COMOMENT: n·Σy·z - Σy·Σz, which is n² times the covariance of y and z over all of a public number n of rows.

Claim: a replaced row moves it by at most ⌈(n - 1)·R·S/step⌉, R and S the widths of y and z. [tight]
Why: it is Σ (yᵢ - yⱼ)(zᵢ - zⱼ) over all pairs of rows. A row is in n - 1 of them. With the other row fixed its product
    lies between two corners: p·q or (R - p)(S - q), and -p(S - q) or -q(R - p), with p and q where the other row is.
    They are p·S, q·R, (S - q)·R or (R - p)·S apart, none above R·S. Rounding down to whole steps adds less than one.
When it would be false: a number of rows that a unit can change, or that is not the n of the formula (the SQL gives 0
    for any other number, which no replacement changes); rows that are added or removed; groups, which a replaced row
    can leave; a filter or an argument that is NULL, which make n another number; a factor that is clipped elsewhere.
Not proved: replaced rows
Tested by: tests/core/noise/test_sensitivity.py, tests/core/printing/test_products.py,
tests/deep/core/analysis/test_products_of_neighbours.py
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Comoment
from dpsql.core.measures.measure_rule import MeasureRule, Norms


class ComomentRule(MeasureRule[Comoment]):
    """All rows count together."""

    __slots__ = ()

    name = "{argument}"
    counts = "rows"
    adds_values = True

    def largest(self, c: Comoment, limits: Contribution) -> Norms:
        """Never asked."""
        raise AssertionError("a comoment of rows that come or go")

    def replaced(self, c: Comoment, fixed: bool) -> Norms:
        """By the pairs that the row is in."""
        if not fixed:
            raise AssertionError("a comoment of a number of rows that is not public")
        width = max(0, c.rows - 1) * (c.hi - c.lo) * (c.times.hi - c.times.lo)
        each = -(-width // c.step)
        return Norms(each, each**2, each)

    def known(self, c: Comoment, size: int) -> int:
        """Of a constant, or of one row."""
        return 0

    def alone(self, c: Comoment) -> bool:
        """It is no sum of what rows add."""
        return True
