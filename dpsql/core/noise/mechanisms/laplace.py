"""Discrete Laplace noise: P(Z = z) = (1-q)/(1+q)·q^|z| on all integers, q = e^(-1/scale).

(Ghosh, Roughgarden & Sundararajan 2009; Canonne, Kamath & Steinke 2020, §5.) Adding it to an integer vector whose l1
distance between neighbours is at most d costs exactly ε = d/scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.noise.mechanisms.mechanism import with_noise
from dpsql.core.noise.scale import check_scale
from dpsql.core.numbers.enclosures import exp_minus, floor, log, monotone
from dpsql.core.numbers.interval import Interval, add, mul, point, sub
from dpsql.core.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Integers


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Discrete Laplace noise. scale: in grid units, exact, 0 < scale ≤ 2^55; anything else raises ValueError."""

    scale: Fraction

    def __post_init__(self) -> None:
        check_scale(self.scale)

    @classmethod
    def calibrate(cls, l1: Fraction, epsilon: Fraction) -> DiscreteLaplace:
        """The least noise with loss ε for this l1 sensitivity (grid units): scale = l1/ε, exactly.

        Raises ValueError for ε ≤ 0, a scale above 2^55, or l1 = 0: what never changes needs no noise (`Exact`), and
        whether it truly never changes is the caller's decision to state.
        """
        if l1 <= 0:
            raise ValueError("l1 must be above 0; a value of sensitivity 0 is released by Exact()")
        if epsilon <= 0:
            raise ValueError("epsilon must be above 0")
        return cls(Fraction(l1) / Fraction(epsilon))

    @property
    def name(self) -> str:
        """`laplace`"""
        return "laplace"

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
        return power.hi / (1 + q.lo)
