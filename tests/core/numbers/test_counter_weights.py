"""A counter's weights and the arithmetic of its estimates, against fractions and matrices."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpsql.core.numbers.counter_weights import (
    FIRST,
    LONGEST,
    POINT,
    error_of_window,
    next_estimates,
    squares,
    totals,
    weights,
)


def of_fractions(length: int, first: int = FIRST) -> tuple[list[int], Fraction]:
    """The rounded weights, and the sum of squares of those that are not rounded."""
    c, found, whole = Fraction(1), [first], Fraction(first**2)
    for k in range(1, length):
        c *= Fraction(8 * k - 5, 8 * k)
        found.append(math.floor(first * c + Fraction(1, 2)))
        whole += (first * c) ** 2
    return found, whole


def test_they_are_the_rounded_coefficients_and_never_rise() -> None:
    assert list(weights(300)) == of_fractions(300)[0]
    r = weights(LONGEST)
    assert r[:600] == weights(600) and r[:6] == (1024, 384, 264, 209, 176, 154)
    assert all(a >= b > 0 for a, b in pairwise(r))


def test_the_sum_of_their_squares() -> None:
    assert squares(LONGEST) == 1_778_773 == sum(r * r for r in weights(LONGEST))
    assert squares(1) == FIRST**2


def test_the_sum_of_squares_that_are_not_rounded_is_too_small() -> None:
    """The broken twin: priced by it, a row loses more than is charged."""
    rounded, whole = of_fractions(5, 3)
    assert round(float(sum(r * r for r in rounded) / whole), 2) == 1.13


@pytest.mark.parametrize("length", [0, LONGEST + 1])
def test_no_other_length(length: int) -> None:
    with pytest.raises(ValueError, match="weighs 1 to"):
        weights(length)


@pytest.mark.parametrize("length", [1, 3, 40, LONGEST])
def test_without_noise_the_estimates_are_what_was_counted(length: int) -> None:
    dice, r = random.Random(7), weights(length)
    periods = [[dice.randint(0, 10**9), dice.randint(-5, 5)] for _ in range(60)]
    made: list[list[int]] = []
    for t in range(60):
        y = [sum(r[t - s] * periods[s][g] for s in range(t + 1) if t - s < length) for g in range(2)]
        made.append(next_estimates(length, made, y))
    assert all(x == n << POINT for own, each in zip(made, periods, strict=True) for x, n in zip(own, each, strict=True))
    sums = [0, 0]
    for found, each in zip(totals(made), periods, strict=True):
        sums = [s + n for s, n in zip(sums, each, strict=True)]
        assert found == sums
    assert totals([]) == []


def test_fixed_point_is_within_one_of_the_exact_inverse() -> None:
    dice, length = random.Random(8), 80
    y = [[dice.randint(-(10**6), 10**6)] for _ in range(length)]
    made: list[list[int]] = []
    for each in y:
        made.append(next_estimates(LONGEST, made, each))
    r, exact = weights(LONGEST), list[Fraction]()
    for t in range(length):
        exact.append(Fraction(y[t][0] - sum(r[k] * exact[t - k] for k in range(1, t + 1)), FIRST))  # type: ignore[arg-type]
        assert abs(sum(exact) - totals(made[: t + 1])[-1][0]) <= 1


@pytest.mark.parametrize("length", [5, LONGEST])
def test_errors_of_windows_are_those_of_the_inverse_matrix(length: int) -> None:
    ticks, r = 30, weights(length)
    matrix = [[r[t - s] if 0 <= t - s < len(r) else 0 for s in range(ticks)] for t in range(ticks)]
    inverse = np.linalg.inv(np.array(matrix, dtype=float))
    for before, last in ((-1, 0), (-1, 29), (3, 4), (0, 29), (12, 19)):
        noise = inverse[before + 1 : last + 1].sum(axis=0)
        assert error_of_window(length, before, last) == pytest.approx(float(np.linalg.norm(noise)), rel=1e-9)


def test_the_errors_of_the_page() -> None:
    """In units of one release at the whole ρ: a day, 7, 28, and all of one and of three years."""
    s = math.sqrt(squares(LONGEST))
    found = [s * error_of_window(LONGEST, last - days, last) for days, last in ((1, 364), (7, 364), (28, 364))]
    assert [round(each, 1) for each in found] == [1.4, 2.2, 2.9]
    assert round(s * error_of_window(LONGEST, -1, 364), 1) == 3.6
    assert round(s * error_of_window(LONGEST, -1, 1094), 1) == 4.2
