"""Releasing private group keys: a key is shown iff its noisy unit count reaches a threshold.

A neighbour may add up to g keys that no one else has, each with a count of at most r. The key's exact count is then
at most r, and it is shown by mistake with probability δ₁ = P(Z ≥ T-r); any of g such keys with δ = 1-(1-δ₁)^g. For
Laplace noise δ₁ = q^(T-r)/(1+q), for Gaussian noise it is a sum of the discrete distribution: each mechanism states
its own tail. This δ is added to the loss of the noise itself, ε or ρ. The comparison is `noisy ≥ T`; accounting for
`noisy > T` would be off by one.

Where a unit counts for less the more keys it adds (`core/measures/shared_units.py`), it adds K keys with a count of
w(K) each, for one K: δ is the largest over all K. Between two steps of w only the largest K need be looked at.

Not proved: it needs real analysis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpsql.core.noise.mechanisms.mechanism import Additive

SMALLEST_DELTA = Fraction(1, 1 << 256)
"""A smaller δ may not be asked for; bounds are computed on a grid of 2^-384."""

_GRID_BITS = 384
_SIGNIFICANT = 96


@dataclass(frozen=True, slots=True)
class KeyThreshold:
    """The rule `noisy ≥ threshold`, with the noise, r and g that its δ is computed from.

    threshold: T in units, T ≥ r. r: most that one unit of distance adds to one key's count. g: most keys that it adds
    to. steps: (K, w) in order, where it adds only w to each of up to K keys; (): r, of up to g.
    Raises ValueError for r < 1, g < 1 or T < r, and for steps that leave any of g keys or of r out.
    """

    threshold: int
    mechanism: Additive
    r: int
    g: int
    steps: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _check(self.r, self.g)
        if self.threshold < self.r:
            raise ValueError("a threshold below r has no useful δ")
        if self.steps and (self.steps[0][1] > self.r or self.steps[-1][0] != self.g):
            raise ValueError("steps of other keys than g, or of other counts than r")

    @classmethod
    def calibrate(
        cls,
        mechanism: Additive,
        r: int,
        g: int,
        delta: Fraction,
        min_units: int = 1,
        steps: tuple[tuple[int, int], ...] = (),
    ) -> KeyThreshold:
        """The least threshold T ≥ max(r, min_units) whose `.delta` is at most `delta`.

        For Laplace noise that is r + ⌈scale·ln(1/(δ₁(1+q)))⌉ with δ₁ = 1-(1-δ)^(1/g). `min_units` can only raise T, so
        it never costs δ. Raises ValueError unless 2^-256 ≤ delta < 1.
        """
        _check(r, g)
        if not SMALLEST_DELTA <= delta < 1:
            raise ValueError("delta is at least 2^-256 and below 1")
        delta = Fraction(delta)

        def needed(step: tuple[int, int]) -> float:  # about; the one that needs most is looked at first
            most, w = step
            return w + mechanism.scale * math.sqrt(2 * math.log(most / delta))

        least = r
        for most, w in sorted(steps, key=needed, reverse=True) or ((g, r),):
            # Tails fall, so the least threshold is found by doubling and halving.
            low, high, step = least - 1, least, math.ceil(mechanism.scale)
            while delta_of(high, w, most, mechanism) > delta:
                low, high, step = high, high + step, 2 * step
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if delta_of(middle, w, most, mechanism) <= delta else (middle, high)
            least = high
        return cls(max(least, min_units), mechanism, r, g, steps)

    @property
    def delta(self) -> Fraction:
        """An upper bound of the probability that a neighbour's own keys show, recomputed from T, r, g and the noise."""
        return largest_delta(self.threshold, self.steps or ((self.g, self.r),), self.mechanism)

    def release(self, noisy_counts: Sequence[int]) -> list[bool]:
        """Which keys to show, given their unit counts with noise of `mechanism` already added.

        Keys whose exact count is 0 must not be among them.
        """
        return [count >= self.threshold for count in noisy_counts]


@lru_cache(maxsize=256)
def largest_delta(threshold: int, steps: tuple[tuple[int, int], ...], mechanism: Additive) -> Fraction:
    """The largest δ over the steps: (K, w) in which a neighbour adds w to each of up to K keys of its own."""
    return max(delta_of(threshold, w, most, mechanism) for most, w in steps)


def delta_of(threshold: int, r: int, g: int, mechanism: Additive) -> Fraction:
    """A rational upper bound of 1-(1-δ₁)^g with δ₁ = P(Z ≥ threshold-r), Z the noise of `mechanism`.

    Above the value at the mechanism's own `upper_tail` by a factor of at most 1 + 2^-90, or 2^-300 if that is more; the
    tail itself is as close, but for wide Gaussian noise, whose tail is bounded by an integral.
    Raises ValueError for r < 1, g < 1 or threshold < r.
    """
    _check(r, g)
    if threshold < r:
        raise ValueError("a threshold below r has no useful δ")
    bits = _GRID_BITS + g.bit_length()
    delta_1 = min(Fraction(1), mechanism.upper_tail(threshold - r, bits))
    return _round_up(1 - _lower_power(1 - delta_1, g, bits))


def _check(r: int, g: int) -> None:
    if r < 1 or g < 1:
        raise ValueError("r and g are at least 1")


def _lower_power(x: Fraction, exponent: int, bits: int) -> Fraction:
    """A lower bound of x^exponent for 0 ≤ x ≤ 1, on a grid of 2^-bits: squarings that round down."""
    base, result = (x.numerator << bits) // x.denominator, 1 << bits
    while exponent:
        if exponent & 1:
            result = result * base >> bits
        base = base * base >> bits
        exponent >>= 1
    return Fraction(result, 1 << bits)


def _round_up(x: Fraction) -> Fraction:
    """The least number ≥ x with at most 96 significant bits, so that ledger entries stay short."""
    places = _SIGNIFICANT + x.denominator.bit_length() - x.numerator.bit_length()
    return Fraction(-(-(x.numerator << places) // x.denominator), 1 << places)
