"""What a mechanism is: it adds integer noise and can state its own loss.

The object that prices a query is the object that draws the noise, so a price can never disagree with the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from dpsql.core.noise.backends import EXACT, Backend
from dpsql.core.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Integers


class Mechanism(Protocol):
    """Additive integer noise with a symmetric distribution; immutable."""

    @property
    def name(self) -> str:
        """As printed by EXPLAIN: `laplace`, `gaussian`."""
        ...

    @property
    def scale(self) -> Fraction:
        """Scale in grid units (Laplace: b; Gaussian: σ), exact."""
        ...

    def loss(self, l1: Fraction, l2_squared: Fraction) -> PrivacyLoss:
        """The loss when the vector of true integers moves by at most this between neighbours."""
        ...

    def add_noise(self, values: Sequence[int], backend: Backend = EXACT) -> Integers:
        """values[i] + fresh independent noise drawn by `backend`; exact integers, nothing clipped."""
        ...

    def half_width(self, confidence: Fraction) -> int:
        """Least integer w ≥ 0 with P(|noise| ≤ w) ≥ confidence; may be one above it, never below."""
        ...

    def upper_tail(self, m: int, bits: int) -> Fraction:
        """A rigorous upper bound of P(noise ≥ m) for m ≥ 0, whose rounding adds at most 2^(1-bits)."""
        ...

    def variance(self) -> float:
        """Variance of the noise in squared grid units, for display and for choosing between mechanisms."""
        ...


def with_noise(values: Sequence[int], drawn: Sequence[int]) -> Integers:
    """values[i] + drawn[i], exact. Raises TypeError for values that are not integers, ValueError for other lengths."""
    # Imported here so that `dpsql check`, which only prices, does not load numpy.
    from dpsql.core.noise.integer_columns import Integers

    if len(values) != len(drawn):
        raise ValueError("a draw for each value")
    return Integers.of(values).plus(Integers.of(drawn))
