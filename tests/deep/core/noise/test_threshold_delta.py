"""How often a neighbour's own keys show, against the δ that is charged; an off-by-one must be found."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold
from tests.support.goodness_of_fit import ALPHA, binomial

N = 200_000
Noise = DiscreteLaplace | DiscreteGaussian
CASES = [  # noise, r, g, δ: large enough to be seen
    (DiscreteLaplace(Fraction(2)), 1, 1, Fraction(1, 50)),
    (DiscreteLaplace(Fraction(2)), 1, 3, Fraction(1, 20)),
    (DiscreteLaplace(Fraction(1, 2)), 1, 2, Fraction(1, 100)),
    (DiscreteLaplace(Fraction(15, 2)), 3, 5, Fraction(1, 10)),
    (DiscreteGaussian(Fraction(9)), 1, 1, Fraction(1, 50)),
    (DiscreteGaussian(Fraction(9)), 2, 3, Fraction(1, 20)),
    (DiscreteGaussian(Fraction(1, 2)), 1, 2, Fraction(1, 40)),
    (DiscreteGaussian(Fraction(101, 2)), 3, 5, Fraction(1, 10)),
]
cases = pytest.mark.parametrize(("noise", "r", "g", "delta"), CASES)


def narrower(noise: Noise, factor: Fraction) -> Noise:
    """The same family at `factor` times the scale."""
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(noise.scale * factor)
    return DiscreteGaussian(noise.sigma_squared * factor**2)


def shown(rule: KeyThreshold, n: int = N, count: int | None = None) -> int:
    """In how many of n runs at least one of g keys shows whose exact count is r: the worst case."""
    noisy = rule.mechanism.add_noise([rule.r if count is None else count] * (n * rule.g))
    return int(np.array(rule.release(noisy)).reshape(n, rule.g).any(axis=1).sum())


def too_often(count: int, delta: Fraction) -> bool:
    """Whether δ is refuted: so many keys shown have a probability below ALPHA."""
    return float(stats.binom.sf(count - 1, N, float(delta))) < ALPHA


@cases
def test_keys_show_as_often_as_charged(noise: Noise, r: int, g: int, delta: Fraction) -> None:
    rule = KeyThreshold.calibrate(noise, r, g, delta)
    assert rule.delta <= delta
    assert binomial(shown(rule), N, float(rule.delta)) > ALPHA


@cases
def test_a_threshold_too_low_by_one_is_found(noise: Noise, r: int, g: int, delta: Fraction) -> None:
    """Twin: released at `≥ T` but charged as `> T`, a mistake made before by others. It breaks even the asked δ."""
    rule = KeyThreshold.calibrate(noise, r, g, delta)
    low = KeyThreshold(rule.threshold - 1, rule.mechanism, r, g)
    count = shown(low)
    assert too_often(count, rule.delta)
    assert binomial(count, N, float(low.delta)) > ALPHA, "the finished object must state the δ it really has"


@cases
def test_comparing_with_more_than_is_found(noise: Noise, r: int, g: int, delta: Fraction) -> None:
    """Twin: `noisy > T` in place of `noisy ≥ T` shows less than is charged, which is as wrong and wastes δ."""
    rule = KeyThreshold.calibrate(noise, r, g, delta)
    noisy = np.array(rule.mechanism.add_noise([r] * (N * g))).reshape(N, g)
    assert binomial(int((noisy > rule.threshold).any(axis=1).sum()), N, float(rule.delta)) < ALPHA


@cases
def test_a_wrong_reach_is_found(noise: Noise, r: int, g: int, delta: Fraction) -> None:
    """Twins: one unit of distance adds r + 1 to a key's count, or r to two keys more, than the rule was told."""
    rule = KeyThreshold.calibrate(noise, r, g, delta)
    assert too_often(shown(rule, count=r + 1), rule.delta)
    wider = KeyThreshold(rule.threshold, rule.mechanism, r, g + 2)
    assert too_often(shown(wider), rule.delta)


@cases
def test_too_little_noise_is_found(noise: Noise, r: int, g: int, delta: Fraction) -> None:
    """Twin: the noise drawn is smaller or larger by a quarter than the noise that was charged."""
    rule = KeyThreshold.calibrate(noise, r, g, delta)
    for factor in (Fraction(3, 4), Fraction(5, 4)):
        other = KeyThreshold(rule.threshold, narrower(noise, factor), r, g)
        assert binomial(shown(other), N, float(rule.delta)) < ALPHA


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(2)), DiscreteGaussian(Fraction(9))])
def test_a_minimum_of_units_costs_no_more_than_is_stated(noise: Noise) -> None:
    rule = KeyThreshold.calibrate(noise, 1, 2, Fraction(1, 20), min_units=0)
    raised = KeyThreshold.calibrate(noise, 1, 2, Fraction(1, 20), min_units=rule.threshold + 1)
    assert raised.delta < rule.delta
    assert binomial(shown(raised), N, float(raised.delta)) > ALPHA
    assert binomial(shown(raised), N, float(rule.delta)) < ALPHA
