"""e^-x in whole numbers, over many arguments: every decision in bulk is the exact one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.core.noise.sampler.blocks import _SLACK, Blocks
from dpsql.core.noise.sampler.exponential_function import POINT
from tests.core.noise.test_exponential import TOP, WIDE, exact_exponent, law, wrong_decisions

laws = st.one_of(
    st.tuples(st.just(1), st.integers(1, 54), st.fractions(min_value=Fraction(1, 8), max_value=8)),
    st.tuples(st.just(2), st.integers(1, 54), st.fractions(min_value=Fraction(1, 200), max_value=2)),
)


def places(low: int) -> st.SearchStrategy[int]:
    top = (1 << low) - 1
    return st.one_of(st.integers(0, top), st.sampled_from([0, 1 & top, top, top - 1, top // 2]))


@settings(max_examples=300, deadline=None)
@given(laws, st.data())
def test_the_fixed_point_exponent_is_below_by_at_most_the_slack(shape: tuple[int, int, Fraction], data: st.DataObject):
    blocks = law(*shape)
    assert blocks._reach >= 0
    k = data.draw(st.one_of(st.integers(0, min(blocks._reach, 3000)), st.just(min(blocks._reach, 3000))))
    j = data.draw(places(blocks.low_digits))
    found = int(blocks._exponent(np.array([k]), np.array([j], np.uint64))[0])
    true = exact_exponent(blocks, k, j) * (1 << POINT)
    assert found <= true <= found + _SLACK
    assert found < TOP


wide = pytest.mark.parametrize("blocks", WIDE, ids=lambda b: f"{b.power}-{b.low_digits}-{b.step}")


@wide
@pytest.mark.parametrize("spread", [2, 5_000, 1 << 28])
def test_every_decision_in_bulk_is_the_exact_one(blocks: Blocks, spread: int) -> None:
    """Words beside the boundary, blocks beyond the reach, and laws that the tables do not cover at all included.

    A word equal to the digits goes on with zeros, which are below the digits that follow: accepted.
    """
    assert wrong_decisions(blocks, spread) == 0
