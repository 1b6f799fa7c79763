"""Rigorous enclosures around the normal distribution, by integer arithmetic: π, square roots, erfc and quantiles."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from dpsql.core.numbers.enclosures import exp_minus
from dpsql.core.numbers.interval import Interval, mul, point, sub


def root(x: Fraction, bits: int = 64) -> Interval:
    """An enclosure of √x of relative width 2^-bits, for x ≥ 0; a single point where x is the square of a rational."""
    if x < 0:
        raise ValueError("root takes x ≥ 0")
    top = isqrt(x.numerator), isqrt(x.denominator)
    if top[0] ** 2 == x.numerator and top[1] ** 2 == x.denominator:
        return point(Fraction(*top))
    places = bits + 1 + max(0, x.denominator.bit_length() - x.numerator.bit_length()) // 2
    low = isqrt((x.numerator << 2 * places) // x.denominator)
    return Interval(Fraction(low, 1 << places), Fraction(low + 1, 1 << places))


@lru_cache(maxsize=32)
def pi(bits: int) -> Interval:
    """An enclosure of π at most 2^-bits wide: 16·arctan(1/5) - 4·arctan(1/239) (Machin 1706)."""
    work = bits + 16
    low_5, high_5 = _arctan_inverse(5, work)
    low_239, high_239 = _arctan_inverse(239, work)
    return Interval(Fraction(16 * low_5 - 4 * high_239, 1 << work), Fraction(16 * high_5 - 4 * low_239, 1 << work))


def _arctan_inverse(n: int, work: int) -> tuple[int, int]:
    """arctan(1/n)·2^work from below and above; each of the terms is cut off by less than 1."""
    total, power, k = 0, (1 << work) // n, 0
    while power:
        total += (-1) ** k * (power // (2 * k + 1))
        power, k = power // (n * n), k + 1
    return total - 2 * k - 2, total + 2 * k + 2


def erfc_root(y: Fraction, bits: int) -> Interval:
    """An enclosure of erfc(√y) at most 2^-bits wide, for y ≥ 0; P(|X| ≥ x) of a standard normal X at y = x²/2.

    erf(√y) = 2·√(y/π)·e^-y·Σ (2y)^n/(1·3·…·(2n+1)); all terms are positive, and once 2y/(2n+3) ≤ 1/2 the rest is
    below the last one. erfc(√y) ≤ e^-y (the Chernoff bound). Raises ValueError for y < 0.
    """
    if y < 0:
        raise ValueError("erfc_root takes y ≥ 0")
    if y >= bits:
        return Interval(Fraction(0), Fraction(1, 1 << bits))
    work = bits + 3 * int(y) // 2 + 32  # the sum is as large as e^y
    twice_lo = (2 * y.numerator << work) // y.denominator
    twice_hi = twice_lo + 1
    lo = hi = term_lo = term_hi = 1 << work
    n = 0
    while term_hi > 1 or 2 * twice_hi > (2 * n + 3) << work:
        divisor = (2 * n + 3) << work
        term_lo, term_hi = term_lo * twice_lo // divisor, -(-term_hi * twice_hi // divisor)
        lo, hi, n = lo + term_lo, hi + term_hi, n + 1
    hi += term_hi
    pi_work = pi(work)
    assert pi_work.lo is not None and pi_work.hi is not None
    low, high = root(y / pi_work.hi, work), root(y / pi_work.lo, work)
    factor = mul(Interval(low.lo, high.hi), exp_minus(y, work))
    erf = mul(mul(point(2), factor), Interval(Fraction(lo, 1 << work), Fraction(hi, 1 << work)))
    found = sub(point(1), erf)
    assert found.lo is not None and found.hi is not None
    return Interval(max(Fraction(0), found.lo), min(Fraction(1), found.hi))


@lru_cache(maxsize=256)
def two_sided(outside: Fraction) -> Fraction:
    """Slightly above the least x² with P(|X| ≥ x) ≤ outside for a standard normal X; relative excess below 2^-90.

    For 0 < outside ≤ 1. What it says of `outside` holds with a margin of 2^-(64 + bits of its denominator).
    """
    bits = 64 + outside.denominator.bit_length()

    def inside(y: Fraction) -> bool:
        found = erfc_root(y, bits + 32).hi
        assert found is not None
        return found <= outside - Fraction(1, 1 << bits)

    high = Fraction(1, 4)
    while not inside(high):
        high *= 2
    low = Fraction(0)
    for _ in range(96):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) else (middle, high)
    return 2 * high
