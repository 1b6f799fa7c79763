"""Discrete Gaussian noise: P(Z = z) proportional to f(z) = e^(-z²/(2σ²)) on all integers.

(Canonne, Kamath & Steinke 2020.) Adding it to an integer vector whose squared l2 distance between neighbours is at
most d² costs exactly ρ = d²/(2σ²) of zero-concentrated differential privacy (their Theorem 14, for vectors by
composition of independent coordinates).

Tails. Σf over all integers is S. Up to a moderate σ² the sums are taken term by term. Above, where nobody could add
10⁹ terms, they are compared with the integral of f: by Poisson's summation formula S = √(2π)σ·(1 + ε) with
0 ≤ ε ≤ 3·e^(-2π²σ²), and f is concave on [-σ, σ] and convex outside. So for m ≥ 1
    m - ½ ≥ σ:  f(z) ≤ ∫ f over [z - ½, z + ½] for z ≥ m, hence P(Z ≥ m) ≤ Q((m - ½)/σ);
    m - ½ < σ:  f(z) ≥ ∫ f over [z - ½, z + ½] for |z| < m, hence P(Z ≥ m) ≤ Q((m - ½)/σ) + ε/2,
with Q(x) = P(X ≥ x) = erfc(x/√2)/2 of a standard normal X. In the other direction P(Z ≥ m) ≥ Q(m/σ)/(1 + ε), because
f decreases; so whatever is read off these bounds is never below the least that is right and at most one above it.

*Sums.* The mass of k of n draws is e^(-k²/2nσ²) times a sum of Gaussian weights over the points of a lattice, all z in
Zⁿ with Σz = k. By Poisson's summation formula that sum is the same for all k but for a part of at most
Σ e^(-2π²σ²|v|²) over v ≠ 0 in the dual lattice, which is Zⁿ modulo (1, …, 1): of the representatives whose median is 0,
|v|² = |z|² - (Σz)²/n ≥ |z|²/2, because at most n/2 of the zᵢ have one sign. So the part is at most
(Σ_j e^(-π²σ²j²))ⁿ - 1 < 3n·e^(-π²σ²) where this is small, and the sum is as good as discrete Gaussian of variance nσ².

Not proved: it needs real analysis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.noise.mechanisms.mechanism import MARGIN, AdditiveNoise, Mechanism, least, with_noise
from dpsql.core.noise.scale import LARGEST_SCALE, check_variance
from dpsql.core.numbers.enclosures import exp_minus
from dpsql.core.numbers.interval import quotient
from dpsql.core.numbers.normal import erfc_root, root, two_sided
from dpsql.core.privacy_loss import PrivacyLoss

_SUMMED = 256
"""Up to this σ², or as many as the bits asked for if that is more, tails are summed term by term."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpsql.core.noise.integer_columns import Integers


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(AdditiveNoise):
    """Discrete Gaussian noise. sigma_squared: σ² in squared grid units, exact, 0 < σ² ≤ 2^110; else ValueError."""

    name: ClassVar[str] = "gaussian"
    pure: ClassVar[bool] = False
    lowest_rate: ClassVar[Fraction] = 1 / (2 * LARGEST_SCALE**2)

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        check_variance(self.sigma_squared)

    @classmethod
    def calibrate(cls, l2_squared: Fraction, rho: Fraction, /) -> DiscreteGaussian:
        """The least noise with loss ρ for this squared l2 sensitivity (grid units): σ² = l2²/(2ρ), exactly.

        Raises ValueError for ρ ≤ 0, σ above 2^55, or l2 = 0 (what never changes is released by `NoNoise`).
        """
        if l2_squared.numerator <= 0:
            raise ValueError("l2² must be above 0; a value of sensitivity 0 is released by NoNoise()")
        if rho.numerator <= 0:
            raise ValueError("rho must be above 0")
        return cls(Fraction(l2_squared) / (2 * rho))

    @property
    def gaussian(self) -> Fraction:
        """σ, rounded up by less than one part in 2^64."""
        found = root(self.sigma_squared).hi
        assert found is not None
        return Fraction(found)

    @property
    def parameter(self) -> Fraction:
        """σ²"""
        return self.sigma_squared

    @classmethod
    def of_parameter(cls, parameter: Fraction) -> DiscreteGaussian:
        """Of this σ². Raises ValueError if it is out of range."""
        return cls(parameter)

    def as_accurate(self, planned: Mechanism) -> bool:
        """Whether the noise is no wider than planned."""
        if isinstance(planned, DiscreteGaussian):
            return self.sigma_squared <= planned.sigma_squared
        return AdditiveNoise.as_accurate(self, planned)

    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """ρ = l2²/(2σ²); the l1 sensitivity has no influence. Raises ValueError for a negative l2²."""
        return PrivacyLoss(rho=Fraction(l2_squared) / (2 * self.sigma_squared))

    def add_noise(self, values: Sequence[int], backend: Backend = EXACT) -> Integers:
        """values[i] + fresh independent noise by `backend`; exact, nothing overflows and nothing is clipped.

        Raises TypeError for values that are not integers.
        """
        return with_noise(values, backend.gaussian(self.sigma_squared, len(values)))

    def half_width(self, confidence: Fraction) -> int:
        """The least w ≥ 0 with P(|Z| ≤ w) ≥ confidence, or w + 1, never less; confidence in [0, 1), else ValueError.

        Exactly the least where σ² ≤ 256, unless the probability is within 2^-64 of a tie.
        """
        if not 0 <= confidence < 1:
            raise ValueError("a confidence is from 0 up to but not including 1")
        outside = 1 - Fraction(confidence)
        bits = 64 + outside.denominator.bit_length()
        if not self._summed(bits):
            # P(|Z| > w) = 2·P(Z ≥ w+1) ≤ P(|X| ≥ (w+½)/σ) + ε, and ε ≤ 3·e^(-2π²·bits) is within two_sided's margin.
            end = root(two_sided(outside) * self.sigma_squared).hi
            assert end is not None
            return max(0, math.ceil(end - Fraction(1, 2)))
        beyond, total = _summed_tails(self.sigma_squared, bits)
        return next(w for w, tail in enumerate(beyond[1:]) if 2 * tail <= outside * total)

    def half_width_of_sum(self, n: int, confidence: Fraction) -> int:
        """The least w ≥ 0 with P(|Z₁ + … + Zₙ| ≤ w) ≥ confidence, or one that is larger."""
        return self.half_width(confidence) if n == 1 else _half_width_of_sum(self, n, confidence)

    def variance(self) -> float:
        """In squared grid units: σ², and less where it is below 1 and the noise is mostly 0."""
        if self.sigma_squared >= 4:
            return float(self.sigma_squared)  # the difference is below 1e-30
        weights = [math.exp(-float(min(Fraction(700), z * z / (2 * self.sigma_squared)))) for z in range(40)]
        return 2 * sum(z * z * w for z, w in enumerate(weights)) / (2 * sum(weights) - 1)

    def upper_tail(self, m: int, bits: int) -> Fraction:
        """An upper bound of P(Z ≥ m) for m ≥ 0: the rounding adds at most 2^(1-bits); ValueError for m < 0.

        Where σ² is above 256 and `bits` it is the integral's bound (see above), which is above the truth by a part of
        about (m/σ)²/(24σ²).
        """
        if m < 0:
            raise ValueError("upper_tail takes m ≥ 0")
        v = self.sigma_squared
        if self._summed(bits):
            beyond, total = _summed_tails(v, bits)
            return Fraction(beyond[min(m, len(beyond) - 1)], total)
        if m == 0:  # ½ + P(Z = 0)/2, and S ≥ √(2π)σ > 5σ/2
            sigma = root(v).lo
            assert sigma is not None
            return Fraction(1, 2) + quotient(1, 5 * sigma)
        found, epsilon = erfc_root(Fraction((2 * m - 1) ** 2) / (8 * v), bits).hi, exp_minus(19 * v, bits + 2).hi
        assert found is not None and epsilon is not None
        return quotient(found + 3 * epsilon, 2)

    def _summed(self, bits: int) -> bool:
        return self.sigma_squared <= max(_SUMMED, bits)

    # --- rates: ρ per unit of l2², 1/(2σ²) ----------------------------------------------------------------------------

    @staticmethod
    def size(l1: Fraction | int, l2_squared: Fraction) -> Fraction:
        """The squared l2 sensitivity."""
        return l2_squared

    @classmethod
    def of_rate(cls, rate: Fraction) -> DiscreteGaussian:
        """Of σ² = 1/(2·rate)."""
        return cls(1 / (2 * rate))

    @staticmethod
    def rate_for(widest: int, confidence: Fraction) -> Fraction:
        """That of continuous noise, half a unit wider."""
        return two_sided(1 - confidence) / (2 * (widest + Fraction(1, 2)) ** 2)

    @staticmethod
    def rate_of_sum(rate: Fraction, n: int) -> Fraction:
        """Variances add up."""
        return rate * n

    @staticmethod
    def spread_of(rate: float) -> float:
        """σ = 1/√(2·rate)"""
        return 1 / math.sqrt(2 * rate)

    @staticmethod
    def rate_of(spread: float) -> float:
        """1/(2σ²)"""
        return 1 / (2 * spread * spread)

    @staticmethod
    def quantile(confidence: Fraction) -> float:
        """Of |X|, X standard normal."""
        return math.sqrt(two_sided(1 - confidence))

    @classmethod
    def rest(cls, other: float, error: float, confidence: Fraction) -> float:
        """Variances add up."""
        top = error / cls.quantile(confidence)
        return math.sqrt(max(0.0, top * top - other * other))

    def log_ratio(self, y: NDArray[np.float64], apart: NDArray[np.float64]) -> NDArray[np.float64]:
        """(y² - (y - apart)²)/(2σ²)"""
        return (2 * y - apart) * apart / (2 * float(self.sigma_squared))


@lru_cache(maxsize=1024)
def _half_width_of_sum(mechanism: DiscreteGaussian, n: int, confidence: Fraction) -> int:
    # Where each stays within its own width, the level split over them.
    top = n * mechanism.half_width(1 - (1 - confidence) / n)
    if 3 * n * math.exp(-(math.pi**2) * float(mechanism.sigma_squared)) < MARGIN / 10:
        less = 1 - (1 - confidence) * (1 - Fraction(MARGIN))
        return min(top, DiscreteGaussian(n * mechanism.sigma_squared).half_width(less))
    tails, outside = _tails_of_sum(float(mechanism.sigma_squared), n), float(1 - confidence) * (1 - MARGIN)
    return least(lambda w: w + 1 >= len(tails) or 2 * tails[w + 1] <= outside, top)


@lru_cache(maxsize=64)
def _tails_of_sum(variance: float, n: int) -> tuple[float, ...]:
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


@lru_cache(maxsize=256)
def _summed_tails(v: Fraction, bits: int) -> tuple[tuple[int, ...], int]:
    """Σf over z ≥ m from above for m = 0, 1, …, and S from below, as multiples of one unit.

    The last entry bounds the sums over all later m. f(z+1) = f(z)·p(z) with p(z) = e^(-(2z+1)/(2v)), and
    p(z+1) = p(z)·e^(-1/v). Each product is rounded outwards, so after n steps an end is off by at most n² units.
    """
    work = bits + 40
    unit = 1 << work
    half, whole = exp_minus(1 / (2 * v), work), exp_minus(1 / v, work)
    assert half.lo is not None and half.hi is not None and whole.lo is not None and whole.hi is not None
    p_lo, p_hi = int(half.lo * unit), math.ceil(half.hi * unit)
    step_lo, step_hi = int(whole.lo * unit), math.ceil(whole.hi * unit)
    f_lo = f_hi = unit
    terms, total = [unit], unit
    while f_hi > 1 or 2 * p_hi > unit:
        f_lo, f_hi = f_lo * p_lo >> work, -(-f_hi * p_hi >> work)
        p_lo, p_hi = p_lo * step_lo >> work, -(-p_hi * step_hi >> work)
        terms.append(f_hi)
        total += 2 * f_lo
    tails, tail = [], f_hi  # f at least halves from here on, so what follows is below the last term
    tails.append(tail)
    for term in reversed(terms):
        tail += term
        tails.append(tail)
    return tuple(reversed(tails)), total
