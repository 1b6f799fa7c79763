"""Estimates, variances and shares of a batch against dense linear algebra over all cells."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsql.planner.batch import marginal_shares as shares
from dpsql.planner.batch.estimate import CellNoise, Measured
from dpsql.planner.batch.workload import Marginal, Number, subsets

SIZES = {1: 3, 2: 4, 3: 2}
CELLS = list(itertools.product(*(range(n) for n in SIZES.values())))


@st.composite
def numbers(draw: st.DrawFn) -> Number:
    columns = tuple(sorted(draw(st.sets(st.sampled_from(sorted(SIZES)), max_size=3))))
    shape = tuple(SIZES[c] for c in columns)
    bits = draw(st.lists(st.integers(0, 1), min_size=math.prod(shape), max_size=math.prod(shape)))
    return Number(columns, np.array(bits, dtype=float).reshape(shape))


def over_cells(number: Number) -> NDArray[np.float64]:
    return np.array([number.weights[tuple(cell[c - 1] for c in number.columns)] for cell in CELLS])


def matrix(marginal: Marginal) -> NDArray[np.float64]:
    """A row for each cell of the marginal, over all cells of the table."""
    keys = itertools.product(*(range(SIZES[c]) for c in marginal))
    return np.array([[float(tuple(cell[c - 1] for c in marginal) == key) for cell in CELLS] for key in keys])


@st.composite
def measured_marginals(draw: st.DrawFn) -> dict[Marginal, float]:
    found = draw(st.sets(st.sampled_from(subsets(sorted(SIZES))), min_size=1, max_size=5))
    theta = {m: draw(st.floats(0.1, 10)) for m in sorted(found)}
    return theta | {(1, 2, 3): draw(st.floats(0.1, 10))}


@given(numbers(), measured_marginals())
def test_estimates_are_those_of_the_normal_equations(number: Number, theta: dict[Marginal, float]) -> None:
    """Coefficients of every noisy cell, and the variance, as (MᵀΘM)⁺MᵀΘ gives them."""
    rows = np.vstack([matrix(m) for m in theta])
    weights = np.concatenate([np.full(math.prod(SIZES[c] for c in m), t) for m, t in theta.items()])
    inverse = np.linalg.pinv(rows.T @ (weights[:, None] * rows))
    w = over_cells(number)
    measured = Measured({m: CellNoise(1 / t) for m, t in theta.items()}, SIZES)
    mine = np.concatenate([c.ravel() for c in measured.coefficients(number).values()])
    assert mine == pytest.approx(w @ inverse @ rows.T * weights, abs=1e-9)
    assert measured.variance(number) == pytest.approx(float(w @ inverse @ w), abs=1e-9)
    spreads = shares.spread([number], SIZES)
    assert shares.total_variance(spreads, theta, SIZES) == pytest.approx(float(w @ inverse @ w), abs=1e-9)


@given(numbers(), measured_marginals(), st.lists(st.integers(-5, 50), min_size=24, max_size=24))
def test_without_noise_an_estimate_is_the_number(
    number: Number, theta: dict[Marginal, float], table: list[int]
) -> None:
    counts = np.array(table, dtype=float)
    measured = Measured({m: CellNoise(1 / t) for m, t in theta.items()}, SIZES)
    exact = {m: (matrix(m) @ counts).reshape(tuple(SIZES[c] for c in m)) for m in theta}
    assert measured.estimate(number, exact) == pytest.approx(float(over_cells(number) @ counts), abs=1e-6)


def test_shares_depend_on_what_is_asked() -> None:
    """A twin: shares of another workload are worse for this one."""
    first = [Number((1,), np.array([1.0, 0, 0])) for _ in range(5)]
    second = [Number((2, 3), np.ones((4, 2)) * np.array([1.0, 0])) for _ in range(5)] + first[:1]
    spreads = shares.spread(second, SIZES)
    own = shares.best_shares(spreads, [(1,), (2, 3)], SIZES, True)
    other = shares.best_shares(shares.spread(first * 20 + second, SIZES), [(1,), (2, 3)], SIZES, True)

    def total(parts: dict[Marginal, Fraction]) -> float:
        return shares.total_variance(spreads, {m: float(p) for m, p in parts.items()}, SIZES)

    assert total(own) < total(other) * 0.95


@pytest.mark.parametrize("gaussian", [True, False])
def test_what_a_number_needs_is_measured_however_small_its_share(gaussian: bool) -> None:
    many, few = Number((1,), np.array([1.0, 0, 0])), Number((2,), np.array([1.0, 0, 0, 0]))
    spreads = shares.together(
        [{b: 1e15 * s for b, s in shares.spread([many], SIZES).items()}, shares.spread([few], SIZES)]
    )
    found = shares.best_shares(spreads, [(1,), (2,)], SIZES, gaussian)
    assert all(any(set(onto) <= set(m) for m in found) for onto in spreads)
    assert sum(found.values()) == 1


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_price_is_divided_so_that_variances_add_up_to_the_least(gaussian: bool) -> None:
    """Against a grid of other divisions; a twin of equal parts is worse."""
    variances = [5.0, 0.0, 80.0]

    def total(parts: list[float]) -> float:
        return sum(v / (p if gaussian else p**2) for v, p in zip(variances, parts, strict=True) if v)

    found = [float(p) for p in shares.divided(variances, gaussian)]
    assert sum(shares.divided(variances, gaussian)) == 1 and found[1] == 0
    assert total(found) == pytest.approx(shares.whole_variance(variances, gaussian), rel=1e-4)
    assert total(found) <= min(total([p / 100, 0, 1 - p / 100]) for p in range(1, 100)) * 1.0001
    assert total([0.5, 0, 0.5]) > total(found) * 1.1


def exact_tail(scale: float, coefficients: list[int], width: float) -> float:
    """P(|Σ a·Z| > width) for discrete Laplace Z, by convolution."""
    decay, reach = math.exp(-1 / scale), 200
    one = np.array([(1 - decay) / (1 + decay) * decay ** abs(z) for z in range(-reach, reach + 1)])
    spread_of = np.array([1.0])
    for a in coefficients:
        stretched = np.zeros(2 * reach * abs(a) + 1)
        stretched[:: max(abs(a), 1)] = one if a else [1.0]
        spread_of = np.convolve(spread_of, stretched)
    middle = len(spread_of) // 2
    return float(sum(p for i, p in enumerate(spread_of) if abs(i - middle) > width))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
@pytest.mark.parametrize("weights", [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
def test_widths_hold(level: float, weights: list[int]) -> None:
    """The exact distribution of the error leaves the width with at most 1 - level, and half the width with more."""
    measured = Measured({(1,): CellNoise(2 * math.exp(-0.25) / (1 - math.exp(-0.25)) ** 2, 4.0)}, SIZES)
    number = Number((1,), np.array(weights, dtype=float))
    width = measured.width(number, level)
    assert exact_tail(4.0, weights, width) <= 1 - level
    assert exact_tail(4.0, weights, width / 3) > 1 - level
