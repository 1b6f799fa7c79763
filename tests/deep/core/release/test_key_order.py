"""Statements of several parts are put together by their keys."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core.release.test_key_order import KEY, fetched

CELL = st.integers(-4, 4) | st.sampled_from([1 << 63, -(1 << 63), 1 << 126])
ROWS = st.lists(st.tuples(KEY, CELL, CELL), min_size=1, max_size=8)


@given(ROWS, ROWS, st.sampled_from([None, 0, 2]))
def test_statements_are_put_together(first: list[Any], second: list[Any], threshold: int | None) -> None:
    """Equal keys add up, within a statement and between two; without a unit a key was never there."""
    expected: dict[Any, list[int]] = {}
    for key, a, b in first:
        row = expected.setdefault(key, [0, 0, 0])
        row[0], row[2] = row[0] + a, row[2] + b
    for key, a, _ in second:
        expected.setdefault(key, [0, 0, 0])[1] += a
    if threshold is not None:
        expected = {key: row for key, row in expected.items() if row[threshold] > 0}
    tables = [((0, 2), [(*key, a, b) for key, a, b in first]), ((1,), [(*key, a) for key, a, _ in second])]
    assert fetched(tables, 2, threshold) == expected
