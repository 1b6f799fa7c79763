"""Scores of modes, how far they move, and what the choice by them costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import KeySource, ModeChoice
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.mechanisms import BoundedRange, PureExponential
from dpsql.core.noise.sensitivity import sensitivity
from dpsql.core.release.histograms import Histograms

VALUES = KeySource((0,), (("a",), ("b",), ("c",), ("d",)), "listed")
MODE = ModeChoice(Literal(1, BIGINT), choices=VALUES)


def scores(
    weights: Sequence[int], order: Sequence[int] = (0, 1, 2, 3), more: Sequence[tuple[str, int]] = ()
) -> list[int]:
    """Of every value. weights: of the rows with each. order: in which they are told. more: others that are told."""
    told = [("abcd"[i], weights[i]) for i in order if weights[i]] + list(more)
    made = Histograms.of(VALUES, np.zeros(len(told), np.intp), 1, [v for v, _ in told], [w for _, w in told])
    found = made.scored(0, MODE)
    assert [first for first, _, _ in zip(*found, strict=True)] == sorted(found[0])
    return [s for _, count, s in zip(*found, strict=True) for _ in range(count)]


def as_defined(weights: Sequence[int]) -> list[int]:
    """Twice what is missing to the most frequent value."""
    return [2 * (max(weights) - w) for w in weights]


def tiny() -> Iterator[tuple[int, ...]]:
    for weights in product(range(4), repeat=4):
        yield weights
        yield tuple(w << 61 for w in weights)


def test_scores_are_what_is_missing_to_the_most_frequent_value() -> None:
    for weights in tiny():
        assert scores(weights) == as_defined(weights) == scores(weights, (3, 1, 0, 2)), weights


def test_ties_and_no_rows_are_equal() -> None:
    assert scores((5, 1, 5, 0)) == [0, 8, 0, 10]
    assert scores((0, 0, 0, 0)) == [0, 0, 0, 0]


def test_values_that_are_not_listed_count_nowhere() -> None:
    assert scores((2, 1, 0, 0), more=(("e", 9), ("aa", 3))) == as_defined((2, 1, 0, 0))
    assert scores((0, 0, 0, 0), more=(("e", 9),)) == [0, 0, 0, 0]


def test_each_group_has_its_own() -> None:
    groups = np.array([1, 0, 1, 3], np.intp)
    found = Histograms.of(VALUES, groups, 4, ["b", "a", "d", "c"], [7, 2, 5, 1])
    each = [[s for _, n, s in zip(*found.scored(g, MODE), strict=True) for _ in range(n)] for g in range(4)]
    assert each == [as_defined(w) for w in ((2, 0, 0, 0), (0, 7, 0, 5), (0, 0, 0, 0), (0, 0, 1, 0))]
    only = found.taken(np.array([3, -1, 0]))
    assert [only.scored(g, MODE)[2][-1] for g in range(3)] == [2, 0, 4]


def spread(before: Sequence[int], after: Sequence[int]) -> Fraction:
    """Δ: half of how far apart the moves of the scores are."""
    moves = [y - x for x, y in zip(as_defined(before), as_defined(after), strict=True)]
    return Fraction(max(moves) - min(moves), 2)


def test_no_scores_move_further_apart_than_is_claimed() -> None:
    """By ± w for rows of weight w, wherever they are; by ± 2 for a replaced row. Both are reached."""
    ways = [w for w in product(range(3), repeat=4) if sum(w) <= 2]
    added = {(sum(more), spread(w, [a + b for a, b in zip(w, more, strict=True)])) for w in ways for more in ways}
    assert max(d for w, d in added if w == 1) == 1 and max(d for w, d in added if w == 2) == 2
    one = np.eye(4, dtype=int).tolist()
    replaced = {
        spread([a + b for a, b in zip(w, old, strict=True)], [a + b for a, b in zip(w, new, strict=True)])
        for w in ways for old in one for new in one
    }  # fmt: skip
    assert max(replaced) == 2 == rule(MODE).replaced(MODE, fixed=True).in_group


@pytest.mark.parametrize(
    ("limits", "grouped", "l1", "l2_squared"),
    [
        (Contribution(1), False, 1, 1),
        (Contribution(1), True, 1, 1),
        (Contribution(5), True, 5, 25),
        (Contribution(None, 4, 5), True, 20, 80),
        (Contribution(None, 4, 5), False, 4, 16),
        # replaced rows: ± 2 in one group, or ± 1 in two
        (Contribution(1, replaces_rows=True), False, 2, 4),
        (Contribution(1, replaces_rows=True), True, 2, 4),
        (Contribution(3, replaces_rows=True, size=50), False, 6, 36),  # a public size is no public count
        # replaced ids: what goes and what comes meet in one group, so four times the squares
        (Contribution(None, 4, 5, ids=2), True, 40, 4 * 80),
        (Contribution(3, ids=2), True, 6, 36),
    ],
)
def test_norms(limits: Contribution, grouped: bool, l1: int, l2_squared: int) -> None:
    found = sensitivity(replace(MODE, every_row=True), limits, grouped)
    assert (found.l1, found.l2_squared) == (l1, l2_squared)


def probabilities(weights: Sequence[int], half: Fraction) -> list[Fraction]:
    """With `half` in place of e^-η, exactly."""
    each = [half**s for s in as_defined(weights)]
    return [e / sum(each) for e in each]


@pytest.mark.parametrize(("replaced", "units"), [(False, 1), (True, 2)])
def test_the_stated_loss_is_reached_and_not_exceeded(replaced: bool, units: int) -> None:
    """One row more costs η per row, where η is twice that of the scores; a replaced one twice that."""
    half, one = Fraction(1, 2), np.eye(4, dtype=int).tolist()
    worst = Fraction(1)
    for weights in [*product(range(3), repeat=4), (40, 0, 0, 0), (40, 40, 0, 0)]:
        own = [[a + b for a, b in zip(weights, more, strict=True)] for more in one]
        pairs = [(x, y) for x in own for y in own] if replaced else [(list(weights), y) for y in own]
        for x, y in pairs:
            p, q = probabilities(x, half), probabilities(y, half)
            worst = max(worst, *(max(a / b, b / a) for a, b in zip(p, q, strict=True)))
    limits = Contribution(1, replaces_rows=replaced)
    found = sensitivity(MODE, limits, grouped=False)
    # ε = 2η·l1, so e^ε is 2^(2·l1) where e^-η is one half.
    assert found.l1 == units and Fraction(999, 1000) * 4**units < worst <= 4**units
    for family in (PureExponential, BoundedRange):
        loss = family(Fraction(1, 7)).loss(Fraction(found.l1), found.l2_squared)
        assert loss.epsilon in (0, Fraction(2, 7) * units) and loss.rho in (0, Fraction(1, 98) * units**2)
