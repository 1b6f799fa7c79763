"""No noise: for numbers that no neighbouring database changes (a declared public size)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.noise.mechanisms.mechanism import Additive
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Integers


@dataclass(frozen=True, slots=True)
class NoNoise(Additive):
    """Releases its input unchanged. Free, and refused as soon as anything can change between neighbours."""

    name: ClassVar[str] = "exact"

    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """No loss. Raises ValueError if either sensitivity is not 0: then the loss would be infinite."""
        if l1 != 0 or l2_squared != 0:
            raise ValueError("a value that may change between neighbours cannot be released without noise")
        return NO_LOSS

    def add_noise(self, values: Sequence[int], backend: Backend = EXACT) -> Integers:
        """The values themselves; nothing is drawn."""
        from dpsql.core.noise.integer_columns import Integers

        return Integers.of(values)

    def half_width(self, confidence: Fraction) -> int:
        """0"""
        return 0

    def half_width_of_sum(self, n: int, confidence: Fraction) -> int:
        """0"""
        return 0

    def upper_tail(self, m: int, bits: int) -> Fraction:
        """P(0 ≥ m) for m ≥ 0: 1 or 0. Raises ValueError for m < 0."""
        if m < 0:
            raise ValueError("upper_tail takes m ≥ 0")
        return Fraction(m == 0)

    def variance(self) -> float:
        """0"""
        return 0.0
