"""The ε that a mechanism states, attacked: the best event between neighbouring answers 0 and 1."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsql.core.noise.mechanisms import DiscreteLaplace
from tests.support.goodness_of_fit import ALPHA

N = 200_000


def certified(mechanism: DiscreteLaplace, distance: int) -> float:
    """A lower bound of ε that holds with probability 1-ALPHA, from the events {out ≥ t} for a few fixed t."""
    far = np.array(mechanism.add_noise([distance] * N), np.int64)
    near = np.array(mechanism.add_noise([0] * N), np.int64)
    best = -math.inf
    level = ALPHA / 20
    for t in range(distance, distance + 5):
        hits, misses = int((far >= t).sum()), int((near >= t).sum())
        low = stats.beta.ppf(level, hits, N - hits + 1)  # Clopper-Pearson, one-sided
        high = stats.beta.ppf(1 - level, misses + 1, N - misses)
        best = max(best, math.log(low / high))
    return best


@pytest.mark.parametrize(("l1", "epsilon"), [(1, Fraction(1)), (3, Fraction(3, 2)), (2, Fraction(1, 2))])
def test_no_event_refutes_the_stated_loss(l1: int, epsilon: Fraction) -> None:
    mechanism = DiscreteLaplace.calibrate(Fraction(l1), epsilon)
    assert mechanism.loss(Fraction(l1), Fraction(l1 * l1)).epsilon == epsilon
    found = certified(mechanism, l1)
    assert found <= epsilon
    assert found > 0.8 * epsilon, "the attack must come close, or it could refute nothing"


@pytest.mark.parametrize(("l1", "epsilon"), [(1, Fraction(1)), (3, Fraction(3, 2)), (2, Fraction(1, 2))])
def test_noise_a_quarter_too_small_is_refuted(l1: int, epsilon: Fraction) -> None:
    assert certified(DiscreteLaplace.calibrate(Fraction(l1), epsilon * Fraction(5, 4)), l1) > epsilon
