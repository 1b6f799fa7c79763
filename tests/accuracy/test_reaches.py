"""How far weighted sums of noise reach, against laws that are multiplied out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.accuracy.quantiles_of_sums import Additive, reaches
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace

LAPLACE, FINE = DiscreteLaplace(Fraction(3)), DiscreteLaplace(Fraction(40))
RARE = DiscreteLaplace(Fraction(1, 5))
GAUSSIAN = DiscreteGaussian(Fraction(9))
LAWS = (LAPLACE, FINE, RARE, GAUSSIAN)
Terms = tuple[tuple[Additive, int, Fraction], ...]
"""Law, how many, coefficient."""

ONE, TWO, HALF = Fraction(1), Fraction(2), Fraction(1, 2)
SUMS: dict[str, Terms] = {
    "one": ((LAPLACE, 1, ONE),),
    "two alike": ((LAPLACE, 2, ONE),),
    "two laws": ((LAPLACE, 1, ONE), (FINE, 1, ONE)),
    "multiples": ((LAPLACE, 3, ONE), (LAPLACE, 1, -TWO)),
    "no multiples": ((LAPLACE, 1, ONE), (FINE, 1, HALF * 5 / 9)),
    "of both families": ((LAPLACE, 2, ONE), (GAUSSIAN, 2, HALF * 3)),
    "nearly always 0": ((RARE, 3, ONE), (RARE, 1, HALF * 5)),
    "many": ((LAPLACE, 30, ONE), (GAUSSIAN, 20, HALF * 3)),
}


def reach(terms: Terms, outside: float) -> float:
    law = np.array([[LAWS.index(m) for m, _, _ in terms]])
    counts = np.array([[n for _, n, _ in terms]], dtype=np.int64)
    (found,) = reaches(LAWS, law, counts, np.array([[float(c) for _, _, c in terms]]), outside)
    return float(found)


def law_of(terms: Terms) -> tuple[np.ndarray, Fraction]:
    """P(|sum| = k·unit) for k from 0 on, and the unit: all laws multiplied out, but for masses below 1e-30."""
    unit = Fraction(1, math.lcm(*(c.denominator for _, _, c in terms)))
    found = np.ones(1)
    for mechanism, n, coefficient in terms:
        scale, steps = float(mechanism.scale), int(abs(coefficient) / unit)
        size = math.ceil(scale * (70 if mechanism.name == "laplace" else 12)) + 2
        z = np.abs(np.arange(-size, size + 1)) / scale
        own = np.zeros(2 * size * steps + 1)
        own[::steps] = np.exp(-z if mechanism.name == "laplace" else -(z**2) / 2)
        for _ in range(n):
            found = np.convolve(found, own / own.sum())
    middle = len(found) // 2
    return np.concatenate([found[middle : middle + 1], 2 * found[middle + 1 :]]), unit


@pytest.mark.parametrize("outside", [0.2, 0.05, 0.001])
@pytest.mark.parametrize("name", SUMS)
def test_it_covers_and_is_hardly_wider_than_need_be(name: str, outside: float) -> None:
    """What is no multiple of one unit is wider by one or two per cent, and by half of a coarse unit."""
    chances, unit = law_of(SUMS[name])
    beyond = np.cumsum(chances[::-1])[::-1]  # P(|sum| ≥ k·unit)
    w = reach(SUMS[name], outside)
    assert beyond[math.floor(w / unit + 1e-9) + 1] <= outside * (1 + 1e-6)
    coarsest = max(abs(c) for _, _, c in SUMS[name])
    least = int(np.argmax(beyond <= outside)) - 1  # the least k with P(|sum| > k·unit) ≤ outside
    assert w <= float(least * unit) * 1.02 + float(coarsest) * 0.5


def test_a_fifth_less_would_be_noticed() -> None:
    chances, unit = law_of(SUMS["no multiples"])
    beyond = np.cumsum(chances[::-1])[::-1]
    assert beyond[math.floor(0.8 * reach(SUMS["no multiples"], 0.05) / unit) + 1] > 0.05 * 1.2


@pytest.mark.parametrize("n", [2, 5, 40])
def test_equal_noises_as_in_closed_form(n: int) -> None:
    for mechanism in (LAPLACE, FINE, RARE):
        exact = mechanism.half_width_of_sum(n, Fraction(95, 100))
        assert math.isclose(exact, reach(((mechanism, n, ONE),), 0.05), rel_tol=1e-8)


def test_no_noise_and_no_terms() -> None:
    nothing = np.zeros((1, 2), dtype=np.intp)
    assert reaches(LAWS, nothing, np.zeros((1, 2), dtype=np.int64), np.ones((1, 2)), 0.05).tolist() == [0.0]
    assert reaches(LAWS, nothing, np.ones((1, 2), dtype=np.int64), np.zeros((1, 2)), 0.05).tolist() == [0.0]
    assert reaches((), nothing, np.zeros((1, 2), dtype=np.int64), np.ones((1, 2)), 0.05).tolist() == [0.0]
