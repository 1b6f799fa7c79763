"""Tails of sums of noise: the formulas against integration, and the discrete laws themselves against the bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

import dpsql.core.noise.tails as tails
from dpsql.core.ir.components import Component, Measure
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Exact
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.core.noise.tails import Noise, curvature, erfcx, half_width, tail, worthwhile

LEVEL = Fraction(95, 100)
Law = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Values and their probabilities."""


def measurement(mechanism: DiscreteLaplace | DiscreteGaussian | Exact) -> Measurement:
    return Measurement(Component(Measure.SUM), Sensitivity(1, 1, Fraction(1), 1), mechanism)


def law(noise: Noise, coefficient: float) -> Law:
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


@pytest.mark.parametrize("scales", [(1, 1, 1), (1, 1 + 1e-6, 2), (1, 2, 3), (5, 0.01, 4.9999), (3, 0, 0), (2, 2, 0)])
def test_three_laplace_variables(scales: tuple[float, float, float]) -> None:
    """Against the law of a sum of six exponentials: a numerical inversion of the characteristic function."""
    for w in (0.5, 3.0, 9.0, 20.0):

        def part(t: float, w: float = w) -> float:
            value = math.prod(1 / (1 + (s * t) ** 2) for s in scales)
            return value * w * float(np.sinc(w * t / math.pi))

        inside = sum(integrate.quad(part, low, high, limit=400)[0] for low, high in pairwise(np.linspace(0, 400, 801)))
        expected = 1 - 2 / math.pi * inside
        found = tails._continuous([np.array([float(s)]) for s in scales], [], np.array([w]))[0]
        assert found == pytest.approx(expected, rel=2e-3, abs=2e-3 if 0 in scales[1:] else 1e-5)
        assert found >= expected - (2e-3 if 0 in scales[1:] else 1e-6)


FINE, COARSE = Noise(20.0, 0.0, 1.0), Noise(3.0, 0.0, 1.0)
NOISES = {
    "Laplace": (FINE, Noise(12.0, 0.0, 1.0), COARSE),
    "Gaussian": (Noise(0.0, 20.0, 1.0), Noise(0.0, 12.0, 1.0), Noise(0.0, 1.7, 1.0)),
    "Gaussian, Laplace count": (Noise(0.0, 20.0, 1.0), Noise(0.0, 12.0, 1.0), COARSE),
    "Laplace, Gaussian count": (FINE, Noise(12.0, 0.0, 1.0), Noise(0.0, 1.7, 1.0)),
    "one of each": (FINE, Noise(0.0, 12.0, 1.0), COARSE),
    "tiny": (Noise(0.4, 0.0, 1.0), Noise(0.0, 0.5, 1.0), Noise(0.3, 0.0, 1.0)),
}
COEFFICIENTS = ((1.0, 0.0, 5.0), (1.0, 0.7, 2.0), (1.0, 1.9, 8.0), (1.0, 0.3, 0.0))


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("number", [2, 3])
def test_discrete_noise_stays_below_its_tail(name: str, number: int) -> None:
    noises = NOISES[name][:1] + NOISES[name][-number + 1 :]
    for given in COEFFICIENTS:
        coefficients = given[:1] + given[-number + 1 :]
        if 0.0 in coefficients and number == 2:
            continue
        laws = [law(n, c) for n, c in zip(noises, coefficients, strict=True)]
        top = 6 * sum(abs(c) * (n.laplace + n.gaussian + 1) for n, c in zip(noises, coefficients, strict=True))
        w = np.linspace(1e-6, top, 997)
        expected = exact_tail(laws, w)
        bend = curvature(noises[:-1], coefficients[:-1])
        for way in (math.inf, bend):
            found = tail(noises, coefficients, w, way)
            assert (found >= expected - 1e-9).all(), (coefficients, way)
        if name != "tiny":
            found = tail(noises, coefficients, w, bend, worthwhile(bend, noises[-1], 0.05))
            assert np.abs(found - expected)[(expected > 0.02) & (expected < 0.2)].max() < 0.04


@pytest.mark.parametrize("name", ["Laplace", "Gaussian"])
def test_without_the_allowance_discrete_noise_exceeds_it(name: str) -> None:
    """The twin: were there no unit between the discrete law and the continuous one, some tail would be too small."""
    noises = tuple(Noise(n.laplace, n.gaussian, 0.0) for n in (NOISES[name][0], NOISES[name][2]))
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
    noises = [Noise(1.0, 0.0, 0.0)] * len(scales)
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
    z, p = law(Noise(0.0, math.sqrt(variance), 1.0), 1.0)
    top = min(math.ceil(30 * math.sqrt(variance)) + 2, len(z) // 2 - 1)
    x = np.linspace(0, top, 50 * top + 1)
    beyond = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    k = np.floor(x + 0.5).astype(int)
    at = k + len(z) // 2
    spread = beyond[at + 1] + p[at] * (k + 0.5 - x)
    assert (spread <= stats.norm.sf(x / math.sqrt(variance + 0.25)) * (1 + 1e-9) + 1e-15).all()
    if variance >= 1:
        assert (spread > stats.norm.sf(x / math.sqrt(variance)) * (1 + 1e-6)).any()


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (DiscreteLaplace(Fraction(300)), DiscreteLaplace(Fraction(4))),
        (DiscreteGaussian(Fraction(300**2)), DiscreteGaussian(Fraction(9))),
        (DiscreteLaplace(Fraction(300)), DiscreteGaussian(Fraction(9))),
        (DiscreteGaussian(Fraction(300**2)), DiscreteLaplace(Fraction(4))),
    ],
)
@pytest.mark.parametrize("middle", [0, 1, 60, 3000])
def test_half_width_of_a_centred_sum_and_a_count(
    one: DiscreteLaplace | DiscreteGaussian, two: DiscreteLaplace | DiscreteGaussian, middle: int
) -> None:
    """At least the level, and nearly exactly where the scale is large against the steps of both."""
    parts = [(measurement(one), Fraction(1)), (measurement(two), Fraction(-middle))]
    width = half_width(parts, LEVEL)
    laws = [law(Noise.of(m, Fraction(1)), float(c)) for m, c in parts if c]
    (outside,) = exact_tail(laws, np.array([math.nextafter(width, math.inf)]))
    assert outside <= 0.05
    assert outside >= 0.03
    (narrower,) = exact_tail(laws, np.array([width * 0.9]))
    assert narrower > 0.05


def test_half_width_without_noise_and_of_one_part() -> None:
    mechanism = DiscreteLaplace(Fraction(1000))
    assert half_width([(measurement(Exact()), Fraction(1))], LEVEL) == 0
    alone = half_width([(measurement(mechanism), Fraction(1, 8)), (measurement(Exact()), Fraction(5))], LEVEL)
    assert mechanism.half_width(LEVEL) / 8 <= alone <= (mechanism.half_width(LEVEL) + 2) / 8
