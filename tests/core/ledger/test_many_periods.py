"""What an id loses that is in several periods."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpsql.core.ledger.losses.many_periods import over, told, words
from dpsql.core.privacy_loss import PrivacyLoss


def test_of_each_accountant() -> None:
    assert over(PrivacyLoss(Fraction(1, 10)), 28) == PrivacyLoss(Fraction(28, 10))
    assert over(PrivacyLoss(rho=Fraction(1, 100)), 7) == PrivacyLoss(rho=Fraction(49, 100))
    found = over(PrivacyLoss(Fraction(1, 2), Fraction(1, 10**6)), 7)
    assert found is not None and found.epsilon == Fraction(7, 2)
    true = 7 * math.exp(3) * 1e-6
    assert true <= float(found.delta) <= true * (1 + 1e-12)
    assert over(PrivacyLoss(Fraction(1), Fraction(1, 10**6)), 28) is None  # its δ would be 1


@pytest.mark.parametrize("periods", [2, 3, 5])
def test_a_chain_of_neighbours(periods: int) -> None:
    """Two outcomes, each of d steps moves as much as (ε, δ) lets it: no more than the bound is reached."""
    epsilon, delta = Fraction(1, 5), Fraction(1, 1000)
    p = 0.01
    q = p
    for _ in range(periods):
        q = min(1.0, math.exp(float(epsilon)) * q + float(delta))
    found = over(PrivacyLoss(epsilon, delta), periods)
    assert found is not None
    assert q <= math.exp(float(found.epsilon)) * p + float(found.delta)
    one_step_less = math.exp(float(found.epsilon)) * p + periods * float(delta)
    assert q > one_step_less  # δ alone, without what grows it, would not do


def test_as_text() -> None:
    assert words(PrivacyLoss(Fraction(1, 10)), "day") == "7 days: ε 0.7, 28 days: ε 2.8, 365 days: ε 36.5"
    assert words(PrivacyLoss(Fraction(1, 10)), "week", most=5) == "4 weeks: ε 0.4, 5 weeks: ε 0.5"
    assert "nothing is promised" in words(PrivacyLoss(Fraction(1), Fraction(1, 10**5)), "month")


def test_beside_rho_no_delta_is_bounded() -> None:
    """A key that one row shows with probability δ is shown by rows of seven days far more often than 7·δ."""
    rho, delta, days = 0.01, 1e-6, 7
    sigma = math.sqrt(1 / (2 * rho))
    threshold = 1 + sigma * 4.753424  # one row passes it with δ

    def shown(rows: int) -> float:
        return math.erfc((threshold - rows) / sigma / math.sqrt(2)) / 2

    assert abs(shown(1) / delta - 1) < 0.01 and shown(days) > 5 * days * delta
    assert told(PrivacyLoss(Fraction(0), Fraction(1, 10**6), Fraction(1, 100)), days) == (
        "ρ 0.49, and a δ that nothing bounds"
    )
    assert told(PrivacyLoss(Fraction(0), Fraction(1), Fraction(1, 100)), days) == "ρ 0.49"
