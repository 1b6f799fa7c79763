"""Scores among runs of 10^9 empty cells and about as many rows as p's denominator: exactly, and never walked through.

For e^-η stands ½, so that all probabilities are rationals. Histograms are those of the product, over more cells than
any column has: that they could not be walked through is what ends this test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from dpsql.core.ir.components import QuantileChoice
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.sampler.exponential_mechanism import CellChoice, Powers
from dpsql.core.release.histograms import Histograms

GAP = 10**9
OWN = tuple(i * (GAP + 1) for i in range(4))
"""Cells that rows may lie in; between two of them lie GAP others."""
KINDS = tuple(first for own in OWN[:-1] for first in (own, own + 1)) + OWN[-1:]
SIZES = (1, GAP, 1, GAP, 1, GAP, 1)


@dataclass(frozen=True)
class Many:
    """More cells than can be listed."""

    def __len__(self) -> int:
        return OWN[-1] + 1


@cache
def scores(p: Fraction, rows: tuple[int, ...]) -> tuple[int, ...]:
    """Of each kind of cell. rows: how many lie in each of OWN."""
    held = [(at, n) for at, n in zip(OWN, rows, strict=True) if n]
    cells: Any = Many()
    at, weights = (np.array([h[i] for h in held], dtype=np.int64) for i in (0, 1))
    made = Histograms(cells, np.array([len(held)]), at.astype(np.intp), Integers(weights), np.arange(1))
    first, count, score = made.runs(0, p.numerator, p.denominator)
    assert len(first) <= 2 * len(held) + 1 and sum(count) == len(cells)
    assert first == [sum(count[:i]) for i in range(len(count))]
    return tuple(score[np.searchsorted(first, kind, side="right") - 1] for kind in KINDS)


def databases(rows: range) -> Iterator[tuple[int, ...]]:
    for n in rows:
        for cells in combinations_with_replacement(range(4), n):
            yield tuple(cells.count(i) for i in range(4))


@cache
def mass(p: Fraction, rows: tuple[int, ...]) -> Fraction:
    return sum((Fraction(size, 2**s) for size, s in zip(SIZES, scores(p, rows), strict=True)), Fraction(0))


def ratio(p: Fraction, a: tuple[int, ...], b: tuple[int, ...]) -> Fraction:
    """The largest P_a(cell)/P_b(cell)."""
    furthest = max(t - s for s, t in zip(scores(p, a), scores(p, b), strict=True))
    return Fraction(2) ** furthest * mass(p, b) / mass(p, a)


def more(rows: tuple[int, ...], at: int) -> tuple[int, ...]:
    return tuple(n + (i == at) for i, n in enumerate(rows))


def worst_ratios(p: Fraction, most: int) -> tuple[Fraction, Fraction]:
    """Of one row more, and of one that is replaced."""
    added = replaced = Fraction(0)
    for rows in databases(range(most + 1)):
        with_one = [more(rows, at) for at in range(4)]
        added = max(added, *(max(ratio(p, rows, x), ratio(p, x, rows)) for x in with_one))
        replaced = max(replaced, *(max(ratio(p, x, y), ratio(p, y, x)) for x, y in combinations(with_one, 2)))
    return added, replaced


@pytest.mark.parametrize(("p", "most"), [("1/2", 9), ("1/4", 7), ("9/10", 10)])
def test_the_loss_is_reached_and_not_exceeded(p: str, most: int) -> None:
    """2ηc of one row more and 2ηb of a replaced one. Half the price, the smaller slope or the price of a row more for a
    replaced one are exceeded."""
    share = Fraction(p)
    c, b = QuantileChoice(Literal(1, BIGINT), p=share).steepness, share.denominator
    added, replaced = worst_ratios(share, most)
    assert Fraction(99, 100) * 2 ** (2 * c) < added <= 2 ** (2 * c)
    assert Fraction(99, 100) * 2 ** (2 * b) < replaced <= 2 ** (2 * b)
    assert added > 2**c and replaced > 2 ** (2 * c)
    assert c == b - c or added > 2 ** (2 * (b - c))


@pytest.mark.parametrize("p", ["1/2", "9/10"])
def test_a_choice_among_them_weighs_each_cell_exactly(p: str) -> None:
    """The part of each run is as wide as all its cells; its bound is above e^-ηs by less than 2^-100."""
    rows, eta = (4, 1, 3, 2), Fraction(1, 7)
    held = scores(Fraction(p), rows)
    choice = CellChoice(SIZES, held, Powers(eta))
    starts = [0, *choice.ends]
    for i, (size, s) in enumerate(zip(SIZES, held, strict=True)):
        assert starts[i + 1] - starts[i] == size * choice.bounds[i]
        weighs = choice.bounds[i] / 2**choice.powers.digits
        assert weighs == pytest.approx(math.exp(-(s - min(held)) / 7), rel=1e-12)
