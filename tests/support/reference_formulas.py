"""Released numbers one at a time, in fractions: the slow, plain formulas that whole columns are compared with."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.frontend.aggregates.variance import Variance


def variance(total: Fraction, squares: Fraction, count: Fraction, recipe: Variance, middle: Fraction) -> Fraction:
    """squares/n + middle - (total/n)², clamped, n = max(1, count); of a sample times n/(n-1), n = max(2, count)."""
    n = max(Fraction(2 if recipe.sample else 1), count)
    top = (recipe.hi - recipe.lo) ** 2 / 4
    found = min(top, max(Fraction(0), squares / n + middle - (total / n) ** 2))
    return found * n / (n - 1) if recipe.sample else found


def average(total: int, count: int, units: tuple[Fraction, Fraction], center: Fraction) -> Fraction:
    """center + sum / max(1, count), exact."""
    return center + total * units[0] / max(Fraction(1), count * units[1])


def rounded(value: int, unit: Fraction) -> int:
    """value · unit to the nearest integer, halves away from zero."""
    size = math.floor(abs(value) * unit + Fraction(1, 2))
    return size if value >= 0 else -size
