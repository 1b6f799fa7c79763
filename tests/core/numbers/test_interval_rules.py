"""Interval rules contain every pointwise result, and are no wider than they must be where all ends are known."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.numbers import interval as rules
from dpsql.core.numbers.interval import Interval, everything, interval, point
from dpsql.diagnostics.diagnostic import Reason

WHY = Reason("DP201", "no bounds on x")
finite = st.fractions(min_value=-50, max_value=50, max_denominator=8)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    a, b = sorted((draw(finite), draw(finite)))
    ends = draw(st.sampled_from(["both", "both", "low open", "high open", "none"]))
    lo = None if ends in ("low open", "none") else a
    hi = None if ends in ("high open", "none") else b
    return interval(lo, hi, () if ends == "both" else (WHY,))


@st.composite
def with_point(draw: st.DrawFn) -> tuple[Interval, Fraction]:
    """An interval and a point of it, often an end."""
    i = draw(intervals())
    low = i.lo if i.lo is not None else (i.hi if i.hi is not None else Fraction(0)) - 1000
    high = i.hi if i.hi is not None else max(low, Fraction(0)) + 1000
    share = draw(st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 7)]))
    return i, low + share * (high - low)


@given(intervals())
def test_reciprocal_of_an_interval_with_zero_is_open(i: Interval) -> None:
    """Near zero 1/x exceeds every bound, so an interval around zero may have no bounded reciprocal."""
    if 0 in i:
        assert rules.reciprocal(i, WHY).bounded is False
        assert WHY in rules.reciprocal(i, WHY).why


@given(with_point(), finite, finite, st.booleans(), st.booleans())
def test_clamp(a: tuple[Interval, Fraction], x: Fraction, y: Fraction, below: bool, above: bool) -> None:
    lo, hi = (min(x, y) if below else None), (max(x, y) if above else None)
    found = rules.clamp(a[0], lo, hi)
    value = a[1]
    value = value if lo is None else max(value, lo)
    value = value if hi is None else min(value, hi)
    assert value in found
    assert found.bounded or a[0].why == found.why
    if lo is not None and hi is not None:
        assert found.within(interval(lo, hi))


@given(with_point())
def test_magnitude(a: tuple[Interval, Fraction]) -> None:
    magnitude = a[0].magnitude
    assert (magnitude is not None) == a[0].bounded
    if magnitude is not None:
        assert abs(a[1]) <= magnitude
        assert magnitude in a[0] or -magnitude in a[0]


def test_zero_times_anything_is_zero() -> None:
    assert rules.mul(point(0), everything(WHY)) == point(0)
    assert rules.mul(everything(WHY), point(0)) == point(0)


def test_half_open_products_keep_the_known_side() -> None:
    assert rules.mul(interval(2, None), interval(3, None)) == interval(6, None)
    assert rules.mul(interval(None, -2), interval(3, None)) == interval(None, -6)
    assert rules.mul(interval(0, None), interval(-1, 1)) == everything()


def test_empty_intervals_do_not_exist() -> None:
    with pytest.raises(ValueError, match="empty"):
        interval(1, 0)


def test_reasons_take_no_part_in_equality_and_are_not_repeated() -> None:
    assert everything(WHY) == everything()
    assert rules.add(everything(WHY), everything(WHY)).why == (WHY,)


def test_text() -> None:
    assert str(interval(0, 110)) == "[0, 110]"
    assert str(interval(Fraction(-1, 2), None)) == "[-0.5, ∞]"


@given(finite, finite.filter(bool))
def test_exact_numbers_stay_exact(x: Fraction, y: Fraction) -> None:
    """A whole end is an int, of which Python's own / would make a float: `quotient` does not, and no end may be one."""
    assert rules.exact(x) == x
    assert isinstance(rules.exact(x), int) is (x.denominator == 1)
    assert rules.quotient(rules.exact(x), rules.exact(y)) == x / y
    assert all(not isinstance(end, float) for i in (rules.reciprocal(point(y)), point(y)) for end in (i.lo, i.hi))
    with pytest.raises(TypeError, match="exact"):
        Interval(float(x), None)
