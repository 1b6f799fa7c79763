"""Privacy filters against every adaptive strategy over small mechanisms."""

from __future__ import annotations

import math

import pytest

from dpsql.core.privacy_loss import PrivacyLoss, exact
from tests.core.ledger.test_privacy_filter import F, by_book, hockey_stick, response, reveal, worst

MENU = (response("0.25"), response("0.5"), response("1"), reveal(F(1, 20)), reveal(F(1, 50)))


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.1"), ("1.25", "0.05"), ("0.75", "0.07")])
def test_sums_of_epsilon_and_delta_bound_every_adaptive_strategy(epsilon: str, delta: str) -> None:
    cap = PrivacyLoss(exact(epsilon), exact(delta))
    found = worst(by_book("approx_dp", cap), MENU, hockey_stick(float(epsilon)), 4)
    assert found <= float(delta) + 1e-12
    # The strategies do something: at six tenths of ε the bound is false.
    assert found >= float(delta) / 2
    assert worst(by_book("approx_dp", cap), MENU, hockey_stick(0.6 * float(epsilon)), 4) > float(delta)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 8.0, 40.0])
def test_sums_of_rho_bound_every_adaptive_strategy_at_every_order(alpha: float) -> None:
    menu = (response("0.25"), response("0.5"), response("1"))
    rho = F(5, 8)

    def moment(p: float, q: float) -> float:
        return p**alpha * q ** (1 - alpha)

    found = worst(by_book("zcdp", PrivacyLoss(rho=rho)), menu, moment, 5)
    assert math.log(found) / (alpha - 1) <= alpha * float(rho)
    twice = worst(by_book("zcdp", PrivacyLoss(rho=2 * rho)), menu, moment, 5)
    assert math.log(twice) / (alpha - 1) > math.log(found) / (alpha - 1)
