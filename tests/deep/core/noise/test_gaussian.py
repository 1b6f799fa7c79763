"""Widths of Gaussian noise, over many scales."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.noise.mechanisms import DiscreteGaussian
from tests.core.noise.test_gaussian import confidences, true_tail


@settings(deadline=None, max_examples=60)
@given(st.fractions(min_value=Fraction(1, 50), max_value=900, max_denominator=50), confidences)
def test_half_width_covers_and_is_the_least_or_one_more(v: Fraction, confidence: Fraction) -> None:
    found = DiscreteGaussian(v).half_width(confidence)
    assert 1 - 2 * true_tail(found + 1, v) >= confidence
    least_would_be = found - (0 if v <= 256 else 1)
    assert least_would_be <= 0 or 1 - 2 * true_tail(least_would_be, v) < confidence
