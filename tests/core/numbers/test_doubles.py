"""Intervals of DOUBLEs: what IEEE arithmetic computes at random points lies within what is rounded outwards."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.core.numbers import doubles
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import HUGE, above, below, loosened, rounded
from dpsql.core.numbers.interval import Interval

OPERATIONS: list[tuple[Callable[[float, float], float], Callable[[Interval, Interval], Interval]]] = [
    (operator.add, iv.add),
    (operator.sub, iv.sub),
    (operator.mul, iv.mul),
    (operator.truediv, lambda a, b: iv.mul(a, iv.reciprocal(b))),
]
NUMBERS = [0.0, 1.0, 2.0, -3.5, 0.1, 1 / 3, 1e-300, 5e-324, -2e-310, 1e17, 1e19, -1e19, 2.0**53 + 2, 4e299, 1e300]


def test_the_next_numbers_on_both_sides() -> None:
    for end in (
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(-1, 10),
        2**53 + 1,
        -(2**53) - 1,
        10**30,
        Fraction(1, 3**2000),
    ):
        low, high = below(end), above(end)
        assert Fraction(low) < end < Fraction(high) and high == math.nextafter(low, math.inf)
    assert below(Fraction(1, 4)) == above(Fraction(1, 4)) == 0.25


def test_what_cancels_is_known_to() -> None:
    moved = rounded(iv.add(Interval(1, 2049), iv.point(10**19)))
    assert rounded(iv.sub(moved, iv.point(10**19))) == Interval(0, 4096)


def test_ends_beyond_the_largest_numbers_are_open() -> None:
    assert rounded(Interval(-HUGE, HUGE)) == Interval(None, None)
    assert rounded(Interval(HUGE + 1, 2 * HUGE)) == Interval(HUGE, None)
    assert rounded(Interval(-2 * HUGE, -HUGE - 1)) == Interval(None, -HUGE)
    assert rounded(Interval(10**400, None)) == Interval(HUGE, None)


def test_short_ends_stay() -> None:
    kept = Interval(-(2**53), 2**53)
    assert rounded(kept) is kept and rounded(Interval(Fraction(1, 4), None)) == Interval(Fraction(1, 4), None)
    assert loosened(Interval(0, None)) == Interval(0, None)


def misses(seed: int) -> int:
    """Chains of operations whose value leaves the interval that is claimed of it."""
    rng, found = random.Random(seed), 0
    for _ in range(300):
        value, known = 0.0, iv.point(0)
        for _ in range(rng.randint(2, 6)):
            low, high = sorted(rng.choices(NUMBERS, k=2))
            other = rng.choice([low, high, low + (high - low) * rng.random()])
            apply, rule = rng.choice(OPERATIONS)
            if apply is operator.truediv and low <= 0 <= high:
                continue
            value = apply(value, other)
            known = doubles.rounded(rule(known, Interval(Fraction(low), Fraction(high))))
            if not math.isfinite(value):
                break
            found += Fraction(value) not in known
    return found


def test_computed_values_lie_within() -> None:
    assert sum(map(misses, range(20))) == 0


@pytest.mark.parametrize("wrong", [lambda i: i, lambda i: Interval(*map(_nearest, (i.lo, i.hi)))])
def test_ends_that_are_not_moved_outwards_are_noticed(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real arithmetic, and one that rounds its ends to nearest; of the latter only what is rounded twice is found."""
    monkeypatch.setattr(doubles, "rounded", wrong)
    assert sum(map(misses, range(20))) > 0


def _nearest(end: Fraction | None) -> Fraction | None:
    return None if end is None or abs(end) >= HUGE else Fraction(float(end)) * Fraction(2**60 - 1, 2**60)
