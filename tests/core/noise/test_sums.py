"""Half-widths of sums of several noises of one law, against convolutions and against the mechanisms' own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, laplace
from dpsql.core.noise.mechanisms.laplace import laplace_tail

LEVELS = [Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000), 1 - Fraction(1, 10**6)]


def laws(mechanism: DiscreteLaplace | DiscreteGaussian, n: int) -> np.ndarray:
    """P(|Z₁ + … + Zₙ| > w) for w from 0 on: the laws multiplied out, but for masses below 1e-40."""
    scale = float(mechanism.scale)
    reach = math.ceil(scale * (100 if mechanism.name == "laplace" else 14)) + 2
    z = np.abs(np.arange(-reach, reach + 1, dtype=np.float64)) / scale
    one = np.exp(-z if mechanism.name == "laplace" else -(z**2) / 2)
    one /= one.sum()
    found = one
    for _ in range(n - 1):
        found = np.convolve(found, one)
    tails: np.ndarray = 2 * np.cumsum(found[::-1])[::-1][n * reach + 1 :]
    return tails


CASES = [
    *((DiscreteLaplace(Fraction(b)), n) for b in ("1/900", "1/9", "1/2", "1", "7/3", "20") for n in (2, 3, 5, 12)),
    *((DiscreteGaussian(Fraction(v)), n) for v in ("1/100", "1/3", "1", "2", "3", "4", "90") for n in (2, 3, 5, 12)),
]


@pytest.mark.parametrize(("mechanism", "n"), CASES)
def test_the_least_width_that_covers(mechanism: DiscreteLaplace | DiscreteGaussian, n: int) -> None:
    tails = laws(mechanism, n)
    for level in LEVELS:
        w, outside = mechanism.half_width_of_sum(n, level), float(1 - level)
        assert tails[w] <= outside * (1 + 1e-6)
        # Discrete Gaussian widths may be one unit wider than need be, as the mechanism's own.
        least = w - (2 if mechanism.name == "gaussian" else 1)
        assert least < 0 or tails[least] > outside * (1 - 1e-6)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(3))])
def test_one_noise_is_left_to_its_mechanism(mechanism: DiscreteLaplace | DiscreteGaussian) -> None:
    assert [mechanism.half_width_of_sum(1, level) for level in LEVELS] == [mechanism.half_width(x) for x in LEVELS]


def test_wide_noise_and_many_parts() -> None:
    """Continuous Laplace noise of scale b: (1 + w/2b)·e^(-w/b)/… of two; of many the normal law."""
    two = DiscreteLaplace(Fraction(2**40)).half_width_of_sum(2, Fraction(95, 100)) / 2**40
    assert math.isclose((1 + two / 2) * math.exp(-two), 0.05, rel_tol=1e-6)
    many = DiscreteLaplace(Fraction(1000)).half_width_of_sum(400, Fraction(95, 100))
    assert math.isclose(many / 1000, 1.96 * math.sqrt(800), rel_tol=2e-3)
    gaussian = DiscreteGaussian(Fraction(10**6)).half_width_of_sum(400, Fraction(95, 100))
    assert math.isclose(gaussian, 1.95996 * math.sqrt(400) * 1000, rel_tol=1e-4)


def test_more_noise_is_never_narrower() -> None:
    for n in (2, 5):
        one = [DiscreteLaplace(Fraction(k, 7)).half_width_of_sum(n, Fraction(95, 100)) for k in range(1, 60)]
        other = [DiscreteGaussian(Fraction(k, 7)).half_width_of_sum(n, Fraction(95, 100)) for k in range(1, 60)]
        assert one == sorted(one) and other == sorted(other)


def test_the_tail_of_laplace_noise_adds_up() -> None:
    for rate in (0.001, 0.3, 2.0, 50.0):
        assert laplace_tail(rate, 3, 1) < 0.5
        assert laplace_tail(rate, 3, 2) < laplace_tail(rate, 3, 1)
        one = math.exp(-rate * 4) / (1 + math.exp(-rate))
        assert math.isclose(laplace_tail(rate, 1, 4), one, rel_tol=1e-12)


def test_a_width_of_one_part_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: n noises taken for one of n times the scale squared, or for one alone."""
    monkeypatch.setattr(laplace, "laplace_tail", lambda rate, n, m: math.exp(-rate * m) / (1 + math.exp(-rate)))
    laplace._half_width_of_sum.cache_clear()
    with pytest.raises(AssertionError):
        test_the_least_width_that_covers(DiscreteLaplace(Fraction(1)), 3)
    laplace._half_width_of_sum.cache_clear()
