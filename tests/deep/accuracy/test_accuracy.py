"""The least rate that keeps a width: it holds, and a slightly smaller one does not, for many widths."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.accuracy.least_rate import DIGITS
from tests.accuracy.test_accuracy import FAMILIES, Least, Made

LESS = 1 - Fraction(1, 1 << (DIGITS - 1))
"""By this factor at least the number before lies below."""
WIDTHS = st.one_of(st.integers(0, 40), st.integers(0, 10**6), st.integers(0, 2**50))
LEVELS = st.fractions(Fraction(1, 100), Fraction(999_999, 1_000_000), max_denominator=10**9)


@FAMILIES
@settings(max_examples=150, deadline=None)
@given(width=WIDTHS, level=LEVELS)
@example(width=0, level=Fraction(95, 100))
@example(width=2**52, level=Fraction(95, 100))
@example(width=31, level=Fraction(1, 2))  # where Gaussian tails change from sums to integrals
def test_the_least_rate_holds_and_the_one_before_does_not(
    least: Least, mechanism: Made, width: int, level: Fraction
) -> None:
    rate = least(width, level)
    assert rate is not None
    assert mechanism(rate).half_width(level) <= width < mechanism(rate * LESS).half_width(level)


@FAMILIES
@settings(max_examples=60, deadline=None)
@given(scale=st.fractions(Fraction(1, 3), 10**6, max_denominator=10**6), level=LEVELS)
def test_what_noise_achieves_needs_no_more_of_it(
    least: Least, mechanism: Made, scale: Fraction, level: Fraction
) -> None:
    """Accuracy of a rate, then the least rate for that accuracy: not above it, up to the grid."""
    rate = 1 / scale
    found = least(mechanism(rate).half_width(level), level)
    assert found is not None and found * LESS <= rate


@FAMILIES
@settings(max_examples=60, deadline=None)
@given(width=WIDTHS, more=st.integers(1, 1000), level=LEVELS)
def test_a_wider_interval_never_costs_more(
    least: Least, mechanism: Made, width: int, more: int, level: Fraction
) -> None:
    narrow, wide = least(width, level), least(width + more, level)
    assert narrow is not None and wide is not None and wide <= narrow
