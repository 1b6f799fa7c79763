"""Tails of three noises, and of a centred sum with its count, against integration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

import dpsql.accuracy.tails as tails
from dpsql.accuracy.tails import TermNoise, curvature, half_width, tail, worthwhile
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from tests.accuracy.test_tails import LEVEL, NOISES, exact_tail, law, measurement


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
    laws = [law(TermNoise.of(m, Fraction(1)), float(c)) for m, c in parts if c]
    (outside,) = exact_tail(laws, np.array([math.nextafter(width, math.inf)]))
    assert outside <= 0.05
    assert outside >= 0.03
    (narrower,) = exact_tail(laws, np.array([width * 0.9]))
    assert narrower > 0.05
