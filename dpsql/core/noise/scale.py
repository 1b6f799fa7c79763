"""Which noise scales, and rates of choices, are accepted.

Numerators are compared: a comparison of Fractions takes five times as long.
"""

from __future__ import annotations

from fractions import Fraction

LARGEST_SCALE = Fraction(1 << 55)
"""Scales above this are refused: such noise swamps anything that fits 64 bits."""


def check_scale(scale: object) -> None:
    """Raise ValueError unless `scale` is a Fraction with 0 < scale ≤ 2^55.

    A float is refused because it is not the number that was meant: 0.1 is not 1/10.
    """
    if not isinstance(scale, Fraction) or not 0 < scale.numerator <= scale.denominator << 55:
        raise ValueError("a noise scale is a Fraction above 0 and at most 2^55")


def check_variance(variance: object) -> None:
    """Raise ValueError unless `variance` is a Fraction with 0 < variance ≤ 2^110, the square of `LARGEST_SCALE`."""
    if not isinstance(variance, Fraction) or not 0 < variance.numerator <= variance.denominator << 110:
        raise ValueError("a noise variance σ² is a Fraction above 0 and at most 2^110")


def check_rate(eta: object) -> None:
    """Raise ValueError unless `eta` is a Fraction above 0: choices are made with probabilities ∝ e^(-eta·score)."""
    if not isinstance(eta, Fraction) or eta <= 0:
        raise ValueError("eta is a Fraction above 0")
