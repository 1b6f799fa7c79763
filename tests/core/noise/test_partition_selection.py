"""KeyThreshold: δ is never exceeded, T is the least that does it, minimum units only raise it."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold, delta_of
from dpsql.core.noise.partition_selection import SMALLEST_DELTA

CONTEXT = Context(prec=200, Emin=-(10**9), Emax=10**9)
scales = st.one_of(
    st.fractions(min_value=Fraction(1, 20), max_value=20, max_denominator=100),
    st.integers(1, 1 << 55).map(Fraction),
)
deltas = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(1, 2), max_denominator=10**6),
    st.integers(6, 77).map(lambda k: Fraction(1, 10**k)),
)
reaches = st.tuples(st.integers(1, 1000), st.one_of(st.integers(1, 20), st.integers(1, 10**6)))


def decimal(x: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def true_delta(threshold: int, r: int, g: int, scale: Fraction) -> Fraction:
    """1-(1-δ₁)^g by the decimal module, to about 100 digits beyond any δ here."""
    q = CONTEXT.exp(decimal(-1 / scale))
    one = CONTEXT.divide(CONTEXT.exp(decimal(-(threshold - r) / scale)), CONTEXT.add(Decimal(1), q))
    none_shows = CONTEXT.power(CONTEXT.subtract(Decimal(1), one), Decimal(g))
    return Fraction(CONTEXT.subtract(Decimal(1), none_shows))


@settings(deadline=None)
@given(scales, reaches, deltas)
def test_the_least_threshold_that_keeps_delta(scale: Fraction, reach: tuple[int, int], delta: Fraction) -> None:
    r, g = reach
    rule = KeyThreshold.calibrate(DiscreteLaplace(scale), r, g, delta)
    assert rule.threshold >= r
    assert rule.delta <= delta
    assert true_delta(rule.threshold, r, g, scale) <= delta
    assert rule.threshold == r or true_delta(rule.threshold - 1, r, g, scale) > delta


def gaussian_tail(m: int, v: Fraction) -> Fraction:
    """P(Z ≥ m), summed directly by the decimal module."""
    f = [Fraction(CONTEXT.exp(decimal(-Fraction(z * z) / (2 * v)))) for z in range(math.isqrt(int(500 * v)) + 2)]
    return sum(f[max(m, 0) :], Fraction(0)) / (2 * sum(f) - 1) if m >= 0 else Fraction(1)


def test_gaussian_values_by_hand() -> None:
    """σ = 3: P(Z ≥ 7) = 0.0151 and P(Z ≥ 8) = 0.0062 by direct sums; so δ = 1/100 needs T - r = 8."""
    rule = KeyThreshold.calibrate(DiscreteGaussian(Fraction(9)), 2, 1, Fraction(1, 100))
    assert rule.threshold == 10
    assert float(rule.delta) == pytest.approx(float(gaussian_tail(8, Fraction(9))), rel=1e-12)


def test_far_thresholds_cost_little_and_something() -> None:
    found = delta_of(10**12, 1, 5, DiscreteLaplace(Fraction(2)))
    assert 0 < found < Fraction(1, 1 << 300)


def test_values_by_hand() -> None:
    """Scale 1/ln 2 would give q = 1/2; at scale 2, δ₁(T-r = m) = e^(-m/2)/(1+e^(-1/2)): 0.0103 at 8, 0.0063 at 9."""
    assert KeyThreshold.calibrate(DiscreteLaplace(Fraction(2)), 1, 1, Fraction(1, 100)).threshold == 10
    assert KeyThreshold.calibrate(DiscreteLaplace(Fraction(2)), 1, 1, Fraction(12, 1000)).threshold == 9
    assert float(delta_of(10, 1, 1, DiscreteLaplace(Fraction(2)))) == pytest.approx(0.0069147, rel=1e-4)
    assert float(delta_of(1, 1, 1, DiscreteLaplace(Fraction(2)))) == pytest.approx(0.6224593, rel=1e-6)


def test_release_compares_with_at_least() -> None:
    rule = KeyThreshold(10, DiscreteLaplace(Fraction(2)), 1, 1)
    assert rule.release([9, 10, 11, -5, 1 << 90]) == [False, True, True, False, True]
    assert rule.release([]) == []


def test_minimum_units_raise_the_threshold_and_lower_delta() -> None:
    mechanism, delta = DiscreteLaplace(Fraction(2)), Fraction(1, 1000)
    plain = KeyThreshold.calibrate(mechanism, 1, 1, delta)
    assert KeyThreshold.calibrate(mechanism, 1, 1, delta, min_units=3) == plain
    raised = KeyThreshold.calibrate(mechanism, 1, 1, delta, min_units=plain.threshold + 5)
    assert raised.threshold == plain.threshold + 5
    assert 0 < raised.delta < plain.delta


def test_more_keys_need_a_higher_threshold() -> None:
    mechanism, delta = DiscreteLaplace(Fraction(5)), Fraction(1, 10**9)
    thresholds = [KeyThreshold.calibrate(mechanism, 1, g, delta).threshold for g in (1, 5, 100, 10**6)]
    assert thresholds == sorted(set(thresholds))


def test_a_large_delta_needs_no_more_than_r() -> None:
    """P(Z ≥ 0) = 1/(1+e^(-1/2)) = 0.622 at scale 2."""
    assert KeyThreshold.calibrate(DiscreteLaplace(Fraction(2)), 4, 1, Fraction(7, 10)).threshold == 4
    assert KeyThreshold.calibrate(DiscreteLaplace(Fraction(2)), 4, 1, Fraction(6, 10)).threshold == 5


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(-1, 2), Fraction(1), Fraction(2), SMALLEST_DELTA / 2])
def test_deltas_that_are_refused(delta: Fraction) -> None:
    with pytest.raises(ValueError, match="delta"):
        KeyThreshold.calibrate(DiscreteLaplace(Fraction(1)), 1, 1, delta)


@pytest.mark.parametrize(("threshold", "r", "g"), [(5, 0, 1), (5, 1, 0), (5, -1, 1), (4, 5, 1), (-3, 1, 1)])
def test_shapes_that_are_refused(threshold: int, r: int, g: int) -> None:
    with pytest.raises(ValueError, match=r"at least 1|below r"):
        KeyThreshold(threshold, DiscreteLaplace(Fraction(1)), r, g)
    with pytest.raises(ValueError, match=r"at least 1|below r"):
        delta_of(threshold, r, g, DiscreteLaplace(Fraction(1)))
