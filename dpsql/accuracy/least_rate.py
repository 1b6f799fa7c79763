"""The least noise parameter that keeps an interval within a width, exact for every family of noise.

A mechanism's *rate* is what it costs per unit of sensitivity: 1/scale for Laplace noise (ε = rate·l1), 1/(2σ²) for
Gaussian noise (ρ = rate·l2²). A higher rate is less noise, so `half_width(confidence) ≤ w` holds from some rate on.
*Why:* P(|Z| ≤ w) grows with the rate, because both families have the likelihood ratio exp(-(rate - rate')·|z|^p), p = 1
or 2, which falls in |z|. The least such rate is found on a grid of `DIGITS` significant binary digits, so it is above
the true infimum by less than one part in 2^47; whether a rate holds is decided by the mechanism's own exact width, and
floating-point numbers only say where the search begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dpsql.core.noise.mechanisms import AdditiveNoise

DIGITS = 48
"""Significant binary digits of a rate."""

_WIDEST = 1 << 80
"""Wider than any interval of accepted noise: confidences have at most 10,000 bits, so -ln(1-c) is below 2^13."""


@lru_cache(maxsize=1024)
def rate_for(family: type[AdditiveNoise], widest: int, confidence: Fraction) -> Fraction | None:
    """The least rate whose noise has a half-width of at most `widest` integer units.

    None if the largest scale that is accepted is still narrower than asked. Raises ValueError for widest < 0, and
    unless 0 < confidence < 1.
    """
    _check(widest, confidence)
    widest = min(widest, _WIDEST)
    guess = family.rate_for(widest, confidence)
    return least_rate(lambda r: family.of_rate(r).half_width(confidence) <= widest, guess, family.lowest_rate)


@lru_cache(maxsize=1024)
def rate_of_sum(family: type[AdditiveNoise], n: int, widest: int, confidence: Fraction) -> Fraction | None:
    """The least rate whose noise, n times added, has a half-width of at most `widest` integer units; None as above."""
    own = rate_for(family, widest, confidence)
    if own is None or n == 1:
        return own
    guess = family.rate_of_sum(own, n)
    return least_rate(lambda r: family.of_rate(r).half_width_of_sum(n, confidence) <= widest, guess, family.lowest_rate)


def _check(widest: int, confidence: Fraction) -> None:
    if widest < 0 or not 0 < confidence < 1:
        raise ValueError("a width is at least 0, and a confidence between 0 and 1")


def least_rate(
    holds: Callable[[Fraction], bool],
    guess: Fraction,
    lowest: Fraction,
    digits: int = DIGITS,
    highest: Fraction | None = None,
) -> Fraction | None:
    """The least number of so many binary digits, at least `lowest`, from which on `holds` holds; None if everywhere.

    holds: false up to some number and true above it. highest: where it is known to hold, if that is known. Steps away
    from the guess double until the change is enclosed.
    """
    first = place_of(lowest, digits)
    first += on_grid(first, digits) < lowest
    if holds(on_grid(first, digits)):
        return None
    low, high, step = first, max(first + 1, place_of(guess, digits)), 1
    if holds(on_grid(high, digits)):
        while (down := high - step) > first and holds(on_grid(down, digits)):
            high, step = down, 2 * step
        low = max(down, first)
    else:
        top = None if highest is None else place_of(highest, digits) + 1
        while not holds(on_grid(high, digits)):
            low, high, step = high, high + step, 2 * step
            if top is not None and high >= top:
                high = top
                break
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(on_grid(middle, digits)) else (middle, high)
    return on_grid(high, digits)


def on_grid(place: int, digits: int = DIGITS) -> Fraction:
    """The numbers of so many binary digits in order: m·2^e with 2^(digits-1) ≤ m < 2^digits."""
    exponent, rest = divmod(place, 1 << (digits - 1))
    return Fraction(rest + (1 << (digits - 1))) * Fraction(2) ** exponent


def place_of(x: Fraction, digits: int = DIGITS) -> int:
    """The place of the greatest such number ≤ x, for x > 0."""
    half = 1 << (digits - 1)
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - digits
    scaled = x / Fraction(2) ** exponent
    while scaled >= 2 * half:
        exponent, scaled = exponent + 1, scaled / 2
    while scaled < half:
        exponent, scaled = exponent - 1, scaled * 2
    return exponent * half + (math.floor(scaled) - half)
