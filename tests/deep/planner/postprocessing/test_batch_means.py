"""How often the interval of a batch's average holds the true mean, at its worst place and at others."""

from __future__ import annotations

import secrets
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.ir.types import DOUBLE
from dpsql.planner.batch.estimate import CellNoise, Measured
from dpsql.planner.batch.member_answers import ToldNumber
from dpsql.planner.batch.quantities import ROWS, Mean, Quantity
from dpsql.planner.batch.workload import Number

DRAWS = 1_500
LEAST = 0.95 - 6.2 * (0.95 * 0.05 / DRAWS) ** 0.5
"""What 95 % in truth gives less of in one of 10⁹ runs."""
TOTAL = Quantity(None, True, Fraction(50), "x", Fraction(50))
SIZES = {1: 4, 2: 3}
REGION = Number((1,), np.array([1.0, 1.0, 0, 0]))


def measured(scale: float, rng: np.random.Generator) -> tuple[Measured, dict[tuple[int, ...], np.ndarray]]:
    """Two marginals with discrete Laplace noise, and one draw of it."""
    decay = np.exp(-1 / scale)
    noise = CellNoise(2 * decay / (1 - decay) ** 2, scale)
    found = {}
    for marginal in ((1,), (1, 2)):
        shape = tuple(SIZES[uid] for uid in marginal)
        found[marginal] = (rng.geometric(1 - decay, shape) - rng.geometric(1 - decay, shape)).astype(float)
    return Measured({(1,): noise, (1, 2): noise}, SIZES), found


def covered(mean: float, rows: int, scales: tuple[float, float], believed: tuple[float, float]) -> float:
    """The part of draws in which the interval holds `mean`. scales: of the noise of totals and counts; believed: what
    the interval takes them for."""
    rng = np.random.default_rng(secrets.randbits(128))
    form = Mean(TOTAL, ROWS, Fraction(0), Fraction(100))
    made = {TOTAL: measured(believed[0], rng)[0], ROWS: measured(believed[1], rng)[0]}
    told = ToldNumber(form, REGION, DOUBLE, made)
    widths, inside = told.mean_widths(0.95), 0
    for _ in range(DRAWS):
        cells = {q: measured(scale, rng)[1] for q, scale in zip((TOTAL, ROWS), scales, strict=True)}
        estimates = [made[q].estimate(REGION, cells[q]) for q in (TOTAL, ROWS)]
        values = (rows * (mean - 50) + estimates[0], rows + estimates[1])
        low, high = told.mean_bounds(values, widths)
        assert low <= told.shown(values) <= high
        inside += low <= mean <= high
    return inside / DRAWS


@pytest.mark.parametrize(("mean", "rows"), [(50, 40), (100, 40), (3, 6), (70, 0)])
def test_the_interval_of_a_mean_holds_it(mean: float, rows: int) -> None:
    assert covered(mean, rows, (100.0, 4.0), (100.0, 4.0)) >= LEAST


def test_a_twin_that_forgets_the_noise_of_the_count_does_not() -> None:
    assert covered(100, 40, (20.0, 8.0), (20.0, 0.1)) < LEAST - 0.1
