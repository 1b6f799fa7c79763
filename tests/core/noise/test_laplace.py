"""DiscreteLaplace and Exact: price, calibration, interval widths, exact integers."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.noise.mechanisms import DiscreteLaplace, NoNoise
from dpsql.core.noise.sampler import discrete_laplace
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss

CONTEXT = Context(prec=100)
BAD_SCALES = [Fraction(0), Fraction(-1), Fraction((1 << 55) + 1), 1.0, 0.1, 3, None, "1"]
scales = st.one_of(
    st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=1000),
    st.fractions(min_value=1, max_value=1 << 55, max_denominator=1000),
)


def exp_of(x: Fraction) -> Fraction:
    return Fraction(CONTEXT.exp(CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))))


def outside(scale: Fraction, w: int) -> Fraction:
    """P(|Z| > w), to about 100 digits."""
    return 2 * exp_of(-(w + 1) / scale) / (1 + exp_of(-1 / scale))


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=10**9), st.fractions(min_value=Fraction(1, 1000), max_value=9)
)
def test_the_price_is_the_one_that_was_calibrated(l1: Fraction, epsilon: Fraction) -> None:
    mechanism = DiscreteLaplace.calibrate(l1, epsilon)
    assert mechanism.scale == l1 / epsilon
    assert mechanism.loss(l1, l1 * l1) == PrivacyLoss(epsilon=epsilon)
    assert mechanism.loss(2 * l1, Fraction(0)) == PrivacyLoss(epsilon=2 * epsilon)
    assert mechanism.loss(Fraction(0), Fraction(0)) == NO_LOSS


@pytest.mark.parametrize(
    ("l1", "epsilon", "message"),
    [
        (Fraction(0), Fraction(1), "NoNoise"),
        (Fraction(-1), Fraction(1), "NoNoise"),
        (Fraction(1), Fraction(0), "epsilon"),
        (Fraction(1), Fraction(-1), "epsilon"),
        (Fraction(1 << 40), Fraction(1, 1 << 16), "2\\^55"),
    ],
)
def test_calibration_refuses(l1: Fraction, epsilon: Fraction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DiscreteLaplace.calibrate(l1, epsilon)


def test_the_largest_scale_is_accepted() -> None:
    mechanism = DiscreteLaplace.calibrate(Fraction(1 << 40), Fraction(1, 1 << 15))
    assert mechanism.scale == 1 << 55
    assert len(mechanism.add_noise([0] * 3)) == 3


@pytest.mark.parametrize("scale", BAD_SCALES, ids=repr)
def test_bad_scales(scale: object) -> None:
    with pytest.raises(ValueError, match="scale"):
        DiscreteLaplace(scale)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scale"):
        discrete_laplace(scale, 1)  # type: ignore[arg-type]


def test_a_negative_sensitivity_has_no_price() -> None:
    with pytest.raises(ValueError, match="negative"):
        DiscreteLaplace(Fraction(1)).loss(Fraction(-1), Fraction(1))


@settings(deadline=None)
@given(scales, st.fractions(min_value=0, max_value=1, max_denominator=10**6).filter(lambda c: c < 1))
def test_half_width_is_the_least(scale: Fraction, confidence: Fraction) -> None:
    w = DiscreteLaplace(scale).half_width(confidence)
    assert w >= 0
    assert outside(scale, w) <= 1 - confidence
    assert w == 0 or outside(scale, w - 1) > 1 - confidence


def test_half_width_beside_a_hair() -> None:
    """Confidences a billionth of a billionth on either side of P(|Z| ≤ 6) give 6 and 7: no float could tell."""
    scale, hair = Fraction(2), Fraction(1, 10**30)
    inside = 1 - outside(scale, 6)
    assert DiscreteLaplace(scale).half_width(inside - hair) == 6
    assert DiscreteLaplace(scale).half_width(inside + hair) == 7


@pytest.mark.parametrize("confidence", [Fraction(1), Fraction(-1, 10), Fraction(3, 2)])
def test_half_width_refuses(confidence: Fraction) -> None:
    with pytest.raises(ValueError, match="confidence"):
        DiscreteLaplace(Fraction(1)).half_width(confidence)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_variance_is_the_sum_of_the_distribution(scale: Fraction) -> None:
    q = math.exp(-1 / scale)
    direct = sum(2 * z * z * (1 - q) / (1 + q) * q**z for z in range(1, 4000))
    assert DiscreteLaplace(scale).variance() == pytest.approx(direct, rel=1e-9)


def test_variance_at_the_ends() -> None:
    assert DiscreteLaplace(Fraction(1, 10**400)).variance() == 0.0
    assert DiscreteLaplace(Fraction(1, 200)).variance() == pytest.approx(2 * math.exp(-200), rel=1e-9)
    assert DiscreteLaplace(Fraction(1 << 55)).variance() == pytest.approx(2.0**111, rel=1e-9)


@given(scales, st.integers(0, 60))
def test_upper_tail_is_an_upper_bound(scale: Fraction, m: int) -> None:
    true = exp_of(-m / scale) / (1 + exp_of(-1 / scale))
    found = DiscreteLaplace(scale).upper_tail(m, 128)
    assert true - Fraction(1, 10**90) <= found <= true + Fraction(1, 1 << 127)
    with pytest.raises(ValueError, match="m ≥ 0"):
        DiscreteLaplace(scale).upper_tail(-1, 128)


def test_sums_beyond_64_bits_are_exact() -> None:
    huge = 1 << 100
    noisy = DiscreteLaplace(Fraction(3)).add_noise([huge, -huge, 0])
    assert [abs(noisy[0] - huge) < 1000, abs(noisy[1] + huge) < 1000, abs(noisy[2]) < 1000] == [True] * 3


def test_numpy_integers_do_not_wrap() -> None:
    top = np.iinfo(np.int64).max
    noisy = DiscreteLaplace(Fraction(50)).add_noise(np.full(200, top))  # type: ignore[arg-type]
    assert {type(v) for v in noisy} == {int}
    assert all(abs(v - int(top)) < 50 * 40 for v in noisy)
    assert max(noisy) > int(top)


def test_floats_are_refused() -> None:
    with pytest.raises(TypeError):
        DiscreteLaplace(Fraction(1)).add_noise([1.5])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        NoNoise().add_noise([1.5])  # type: ignore[list-item]


def test_a_tiny_scale_draws_zeros() -> None:
    """P(Z ≠ 0) is about 2e^-1000: seeing one would be a miracle or a bug."""
    assert discrete_laplace(Fraction(1, 1000), 1000) == [0] * 1000


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, (1 << 12) - 1, 1 << 12, (1 << 12) + 1])
def test_as_many_draws_as_asked(n: int) -> None:
    assert len(discrete_laplace(Fraction(5), n)) == n


def test_a_negative_number_of_draws() -> None:
    with pytest.raises(ValueError, match="n must"):
        discrete_laplace(Fraction(1), -1)


def test_exact_is_free_only_for_what_never_changes() -> None:
    assert NoNoise().loss(Fraction(0), Fraction(0)) == NO_LOSS
    assert NoNoise().add_noise([1, 1 << 90, -3]) == [1, 1 << 90, -3]
    for l1, l2 in [(Fraction(1), Fraction(1)), (Fraction(1, 10**9), Fraction(0)), (Fraction(0), Fraction(1))]:
        with pytest.raises(ValueError, match="without noise"):
            NoNoise().loss(l1, l2)
