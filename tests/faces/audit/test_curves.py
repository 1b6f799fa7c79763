"""The δ of stated noise between two databases, against sums over all its values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.faces.audit.choices import Chosen
from dpsql.faces.audit.curves import Moved, gaussian_delta, gaussian_rho, own_delta

REACH = 400
Noise = DiscreteLaplace | DiscreteGaussian


def probabilities(noise: Noise, at: int) -> np.ndarray:
    """P(at + noise = z) for -REACH ≤ z ≤ REACH."""
    z = np.arange(-REACH, REACH + 1) - at
    if isinstance(noise, DiscreteLaplace):
        found = np.exp(-np.abs(z) / float(noise.scale))
    else:
        found = np.exp(-(z**2) / (2 * float(noise.sigma_squared)))
    return np.asarray(found / found.sum())


def by_enumeration(moved: list[Moved], epsilon: float) -> float:
    """Σ (P − e^ε·Q)⁺ over all tuples of values."""
    p, q = np.ones(1), np.ones(1)
    for noise, apart in moved:
        p = np.outer(p, probabilities(noise, apart)).ravel()
        q = np.outer(q, probabilities(noise, 0)).ravel()
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


L, G = DiscreteLaplace, DiscreteGaussian
CASES: list[list[Moved]] = [
    [(L(Fraction(1)), 1)],
    [(L(Fraction(7, 3)), 5)],
    [(L(Fraction(7, 3)), -5)],
    [(L(Fraction(3)), 2), (L(Fraction(5)), 4)],
    [(G(Fraction(4)), 3)],
    [(G(Fraction(1, 2)), 1)],
    [(G(Fraction(9)), 2), (G(Fraction(9)), 2)],
    [(L(Fraction(4)), 3), (G(Fraction(16)), 4)],
]


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 1.5])
@pytest.mark.parametrize("moved", CASES)
def test_never_below_the_truth_and_close_to_it(moved: list[Moved], epsilon: float) -> None:
    true, found = by_enumeration(moved, epsilon), own_delta(moved, epsilon)
    assert true - 1e-12 <= found <= 1.01 * true + 2e-3


def test_wide_noise_is_continuous() -> None:
    wide = own_delta([(L(Fraction(10**9)), 10**9)], 0.25)
    assert wide == pytest.approx(-math.expm1((0.25 - 1) / 2), rel=1e-3)
    apart = [(G(Fraction(10**12)), 500_000)] * 4
    assert own_delta(apart, 0.5) == gaussian_delta(1.0, 0.5)
    mixed = own_delta([(G(Fraction(10**12)), 10**6), (G(Fraction(9)), 3)], 0.5)
    assert gaussian_delta(math.sqrt(2), 0.5) / 1.02 < mixed < gaussian_delta(math.sqrt(2), 0.5) * 1.03


def test_narrower_noise_loses_more() -> None:
    for moved in CASES:
        found = [own_delta(moved, 0.3, f) for f in (0.0, 0.5, 1.0, 1.25, 2.0, 16.0)]
        assert found == sorted(found) and found[0] == 0 < found[-1]


PICKED = Chosen(Fraction(1, 3), ((1, 0, 2), (5, 1, 1), (40, 3, 0), (7, 9, 5)))
"""How many cells have this score on one database and this one on the other."""


def picked_probabilities() -> tuple[np.ndarray, np.ndarray]:
    weights = [np.array([math.exp(-s[i] / 3) for s in PICKED.cells for _ in range(s[0])]) for i in (1, 2)]
    return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 1.5])
def test_a_chosen_cell_loses_what_its_cells_do(epsilon: float) -> None:
    """Whichever database is the likelier one; and beside noise."""
    p, q = picked_probabilities()
    ways = [float(np.maximum(0, x - math.exp(epsilon) * y).sum()) for x, y in ((p, q), (q, p))]
    assert ways[0] != pytest.approx(ways[1], rel=0.01) or epsilon == 0
    for one in (PICKED, PICKED.swapped):
        assert max(ways) - 1e-12 <= own_delta([one], epsilon) <= 1.01 * max(ways) + 2e-3
    noise = probabilities(L(Fraction(3)), 2), probabilities(L(Fraction(3)), 0)
    p, q = (np.outer(x, y).ravel() for x, y in zip((p, q), noise, strict=True))
    both = max(float(np.maximum(0, x - math.exp(epsilon) * y).sum()) for x, y in ((p, q), (q, p)))
    assert both - 1e-12 <= own_delta([(L(Fraction(3)), 2), PICKED], epsilon) <= 1.01 * both + 2e-3
    assert own_delta([PICKED], epsilon, 1.3) > own_delta([PICKED], epsilon)


def test_nothing_moved_loses_nothing() -> None:
    assert own_delta([], 0.0) == 0
    assert gaussian_delta(0.0, 0.0) == 0


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_rho_is_found_from_a_point_of_the_curve(mu: float) -> None:
    assert gaussian_rho(gaussian_delta(mu, 0.5), 0.5) == pytest.approx(mu**2 / 2, rel=1e-9)
