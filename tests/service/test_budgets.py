"""What is left, as people read it."""

from __future__ import annotations

from fractions import Fraction

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.service.accounts.remaining_budgets import Budget, Budgets

SPENT, LEFT = PrivacyLoss(Fraction(2, 3)), PrivacyLoss(Fraction(1, 3), Fraction(1, 3 * 10**9))


def test_a_line_for_each_unit() -> None:
    found = Budgets(
        patient=Budget("patient", SPENT, LEFT, SPENT, None),
        visit=Budget("visit", PrivacyLoss(), PrivacyLoss(rho=Fraction(1)), PrivacyLoss(), PrivacyLoss()),
    )
    assert str(found) == repr(found) == (
        "patient: spent ε 0.666667, left ε 0.333333 δ 3.33333e-10; in total spent ε 0.666667, no limit\n"
        "visit: spent ε 0, left ρ 1; in total spent ε 0, left ε 0"
    )  # fmt: skip
    assert str(Budgets()) == "" and found.spent == SPENT
