"""Interval rules of two arguments contain every pointwise result, and are tight, over random intervals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given

from dpsql.core.numbers import interval as rules
from dpsql.core.numbers.interval import Interval, everything
from tests.core.numbers.test_interval_rules import WHY, intervals, with_point

Binary = Callable[[Interval, Interval], Interval]
Value = Callable[[Fraction, Fraction], Fraction]
BINARY: dict[str, tuple[Binary, Value]] = {
    "add": (rules.add, lambda x, y: x + y),
    "sub": (rules.sub, lambda x, y: x - y),
    "mul": (rules.mul, lambda x, y: x * y),
    "least": (rules.least, min),
    "greatest": (rules.greatest, max),
    "hull left": (rules.hull, lambda x, y: x),
    "hull right": (rules.hull, lambda x, y: y),
}


@pytest.mark.parametrize("name", BINARY)
@given(a=with_point(), b=with_point())
def test_binary_rules_contain_every_result(
    name: str, a: tuple[Interval, Fraction], b: tuple[Interval, Fraction]
) -> None:
    rule, value = BINARY[name]
    assert value(a[1], b[1]) in rule(a[0], b[0])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "least", "greatest"])
@given(a=intervals(), b=intervals())
def test_binary_rules_are_tight_on_bounded_intervals(name: str, a: Interval, b: Interval) -> None:
    rule, value = BINARY[name]
    found = rule(a, b)
    if a.lo is not None and a.hi is not None and b.lo is not None and b.hi is not None:
        corners = [value(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        assert (found.lo, found.hi) == (min(corners), max(corners))


@pytest.mark.parametrize("name", BINARY)
@given(a=intervals(), b=intervals())
def test_an_open_end_has_a_reason(name: str, a: Interval, b: Interval) -> None:
    found = BINARY[name][0](a, b)
    assert found.bounded or found.why == (WHY,)


@given(with_point())
def test_unary_rules_contain_every_result(a: tuple[Interval, Fraction]) -> None:
    i, x = a
    assert -x in rules.neg(i)
    assert abs(x) in rules.absolute(i)
    assert rules.absolute(i).lo is not None
    if x != 0:
        assert 1 / x in rules.reciprocal(i, WHY)


@given(intervals(), intervals(), with_point())
def test_within_is_inclusion(a: Interval, b: Interval, c: tuple[Interval, Fraction]) -> None:
    assert a.within(rules.hull(a, b))
    assert b.within(rules.hull(a, b))
    assert a.within(everything())
    if c[0].within(a):
        assert c[1] in a
    if a.within(b) and b.within(a):
        assert a == b
