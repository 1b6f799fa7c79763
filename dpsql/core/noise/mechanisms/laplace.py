"""Discrete Laplace noise: P(Z = z) = (1-q)/(1+q)·q^|z| on all integers, q = e^(-1/scale).

(Ghosh, Roughgarden & Sundararajan 2009; Canonne, Kamath & Steinke 2020, §5.) Adding it to an integer vector whose l1
distance between neighbours is at most d costs exactly ε = d/scale.

*Sums.* The noise is the difference of two geometric variables, so the sum of n draws is N₁ - N₂ with negative binomial
N of n successes, p = 1 - q. N₁ ≥ r says that r+n-1 trials bring fewer than n successes; hence for m ≥ 1, by
Vandermonde's identity,
    P(N₁ - N₂ ≥ m) = Σ_{d<n} P(Bin(m+n-1, p) = d) · P(NB(n, 1/(1+q)) ≤ n-1-d):
products of probabilities, which floating-point numbers add without loss.

Proved by: Mech.laplace_ratio, End.noisy (the ratio; that the sampler draws this distribution is tested).
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
from dpsql.core.noise.scale import LARGEST_SCALE, check_scale
from dpsql.core.numbers.enclosures import exp_minus, floor, log, monotone
from dpsql.core.numbers.interval import Interval, add, mul, point, quotient, sub
from dpsql.core.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpsql.core.noise.integer_columns import Integers

_FASTEST = 700
"""e^-700: a scale below 1/700 counts as that."""
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(AdditiveNoise):
    """Discrete Laplace noise. scale: in grid units, exact, 0 < scale ≤ 2^55; anything else raises ValueError."""

    name: ClassVar[str] = "laplace"
    pure: ClassVar[bool] = True
    lowest_rate: ClassVar[Fraction] = 1 / LARGEST_SCALE

    scale: Fraction

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @classmethod
    def calibrate(cls, l1: Fraction, epsilon: Fraction, /) -> DiscreteLaplace:
        """The least noise with loss ε for this l1 sensitivity (grid units): scale = l1/ε, exactly.

        Raises ValueError for ε ≤ 0, a scale above 2^55, or l1 = 0: what never changes needs no noise (`NoNoise`), and
        whether it truly never changes is the caller's decision to state.
        """
        if l1.numerator <= 0:
            raise ValueError("l1 must be above 0; a value of sensitivity 0 is released by NoNoise()")
        if epsilon.numerator <= 0:
            raise ValueError("epsilon must be above 0")
        return cls(Fraction(l1) / epsilon)

    @property
    def laplace(self) -> Fraction:
        """The scale."""
        return self.scale

    @property
    def parameter(self) -> Fraction:
        """The scale."""
        return self.scale

    @classmethod
    def of_parameter(cls, parameter: Fraction) -> DiscreteLaplace:
        """Of this scale. Raises ValueError if it is out of range."""
        return cls(parameter)

    def as_accurate(self, planned: Mechanism) -> bool:
        """Whether the noise is no wider than planned."""
        if isinstance(planned, DiscreteLaplace):
            return self.scale <= planned.scale
        return AdditiveNoise.as_accurate(self, planned)

    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """ε = l1/scale; the l2 sensitivity has no influence. Raises ValueError for a negative l1."""
        return PrivacyLoss(epsilon=Fraction(l1) / self.scale)

    def add_noise(self, values: Sequence[int], backend: Backend = EXACT) -> Integers:
        """values[i] + fresh independent noise by `backend`; exact, nothing overflows and nothing is clipped.

        Raises TypeError for values that are not integers.
        """
        return with_noise(values, backend.laplace(self.scale, len(values)))

    def half_width(self, confidence: Fraction) -> int:
        """Least w ≥ 0 with P(|Z| ≤ w) ≥ confidence, exact; confidence in [0, 1), else ValueError.

        P(|Z| > w) = 2q^(w+1)/(1+q) ≤ 1-c iff w+1 ≥ v with v = scale·(ln 2 - ln(1+q) - ln(1-c)). v is never an
        integer, because q is transcendental, so w = ⌊v⌋.
        """
        if not 0 <= confidence < 1:
            raise ValueError("a confidence is from 0 up to but not including 1")

        def v(bits: int) -> Interval:
            outside = sub(log(Fraction(2), bits), log(1 - Fraction(confidence), bits))
            return mul(point(self.scale), sub(outside, self.log_one_plus_q(bits)))

        return max(0, floor(v, 64 + math.floor(self.scale).bit_length()))

    def half_width_of_sum(self, n: int, confidence: Fraction) -> int:
        """The least w ≥ 0 with P(|Z₁ + … + Zₙ| ≤ w) ≥ confidence, or one that is larger."""
        return self.half_width(confidence) if n == 1 else _half_width_of_sum(self, n, confidence)

    def variance(self) -> float:
        """2q/(1-q)², in squared grid units."""
        if self.scale * 700 < 1:
            return 0.0  # q < e^-700
        x = float(1 / self.scale)
        return 2 * math.exp(-x) / math.expm1(-x) ** 2

    def log_one_plus_q(self, bits: int) -> Interval:
        """An enclosure of ln(1+q) about 2^-bits wide."""
        one_plus_q = add(point(1), exp_minus(1 / self.scale, bits))
        return monotone(lambda y: log(y, bits), one_plus_q)

    def upper_tail(self, m: int, bits: int) -> Fraction:
        """An upper bound of P(Z ≥ m) = q^m/(1+q) for m ≥ 0, above it by at most 2^(1-bits); ValueError for m < 0."""
        if m < 0:
            raise ValueError("upper_tail takes m ≥ 0")
        power = exp_minus(m / self.scale, bits)
        q = exp_minus(1 / self.scale, bits)
        assert power.hi is not None and q.lo is not None
        return quotient(power.hi, 1 + q.lo)

    # --- rates: ε per unit of l1, 1/scale -----------------------------------------------------------------------------

    @staticmethod
    def size(l1: Fraction | int, l2_squared: Fraction) -> Fraction:
        """The l1 sensitivity."""
        return Fraction(l1)

    @classmethod
    def of_rate(cls, rate: Fraction) -> DiscreteLaplace:
        """Of scale 1/rate."""
        return cls(1 / rate)

    @staticmethod
    def rate_for(widest: int, confidence: Fraction) -> Fraction:
        """2q^(w+1)/(1+q) = 1-c, solved for rate = -ln q by a few steps towards the fixed point."""
        outside, rate = DiscreteLaplace.quantile(confidence), 1.0
        for _ in range(8):
            rate = (math.log(2) + outside - math.log1p(math.exp(-rate))) / (widest + 1)
        return Fraction(max(rate, 1e-300))

    @staticmethod
    def rate_of_sum(rate: Fraction, n: int) -> Fraction:
        """The width grows with the root of n, or by less."""
        return rate * Fraction(math.isqrt(n * 100), 10)

    @staticmethod
    def spread_of(rate: float) -> float:
        """1/rate"""
        return 1 / rate

    @staticmethod
    def rate_of(spread: float) -> float:
        """1/scale"""
        return 1 / spread

    @staticmethod
    def quantile(confidence: Fraction) -> float:
        """-ln(1-c)"""
        found = log(1 / (1 - confidence), 60)
        assert found.lo is not None
        return float(found.lo)

    @classmethod
    def rest(cls, other: float, error: float, confidence: Fraction) -> float:
        """By halving: the tail of the sum of two grows with either scale."""
        low, high, outside = 0.0, error / cls.quantile(confidence), float(1 - confidence)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if _two_laplace(middle, other, error) <= outside else (low, middle)
        return low

    def log_ratio(self, y: NDArray[np.float64], apart: NDArray[np.float64]) -> NDArray[np.float64]:
        """(|y| - |y - apart|)/scale"""
        found: NDArray[np.float64] = (abs(y) - abs(y - apart)) / float(self.scale)
        return found


@lru_cache(maxsize=1024)
def _half_width_of_sum(mechanism: DiscreteLaplace, n: int, confidence: Fraction) -> int:
    outside = float(1 - confidence) * (1 - MARGIN)
    # Where each stays within its own width, the level split over them.
    top = n * mechanism.half_width(1 - (1 - confidence) / n)
    rate = min(float(1 / mechanism.scale) * (1 - MARGIN), _FASTEST)
    return least(lambda w: 2 * laplace_tail(rate, n, w + 1) <= outside, top)


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


def _two_laplace(a: float, b: float, w: float) -> float:
    """P(|aX + bY| > w) of continuous Laplace variables."""
    large, small = max(a, b), min(a, b)
    r, t = small / large, w / large
    if r > 1 - 1e-6:
        return math.exp(-t) * (1 + t / 2)
    return (math.exp(-t) - r * r * (math.exp(-t / r) if r > 1e-300 else 0.0)) / (1 - r * r)
