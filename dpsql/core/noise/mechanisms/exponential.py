"""The exponential mechanism: P(cell) proportional to e^(-η·score), over public cells.

(McSherry & Talwar 2007.) Let every score of one group move by at most ± Δ between neighbours, but for a number that all
of them have in common, which changes no probability. Then ln P(cell) moves by at most 2ηΔ: by ηΔ for the score and by
ηΔ for the sum that it is divided by. Groups are drawn by themselves, so that with Σ Δ ≤ l1 a release costs ε = 2η·l1.
The log-ratios of one group lie in a range of 2ηΔ, which costs ρ = (2ηΔ)²/8 (Cesar & Rogers 2021, bounded range): with
Σ Δ² ≤ l2² a release costs ρ = η²·l2²/2.

There are two families, because only one of both prices is charged: the one that the query's noise is counted in.

Not proved: it needs real analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dpsql.core.noise.mechanisms.mechanism import Calibrated, Mechanism
from dpsql.core.noise.scale import LARGEST_SCALE, check_rate
from dpsql.core.numbers.normal import root
from dpsql.core.privacy_loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Exponential(Calibrated):
    """Choices at this η per unit of score, a Fraction of at least 2^-55; else ValueError."""

    eta: Fraction

    def __post_init__(self) -> None:
        check_rate(self.eta)
        if self.eta * LARGEST_SCALE < 1:
            raise ValueError("η is at least 2^-55")

    @property
    def parameter(self) -> Fraction:
        """η"""
        return self.eta

    @classmethod
    def of_parameter(cls, parameter: Fraction) -> Self:
        """Of this η. Raises ValueError if it is out of range."""
        return cls(parameter)

    def variance(self) -> float:
        """η^-2: how scores spread, but for a factor."""
        return 1 / float(self.eta) ** 2

    def as_accurate(self, planned: Mechanism) -> bool:
        """Whether it follows the scores as closely as planned."""
        return isinstance(planned, Exponential) and self.eta >= planned.eta

    def choose(self, counts: Sequence[int], scores: Sequence[int]) -> tuple[int, int]:
        """(run, place in it): one cell of runs of `counts` cells with equal scores."""
        # Imported here: `dpsql check`, which only prices, loads no sampler.
        from dpsql.core.noise.sampler import choose

        return choose(counts, scores, self.eta)


class PureExponential(Exponential):
    """Priced in ε."""

    __slots__ = ()

    name: ClassVar[str] = "exponential"
    pure: ClassVar[bool] = True

    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """ε = 2η·l1"""
        return PrivacyLoss(epsilon=2 * self.eta * Fraction(l1))

    @staticmethod
    def size(l1: Fraction | int, l2_squared: Fraction) -> Fraction:
        """The l1 sensitivity."""
        return Fraction(l1)

    @classmethod
    def calibrate(cls, l1: Fraction, epsilon: Fraction, /) -> Self:
        """η = ε/(2·l1), exactly."""
        if l1 <= 0 or epsilon <= 0:
            raise ValueError("l1 and ε are above 0")
        return cls(Fraction(epsilon) / (2 * Fraction(l1)))


class BoundedRange(Exponential):
    """Priced in ρ."""

    __slots__ = ()

    name: ClassVar[str] = "exponential, bounded range"
    pure: ClassVar[bool] = False

    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """ρ = η²·l2²/2"""
        return PrivacyLoss(rho=self.eta**2 * Fraction(l2_squared) / 2)

    @staticmethod
    def size(l1: Fraction | int, l2_squared: Fraction) -> Fraction:
        """The square of the l2 sensitivity."""
        return Fraction(l2_squared)

    @classmethod
    def calibrate(cls, l2_squared: Fraction, rho: Fraction, /) -> Self:
        """The largest η with η²·l2²/2 ≤ ρ, or less than one part in 2^64 below it."""
        if l2_squared <= 0 or rho <= 0:
            raise ValueError("l2² and ρ are above 0")
        found = root(2 * Fraction(rho) / Fraction(l2_squared)).lo
        assert found is not None
        return cls(Fraction(found))
