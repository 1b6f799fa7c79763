"""Losses composed and converted, on many numbers"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.privacy_loss import (
    NO_LOSS,
    PrivacyLoss,
    compose,
    epsilon_to_rho,
    exact,
    remaining,
    rho_to_delta,
    rho_to_epsilon,
)
from tests.core.test_privacy_loss import losses


@given(st.lists(losses, max_size=5))
def test_composition_adds_each_part(many: list[PrivacyLoss]) -> None:
    whole = compose(many)
    assert whole.epsilon == sum(x.epsilon for x in many)
    assert whole.delta == sum(x.delta for x in many)
    assert whole.rho == sum(x.rho for x in many)


@given(losses, losses)
def test_what_fits_into_what_remains_is_what_fits_into_the_cap(spent: PrivacyLoss, asked: PrivacyLoss) -> None:
    cap = PrivacyLoss(*(Fraction(10**6),) * 3)
    assert asked.within(remaining(cap, spent)) == (spent + asked).within(cap)
    assert remaining(spent, spent + asked) == NO_LOSS


def _true_delta(rho: float, epsilon: float) -> float:
    """Corollary 13 by brute force over a fine grid of α: at least the infimum."""

    def at(gap: float) -> float:
        alpha = 1 + gap
        return gap * (alpha * rho - epsilon) - math.log(gap) + alpha * math.log(gap / alpha)

    return math.exp(min(0.0, min(at(math.exp(u / 100)) for u in range(-1000, 1500))))


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 20), st.floats(1e-12, 0.5))
def test_conversion_is_tight_and_never_below_the_truth(rho: float, delta: float) -> None:
    r, d = exact(rho), exact(delta)
    epsilon = rho_to_epsilon(r, d)
    # Going back may not need more δ; a slightly smaller ε must need more, or the first was not tight.
    assert rho_to_delta(r, epsilon) <= d * (1 + Fraction(1, 10**9))
    if epsilon > 0:
        assert rho_to_delta(r, epsilon * Fraction(999, 1000)) > d
        assert float(rho_to_delta(r, epsilon)) == pytest.approx(_true_delta(rho, float(epsilon)), rel=1e-2)


@settings(deadline=None, max_examples=60)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    st.integers(1, 70).map(lambda k: Fraction(1, 10**k)),
)
def test_the_rho_of_an_epsilon_is_the_largest(epsilon: Fraction, delta: Fraction) -> None:
    rho = epsilon_to_rho(epsilon, delta)
    assert rho > 0
    assert rho_to_epsilon(rho, delta) <= epsilon < rho_to_epsilon(rho * (1 + Fraction(1, 10**7)), delta)
