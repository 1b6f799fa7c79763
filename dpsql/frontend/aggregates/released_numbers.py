"""Released numbers from noisy integers: exact arithmetic on public numbers, a whole column at a time.

*Claim.* Each number is the one that the formula gives in fractions, rounded once. *Why.* A formula's numerator and
denominator are integers for each row, computed exactly (`core/noise/integer_columns.py`), and their quotient is the
nearest floating-point number. *Tested by* tests/deep/frontend/aggregates/test_arithmetic.py, against the formulas in
fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.noise.integer_columns import Floats, Integers, arrays, combined, outwards, quotients, rounded
from dpsql.frontend.aggregates.formula import Bounds

if TYPE_CHECKING:
    from dpsql.frontend.aggregates.variance import Variance

_EXACT = Context(prec=100)
"""Wider than any total with its decimals, whatever the caller's own context would round to."""


def linear(parts: Sequence[tuple[int, Fraction]], columns: Sequence[Integers], height: int) -> tuple[Integers, int]:
    """Σ coefficient · value of that component for each row, exact: integers, and the one number to divide them by."""
    whole = math.lcm(*(coefficient.denominator for _, coefficient in parts))
    scaled = [(columns[i], int(coefficient * whole)) for i, coefficient in parts]
    return combined(scaled, 0, height), whole


def typed(values: Integers, whole: int, type_: SqlType) -> Sequence[object]:
    """values / whole in an SQL type: exact where the type is, else rounded once."""
    if type_.kind is Kind.INTEGER:
        return rounded(values, 1, whole)
    if type_.kind is Kind.DECIMAL:
        found = rounded(values, 10**type_.scale, whole)
        return list(map(_EXACT.scaleb, found, repeat(-type_.scale)))
    return list(quotients(values, whole).tolist())


def averages(
    total: Integers,
    count: Integers,
    units: tuple[Fraction, Fraction],
    center: Fraction,
    ends: tuple[Fraction, Fraction],
) -> Floats:
    """center + sum / max(1, count) within `ends`, rounded once. units: of the sum and of the count."""
    (of_sum, of_count), (a, b) = units, (center.numerator, center.denominator)
    # max(1, count) is size / of_count's denominator, the sum total · of_sum.
    factor = of_sum.numerator * of_count.denominator
    most = max(of_count.denominator, count.largest * of_count.numerator)
    counts, totals = arrays(
        (abs(a) * of_sum.denominator + b) * most * of_sum.denominator + b * max(1, total.largest) * factor, count, total
    )
    size = np.maximum(counts * of_count.numerator, of_count.denominator)
    under = size * (b * of_sum.denominator)
    over = size * (a * of_sum.denominator) + totals * (b * factor)
    # Rounding never changes an order, so what lies beyond an end is rounded to it or beyond.
    found: Floats = np.clip(quotients(Integers(over), Integers(under)), float(ends[0]), float(ends[1]))
    return found


def variances(
    total: Integers, squares: Integers, count: Integers, units: tuple[Fraction, Fraction, Fraction],
    recipe: Variance, middle: Fraction,
) -> Floats:  # fmt: skip
    """squares/n + middle - (total/n)², within what values of [lo, hi] can have, n = max(1, count); of a sample times
    n/(n-1), n = max(2, count); or the root of that. Rounded once, a root once more.

    middle: what was subtracted from each square before they were added up. units: of the three.
    """
    of_sum, of_squares, of_count = units
    # All in the unit 1/whole²: n = N/e, total/n = T/N, squares/n = Q/N, middle = M, each over `whole`.
    e = of_count.denominator
    whole = math.lcm((of_sum * e).denominator, (of_squares * e).denominator, middle.denominator)
    t_factor, q_factor, m = int(of_sum * e * whole), int(of_squares * e * whole), int(middle * whole)
    least = (2 if recipe.sample else 1) * e
    size = max(least, count.largest * of_count.numerator)
    top = (recipe.hi - recipe.lo) ** 2 / 4
    bound = max(1, squares.largest) * q_factor * whole * size + abs(m) * whole * size**2
    bound = (bound + (max(1, total.largest) * t_factor) ** 2) * 2
    bound = max(whole**2 * size**2 * (top.numerator + top.denominator), top.denominator * bound) * size
    totals, squared, counts = arrays(bound, total, squares, count)
    n = np.maximum(counts * of_count.numerator, least)
    # found = over / (whole · n)²
    over = (squared * (q_factor * whole) + n * (m * whole)) * n - (totals * t_factor) ** 2
    under = n * n * whole**2
    beyond = over * top.denominator >= under * top.numerator
    over = np.where(beyond, under * top.numerator, np.maximum(over, 0) * top.denominator)
    under = under * top.denominator
    if recipe.sample:  # n/(n-1) with n = N/e is N/(N-e)
        over, under = over * n, under * (n - e)
    found = quotients(Integers(over), Integers(under))
    released: Floats = np.minimum(recipe.greatest, np.sqrt(found) if recipe.root else found)
    return released


def around(values: Integers, unit: Fraction, center: Fraction, width: Fraction) -> tuple[Floats, Floats]:
    """center + value · unit, less `width` and more, each rounded outwards."""
    over, under = shifted(values, unit, center - width)
    low = outwards(over, under, -1)
    over, under = shifted(values, unit, center + width)
    return low, outwards(over, under, 1)


def shifted(values: Integers, unit: Fraction, by: Fraction) -> tuple[Integers, int]:
    """by + value · unit: integers, and the one number to divide them by."""
    whole = math.lcm(unit.denominator, by.denominator)
    return combined([(values, int(unit * whole))], int(by * whole), len(values)), whole


def holding(found: list[Bounds], shown: Floats) -> list[Bounds]:
    """Intervals widened to hold the numbers shown, which covers no less.

    They may not where a noisy count is near 0: what fits the noisy numbers can leave out the end of the column's
    bounds at which the quotient shown was cut off.
    """
    low, high = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return list(zip(np.minimum(low, shown).tolist(), np.maximum(high, shown).tolist(), strict=True))
