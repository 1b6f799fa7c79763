"""Released numbers from noisy integers: exact arithmetic on public numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpsql.plan.components import Variance


def variance(total: Fraction, squares: Fraction, count: Fraction, recipe: Variance, middle: Fraction) -> Fraction:
    """squares/n + middle - (total/n)², clamped, with n = max(1, count); of a sample times n/(n-1), n = max(2, count).

    middle: what was subtracted from each square before they were added up.
    """
    n = max(Fraction(2 if recipe.sample else 1), count)
    top = (recipe.hi - recipe.lo) ** 2 / 4
    found = min(top, max(Fraction(0), squares / n + middle - (total / n) ** 2))
    return found * n / (n - 1) if recipe.sample else found


def average(total: int, count: int, units: tuple[Fraction, Fraction], center: Fraction) -> Fraction:
    """center + sum / max(1, count), exact."""
    return center + total * units[0] / max(Fraction(1), count * units[1])


def rounded(value: int, unit: Fraction) -> int:
    """value · unit to the nearest integer, halves away from zero: post-processing."""
    scaled = value * unit.numerator
    down, rest = divmod(abs(scaled), unit.denominator)
    whole = down + (2 * rest >= unit.denominator)
    return whole if scaled >= 0 else -whole


def linear(parts: Sequence[tuple[int, Fraction]], rows: Iterable[Sequence[int]]) -> tuple[list[int], int]:
    """Σ coefficient · value of that component for each row, exact: integers, and the one number to divide them by."""
    whole = math.lcm(*(coefficient.denominator for _, coefficient in parts))
    scaled = [(i, int(coefficient * whole)) for i, coefficient in parts]
    return [sum(coefficient * row[i] for i, coefficient in scaled) for row in rows], whole
