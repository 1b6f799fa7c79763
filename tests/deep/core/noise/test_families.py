"""The price of random queries under either family of noise is what was asked for, never more."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.privacy_loss import pure_to_rho
from tests.core.noise.test_families import CAPS, PRIVATE, Q2, SPREAD, WIDE, plan


@pytest.mark.parametrize("sql", [Q2, WIDE, SPREAD, PRIVATE])
@settings(deadline=None, max_examples=12)
@given(
    accountant=st.sampled_from(sorted(CAPS)),
    epsilon=st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=1000),
    exponent=st.integers(4, 60),
)
def test_the_price_is_what_was_asked_for_and_never_more(
    sql: str, accountant: str, epsilon: Fraction, exponent: int
) -> None:
    delta = Fraction(1, 10**exponent)
    if accountant == "pure_dp" and sql == PRIVATE:
        return
    loss = plan(sql, accountant, epsilon=epsilon, delta=delta).loss
    step = Fraction(1, 10**50)  # the ledger's grid is finer
    assert loss.delta <= delta + step
    main, asked = (loss.rho, pure_to_rho(epsilon)) if accountant == "zcdp" else (loss.epsilon, epsilon)
    assert asked * (1 - Fraction(1, 10**7)) <= main <= asked + step
