"""The rank error that is told, against the exact distribution of the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from dpsql.accuracy.rank_error import least_etas, rank_error, scores
from dpsql.core.ir.components import KeySource, ModeChoice, QuantileChoice
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import NoNoise, PureExponential
from dpsql.core.noise.sensitivity import NOTHING

CELLS = 40
LEVEL = Fraction(95, 100)
P = tuple(Fraction(text) for text in ("1/2", "9/10", "1/4", "1/10", "3/4", "2/3"))
X = Column(1, "x", BIGINT)


def quantile(p: Fraction, eta: Fraction = Fraction(1, 10)) -> Measurement:
    c = QuantileChoice(X, hi=CELLS - 1, p=p, cells=CELLS, logarithmic=False)
    return Measurement(c, NOTHING, PureExponential(eta))


def of_one_share(*p: Fraction) -> list[Measurement]:
    """Quantiles that cost the same each."""
    return [quantile(each, Fraction(1, 5 * QuantileChoice(X, p=each).steepness)) for each in p]


def misses(chosen: Sequence[Measurement], place: int, weights: Mapping[int, float], rows: float) -> float:
    """P(more than so many rows lie between the answer at this place and its quantile), once all are put in order."""
    held = [weights.get(v, 0) for v in range(CELLS)]
    n = sum(held)
    below = [sum(held[:v]) for v in range(CELLS + 1)]
    shares, off = [], []
    for m in chosen:
        assert isinstance(m.component, QuantileChoice) and isinstance(m.mechanism, PureExponential)
        rank = float(m.component.p) * n
        off.append([max(0.0, below[v] - rank, rank - below[v + 1]) for v in range(CELLS)])
        grown = [math.exp(-float(m.mechanism.eta / m.unit) * score) for score in off[-1]]
        shares.append([w / sum(grown) for w in grown])
    by_p = sorted(range(len(chosen)), key=lambda i: chosen[i].component.p)  # type: ignore[union-attr]
    return sum(
        math.prod(shares[i][v] for i, v in enumerate(drawn))
        for drawn in product(range(CELLS), repeat=len(chosen))
        if off[place][sorted(drawn)[by_p.index(place)]] > rows
    )


def worst(chosen: Sequence[Measurement], place: int, rows: Fraction) -> float:
    """The largest of these probabilities where about as many rows as can be missed lie in one cell, or in two."""
    p = float(chosen[place].component.p)  # type: ignore[union-attr]
    found = []
    for share in {p, 1 - p}:
        n = float(rows) / share * (1 + 1e-9)
        for cell, other in ((CELLS - 1, 0), (0, CELLS - 1), (CELLS // 2, 0)):
            found += [misses(chosen, place, {cell: n * (1 - part), other: n * part}, float(rows)) for part in (0, 0.3)]
    return max(found)


@pytest.mark.parametrize("p", P, ids=str)
def test_a_quantile_alone_is_at_most_so_far_off(p: Fraction) -> None:
    chosen = [quantile(p)]
    assert 0.04 < worst(chosen, 0, rank_error(chosen, 0, LEVEL)) <= 0.05
    assert worst(chosen, 0, rank_error(chosen, 0, LEVEL) * Fraction(9, 10)) > 0.05


@pytest.mark.parametrize("pair", [(P[0], P[1]), (P[3], P[0]), (P[4], P[1]), (P[5], P[0])], ids=str)
def test_quantiles_that_are_put_in_order(pair: tuple[Fraction, Fraction]) -> None:
    """Each holds, and neither would with its own error alone: that of the other one can become its own."""
    chosen = of_one_share(*pair)
    missed = [worst(chosen, i, rank_error(chosen, i, LEVEL)) for i in (0, 1)]
    alone = [worst(chosen, i, rank_error([m], 0, LEVEL)) for i, m in enumerate(chosen)]
    assert max(missed) <= 0.05 < 0.08 < max(alone)


def test_one_of_a_smaller_share_makes_the_others_worse() -> None:
    """Not with its k alone: with what it may be off itself, in the rows that there have to be."""
    chosen = [quantile(P[0]), quantile(P[1], Fraction(1, 300))]
    told = rank_error(chosen, 0, LEVEL)
    own = scores([m.component for m in chosen], 0, LEVEL) * chosen[0].unit / Fraction(1, 10)
    assert worst(chosen, 0, told) <= 0.05 < 0.2 < worst(chosen, 0, own)


def test_quantiles_of_other_values_change_nothing() -> None:
    one = quantile(P[0])
    other = replace(one, component=replace(one.component, filter=X))
    assert rank_error([one, other], 0, LEVEL) == rank_error([one], 0, LEVEL)


def test_a_mode_is_alone_and_of_its_list() -> None:
    source = KeySource((0,), tuple((v,) for v in range(8)), "list")
    mode = replace(quantile(P[0]), component=ModeChoice(X, choices=source))
    told = rank_error([mode, quantile(P[0])], 0, LEVEL)
    assert float(told) == pytest.approx(math.log(160) * 5)


def test_of_no_row_nothing_is_off() -> None:
    assert rank_error([replace(quantile(P[0]), mechanism=NoNoise(), known=0)], 0, LEVEL) == 0


@pytest.mark.parametrize("asked", [1, 20, Fraction(7, 3)])
def test_the_least_eta_reaches_the_rows_and_no_lesser_one(asked: Fraction) -> None:
    chosen = [quantile(p) for p in P[:3]]
    for place in range(3):
        etas = least_etas([m.component for m in chosen], place, LEVEL, Fraction(asked))
        assert len(etas) == 3
        reached = [replace(m, mechanism=PureExponential(etas[i])) for i, m in enumerate(chosen)]
        assert rank_error(reached, place, LEVEL) == asked
        for i in etas:
            less = [replace(m, mechanism=PureExponential(etas[n] * (1 - Fraction(n == i, 10**9)))) for n, m in
                    enumerate(chosen)]  # fmt: skip
            assert rank_error(less, place, LEVEL) > asked
