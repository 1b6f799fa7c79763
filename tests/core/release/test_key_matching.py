"""Keys put side by side as arrays, against the same with a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.noise.integer_columns import Integers
from dpsql.core.release import key_matching as matching
from dpsql.core.release.key_matching import KeyColumns, columns_of, numbered, places
from dpsql.core.values.key_lists import LazyKeys
from dpsql.core.values.value import Domain

SMALL = st.integers(-4, 4)
HUGE = st.sampled_from([(1 << 63) - 1, -(1 << 63), 1 << 63, -(1 << 100), 0])
EQUAL = st.sampled_from([0, 1, True, False, 1.0, Decimal(1), None, "1"])
KEYS = [st.tuples(SMALL), st.tuples(SMALL | HUGE), st.tuples(EQUAL), st.tuples(SMALL, SMALL), st.just(())]
LISTS = st.sampled_from(KEYS).flatmap(lambda kind: st.lists(st.lists(kind, max_size=7), max_size=3))


def written(part: list[Any], width: int, *, arrays: bool) -> list[Any]:
    """The columns of some keys; as an engine hands them over where they are integers of 64 bits."""
    found = [[key[i] for key in part] for i in range(width)]
    if not arrays:
        return found
    return [Integers.of(c) if all(type(v) is int and abs(v) < 2**63 for v in c) else c for c in found]


@given(LISTS, st.booleans())
def test_keys_are_numbered_once_each(parts: list[list[Any]], arrays: bool) -> None:
    width = max((len(key) for part in parts for key in part), default=1)
    columns = [written(part, width, arrays=arrays) for part in parts]
    distinct, at = numbered(columns, [len(part) for part in parts])
    assert len(set(distinct)) == len(distinct) == len({key for part in parts for key in part})
    assert len(at) == len(parts)
    assert all(type(value) is not np.int64 for key in distinct for value in key)
    for part, found in zip(parts, at, strict=True):
        assert [distinct[i] for i in found.tolist()] == part


@given(LISTS.filter(lambda parts: len(parts) > 1))
def test_places_are_those_of_a_dictionary(parts: list[list[Any]]) -> None:
    keys, asked = list(dict.fromkeys(parts[0])), parts[1]
    position = {key: i for i, key in enumerate(keys)}
    expected = [position.get(key, -1) for key in asked]
    assert places(keys, asked).tolist() == expected
    if keys and keys[0]:
        held = KeyColumns(written(keys, len(keys[0]), arrays=True), len(keys))
        assert places(held, asked).tolist() == expected


@given(st.lists(st.integers(-30, 30) | HUGE, unique=True), st.lists(st.integers(-40, 40) | HUGE, unique=True))
def test_lists_are_looked_up_whether_they_lie_close_together_or_not(own: list[int], listed: list[int]) -> None:
    keys, asked = [(v,) for v in own], LazyKeys(Domain(tuple(listed)))
    position = {v: i for i, v in enumerate(own)}
    for _ in range(2):  # the second time from the kept array
        assert places(keys, asked).tolist() == [position.get(v, -1) for v in listed]


def test_keys_are_made_where_they_are_asked_for_and_show_nothing() -> None:
    keys = KeyColumns([Integers.of([3, 1, 2]), ["c", "a", "b"]], 3)
    assert list(keys) == [(3, "c"), (1, "a"), (2, "b")] == [keys[0], keys[1], keys[-1]]
    assert list(keys[1:]) == [(1, "a"), (2, "b")] and len(keys[1:]) == 2
    assert list(keys.taken(np.array([2, 0]))) == [(2, "b"), (3, "c")]
    assert list(keys.taken(np.array([True, False, True]))) == [(3, "c"), (2, "b")]
    assert list(KeyColumns([], 2)) == [(), ()] and list(KeyColumns([], 2).taken(np.array([True, False]))) == [()]
    assert repr(keys) == "<3 keys>"
    with pytest.raises(IndexError):
        keys[3]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [([(1,), (-(2**63),)], True), ([(1,), (2**63,)], False), ([(True,)], False), ([(1, 2)], False), ([], False)],
)
def test_arrays_are_only_for_what_they_hold(keys: Sequence[Any], expected: bool) -> None:
    assert (matching._integers(keys) is not None) == expected


@pytest.mark.parametrize("values", [(3, 1, 2), (False, True), (0, 1), (2**70, 1), ("b", "a"), (1, None)])
def test_columns_of_a_public_list_are_its_own_values(values: tuple[Any, ...]) -> None:
    """Of integers without a tuple for each; TRUE stays TRUE, though an equal list of 1 was seen before."""
    null, listed = None in values, tuple(v for v in values if v is not None)
    for keys in (LazyKeys(Domain(listed, null)), KeyColumns([list(values)], len(values)), [(v,) for v in values]):
        (column,) = columns_of(keys, 1)
        assert list(column) == list(values) and list(map(type, column)) == list(map(type, values))
    held = LazyKeys(Domain(listed, null))
    in_64_bits = all(type(v) is int and v < 2**63 for v in values)
    assert isinstance(columns_of(held, 1)[0], Integers) == in_64_bits
    if in_64_bits:
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(columns_of(held, 1)[0].array)[0] = 7  # type: ignore[attr-defined]
