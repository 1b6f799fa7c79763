"""Scores of quantiles, how far they move, and what the choice by them costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import QuantileChoice
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.mechanisms import BoundedRange, PureExponential
from dpsql.core.noise.sensitivity import sensitivity
from dpsql.core.numbers.cells import Cells
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.histograms import Histograms

QUANTILES = tuple(map(Fraction, ("1/2", "9/10", "1/4", "2/3", "1/100")))
CELLS = Cells(0, 6, 1, 0)


def scores(p: Fraction, weights: Sequence[int], cells: Cells = CELLS) -> list[int]:
    """Of every cell. weights: of the rows in each."""
    there = [i for i, w in enumerate(weights) if w]
    starts, held = [cells.starts[i] for i in there], [weights[i] for i in there]
    found = Histograms.of(cells, np.zeros(len(there), np.intp), 1, starts, held).runs(0, p.numerator, p.denominator)
    assert [first for first, _, _ in zip(*found, strict=True)] == sorted(found[0])
    listed = [s for _, count, s in zip(*found, strict=True) for _ in range(count)]
    assert len(listed) == len(cells)
    return listed


def as_defined(p: Fraction, weights: Sequence[int]) -> list[int]:
    """max(0, b·lt - a·N, a·N - b·le), cell by cell."""
    a, b, n = p.numerator, p.denominator, sum(weights)
    ranks = ((sum(weights[:v]), sum(weights[: v + 1])) for v in range(len(weights)))
    return [max(0, b * lt - a * n, a * n - b * le) for lt, le in ranks]


def tiny() -> Iterator[tuple[int, ...]]:
    """Histograms of up to four rows in seven cells, and the same with larger weights."""
    for n in range(5):
        for rows in combinations_with_replacement(range(7), n):
            for weight in (1, 2**61):
                yield tuple(weight * rows.count(v) for v in range(7))


@pytest.mark.parametrize("p", QUANTILES, ids=str)
def test_scores_are_the_distance_of_the_rank(p: Fraction) -> None:
    for weights in tiny():
        assert scores(p, weights) == as_defined(p, weights), weights


def test_ties() -> None:
    """0: 30 %, 1: 18 %, 2: 50 %, 3: 2 %. The median is 2, and no other cell comes close."""
    found = scores(Fraction(1, 2), (300, 180, 500, 20), Cells(0, 3, 1, 0))
    assert found == [400, 40, 0, 960]


@pytest.mark.parametrize("p", (Fraction(1, 4), Fraction(9, 10)), ids=str)
def test_no_score_moves_further_than_is_claimed(p: Fraction) -> None:
    moves_no_further(p)


def moves_no_further(p: Fraction) -> None:
    """By c for one row more, by b for one that is replaced; and both are reached."""
    c, b = QuantileChoice(Literal(1, BIGINT), p=p).steepness, p.denominator
    enough = [(0, k, 0, 0, 0, m, 0) for k, m in product(range(0, 46, 9), repeat=2)]
    added, replaced = set(), set()
    for weights in [w for w in tiny() if max(w) < 9] + enough + [(0, b, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, b, 0)]:
        own = scores(p, weights)
        more = [scores(p, [w + (v == at) for v, w in enumerate(weights)]) for at in range(7)]
        added |= {abs(x - y) for one in more for x, y in zip(own, one, strict=True)}
        replaced |= {abs(x - y) for one in more for other in more for x, y in zip(one, other, strict=True)}
    assert (max(added), max(replaced)) == (c, b)


@pytest.mark.parametrize(
    ("p", "limits", "grouped", "l1", "l2_squared"),
    [
        ("1/2", Contribution(1), True, 1, 1),
        ("9/10", Contribution(1), True, 9, 81),
        ("1/4", Contribution(1), False, 3, 9),
        ("1/4", Contribution(5), True, 15, 225),
        ("9/10", Contribution(None, 4, 5), True, 180, 5 * 36**2),
        ("9/10", Contribution(None, 4, 5), False, 36, 36**2),
        # replaced rows: by b in one group, or by c in two
        ("1/2", Contribution(1, replaces_rows=True), False, 2, 4),
        ("9/10", Contribution(1, replaces_rows=True), False, 10, 100),
        ("9/10", Contribution(3, replaces_rows=True), False, 30, 900),
        ("9/10", Contribution(3, replaces_rows=True, size=50), False, 30, 900),  # a public size is no public rank
        ("1/2", Contribution(1, replaces_rows=True), True, 2, 4),
        ("9/10", Contribution(1, replaces_rows=True), True, 18, 10**2 + 8**2),
        # replaced ids: what goes and what comes meet in one group and move it by b, or move two by c each
        ("1/2", Contribution(None, 4, 5, ids=2), True, 40, 4 * 80),
        ("9/10", Contribution(None, 4, 5, ids=2), True, 360, 2 * 5 * 36**2),
        ("1/2", Contribution(3, ids=2), True, 6, 36),
    ],
)  # fmt: skip
def test_norms(p: str, limits: Contribution, grouped: bool, l1: int, l2_squared: int) -> None:
    c = QuantileChoice(Literal(1, BIGINT), lo=0, hi=9, p=Fraction(p), cells=10)
    found = sensitivity(replace(c, every_row=True), limits, grouped)
    assert found.l1 == l1 and found.l2_squared == l2_squared


@pytest.mark.parametrize("p", QUANTILES[:4], ids=str)
def test_the_stated_loss_is_reached_and_not_exceeded(p: Fraction) -> None:
    """On a long row of empty cells one row more costs 2ηc. In whole powers of ½ in place of e^-η, so exactly."""
    a, b, c = p.numerator, p.denominator, QuantileChoice(Literal(1, BIGINT), p=p).steepness
    upper = 2 * a >= b  # which end the row comes at
    # As many rows at the other end that one more moves the score of the whole row of empty cells by c, to 0.
    rows = {1: a, 10**9: 0} if upper else {1: 0, 10**9: b - a}

    def runs(low: int, high: int) -> list[tuple[int, int]]:
        n = low + high
        return [(1, a * n), (1, max(0, a * n - b * low)), (10**9, abs(b * low - a * n)),
                (1, max(0, b * low - a * n)), (1, (b - a) * n)]  # fmt: skip

    before = runs(rows[1], rows[10**9])
    after = runs(rows[1] + (not upper), rows[10**9] + upper)
    z, z_after = (sum(Fraction(count, 2**s) for count, s in held) for held in (before, after))
    ratios = [
        Fraction(1, 2**s) / z / (Fraction(1, 2**t) / z_after) for (_, s), (_, t) in zip(before, after, strict=True)
    ]
    worst = max(max(ratios), 1 / min(ratios))
    for eta in (Fraction(1), Fraction(1, 7)):
        loss = PureExponential(eta).loss(Fraction(c), Fraction(c * c))
        assert loss == PrivacyLoss(epsilon=2 * eta * c)
    assert Fraction(999, 1000) * 2 ** (2 * c) < worst <= 2 ** (2 * c)


def test_the_price_in_rho_is_that_of_a_bounded_range() -> None:
    """Of two cells that log-ratios of ±r/2 part: nearly r²/8, never more."""
    for eta, c in ((Fraction(1, 10), 1), (Fraction(1, 90), 9)):
        rho = BoundedRange(eta).loss(Fraction(c), Fraction(c * c))
        assert rho == PrivacyLoss(rho=eta**2 * c * c / 2)
        r = float(2 * eta * c)
        p, q = 1 / (1 + math.exp(-r / 2)), 1 / (1 + math.exp(r / 2))
        orders = [math.log(p**k * q ** (1 - k) + q**k * p ** (1 - k)) / (k - 1) / k for k in (1.001, 1.5, 2, 8, 64)]
        assert 0.99 * float(rho.rho) < max(orders) <= float(rho.rho)


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 3), Fraction(10**6 + 1, 10**9)])
def test_a_choice_is_calibrated_to_its_share(share: Fraction) -> None:
    pure = PureExponential.calibrate(Fraction(18), share)
    assert pure.loss(Fraction(18), Fraction(324)).epsilon == share
    ranged = BoundedRange.calibrate(Fraction(324), share)
    spent = ranged.loss(Fraction(18), Fraction(324)).rho
    assert share * (1 - Fraction(1, 2**60)) < spent <= share
