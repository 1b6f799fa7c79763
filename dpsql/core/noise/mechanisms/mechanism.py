"""What a mechanism is: it releases a number and can state its own loss.

The object that prices a query is the object that draws the noise, so a price can never disagree with the noise. All
that differs between mechanisms is a method here, so that a new one is a file and a line in `mechanisms/__init__.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpsql.core.noise.integer_columns import Integers

MARGIN = 1e-9
"""Relative allowance for the rounding of floating-point numbers, far above it; always widens."""


class Mechanism(ABC):
    """What a number is released by; immutable. It states what it costs, whatever it does to the number."""

    __slots__ = ()

    name: ClassVar[str]
    """As printed by EXPLAIN and as stored: `laplace`, `gaussian`, `exponential`."""

    @abstractmethod
    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """The loss when the vector of true integers moves by at most this between neighbours."""

    @abstractmethod
    def variance(self) -> float:
        """Variance of the noise in squared grid units, for display and for choosing between mechanisms."""

    def as_accurate(self, planned: Mechanism) -> bool:
        """Whether the noise is no wider than planned: exact within a family, by variance between two."""
        return self.variance() <= planned.variance()


class Calibrated(Mechanism):
    """A mechanism that is made for a sensitivity and a share of the budget, and that can be stored and made again."""

    __slots__ = ()

    pure: ClassVar[bool]
    """Whether its price is an ε; else it is a ρ."""

    @property
    @abstractmethod
    def parameter(self) -> Fraction:
        """All that it is made of, as stored: `of_parameter` makes the same one from it."""

    @classmethod
    @abstractmethod
    def of_parameter(cls, parameter: Fraction) -> Self:
        """The mechanism of a stored parameter. Raises ValueError if it is out of range."""

    @staticmethod
    @abstractmethod
    def size(l1: Fraction | int, l2_squared: Fraction) -> Fraction:
        """Of a sensitivity what the price follows."""

    @classmethod
    @abstractmethod
    def calibrate(cls, size: Fraction, price: Fraction, /) -> Self:
        """The most accurate one of this price. Raises ValueError if it would be too inaccurate to be of use."""


class Additive(Mechanism):
    """Additive integer noise with a symmetric distribution."""

    __slots__ = ()

    @property
    def laplace(self) -> Fraction:
        """b in grid units, where the noise is the rounding of a continuous Laplace variable of this scale; else 0."""
        return Fraction(0)

    @property
    def gaussian(self) -> Fraction:
        """σ in grid units, where the noise is the rounding of a continuous Gaussian variable; else 0."""
        return Fraction(0)

    @property
    def scale(self) -> Fraction:
        """Of the two the one that is not 0; 0 without noise."""
        return self.laplace or self.gaussian

    @abstractmethod
    def add_noise(self, values: Sequence[int], backend: Backend = EXACT) -> Integers:
        """values[i] + fresh independent noise drawn by `backend`; exact integers, nothing clipped."""

    @abstractmethod
    def half_width(self, confidence: Fraction) -> int:
        """Least integer w ≥ 0 with P(|noise| ≤ w) ≥ confidence; may be one above it, never below."""

    @abstractmethod
    def half_width_of_sum(self, n: int, confidence: Fraction) -> int:
        """The same of the sum of n ≥ 1 independent draws; confidence in (0, 1)."""

    @abstractmethod
    def upper_tail(self, m: int, bits: int) -> Fraction:
        """A rigorous upper bound of P(noise ≥ m) for m ≥ 0, whose rounding adds at most 2^(1-bits)."""


class AdditiveNoise(Additive, Calibrated):
    """Additive noise that is calibrated.

    A mechanism's *rate* is what it costs per unit of sensitivity, so that rate · size is the price. A higher rate is
    less noise.
    """

    __slots__ = ()

    lowest_rate: ClassVar[Fraction]
    """That of the widest noise that is accepted."""

    @classmethod
    @abstractmethod
    def of_rate(cls, rate: Fraction) -> Self:
        """The noise that costs so much per unit of sensitivity. Raises ValueError if it is out of range."""

    @staticmethod
    @abstractmethod
    def rate_for(widest: int, confidence: Fraction) -> Fraction:
        """About the least rate whose half-width is at most `widest` integer units: where a search begins."""

    @staticmethod
    @abstractmethod
    def rate_of_sum(rate: Fraction, n: int) -> Fraction:
        """About the rate at which the sum of n draws is as wide as one draw at `rate`."""

    @staticmethod
    @abstractmethod
    def spread_of(rate: float) -> float:
        """Scale of the continuous noise of a rate."""

    @staticmethod
    @abstractmethod
    def rate_of(spread: float) -> float:
        """The inverse of `spread_of`."""

    @staticmethod
    @abstractmethod
    def quantile(confidence: Fraction) -> float:
        """w with P(|X| ≤ w) about the confidence, of continuous noise of scale 1."""

    @classmethod
    @abstractmethod
    def rest(cls, other: float, error: float, confidence: Fraction) -> float:
        """How large the scale may be beside continuous noise of scale `other`, so that their sum keeps `error`."""

    @abstractmethod
    def log_ratio(self, y: NDArray[np.float64], apart: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln P(noise = y - apart) - ln P(noise = y), elementwise; for audits."""


def with_noise(values: Sequence[int], drawn: Sequence[int]) -> Integers:
    """values[i] + drawn[i], exact. Raises TypeError for values that are not integers, ValueError for other lengths."""
    # Imported here so that `dpsql check`, which only prices, does not load numpy.
    from dpsql.core.noise.integer_columns import Integers

    if len(values) != len(drawn):
        raise ValueError("a draw for each value")
    return Integers.of(values).plus(Integers.of(drawn))


def least(holds: Callable[[int], bool], top: int) -> int:
    """The least w in [0, top] from which on it holds; top is known to."""
    low, high = -1, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
