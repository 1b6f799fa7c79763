"""Rows without a loop: the order of private keys, and exact numbers put beside their keys."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.engine import RawTable
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.noisy import PrivateIntegers, _fetch, in_order

KINDS: list[st.SearchStrategy[Any]] = [
    st.integers(-3, 3) | st.sampled_from([1 << 62, -(1 << 63), (1 << 63) - 1]),
    st.integers(-2, 2) | st.sampled_from([1 << 63, -(1 << 100)]),
    st.text("ab\x00é😀", max_size=3),
    st.booleans(),
    st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 5)),
    st.decimals(-2, 2, places=1).map(Decimal),
    st.floats(allow_nan=False),
]
COLUMN = st.sampled_from(KINDS).flatmap(
    lambda kind: st.lists(kind | st.none(), min_size=9, max_size=9) | st.lists(kind, min_size=9, max_size=9)
)


@given(st.lists(COLUMN, max_size=3))
def test_keys_are_sorted_with_null_last(columns: list[list[Any]]) -> None:
    keys = list(zip(*columns, strict=True)) or [()] * 9
    expected = sorted(range(9), key=lambda i: [(v is None, 0 if v is None else v) for v in keys[i]])
    assert in_order(columns, 9).tolist() == expected


def test_no_keys_and_nothing_to_sort_by() -> None:
    assert in_order([[]], 0).tolist() == [] == in_order([], 0).tolist() and in_order([], 2).tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_does_not_tell_how_the_engine_found_them(seed: int) -> None:
    column = [1.5, math.nan, -math.inf, 0.0, 7.0, math.inf, -2.0]
    shuffled = random.Random(seed).sample(column, len(column))
    found = [shuffled[i] for i in in_order([shuffled], len(shuffled)).tolist()]
    assert list(map(repr, found)) == ["-inf", "-2.0", "0.0", "1.5", "7.0", "inf", "nan"]


def test_equal_nans_are_told_apart_by_the_next_column() -> None:
    assert in_order([[float("nan"), float("nan"), 1.0], ["b", "a", "c"]], 3).tolist() == [2, 1, 0]


KEY = st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", None]))


@given(st.dictionaries(KEY, st.tuples(st.integers(), st.integers(-5, 5)), max_size=8), st.lists(KEY, max_size=8))
def test_numbers_stay_with_their_keys(found: dict[Any, tuple[int, int]], asked: list[Any]) -> None:
    exact = PrivateIntegers(list(found), [Integers.of([row[i] for row in found.values()]) for i in range(2)])
    assert exact.rows() == {key: list(row) for key, row in found.items()}
    columns = exact.of(asked)
    assert list(zip(*columns, strict=True)) == [found.get(key, (0, 0)) for key in asked]
    assert repr(exact) == "<private>" and "1" not in str(PrivateIntegers([(1,)], [Integers.of(np.array([1]))]))


def fetched(tables: list[tuple[tuple[int, ...], list[tuple[Any, ...]]]], width: int, threshold: int | None) -> Any:
    """What `_fetch` makes of these tables: for each the components that it holds, and its rows."""
    heights = [RawTable(("x",) * (width + len(c)), tuple(map(list, zip(*rows, strict=True)))) for c, rows in tables]
    statements = [
        SimpleNamespace(components=c, cells=None, salted=lambda *filled, at=at: at) for at, (c, _) in enumerate(tables)
    ]
    node = SimpleNamespace(keys=(None,) * width, components=(None,) * 3, threshold=threshold)
    planned = SimpleNamespace(measured=SimpleNamespace(node=node), statements=statements)
    return _fetch(planned, EngineAsk(SimpleNamespace(fetch=lambda at: heights[at]), 0)).rows()  # type: ignore[arg-type]


def test_uuids_are_texts_and_no_key_is_one_row() -> None:
    name = "00000000-0000-0000-0000-000000000001"
    assert fetched([((0,), [(None, 1), (UUID(name), 2)])], 1, None) == {(None,): [1, 0, 0], (name,): [2, 0, 0]}
    assert fetched([((0, 1), [(5, 6)])], 0, None) == {(): [5, 6, 0]}


@pytest.mark.parametrize("value", [None, 1.0, Decimal(1), "1"])
def test_what_is_no_integer_is_not_taken_for_one(value: object) -> None:
    with pytest.raises(TypeError):
        fetched([((0,), [("k", value)])], 1, None)
