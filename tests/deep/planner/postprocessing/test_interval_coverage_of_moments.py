"""Averages, variances and sums made of two parts cover under Laplace noise, Gaussian noise, and some of each.

Exact moments of groups of 1 to 100,000 rows, with noise drawn by the mechanisms themselves. Everywhere at least 95 %.
At most 97 % where the noise is large against the grid and the group is large against the noise; a group with one value
only, whose variance of 0 is an end of what variances can be, is left out of that: there no interval can miss below.
Twins: intervals 20 % too narrow are too few, 50 % too wide too many. False alarms: see test_coverage.py.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsql.accuracy.tails import half_width
from dpsql.core.ir.components import ProductSum, RowCount, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.frontend.aggregates.avg import Ratio
from dpsql.frontend.aggregates.intervals.mean_intervals import AverageIntervals
from dpsql.frontend.aggregates.intervals.variance_intervals import VarianceIntervals
from dpsql.frontend.aggregates.variance import Variance
from tests.deep.planner.postprocessing.test_interval_coverage import LEVEL, Draws, too_few, too_many, total
from tests.support.reference_formulas import average, variance

DRAWS = 6_000
HALF = 10**6
"""Half the width of the bounds, in grid units."""
SUM = ValueSum(Literal(1, BIGINT), center=HALF, lo=-HALF, hi=HALF, contribution=Weighing.PAIRED)
SQUARES = ProductSum(SUM.arg, center=SUM.center, lo=-HALF, hi=HALF, shift=HALF**2 // 2)
COUNT = RowCount()
LARGE = (3_000, 10_000, 100_000)
SMALL = (1, 2, 5, 30, 100)
Mechanism = DiscreteLaplace | DiscreteGaussian
Family = Callable[[int, int], Mechanism]
"""Magnitude, place among the three components → mechanism, at ε = 1 or ρ = ½ in all."""


def laplace(magnitude: int, at: int) -> Mechanism:
    return DiscreteLaplace(Fraction(3 * magnitude))


def gaussian(magnitude: int, at: int) -> Mechanism:
    return DiscreteGaussian(Fraction(3 * magnitude**2))


def some_of_each(magnitude: int, at: int) -> Mechanism:
    return (laplace if at == 0 else gaussian)(magnitude, at)


def others_of_each(magnitude: int, at: int) -> Mechanism:
    return (gaussian if at == 0 else laplace)(magnitude, at)


FAMILIES = (laplace, gaussian, some_of_each, others_of_each)
SHAPES: dict[str, Callable[[np.random.Generator, int], NDArray[np.int64]]] = {
    "even": lambda chance, n: chance.integers(-HALF, HALF + 1, n),
    "skewed": lambda chance, n: np.minimum(HALF, -HALF + chance.exponential(HALF / 5, n)).astype(np.int64),
    "mostly one value": lambda chance, n: np.where(chance.random(n) < 0.02, HALF, -HALF // 2),
    "one value": lambda chance, n: np.full(n, HALF // 10),
}


def drawn(family: Family, shape: str, n: int, seed: int) -> dict[str, tuple[Draws, float]]:
    """Quantity → its draws and its truth, in grid units."""
    y = [int(v) for v in SHAPES[shape](np.random.default_rng(seed), n)]
    exact = sum(y), sum(v * v - SQUARES.shift for v in y), n
    parts = [
        Measurement(c, Sensitivity(1, 1, Fraction(1), 1), family(c.magnitude, at))
        for at, c in enumerate((SUM, SQUARES, COUNT))
    ]
    s, q, c = ([x + z for z in m.mechanism.add_noise([0] * DRAWS)] for x, m in zip(exact, parts, strict=True))
    ends = Fraction(0), Fraction(2 * HALF)
    found: dict[str, tuple[Draws, float]] = {}
    ratio = Ratio(0, 2, *ends)
    units = Fraction(1), Fraction(1)
    means = [float(min(ends[1], max(ends[0], average(a, b, units, Fraction(HALF))))) for a, b in zip(s, c, strict=True)]
    truth = exact[0] / n
    found["average"] = Draws(means, AverageIntervals(parts[0], parts[2], ratio.lo, ratio.hi, LEVEL)(s, c)), HALF + truth
    width = half_width([(parts[0], Fraction(1)), (parts[2], Fraction(HALF))], LEVEL)
    sums = [float(a + HALF * b) for a, b in zip(s, c, strict=True)]
    found["sum"] = Draws(sums, [(v - width, v + width) for v in sums]), exact[0] + HALF * n
    for sample in (False, True):
        recipe = Variance(0, 1, 2, *ends, sample=sample)
        middle = Fraction(SQUARES.shift)
        columns = zip(s, q, c, strict=True)
        values = [float(variance(Fraction(a), Fraction(b), Fraction(d), recipe, middle)) for a, b, d in columns]
        bounds = VarianceIntervals(*parts, recipe, LEVEL)(s, q, c)
        if n > sample:
            exactly = variance(*map(Fraction, exact), recipe, middle)
            found["sample variance" if sample else "variance"] = Draws(values, bounds), float(exactly)
    return found


MOST = [laplace, some_of_each, *(pytest.param(f, marks=pytest.mark.exhaustive) for f in (gaussian, others_of_each))]


@pytest.fixture(scope="module", params=MOST, ids=lambda f: f.__name__)
def large(request: pytest.FixtureRequest) -> dict[str, list[tuple[Draws, float]]]:
    """Quantity → large groups of every shape but that of one value."""
    found: dict[str, list[tuple[Draws, float]]] = {}
    for n in LARGE:
        for seed, shape in enumerate(list(SHAPES)[:2]):
            for quantity, case in drawn(request.param, shape, n, seed).items():
                found.setdefault(quantity, []).append(case)
    return found


QUANTITIES = ("sum", "average", "variance", "sample variance")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_large_groups(quantity: str, large: dict[str, list[tuple[Draws, float]]]) -> None:
    for draws, truth in large[quantity]:
        hits = draws.hits(truth)
        assert not too_few(hits, DRAWS)
        assert not too_many(hits, DRAWS)
    assert not too_few(*total(large[quantity]))
    assert not too_many(*total(large[quantity]))


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_twins_of_large_groups_are_refuted(quantity: str, large: dict[str, list[tuple[Draws, float]]]) -> None:
    assert too_few(*total(large[quantity], 0.8))
    assert too_many(*total(large[quantity], 1.5))


@pytest.mark.parametrize(
    "family",
    [laplace, *(pytest.param(f, marks=pytest.mark.exhaustive) for f in FAMILIES if f is not laplace)],
    ids=lambda f: f.__name__,
)
def test_small_groups(family: Family) -> None:
    """At least as often as said, whatever the group; and another truth is missed where there is something to see."""
    for at, n in enumerate(SMALL):
        for seed, shape in enumerate(SHAPES):
            if (at + seed) % 2 and n < 100:
                continue  # half of the combinations, for time
            for quantity, (draws, truth) in drawn(family, shape, n, seed).items():
                assert not too_few(draws.hits(truth), DRAWS), (quantity, n, shape)
                if n == 100 and quantity == "variance":
                    assert too_few(draws.hits(truth + 0.5 * HALF**2), DRAWS)
