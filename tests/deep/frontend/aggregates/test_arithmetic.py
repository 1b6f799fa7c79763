"""Released columns from noisy integers, against the same formulas in fractions, one row at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Context, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.ir.types import parse_type
from dpsql.core.noise.integer_columns import Integers
from dpsql.frontend.aggregates.intervals.outward_rounding import above, below
from dpsql.frontend.aggregates.released_numbers import around, averages, linear, typed, variances
from dpsql.frontend.aggregates.variance import Variance
from tests.support import reference_formulas as reference

COEFFICIENTS = st.fractions(-(10**6), 10**6, max_denominator=10**6)
UNITS = st.sampled_from([Fraction(1), Fraction(1, 7), Fraction(1, 1 << 30), Fraction(5, 100), Fraction(3 << 40)])
SIZES = st.sampled_from([3, 1 << 20, 1 << 31, 1 << 53, 1 << 62, 1 << 100])
"""Magnitudes at which what is computed on the way fits 64 bits, or does not."""


def columns(width: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Rows of integers, all of one magnitude, its ends among them."""
    return SIZES.flatmap(
        lambda n: st.lists(st.tuples(*[st.integers(-n, n) | st.sampled_from([-n, -1, 0, 1, n])] * width), max_size=8)
    )


def transposed(rows: list[tuple[int, ...]], width: int) -> list[Integers]:
    return [Integers.of([row[i] for row in rows]) for i in range(width)]


@given(st.lists(st.tuples(st.integers(0, 2), COEFFICIENTS), min_size=1, max_size=3), columns(3))
def test_sums_of_components_are_exact(parts: list[tuple[int, Fraction]], rows: list[tuple[int, ...]]) -> None:
    values, whole = linear(parts, transposed(rows, 3), len(rows))
    assert [Fraction(v, whole) for v in values] == [sum(c * row[i] for i, c in parts) for row in rows]


@given(columns(2), UNITS, UNITS, COEFFICIENTS, COEFFICIENTS, COEFFICIENTS)
def test_averages_are_rounded_once(
    rows: list[tuple[int, ...]], a: Fraction, b: Fraction, center: Fraction, x: Fraction, y: Fraction
) -> None:
    low, high = min(x, y), max(x, y)
    found = averages(*transposed(rows, 2), (a, b), center, (low, high)).tolist()
    exact = [reference.average(s, n, (a, b), center) for s, n in rows]
    assert found == [float(min(high, max(low, v))) for v in exact]


@given(columns(3), st.tuples(UNITS, UNITS, UNITS), COEFFICIENTS, COEFFICIENTS, COEFFICIENTS, st.booleans())
def test_variances_are_rounded_once(
    rows: list[tuple[int, ...]], units: tuple[Fraction, ...], x: Fraction, y: Fraction, middle: Fraction, sample: bool
) -> None:
    a, b, c = units
    recipe = Variance(0, 1, 2, min(x, y), max(x, y), sample=sample)
    whole = transposed(rows, 3)
    exact = [reference.variance(s * a, q * b, n * c, recipe, middle) for s, q, n in rows]
    found = variances(whole[0], whole[1], whole[2], (a, b, c), recipe, middle).tolist()
    assert found == [min(recipe.greatest, float(v)) for v in exact]
    root = replace(recipe, root=True)
    found = variances(whole[0], whole[1], whole[2], (a, b, c), root, middle).tolist()
    assert found == [min(root.greatest, math.sqrt(v)) for v in exact]


@given(columns(1), UNITS, COEFFICIENTS, COEFFICIENTS.map(abs))
def test_ends_of_intervals_are_rounded_outwards(
    rows: list[tuple[int, ...]], unit: Fraction, center: Fraction, width: Fraction
) -> None:
    """The nearest float outside, or the next one: never one that is inside."""
    low, high = around(transposed(rows, 1)[0], unit, center, width)
    for (value,), a, b in zip(rows, low.tolist(), high.tolist(), strict=True):
        middle = center + value * unit
        least, most = below(middle - width), above(middle + width)
        assert a <= least and b >= most
        assert a in (least, math.nextafter(least, -math.inf)) and b in (most, math.nextafter(most, math.inf))
        if least == middle - width:
            assert a == least
        if most == middle + width:
            assert b == most


def test_decimals_are_never_rounded_to_the_callers_precision() -> None:
    values = [0, 5, -5, 12345678901234567890123456789012345678]
    type_ = parse_type("DECIMAL(38,2)")
    assert type_ is not None
    with localcontext(Context(prec=3)):
        found = typed(Integers.of(values), 1, type_)
    assert list(map(str, found)) == ["0.00", "5.00", "-5.00", "12345678901234567890123456789012345678.00"]
