"""Accuracy first: the least noise parameter that keeps an interval within an asked width, exact for both families.

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

from dpsql.measure.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.measure.scale import LARGEST_SCALE
from dpsql.numbers.exact import log
from dpsql.numbers.normal import two_sided

DIGITS = 48
"""Significant binary digits of a rate."""

_HALF = 1 << (DIGITS - 1)


@lru_cache(maxsize=1024)
def laplace_rate(widest: int, confidence: Fraction) -> Fraction | None:
    """The least rate whose discrete Laplace noise has a half-width of at most `widest` integer units.

    None if the largest scale that is accepted is still narrower than asked. Raises ValueError for widest < 0, and
    unless 0 < confidence < 1.
    """
    _check(widest, confidence)
    # 2q^(w+1)/(1+q) = 1-c, solved for rate = -ln q by a few steps towards the fixed point.
    outside = _log_outside(confidence)
    rate = 1.0
    for _ in range(8):
        rate = (math.log(2) + outside - math.log1p(math.exp(-rate))) / (widest + 1)
    return _least(
        lambda r: DiscreteLaplace(1 / r).half_width(confidence) <= widest,
        Fraction(max(rate, 1e-300)),
        1 / LARGEST_SCALE,
    )


@lru_cache(maxsize=1024)
def gaussian_rate(widest: int, confidence: Fraction) -> Fraction | None:
    """As `laplace_rate`, of discrete Gaussian noise."""
    _check(widest, confidence)
    guess = two_sided(1 - confidence) / (2 * (widest + Fraction(1, 2)) ** 2)
    return _least(
        lambda r: DiscreteGaussian(1 / (2 * r)).half_width(confidence) <= widest, guess, 1 / (2 * LARGEST_SCALE**2)
    )


def _log_outside(confidence: Fraction) -> float:
    """-ln(1-c), near enough for a guess."""
    found = log(1 / (1 - confidence), 60)
    assert found.lo is not None
    return float(found.lo)


def _check(widest: int, confidence: Fraction) -> None:
    if widest < 0 or not 0 < confidence < 1:
        raise ValueError("a width is at least 0, and a confidence between 0 and 1")


def _least(holds: Callable[[Fraction], bool], guess: Fraction, lowest: Fraction) -> Fraction | None:
    """The least number of `DIGITS` binary digits, at least `lowest`, from which on `holds` holds; None if everywhere.

    holds: false up to some number and true above it. Steps away from the guess double until the change is enclosed.
    """
    first = _index(lowest) + (_at(_index(lowest)) < lowest)
    if holds(_at(first)):
        return None
    low, high, step = first, max(first + 1, _index(guess)), 1
    if holds(_at(high)):
        while (down := high - step) > first and holds(_at(down)):
            high, step = down, 2 * step
        low = max(down, first)
    else:
        while not holds(_at(high)):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(_at(middle)) else (middle, high)
    return _at(high)


def _at(index: int) -> Fraction:
    """The grid's numbers in order: m·2^e with 2^(DIGITS-1) ≤ m < 2^DIGITS."""
    exponent, digits = divmod(index, _HALF)
    return Fraction(digits + _HALF) * Fraction(2) ** exponent


def _index(x: Fraction) -> int:
    """The place of the greatest grid number ≤ x, for x > 0."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - DIGITS
    scaled = x / Fraction(2) ** exponent
    while scaled >= 2 * _HALF:
        exponent, scaled = exponent + 1, scaled / 2
    while scaled < _HALF:
        exponent, scaled = exponent - 1, scaled * 2
    return exponent * _HALF + (math.floor(scaled) - _HALF)
