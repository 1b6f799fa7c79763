"""Intervals of covariances and regressions cover under Laplace and Gaussian noise, groups of 0 to 10,000 rows.

Exact moments, with noise drawn by the mechanisms of a plan. At least 95 % hold the truth of what has an interval; they
are made of intervals of the components that hold all at once, so they hold it more often, and how much more is not
asked. Twins: intervals a fifth as wide are too few. False alarms: see test_interval_coverage.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.ir.components import Component, ProductSum, RowCount
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.release.noisy import NoisyRelease
from dpsql.core.release.planned import PlannedRelease
from dpsql.frontend.aggregates.formula import formula
from tests.deep.planner.postprocessing.test_interval_coverage import LEVEL, too_few
from tests.support.planning import planned, policy

DRAWS = 3_000
NAMES = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy")
SQL = f"SELECT {', '.join(f'{name}(y, x) AS {name}' for name in NAMES)} FROM people"
TABLE = """
people:
  unit: {rows: 1}
  columns:
    y: {type: integer, bounds: [-10, 90], nullable: false}
    x: {type: integer, bounds: [0, 50], nullable: false}
"""
SHAPES = ("line", "apart", "steep", "one value")


def _rows(shape: str, n: int) -> tuple[list[int], list[int]]:
    chance = np.random.default_rng(n)
    x = chance.integers(0, 51, n)
    match shape:
        case "line":
            y = x + chance.integers(-10, 11, n)
        case "apart":
            y = chance.integers(-10, 91, n)
        case "steep":
            y = np.where(x > 25, 90, -10)
        case _:
            x, y = np.full(n, 20), np.full(n, 30)
    return [int(v) for v in np.clip(y, -10, 90)], [int(v) for v in x]


def _integer(c: Component, y: int, x: int) -> int:
    """What one row adds."""
    if isinstance(c, RowCount):
        return 1
    y, x = (Fraction(v) for v in (y, x))  # type: ignore[assignment]
    first = (x if "x" in str(c.arg) else y) / c.grid - c.center
    if not isinstance(c, ProductSum):
        return int(first)
    second = first if c.times is None else (x if "x" in str(c.times.arg) else y) / c.times.grid - c.times.center
    return c.stepped(int(first * second))


def _exact(release: PlannedRelease, shape: str, n: int) -> list[int]:
    rows = list(zip(*_rows(shape, n), strict=True))
    return [sum(_integer(m.component, y, x) for y, x in rows) for m in release.measured.measurements]


@pytest.fixture(scope="module", params=["laplace", "gaussian"])
def release(request: pytest.FixtureRequest) -> PlannedRelease:
    (found,) = planned(SQL, policy(TABLE), epsilon="5").releases
    if request.param == "laplace":
        return found
    normal = tuple(
        replace(m, mechanism=DiscreteGaussian(Fraction(m.mechanism.variance()).limit_denominator()))
        for m in found.measured.measurements
    )
    return replace(found, measured=replace(found.measured, measurements=normal))


def _covered(release: PlannedRelease, shape: str, n: int, stretch: float = 1) -> dict[str, tuple[int, int]]:
    """Name → how many intervals hold the truth, or are none, and of how many numbers there are."""
    exact = _exact(release, shape, n)
    measurements = release.measured.measurements
    columns = tuple(
        Integers.of(m.noise.add_noise([value] * DRAWS)) for m, value in zip(measurements, exact, strict=True)
    )
    noisy = NoisyRelease(release, ((),) * DRAWS, columns)
    true = NoisyRelease.of_rows(release, [()], [exact])
    found = {}
    for output in release.measured.node.outputs:
        made = formula(output)
        (truth,) = made.values(true, output.column.type)
        held = 0
        for (low, high), shown in zip(
            made.intervals(noisy, LEVEL), made.values(noisy, output.column.type), strict=True
        ):
            if math.isnan(low) or truth is None:
                held += 1
                continue
            assert isinstance(shown, float) and isinstance(truth, float) and low <= shown <= high
            held += shown - (shown - low) * stretch <= truth <= shown + (high - shown) * stretch
        found[output.column.name] = held, DRAWS
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_groups_of_any_size(release: PlannedRelease, shape: str) -> None:
    for n in (0, 1, 2, 30, 400, 10_000):
        for name, (held, draws) in _covered(release, shape, n).items():
            assert not too_few(held, draws), (name, n)


def test_twins_are_refuted(release: PlannedRelease) -> None:
    """A fifth as wide they miss, all of them."""
    for name, (held, draws) in _covered(release, "line", 10_000, 0.2).items():
        assert too_few(held, draws), name
