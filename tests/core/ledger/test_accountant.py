"""What a query costs under each accountant."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ledger.accountant import cost, in_terms_of
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, rho_to_epsilon
from dpsql.diagnostics.errors import BudgetExceeded

F = Fraction
LAPLACE = PrivacyLoss(epsilon=F(1, 2))
THRESHOLDED = PrivacyLoss(epsilon=F(1, 5), delta=F(1, 10**9))
GAUSSIAN = PrivacyLoss(rho=F(1, 50))


def test_pure_dp_adds_epsilons() -> None:
    assert cost("pure_dp", [LAPLACE, LAPLACE]) == PrivacyLoss(F(1))


@pytest.mark.parametrize("part", [THRESHOLDED, GAUSSIAN])
def test_pure_dp_refuses_what_is_not_pure(part: PrivacyLoss) -> None:
    with pytest.raises(BudgetExceeded) as refusal:
        cost("pure_dp", [LAPLACE, part], F(1, 10**9))
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP405"
    assert diagnostic.help


def test_approx_dp_adds_epsilons_and_deltas() -> None:
    assert cost("approx_dp", [LAPLACE, THRESHOLDED], F(1, 10)) == PrivacyLoss(F(7, 10), F(1, 10**9))


def test_approx_dp_composes_gaussian_parts_before_it_converts_them_once() -> None:
    delta = F(1, 10**7)
    charged = cost("approx_dp", [LAPLACE, GAUSSIAN, GAUSSIAN], delta)
    assert charged == PrivacyLoss(F(1, 2) + rho_to_epsilon(F(1, 25), delta), delta)
    assert charged.epsilon < F(1, 2) + 2 * rho_to_epsilon(F(1, 50), delta / 2)
    with pytest.raises(ValueError, match="delta"):
        cost("approx_dp", [GAUSSIAN])


def test_zcdp_squares_pure_epsilon_part_by_part() -> None:
    charged = cost("zcdp", [LAPLACE, THRESHOLDED, GAUSSIAN])
    assert charged == PrivacyLoss(rho=F(1, 8) + F(1, 50) + F(1, 50), delta=F(1, 10**9))


@pytest.mark.parametrize("accountant", ["pure_dp", "approx_dp", "zcdp"])
def test_a_charge_is_in_the_accountants_own_terms(accountant: str) -> None:
    assert cost(accountant, []) == NO_LOSS  # type: ignore[arg-type]
    assert in_terms_of(accountant, cost(accountant, [LAPLACE]))  # type: ignore[arg-type]
    assert not in_terms_of(accountant, PrivacyLoss(F(1), F(1), F(1)))  # type: ignore[arg-type]
