"""Least squares over sets of groups is the solution of the normal equations, and whole numbers near it add up."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.planner.postprocessing.consistency.groupings import Groupings, NoTotals
from dpsql.planner.postprocessing.consistency.least_squares import estimates
from dpsql.planner.postprocessing.consistency.totals import whole_numbers

Keys = list[tuple[Any, ...]]


def grouped(keys: Keys, sets: list[tuple[int, ...]]) -> Groupings:
    """The keys of the finest set, and which of its columns each set has."""
    own = tuple(
        tuple({str(k): k for k in (tuple(key[p] for p in positions) for key in keys)}.values()) for positions in sets
    )
    return Groupings(tuple(sets), own, max(range(len(sets)), key=lambda at: len(sets[at])))


def solved(groupings: Groupings, variances: list[Fraction], noisy: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gauss's elimination of the normal equations Σ AᵀA/v · x = Σ Aᵀy/v, with A x the groups of each set."""
    height = len(groupings.keys[groupings.finest])
    of = [places.tolist() for places in groupings.group_of]
    matrix = [[Fraction(0)] * height + [Fraction(0)] for _ in range(height)]
    for groups, v, y in zip(of, variances, noisy, strict=True):
        for i in range(height):
            for j in range(height):
                matrix[i][j] += (groups[i] == groups[j]) / v
            matrix[i][height] += y[groups[i]] / v
    for i in range(height):
        pivot = next(r for r in range(i, height) if matrix[r][i])
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        matrix[i] = [x / matrix[i][i] for x in matrix[i]]
        for r in range(height):
            if r != i and matrix[r][i]:
                factor = matrix[r][i]
                matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[i], strict=True)]
    x = [row[height] for row in matrix]
    found = []
    for groups, y in zip(of, noisy, strict=True):
        sums = [Fraction(0)] * len(y)
        for place, group in enumerate(groups):
            sums[group] += x[place]
        found.append(sums)
    return found


def column(values: list[Fraction]) -> Any:
    found = np.empty((len(values), 1), dtype=object)
    found[:, 0] = values
    return found


TREE: Keys = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 2), ("c", 9)]
PRODUCT: Keys = list(product("ab", (1, 2, 3), (False, True)))
CHAINS = [
    (TREE, [(0, 1), (0,), ()]),
    (TREE, [(0, 1), ()]),
    (PRODUCT, [(), (0, 1, 2), (0,), (0, 2)]),
    ([(None,), ("x",)], [(0,), ()]),
]
OTHERS = [
    (PRODUCT, [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,), ()]),
    (PRODUCT, [(0,), (1, 2), (0, 1, 2)]),
    (list(product((1, 2), (5, 6, 7))), [(0, 1), (0,), (1,)]),
]
NUMBER = st.integers(-50, 50).map(Fraction)


@pytest.mark.parametrize(("keys", "sets"), CHAINS + OTHERS)
@settings(max_examples=20)
@given(data=st.data())
def test_it_solves_the_normal_equations_exactly(keys: Keys, sets: list[tuple[int, ...]], data: st.DataObject) -> None:
    groupings = grouped(keys, sets)
    assert groupings.is_chain == ((keys, sets) in CHAINS)
    variances = [data.draw(st.fractions(Fraction(1, 9), 9, max_denominator=9)) for _ in sets]
    noisy = [data.draw(st.lists(NUMBER, min_size=len(k), max_size=len(k))) for k in groupings.keys]
    found = [x[:, 0].tolist() for x in estimates(groupings, variances, list(map(column, noisy)))]
    assert found == solved(groupings, variances, noisy)


@pytest.mark.parametrize(("keys", "sets"), CHAINS + OTHERS)
def test_what_agrees_already_stays(keys: Keys, sets: list[tuple[int, ...]]) -> None:
    groupings = grouped(keys, sets)
    leaves = [Fraction(i * i - 7) for i in range(len(keys))]
    sums = [np.zeros((len(k), 1), dtype=object) for k in groupings.keys]
    for own, of in zip(sums, groupings.group_of, strict=True):
        np.add.at(own[:, 0], of, np.array(leaves, dtype=object))
    variances = [Fraction(n + 1) for n in range(len(sets))]
    for before, after in zip(sums, estimates(groupings, variances, sums), strict=True):
        assert before.tolist() == after.tolist()


@pytest.mark.parametrize(("keys", "sets"), CHAINS + OTHERS)
@settings(max_examples=20)
@given(data=st.data())
def test_floats_are_the_same_up_to_rounding(keys: Keys, sets: list[tuple[int, ...]], data: st.DataObject) -> None:
    groupings = grouped(keys, sets)
    variances = [data.draw(st.fractions(Fraction(1, 9), 9, max_denominator=9)) for _ in sets]
    noisy = [data.draw(st.lists(NUMBER, min_size=len(k), max_size=len(k))) for k in groupings.keys]
    exact = estimates(groupings, variances, list(map(column, noisy)))
    floats = estimates(groupings, variances, [np.array([[float(x)] for x in y]) for y in noisy])
    for a, b in zip(exact, floats, strict=True):
        assert b.dtype == np.float64 and np.allclose(a.astype(float), b, atol=1e-9)


@pytest.mark.parametrize(("keys", "sets"), CHAINS + OTHERS)
@settings(max_examples=20)
@given(data=st.data())
def test_whole_numbers_add_up_and_are_near(keys: Keys, sets: list[tuple[int, ...]], data: st.DataObject) -> None:
    groupings = grouped(keys, sets)
    variances = [data.draw(st.fractions(Fraction(1, 9), 9, max_denominator=9)) for _ in sets]
    noisy = [data.draw(st.lists(NUMBER, min_size=len(k), max_size=len(k))) for k in groupings.keys]
    found = estimates(groupings, variances, list(map(column, noisy)))
    whole = whole_numbers(groupings, found)
    leaves = whole[groupings.finest]
    for own, of in zip(whole, groupings.group_of, strict=True):
        sums = [0] * len(own)
        for leaf, group in zip(leaves, of.tolist(), strict=True):
            sums[group] += leaf
        assert own == sums
    for at in groupings.chain():
        assert all(abs(a - b) < 2 for a, b in zip(whole[at], found[at][:, 0].tolist(), strict=True))


def test_a_total_without_parts_is_0() -> None:
    groupings = Groupings(((0, 1), (0,)), ((("a", 1), ("a", 2)), (("a",), ("b",))), 0)
    noisy = [column([Fraction(3), Fraction(4)]), column([Fraction(9)] * 2)]
    found = estimates(groupings, [Fraction(1), Fraction(1)], noisy)
    assert found[1][1, 0] == 0 and found[1][0, 0] == sum(found[0][:, 0])
    assert whole_numbers(groupings, found)[1][1] == 0


def test_a_part_without_a_total_is_refused() -> None:
    with pytest.raises(NoTotals):
        _ = Groupings(((0, 1), (0,)), ((("a", 1), ("b", 2)), (("a",),)), 0).group_of


def test_keys_that_are_no_product_need_a_chain() -> None:
    noisy = [column([Fraction(1)] * n) for n in (6, 3, 4)]
    with pytest.raises(NoTotals):
        estimates(grouped(TREE, [(0, 1), (0,), (1,)]), [Fraction(1)] * 3, noisy)


def test_true_and_1_are_different_keys() -> None:
    assert grouped([(1,), (True,)], [(0,), ()]).group_of[0].tolist() == [0, 1]
