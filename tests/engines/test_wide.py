"""The two halves of 128-bit integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsql.engines.duckdb.reading import rejoin

HUGE = st.integers(-(2**127), 2**127 - 1) | st.integers(-(2**64), 2**64) | st.sampled_from([2**63, -(2**63), 2**64])


@given(st.lists(st.none() | HUGE))
def test_halves_are_joined_exactly(values: list[int | None]) -> None:
    missing = [v is None for v in values]
    high = np.ma.masked_array([0 if v is None else v >> 64 for v in values], missing, np.int64)
    low = np.ma.masked_array([0 if v is None else v & (2**64 - 1) for v in values], missing, np.uint64)
    assert rejoin(high, low) == values
