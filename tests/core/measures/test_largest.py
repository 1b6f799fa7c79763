"""Picks of the groups of the most units: their scores, how far these move, and what a sequence of picks costs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from operator import add

import numpy as np
import pytest

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import KeySource, LargestChoice, Pick, UnitCount
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.largest import other_picks
from dpsql.core.noise.mechanisms import BoundedRange, PureExponential
from dpsql.core.noise.sensitivity import sensitivity
from dpsql.core.release.histograms import Histograms

VALUES = KeySource((0,), (("a",), ("b",), ("c",), ("d",)), "listed")
PICKS = [LargestChoice(Literal(1, BIGINT), choices=VALUES, pick=Pick(place, 3)) for place in range(3)]
Counts = tuple[int, ...]
SUBSETS = list(product((0, 1), repeat=4))


@cache
def scores(counts: tuple[int, ...], without: tuple[int, ...] = ()) -> dict[int, int]:
    """Of every value that is left."""
    told = [("abcd"[i], n) for i, n in enumerate(counts) if n]
    made = Histograms.of(VALUES, np.zeros(len(told), np.intp), 1, [v for v, _ in told], [n for _, n in told])
    found = made.scored(0, PICKS[0], without)
    return {first + i: s for first, n, s in zip(*found, strict=True) for i in range(n)}


def test_scores_are_what_is_missing_to_the_largest_count() -> None:
    for counts in product(range(4), repeat=4):
        assert scores(counts) == {i: 2 * (max(counts) - n) for i, n in enumerate(counts)}


def test_what_was_picked_before_is_left_out_and_nothing_else() -> None:
    """In the middle of a run of equal scores, at its ends, and of a run of one; in any order."""
    for counts in [(0, 0, 0, 0), (3, 0, 0, 2), (0, 5, 0, 0), (1, 1, 1, 1), (4, 3, 2, 1)]:
        whole = scores(counts)
        for length in (1, 2, 3):
            for without in permutations(range(4), length):
                assert scores(counts, without) == {i: s for i, s in whole.items() if i not in without}


def spread(before: Counts, after: Counts) -> float:
    """Half of how far apart the moves of the scores are."""
    moves = [scores(after)[i] - scores(before)[i] for i in range(4)]
    return (max(moves) - min(moves)) / 2


def added(counts: Counts, unit: Counts) -> Counts:
    return tuple(map(add, counts, unit))


def test_scores_move_no_further_apart_than_is_claimed() -> None:
    """By 1 for a unit that has any of the values; by 2 where another one has others in their place."""
    everywhere = list(product(range(3), repeat=4))
    assert max(spread(w, added(w, unit)) for w in everywhere for unit in SUBSETS) == 1
    replaced = (spread(added(w, one), added(w, other)) for w in everywhere[::7] for one in SUBSETS for other in SUBSETS)
    assert max(replaced) == 2


@pytest.mark.parametrize(
    ("limits", "l1", "l2_squared"),
    [
        (Contribution(None, 1, 1), 1, 1),
        (Contribution(9), 1, 1),
        (Contribution(None, 4, 5), 1, 1),
        (Contribution(None, 1, 1, ids=2), 2, 4),
        (Contribution(9, ids=2), 2, 4),
    ],
)
def test_norms(limits: Contribution, l1: int, l2_squared: int) -> None:
    """Whatever limits there are."""
    found = sensitivity(PICKS[1], limits, grouped=False)
    assert found.l1 == l1 and found.l2_squared == l2_squared


@cache
def sequences(counts: Counts, picks: int) -> dict[tuple[int, ...], Fraction]:
    """The probability of each sequence of picks, with one half in place of e^-η, exactly."""
    found: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for _ in range(picks):
        longer: dict[tuple[int, ...], Fraction] = {}
        for before, p in found.items():
            each = {i: Fraction(1, 2**s) for i, s in scores(counts, before).items()}
            whole = sum(each.values())
            longer |= {(*before, i): p * e / whole for i, e in each.items()}
        found = longer
    return found


def pairs(replaced: bool) -> Iterator[tuple[Counts, Counts]]:
    for counts in [(0, 0, 0, 0), (1, 0, 1, 1), (20, 0, 0, 0), (20, 20, 0, 0), (20, 40, 0, 0)]:
        for one in SUBSETS:
            if not replaced:
                yield counts, added(counts, one)
            else:
                yield from ((added(counts, one), added(counts, other)) for other in SUBSETS)


@pytest.mark.parametrize(("replaced", "units"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("picks", [1, 2])
def test_the_stated_loss_is_nearly_reached_and_not_exceeded(replaced: bool, units: int, picks: int) -> None:
    """ε = 2η·l1 for each pick, so that e^ε of all is 4^(l1·picks) where e^-η is one half."""
    worst = Fraction(1)
    for x, y in pairs(replaced):
        p, q = sequences(x, picks), sequences(y, picks)
        worst = max(worst, *(max(p[s] / q[s], q[s] / p[s]) for s in p))
    limits = Contribution(None, 1, 1, ids=units)
    found = sensitivity(PICKS[0], limits, grouped=False)
    stated = 4 ** (found.l1 * picks)
    assert found.l1 == units and Fraction(99, 100) * stated < worst <= Fraction(stated)
    assert PureExponential(Fraction(1, 7)).loss(Fraction(found.l1), found.l2_squared).epsilon == Fraction(2, 7) * units
    assert BoundedRange(Fraction(1, 7)).loss(Fraction(found.l1), found.l2_squared).rho == Fraction(1, 98) * units**2


def test_picks_of_one_list_know_each_other() -> None:
    filtered = LargestChoice(Literal(1, BIGINT), filter=Literal(1, BIGINT), choices=VALUES, pick=Pick(0, 1))
    components = [UnitCount(), PICKS[0], filtered, PICKS[1], PICKS[2]]
    assert [other_picks(components, i) for i in range(5)] == [[], [3, 4], [], [1, 4], [1, 3]]
    assert [rule(c).options(c) for c in PICKS] == [4, 3, 2]
