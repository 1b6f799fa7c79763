"""Half-widths of sums of n independent noises of one law: a count that is made of the counts of n slices.

*Laplace, exactly.* Discrete Laplace noise is the difference of two geometric variables, so the sum is N₁ - N₂ with
negative binomial N of n successes, p = 1 - q. N₁ ≥ r says that r+n-1 trials bring fewer than n successes; hence for
m ≥ 1, by Vandermonde's identity,
    P(N₁ - N₂ ≥ m) = Σ_{d<n} P(Bin(m+n-1, p) = d) · P(NB(n, 1/(1+q)) ≤ n-1-d):
products of probabilities, which floating-point numbers add without loss.
*Gaussian.* The mass of k is e^(-k²/2nσ²) times a sum of Gaussian weights over the points of a lattice, all z in Zⁿ with
Σz = k. By Poisson's summation formula that sum is the same for all k but for a part of at most Σ e^(-2π²σ²|v|²) over
v ≠ 0 in the dual lattice, which is Zⁿ modulo (1, …, 1): of the representatives whose median is 0,
|v|² = |z|² - (Σz)²/n ≥ |z|²/2, because at most n/2 of the zᵢ have one sign. So the part is at most
(Σ_j e^(-π²σ²j²))ⁿ - 1 < 3n·e^(-π²σ²) where this is small, and the sum is as good as discrete Gaussian of variance nσ².
Else σ is below 2 or so, and the n laws are multiplied out.
Everything errs on the wide side, and n = 1 is left to the mechanisms, which are exact.
*Tested by* tests/unit/measure/test_sums.py, against convolutions in fractions and draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace

MARGIN = 1e-9
"""Relative allowance for the rounding of floating-point numbers, far above it; always widens."""
_FASTEST = 700
"""e^-700: a scale below 1/700 counts as that."""


@lru_cache(maxsize=1024)
def half_width_of_sum(mechanism: DiscreteLaplace | DiscreteGaussian, n: int, confidence: Fraction) -> int:
    """The least w ≥ 0 for which P(|Z₁ + … + Zₙ| ≤ w) ≥ confidence, in integer units, or one that is larger.

    n ≥ 1; confidence in (0, 1).
    """
    if n == 1:
        return mechanism.half_width(confidence)
    outside = float(1 - confidence) * (1 - MARGIN)
    # Where each stays within its own width, the level split over them.
    top = n * mechanism.half_width(1 - (1 - confidence) / n)
    if isinstance(mechanism, DiscreteLaplace):
        rate = min(float(1 / mechanism.scale) * (1 - MARGIN), _FASTEST)
        return _least(lambda w: 2 * laplace_tail(rate, n, w + 1) <= outside, top)
    if 3 * n * math.exp(-(math.pi**2) * float(mechanism.sigma_squared)) < MARGIN / 10:
        less = 1 - (1 - confidence) * (1 - Fraction(MARGIN))
        return min(top, DiscreteGaussian(n * mechanism.sigma_squared).half_width(less))
    tails = _gaussian_tails(float(mechanism.sigma_squared), n)
    return _least(lambda w: w + 1 >= len(tails) or 2 * tails[w + 1] <= outside, top)


def laplace_tail(rate: float, n: int, m: int) -> float:
    """P(Z₁ + … + Zₙ ≥ m) for m ≥ 1 and discrete Laplace noise with q = e^-rate."""
    q = math.exp(-rate)
    # NB(n, 1/(1+q)): its masses are C(n+i-1, i)·(q/(1+q))^i / (1+q)^n.
    log_mass, below, cumulated = -n * math.log1p(q), 0.0, []
    for i in range(n):
        below += math.exp(log_mass)
        cumulated.append(below)
        log_mass += math.log((n + i) / (i + 1)) - rate - math.log1p(q)
    trials = m + n - 1
    log_ratio = math.log(math.expm1(rate))  # ln(p/q)
    log_mass, terms = -trials * rate, []
    for d in range(n):
        terms.append(math.exp(log_mass) * cumulated[n - 1 - d])
        log_mass += math.log((trials - d) / (d + 1)) + log_ratio
    return math.fsum(terms)


@lru_cache(maxsize=64)
def _gaussian_tails(variance: float, n: int) -> tuple[float, ...]:
    """P(Z₁ + … + Zₙ ≥ m) for m from 0 on, of discrete Gaussian noise of a few units."""
    import numpy as np

    reach = math.ceil(math.sqrt(variance) * 40) + 2  # beyond, e^-800
    z = np.arange(-reach, reach + 1)
    one = np.exp(-(z**2) / (2 * variance))
    one /= one.sum()
    found = one
    for _ in range(n - 1):
        found = np.convolve(found, one)
    tails = np.cumsum(found[::-1])[::-1][n * reach :]
    return tuple(float(tail) * (1 + MARGIN) for tail in tails)


def _least(holds: Callable[[int], bool], top: int) -> int:
    """The least w in [0, top] from which on it holds; top is known to."""
    low, high = -1, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
