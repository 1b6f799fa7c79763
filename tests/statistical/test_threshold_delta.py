"""How often a neighbour's own keys show, against the δ that is charged; an off-by-one must be found."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsql.measure.mechanisms import DiscreteLaplace, KeyThreshold
from tests.statistical.goodness import ALPHA, binomial

pytestmark = pytest.mark.statistical

N = 200_000
CASES = [  # scale, r, g, δ: large enough to be seen
    (Fraction(2), 1, 1, Fraction(1, 50)),
    (Fraction(2), 1, 3, Fraction(1, 20)),
    (Fraction(1, 2), 1, 2, Fraction(1, 100)),
    (Fraction(15, 2), 3, 5, Fraction(1, 10)),
]


def shown(rule: KeyThreshold, n: int = N) -> int:
    """In how many of n runs at least one of g keys shows whose exact count is r: the worst case of semantics.md §7."""
    noisy = rule.mechanism.add_noise([rule.r] * (n * rule.g))
    return int(np.array(rule.release(noisy)).reshape(n, rule.g).any(axis=1).sum())


@pytest.mark.parametrize(("scale", "r", "g", "delta"), CASES)
def test_keys_show_as_often_as_charged(scale: Fraction, r: int, g: int, delta: Fraction) -> None:
    rule = KeyThreshold.calibrate(DiscreteLaplace(scale), r, g, delta)
    assert rule.delta <= delta
    assert binomial(shown(rule), N, float(rule.delta)) > ALPHA


@pytest.mark.parametrize(("scale", "r", "g", "delta"), CASES)
def test_a_threshold_too_low_by_one_is_found(scale: Fraction, r: int, g: int, delta: Fraction) -> None:
    """Twin: released at `≥ T` but charged as `> T`, a mistake made before by others. It breaks even the asked δ."""
    rule = KeyThreshold.calibrate(DiscreteLaplace(scale), r, g, delta)
    low = KeyThreshold(rule.threshold - 1, rule.mechanism, r, g)
    count = shown(low)
    assert stats.binom.sf(count - 1, N, float(rule.delta)) < ALPHA
    assert binomial(count, N, float(low.delta)) > ALPHA, "the finished object must state the δ it really has"


@pytest.mark.parametrize(("scale", "r", "g", "delta"), CASES)
def test_too_little_noise_is_found(scale: Fraction, r: int, g: int, delta: Fraction) -> None:
    """Twin: the noise drawn is smaller or larger by a quarter than the noise that was charged."""
    rule = KeyThreshold.calibrate(DiscreteLaplace(scale), r, g, delta)
    for factor in (Fraction(3, 4), Fraction(5, 4)):
        other = KeyThreshold(rule.threshold, DiscreteLaplace(scale * factor), r, g)
        assert binomial(shown(other), N, float(rule.delta)) < ALPHA
