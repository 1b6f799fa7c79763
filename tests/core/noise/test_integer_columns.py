"""Columns of integers against Python's own, at the sizes where 64 bits end."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.noise.integer_columns import Integers, combined, outwards, quotients, rounded
from tests.support import reference_formulas as reference

EDGES = [0, 1, -1, 1 << 53, (1 << 53) + 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 63), -(1 << 63) - 1]
VALUES = st.integers(-100, 100) | st.sampled_from(EDGES) | st.integers()
PAIRS = st.lists(st.tuples(VALUES, VALUES), max_size=6)


def column(rows: list[tuple[int, int]], at: int) -> Integers:
    return Integers.of([row[at] for row in rows])


@given(st.lists(VALUES))
def test_what_goes_in_comes_out(values: list[int]) -> None:
    found = Integers.of(values)
    assert found == values and found == tuple(values) and list(found) == values and found[:2] == values[:2]
    assert {type(v) for v in found} <= {int} and hash(found) == hash(tuple(values)) and len(found) == len(values)
    assert found.largest == max(map(abs, values), default=0)
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
    assert Integers.of(found) is found and found != [*values, 1] and found != "text"
    if values:
        assert found[-1] == values[-1] and type(found[0]) is int


def test_values_are_not_shown() -> None:
    assert repr(Integers.of([123456, 1 << 80])) == "<2 integers>" == str(Integers.of([7, 8]))


@pytest.mark.parametrize("value", [1.0, 1.5, "1", None, Fraction(1), float("nan")])
def test_nothing_else_is_an_integer(value: object) -> None:
    with pytest.raises(TypeError):
        Integers.of([1, value])
    if isinstance(value, float):
        with pytest.raises(TypeError):
            Integers.of(np.array([value]))


def test_other_integers_of_numpy_are_taken_as_they_are() -> None:
    assert Integers.of(np.array([255, 0], dtype=np.uint8)) == [255, 0]
    assert Integers.of(np.array([(1 << 64) - 1, 0], dtype=np.uint64)) == [(1 << 64) - 1, 0]


@given(PAIRS)
def test_sums_do_not_wrap(rows: list[tuple[int, int]]) -> None:
    assert column(rows, 0).plus(column(rows, 1)) == [a + b for a, b in rows]
    joined = Integers.joined([column(rows, 0), column(rows, 1)])
    assert joined == [a for a, _ in rows] + [b for _, b in rows]


@given(PAIRS, VALUES, VALUES, VALUES)
def test_combinations_do_not_wrap(rows: list[tuple[int, int]], f: int, g: int, constant: int) -> None:
    found = combined([(column(rows, 0), f), (column(rows, 1), g)], constant, len(rows))
    assert found == [constant + f * a + g * b for a, b in rows]


@given(st.lists(VALUES), VALUES, VALUES)
def test_clipping(values: list[int], a: int, b: int) -> None:
    low, high = min(a, b), max(a, b)
    assert Integers.of(values).clipped(low, high) == [max(low, min(high, v)) for v in values]


@given(st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=8))
def test_values_of_one_place_are_added_up(rows: list[tuple[int, int]]) -> None:
    found = Integers.of([v for _, v in rows]).added_at(np.array([p for p, _ in rows], dtype=np.intp), 4)
    assert found == [sum(v for p, v in rows if p == place) for place in range(4)]


@given(st.lists(VALUES), st.integers(0, 10**6) | st.sampled_from([1 << 62, 1 << 70]), st.integers(1, 10**6))
def test_halves_are_rounded_away_from_zero(values: list[int], above: int, below: int) -> None:
    assert rounded(Integers.of(values), above, below) == [reference.rounded(v, Fraction(above, below)) for v in values]


@given(st.lists(st.tuples(VALUES, VALUES.map(lambda v: abs(v) + 1)), max_size=6))
def test_quotients_are_the_nearest_floats(rows: list[tuple[int, int]]) -> None:
    expected = [float(Fraction(a, b)) for a, b in rows]
    assert quotients(column(rows, 0), column(rows, 1)).tolist() == expected


def test_quotients_beyond_the_floats_are_infinite() -> None:
    assert quotients(Integers.of([10**400, -(10**400), 7]), 7).tolist() == [float("inf"), float("-inf"), 1.0]


@given(st.lists(VALUES), st.integers(1, 1 << 70), st.sampled_from([-1, 1]))
def test_ends_are_outside(values: list[int], under: int, side: int) -> None:
    for value, found in zip(values, outwards(Integers.of(values), under, side).tolist(), strict=True):
        exact, near = Fraction(value, under), Fraction(value, under)
        assert (Fraction(found) - exact) * side >= 0
        if Fraction(float(near)) == exact and under & (under - 1) == 0:
            assert Fraction(found) == exact or abs(value) > 1 << 53
