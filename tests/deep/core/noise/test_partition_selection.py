"""Thresholds under Gaussian noise of many scales, and how close the bound of δ is."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold, delta_of
from dpsql.core.numbers.normal import erfc_root
from tests.core.noise.test_partition_selection import (
    CONTEXT,
    decimal,
    deltas,
    gaussian_tail,
    reaches,
    scales,
    true_delta,
)


@settings(deadline=None)
@given(scales, reaches, st.fractions(min_value=0, max_value=150, max_denominator=100))
def test_delta_is_a_close_upper_bound(scale: Fraction, reach: tuple[int, int], distance: Fraction) -> None:
    r, g = reach
    threshold = r + int(distance * scale)
    found, true = delta_of(threshold, r, g, DiscreteLaplace(scale)), true_delta(threshold, r, g, scale)
    assert true <= found * (1 + Fraction(1, 10**60))  # the reference's own error
    assert found <= true * (1 + Fraction(1, 1 << 90)) + Fraction(1, 1 << 300)
    assert found.numerator.bit_length() <= 97, "a ledger entry should be short"


@settings(deadline=None, max_examples=40)
@given(
    st.fractions(min_value=Fraction(1, 20), max_value=256, max_denominator=20),
    st.tuples(st.integers(1, 1000), st.integers(1, 10**6)),
    deltas,
)
def test_the_least_threshold_under_gaussian_noise(v: Fraction, reach: tuple[int, int], delta: Fraction) -> None:
    r, g = reach
    rule = KeyThreshold.calibrate(DiscreteGaussian(v), r, g, delta)
    assert rule.delta <= delta
    for threshold in (rule.threshold, rule.threshold - 1):
        one = gaussian_tail(threshold - r, v)
        none_shows = CONTEXT.power(CONTEXT.subtract(Decimal(1), decimal(one)), Decimal(g))
        true = Fraction(CONTEXT.subtract(Decimal(1), none_shows))
        assert true <= delta if threshold == rule.threshold else rule.threshold == r or true > delta


@settings(deadline=None, max_examples=40)
@given(st.integers(300, 1 << 100), st.integers(1, 10**6), deltas)
def test_thresholds_under_wide_gaussian_noise(v: int, g: int, delta: Fraction) -> None:
    """The integral's bound costs at most one unit: one key less, seen from the other side by Q(m/σ)."""
    mechanism = DiscreteGaussian(Fraction(v))
    rule = KeyThreshold.calibrate(mechanism, 1, g, delta)
    assert rule.delta <= delta
    below = rule.threshold - 1 - 2  # T - r, and one unit for the bound
    outside = erfc_root(Fraction(max(0, below) ** 2, 2 * v), 700).lo
    assert outside is not None
    one = CONTEXT.subtract(Decimal(1), decimal(outside / 2))
    assert below < 0 or Fraction(CONTEXT.subtract(Decimal(1), CONTEXT.power(one, Decimal(g)))) > delta
