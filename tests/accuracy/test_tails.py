"""Tails of sums of noise: the formulas against integration, and the discrete laws themselves against the bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

import dpsql.accuracy.tails as tails
from dpsql.accuracy.tails import TermNoise, curvature, erfcx, half_width, tail, worthwhile
from dpsql.core.ir.components import ValueSum
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.types import BIGINT
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, NoNoise
from dpsql.core.noise.sensitivity import Sensitivity

LEVEL = Fraction(95, 100)
Law = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Values and their probabilities."""


def measurement(mechanism: DiscreteLaplace | DiscreteGaussian | NoNoise) -> Measurement:
    return Measurement(ValueSum(Literal(1, BIGINT)), Sensitivity(1, 1, Fraction(1), 1), mechanism)


def law(noise: TermNoise, coefficient: float) -> Law:
    """Of coefficient · noise, up to 1e-10."""
    reach = math.ceil(23 * noise.laplace + 6.5 * noise.gaussian) + 3
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(z) / noise.laplace) if noise.laplace else np.exp(-(z**2) / (2 * noise.gaussian**2))
    return coefficient * z, weights / weights.sum()


def exact_tail(laws: list[Law], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(|Σ| ≥ w), by the law of all but the last and every value of the last."""
    values, p = np.zeros(1), np.ones(1)
    for more, q in laws[:-1]:
        values, p = np.add.outer(values, more).ravel(), np.outer(p, q).ravel()
    order = np.argsort(values)
    values, beyond = values[order], np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    total = np.zeros_like(w)
    for z, chance in zip(*laws[-1], strict=True):
        at = w - z
        total += 2 * chance * beyond[np.searchsorted(values, at - 1e-12 * np.abs(at), side="left")]
    return total


def test_erfcx() -> None:
    x = np.concatenate([np.linspace(0, 8, 4001), np.logspace(-12, 90, 2000)])
    assert np.max(np.abs(erfcx(x) / special.erfcx(x) - 1)) < 1e-13


@pytest.mark.parametrize("ratio", [1e-4, 0.03, 0.5, 1, 2, 30, 1e4])
def test_laplace_and_gaussian(ratio: float) -> None:
    a, s = 1.0, ratio
    for w in np.array([0.01, 0.3, 1, 3, 6]) * (a + s):

        def part(g: float, w: float = float(w)) -> float:
            beyond = 0.5 * math.exp(-abs(w - g) / a)
            return float(stats.norm.pdf(g, 0, s)) * (beyond if g <= w else 1 - beyond)

        cuts = sorted({-9 * s, 0.0, *(min(max(at, -9 * s), 9 * s) for at in (w, s * s, w - 9 * a, w + 9 * a)), 9 * s})
        expected = 2 * sum(integrate.quad(part, low, high, limit=300)[0] for low, high in pairwise(cuts))
        found = tails._continuous([np.array([a])], [np.array([s])], np.array([w]))[0]
        assert found == pytest.approx(expected, rel=1e-6, abs=3e-7)
        assert found >= expected - 1e-10


FINE, COARSE = TermNoise(20.0, 0.0, 1.0), TermNoise(3.0, 0.0, 1.0)
NOISES = {
    "Laplace": (FINE, TermNoise(12.0, 0.0, 1.0), COARSE),
    "Gaussian": (TermNoise(0.0, 20.0, 1.0), TermNoise(0.0, 12.0, 1.0), TermNoise(0.0, 1.7, 1.0)),
    "Gaussian, Laplace count": (TermNoise(0.0, 20.0, 1.0), TermNoise(0.0, 12.0, 1.0), COARSE),
    "Laplace, Gaussian count": (FINE, TermNoise(12.0, 0.0, 1.0), TermNoise(0.0, 1.7, 1.0)),
    "one of each": (FINE, TermNoise(0.0, 12.0, 1.0), COARSE),
    "tiny": (TermNoise(0.4, 0.0, 1.0), TermNoise(0.0, 0.5, 1.0), TermNoise(0.3, 0.0, 1.0)),
}


@pytest.mark.parametrize("name", ["Laplace", "Gaussian"])
def test_without_the_allowance_discrete_noise_exceeds_it(name: str) -> None:
    """The twin: were there no unit between the discrete law and the continuous one, some tail would be too small."""
    noises = tuple(TermNoise(n.laplace, n.gaussian, 0.0) for n in (NOISES[name][0], NOISES[name][2]))
    laws = [law(NOISES[name][0], 1.0), law(NOISES[name][2], 17.0)]
    w = np.linspace(1e-6, 300, 997)
    assert (tail(noises, (1.0, 17.0), w) < exact_tail(laws, w) - 1e-4).any()


def test_the_second_way_is_the_sharper_one_where_it_is_chosen() -> None:
    noises = FINE, COARSE
    w = np.linspace(30, 100, 101)
    bend = curvature(noises[:1], (1.0,))
    limit = float(worthwhile(bend, COARSE, 0.05))
    assert 5 < limit < 60
    assert (tail(noises, (1.0, 5.0), w, bend, limit) < tail(noises, (1.0, 5.0), w)).all()
    assert (tail(noises, (1.0, 60.0), w, bend, limit) == tail(noises, (1.0, 60.0), w)).all()


@pytest.mark.parametrize("scales", [(1.0,), (2.0, 1.0), (1.0, 0.999999), (1.0, 1.0), (3.0, 0.0)])
def test_curvature_is_the_largest_slope_of_the_density(scales: tuple[float, ...]) -> None:
    noises = [TermNoise(1.0, 0.0, 0.0)] * len(scales)
    found = float(curvature(noises, scales))
    x = np.linspace(1e-9, 8, 80_001)
    a, b = max(scales), min(scales) if len(scales) > 1 else 0.0
    if b < 1e-9:
        density = np.exp(-x / a) / (2 * a)
    elif a - b < 1e-3:
        density = np.exp(-x / a) * (1 + x / a) / (4 * a)
    else:
        density = (a * np.exp(-x / a) - b * np.exp(-x / b)) / (2 * (a**2 - b**2))
    largest = np.abs(np.diff(density)).max() / (x[1] - x[0])
    assert largest * (1 - 1e-3) <= found <= largest * (1 + 2e-2)


@pytest.mark.parametrize("variance", [0.02, 0.1, 0.3, 1, 3, 30, 300])
def test_a_discrete_gaussian_variable_spread_over_its_unit(variance: float) -> None:
    """P(|Z + T| > x) ≤ P(|X| > x), X of variance σ² + ¼, and with T of the variance σ² + 1/12 alone it is not."""
    z, p = law(TermNoise(0.0, math.sqrt(variance), 1.0), 1.0)
    top = min(math.ceil(30 * math.sqrt(variance)) + 2, len(z) // 2 - 1)
    x = np.linspace(0, top, 50 * top + 1)
    beyond = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    k = np.floor(x + 0.5).astype(int)
    at = k + len(z) // 2
    spread = beyond[at + 1] + p[at] * (k + 0.5 - x)
    assert (spread <= stats.norm.sf(x / math.sqrt(variance + 0.25)) * (1 + 1e-9) + 1e-15).all()
    if variance >= 1:
        assert (spread > stats.norm.sf(x / math.sqrt(variance)) * (1 + 1e-6)).any()


def test_half_width_without_noise_and_of_one_part() -> None:
    mechanism = DiscreteLaplace(Fraction(1000))
    assert half_width([(measurement(NoNoise()), Fraction(1))], LEVEL) == 0
    alone = half_width([(measurement(mechanism), Fraction(1, 8)), (measurement(NoNoise()), Fraction(5))], LEVEL)
    assert mechanism.half_width(LEVEL) / 8 <= alone <= (mechanism.half_width(LEVEL) + 2) / 8
