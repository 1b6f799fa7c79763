"""DiscreteGaussian: tails and widths against sums and scipy, loss and calibration exact, bounds never too small."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.noise.mechanisms import gaussian as module

CONTEXT = Context(prec=120, Emin=-(10**9), Emax=10**9)
small = st.fractions(min_value=Fraction(1, 50), max_value=600, max_denominator=50)
large = st.integers(10**6, 1 << 110).map(Fraction)
confidences = st.fractions(min_value=0, max_value=Fraction(999_999, 10**6), max_denominator=10**6)


@cache
def weights(v: Fraction) -> tuple[Fraction, ...]:
    """f(z) for z = 0, 1, … until it is below 1e-100, to about 100 digits, by the decimal module."""
    most = math.isqrt(int(470 * v)) + 2
    exponents = (-Fraction(z * z) / (2 * v) for z in range(most))
    return tuple(Fraction(CONTEXT.exp(CONTEXT.divide(Decimal(e.numerator), Decimal(e.denominator)))) for e in exponents)


def true_tail(m: int, v: Fraction) -> Fraction:
    f = weights(v)
    return sum(f[m:], Fraction(0)) / (2 * sum(f) - 1)


@settings(deadline=None, max_examples=60)
@given(small, st.fractions(min_value=0, max_value=20, max_denominator=10))
def test_upper_tail_is_an_upper_bound(v: Fraction, far: Fraction) -> None:
    m = math.floor(far * math.isqrt(math.ceil(v)))
    found, true = DiscreteGaussian(v).upper_tail(m, 128), true_tail(m, v)
    assert found > true - Fraction(1, 10**90)
    # Summed term by term up to 256; above, the integral's bound adds about (m/σ)²/(24σ²) of the tail.
    slack = Fraction(0) if v <= 256 else true * (1 + far**2) / (20 * v)
    assert found <= true + Fraction(1, 1 << 127) + slack + (Fraction(1, 40) if v > 256 and m == 0 else 0)


@settings(deadline=None, max_examples=60)
@given(large, st.fractions(min_value=Fraction(1, 10), max_value=18, max_denominator=100))
def test_upper_tail_of_wide_noise_against_the_normal_one(v: Fraction, far: Fraction) -> None:
    m = math.isqrt(int(far**2 * v)) + 1
    found = float(DiscreteGaussian(v).upper_tail(m, 448))
    expected = special.ndtr(-(m - 0.5) / math.sqrt(v))
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-130)


def test_far_tails_are_small_and_never_nothing() -> None:
    for v in (Fraction(1, 10), Fraction(9), Fraction(10**12)):
        far = DiscreteGaussian(v).upper_tail(10**20, 384)
        assert 0 < far <= Fraction(1, 1 << 383)
    with pytest.raises(ValueError, match="m ≥ 0"):
        DiscreteGaussian(Fraction(1)).upper_tail(-1, 128)


def test_both_ways_of_summing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The integral's bound is never below the sum, and at most 4 % above it within 12 σ, for σ² from 200 to 900."""
    for v in map(Fraction, (200, 256, 300, 900)):
        law, reach = DiscreteGaussian(v), range(1, 12 * math.isqrt(int(v)), 7)
        monkeypatch.setattr(module, "_SUMMED", 10**6)
        summed = [law.upper_tail(m, 128) for m in reach]
        monkeypatch.setattr(module, "_SUMMED", 100)
        integral = [law.upper_tail(m, 128) for m in reach]
        noise = Fraction(1, 1 << 126)
        assert all(a - noise <= b <= a * Fraction(104, 100) + noise for a, b in zip(summed, integral, strict=True))


@settings(deadline=None, max_examples=60)
@given(large, confidences)
def test_half_width_of_wide_noise(v: Fraction, confidence: Fraction) -> None:
    sigma = math.sqrt(v)
    expected = sigma * special.ndtri((1 + float(confidence)) / 2)
    assert DiscreteGaussian(v).half_width(confidence) == pytest.approx(expected, rel=1e-7, abs=1)


def test_half_width_by_hand() -> None:
    """σ = 1: P(|Z| ≤ 1) = (1 + 2e^-½)/2.5066 = 0.8829, P(|Z| ≤ 2) = 0.9909. σ = 10⁶: 1.959964 σ."""
    one = DiscreteGaussian(Fraction(1))
    assert [one.half_width(Fraction(c, 100)) for c in (0, 39, 40, 88, 89, 99)] == [0, 0, 1, 1, 2, 2]
    assert DiscreteGaussian(Fraction(10**12)).half_width(Fraction(19, 20)) == 1_959_964
    with pytest.raises(ValueError, match="confidence"):
        one.half_width(Fraction(1))


@settings(max_examples=50)
@given(st.integers(1, 10**30), st.fractions(min_value=Fraction(1, 10**4), max_value=100, max_denominator=10**6))
def test_calibrate_spends_exactly_what_it_is_given(l2_squared: int, rho: Fraction) -> None:
    mechanism = DiscreteGaussian.calibrate(Fraction(l2_squared), rho)
    assert mechanism.sigma_squared == l2_squared / (2 * rho)
    loss = mechanism.loss(Fraction(l2_squared), Fraction(l2_squared))
    assert (loss.rho, loss.epsilon, loss.delta) == (rho, 0, 0)


@given(st.one_of(small, large))
def test_scale_is_sigma_rounded_up(v: Fraction) -> None:
    scale = DiscreteGaussian(v).scale
    assert v <= scale**2 <= v * (1 + Fraction(1, 1 << 60))


@settings(deadline=None, max_examples=40)
@given(small)
def test_variance(v: Fraction) -> None:
    f = weights(v)
    true = 2 * sum(z * z * w for z, w in enumerate(f)) / (2 * sum(f) - 1)
    assert DiscreteGaussian(v).variance() == pytest.approx(float(true), rel=1e-9)
    assert float(true) <= float(v)


def test_what_is_refused() -> None:
    for bad in (Fraction(0), Fraction(-1), 0.5, 3, Fraction(1 << 111)):
        with pytest.raises(ValueError, match="variance"):
            DiscreteGaussian(bad)  # type: ignore[arg-type]
    for l2, rho in ((0, 1), (-1, 1), (1, 0), (1, -1)):
        with pytest.raises(ValueError, match="above 0"):
            DiscreteGaussian.calibrate(Fraction(l2), Fraction(rho))
