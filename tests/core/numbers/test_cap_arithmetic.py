"""Caps: sound bounds stay sound, and an unbounded cap never loses its reasons."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.numbers.cap import ONE, ZERO, Cap, Finite, Unbounded, add, finite, larger, smaller, times
from dpsql.diagnostics.diagnostic import Reason

R1, R2 = Reason("DP201", "no bound on a"), Reason("DP201", "no bound on b")
values = st.fractions(min_value=0, max_value=10**6, max_denominator=100)
bounded = values.map(Finite)
unbounded = st.sampled_from([Unbounded((R1,)), Unbounded((R2,)), Unbounded((R1, R2))])
caps = st.one_of(bounded, unbounded)


def holds(cap: Cap, x: Fraction) -> bool:
    return isinstance(cap, Unbounded) or x <= cap.value


def below(cap: Cap, x: Fraction) -> Fraction:
    """A number that `cap` truly bounds."""
    return x if isinstance(cap, Unbounded) else min(x, cap.value)


@given(caps, caps, values, values)
def test_results_bound_the_results(a: Cap, b: Cap, x: Fraction, y: Fraction) -> None:
    x, y = below(a, x), below(b, y)
    assert holds(add(a, b), x + y)
    assert holds(times(a, b), x * y)
    assert holds(larger(a, b), max(x, y))
    both = min(x, y)  # bounded by a and by b
    assert holds(smaller(a, b), both)


@given(bounded, bounded)
def test_finite_results_are_exact(a: Finite, b: Finite) -> None:
    assert add(a, b) == Finite(a.value + b.value)
    assert times(a, b) == Finite(a.value * b.value)
    assert larger(a, b) == Finite(max(a.value, b.value))
    assert smaller(a, b) == Finite(min(a.value, b.value))


@given(caps, caps)
def test_reasons_survive_once_each(a: Cap, b: Cap) -> None:
    reasons = {r for cap in (a, b) if isinstance(cap, Unbounded) for r in cap.reasons}
    for result in (add(a, b), times(a, b), larger(a, b)):
        if isinstance(result, Unbounded):
            assert set(result.reasons) == reasons
            assert len(result.reasons) == len(reasons)
        else:
            assert not reasons or ZERO in (a, b)


@given(caps)
def test_neutral_elements(a: Cap) -> None:
    assert add(a, ZERO) == add(ZERO, a) == a
    assert times(a, ONE) == times(ONE, a) == a
    assert times(a, ZERO) == times(ZERO, a) == ZERO
    assert larger(a, ZERO) == a
    assert smaller(a, a) == a


@given(bounded, unbounded)
def test_smaller_takes_the_known_bound(a: Finite, b: Unbounded) -> None:
    assert smaller(a, b) == smaller(b, a) == a


def test_bad_caps_do_not_exist() -> None:
    with pytest.raises(ValueError, match="negative"):
        finite(-1)
    with pytest.raises(ValueError, match="reason"):
        Unbounded(())


def test_text() -> None:
    assert str(finite(Fraction(7, 2))) == "7/2"
    assert str(Unbounded((R1,))) == "unbounded"
