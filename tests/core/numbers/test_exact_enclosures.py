"""The enclosures of e^-x and ln x hold the true value, are as narrow as promised, and decide correctly."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.numbers.enclosures import exp_minus, floor, log, monotone
from dpsql.core.numbers.interval import Interval, everything, interval

CONTEXT = Context(prec=120, Emin=-(10**8), Emax=10**8)
fractions = st.fractions(min_value=0, max_value=300, max_denominator=10**12)
positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**15, max_denominator=10**12)
bits = st.integers(1, 256)


def reference(operation: Callable[[Decimal], Decimal], x: Fraction) -> Fraction:
    return Fraction(operation(CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))))


def check(found: Interval, true: Fraction, width: int) -> None:
    """`true` is right to more than 100 digits, so it may miss the interval by that much and no more."""
    slack = Fraction(1, 10**100) * max(1, abs(true))
    assert found.lo is not None and found.hi is not None
    assert found.lo - slack <= true <= found.hi + slack
    assert found.hi - found.lo <= Fraction(1, 1 << width)


@given(fractions, bits)
def test_exp_minus(x: Fraction, width: int) -> None:
    found = exp_minus(x, width)
    check(found, reference(lambda y: CONTEXT.exp(CONTEXT.minus(y)), x), width)
    assert found.lo is not None and found.lo >= 0
    assert found.hi is not None and found.hi <= 1


@given(positive, bits)
def test_log(x: Fraction, width: int) -> None:
    check(log(x, width), reference(CONTEXT.ln, x), width)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 10**400), Fraction(10**400), Fraction(1, 3), Fraction(700)])
def test_exp_minus_at_the_edges(x: Fraction) -> None:
    found = exp_minus(x, 2000)
    assert found.lo is not None and found.hi is not None
    assert found.hi - found.lo <= Fraction(1, 1 << 2000)
    assert 1 - x <= found.hi
    assert found.lo <= 1 / (1 + x)


@pytest.mark.parametrize("x", [Fraction(-1), Fraction(-1, 10**9)])
def test_arguments_outside_the_domain(x: Fraction) -> None:
    with pytest.raises(ValueError, match="x ≥ 0"):
        exp_minus(x, 10)
    with pytest.raises(ValueError, match="x > 0"):
        log(x, 10)
    with pytest.raises(ValueError, match="x > 0"):
        log(Fraction(0), 10)
    with pytest.raises(ValueError, match="bounded"):
        monotone(lambda y: log(y, 10), everything())


@given(st.fractions(min_value=-1000, max_value=1000), st.integers(1, 20))
def test_floor_refines_until_it_is_decided(value: Fraction, first: int) -> None:
    """For every value that is no integer, whatever the number of bits it starts from."""
    if value.denominator == 1:
        value += Fraction(1, 3)
    asked = []

    def enclosure(width: int) -> Interval:
        asked.append(width)
        half = Fraction(1, 1 << (width + 1))
        return interval(value - half, value + half)

    assert floor(enclosure, first) == math.floor(value)
    assert asked == sorted(set(asked))


def test_floor_gives_up_on_an_integer() -> None:
    with pytest.raises(ArithmeticError, match="narrow"):
        floor(lambda width: interval(3 - Fraction(1, 1 << width), 3 + Fraction(1, 1 << width)))


def test_log_inverts_exp() -> None:
    for x in (Fraction(1, 7), Fraction(5), Fraction(123, 10)):
        back = monotone(lambda y: log(y, 200), exp_minus(x, 200))
        assert -x in back
        assert back.lo is not None and back.hi is not None and back.hi - back.lo < Fraction(1, 1 << 150)
