"""Discrete Laplace draws against their exact distribution; every mutated twin must be rejected."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from dpsql.measure.mechanisms import DiscreteLaplace
from dpsql.measure.random import _KERNEL, Laplace, discrete_laplace
from tests.statistical.goodness import ALPHA, Sample, verdict

pytestmark = pytest.mark.statistical

N = 500_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(10**6), Fraction(1 << 40)]
SMALL = SCALES[:3]


def draw(scale: Fraction, n: int = N) -> Sample:
    return np.array(discrete_laplace(scale, n), np.int64)


@lru_cache
def fresh(scale: Fraction) -> Sample:
    """One sample per scale and run, shared by the tests that only need correct draws."""
    return draw(scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_follow_the_distribution(scale: Fraction) -> None:
    assert verdict(fresh(scale), scale) == {}


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("factor", [Fraction(19, 20), Fraction(21, 20)], ids=["0.95", "1.05"])
def test_a_wrong_scale_is_rejected(scale: Fraction, factor: Fraction) -> None:
    assert verdict(draw(scale * factor), scale)


@pytest.mark.parametrize("scale", SCALES[1:], ids=str)
def test_a_finite_support_is_rejected(scale: Fraction) -> None:
    """Twin: the tail above the binary digits is never drawn. (At scale 1/3 it has mass 6e-7: see the enumeration.)"""

    class NoTail(Laplace):
        def _high(self, count: int, source: object) -> np.ndarray:
            return np.zeros(count, np.int64)

    sample = np.array(NoTail(scale).draw(N, _KERNEL), np.int64)
    assert "tails" in verdict(sample, scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_clamped_tail_is_rejected(scale: Fraction) -> None:
    """Twin: noise clamped to a width that holds 99.9 % of it."""
    w = DiscreteLaplace(scale).half_width(Fraction(999, 1000))
    assert "tails" in verdict(np.clip(fresh(scale), 1 - w, w - 1), scale)


@pytest.mark.parametrize("scale", SCALES[:4], ids=str)
def test_zero_counted_twice_is_rejected(scale: Fraction) -> None:
    """Twin: a random sign on a geometric size, the classic error. |Z| - 1 given Z ≠ 0 is that size."""
    z = draw(scale, 2 * N)
    z = z[z != 0]
    assert "zeros" in verdict(z - np.sign(z), scale)


@pytest.mark.parametrize("scale", SMALL, ids=str)
@pytest.mark.parametrize("shift", ["all", "positive", "outwards"])
def test_an_off_by_one_is_rejected(scale: Fraction, shift: str) -> None:
    z = fresh(scale)
    by = {"all": 1, "positive": (z > 0).astype(np.int64), "outwards": np.sign(z)}[shift]
    assert verdict(z + by, scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_one_sign_is_rejected(scale: Fraction) -> None:
    assert verdict(np.abs(fresh(scale)), scale)


@pytest.mark.parametrize("scale", SCALES[2:], ids=str)
def test_a_stuck_low_digit_is_rejected(scale: Fraction) -> None:
    """Twin: multiples of two only, a flaw far too fine for any bin at scale 2^40."""
    assert "parity" in verdict(fresh(scale) // 2 * 2, scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_repeated_draws_are_rejected(scale: Fraction) -> None:
    """Twin: every draw handed out twice, which leaves the histogram alone."""
    assert "serial" in verdict(np.repeat(fresh(scale)[: N // 2], 2), scale)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(1000), Fraction(1 << 40)], ids=str)
def test_half_width_covers_what_it_says(scale: Fraction) -> None:
    """At least 95 % lie within ± w; within ± 0.9 w (the twin) clearly fewer do."""
    w = DiscreteLaplace(scale).half_width(Fraction(19, 20))
    sizes = np.abs(fresh(scale))
    outside, outside_twin = int((sizes > w).sum()), int((sizes > w * 9 // 10).sum())
    assert stats.binom.sf(outside - 1, N, 0.05) > ALPHA
    assert stats.binom.sf(outside_twin - 1, N, 0.05) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("scale", [*SCALES, Fraction(1 << 55)], ids=str)
def test_ten_million_draws(scale: Fraction) -> None:
    assert verdict(draw(scale, 10_000_000), scale) == {}


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_ten_million_draws_reject_one_percent(scale: Fraction) -> None:
    assert verdict(draw(scale * Fraction(101, 100), 10_000_000), scale)
