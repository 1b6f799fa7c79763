"""Shares of a batch's marginals, of workloads of all kinds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.planner.batch import marginal_shares as shares
from dpsql.planner.batch.workload import Marginal, Number
from tests.planner.batch.test_least_squares import SIZES, numbers


@pytest.mark.parametrize("gaussian", [True, False])
@given(st.lists(numbers(), min_size=1, max_size=6))
def test_shares_are_the_price_and_beat_the_plain_ones(gaussian: bool, asked: list[Number]) -> None:
    """They add up to the whole, and to a smaller variance than equal shares of the marginals read."""
    spreads = shares.spread(asked, SIZES)
    wanted = sorted({n.columns for n in asked})
    found = shares.best_shares(spreads, wanted, SIZES, gaussian)
    assert sum(found.values()) == 1
    assert all(share > 0 for share in found.values())

    def total(parts: dict[Marginal, Fraction]) -> float:
        theta = {m: float(p) if gaussian else float(p) ** 2 for m, p in parts.items()}
        return shares.total_variance(spreads, theta, SIZES)

    equal = {m: Fraction(1, len(wanted)) for m in wanted}
    assert total(found) <= total(equal) * 1.01
