"""Rigorous enclosures of e^-x and ln x by integer arithmetic.

A decision about noise (a digit of a probability, a threshold, the width of an interval) must not depend on a rounded
number. Each function returns an `Interval` with rational ends that holds the true value and is at most 2^-bits wide;
whoever needs a decision asks for more bits until both ends agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.core.numbers.interval import Interval, add, hull, mul, point

_MOST_BITS = 1 << 20


def exp_minus(x: Fraction, bits: int) -> Interval:
    """An enclosure of e^-x at most 2^-bits wide, for x ≥ 0.

    Taylor series of e^r with r = x/2^h < 1/2 (the tail after the term r^n/n! is below that term), reciprocal, then h
    squarings; every step rounds outwards. Raises ValueError for x < 0.
    """
    if x < 0:
        raise ValueError("exp_minus takes x ≥ 0")
    if x >= bits:  # e^-x < 2^-x ≤ 2^-bits
        return Interval(Fraction(0), Fraction(1, 1 << bits))
    halvings = math.floor(x).bit_length() + 1
    work = bits + halvings + 12
    unit = 1 << work
    r_lo = (x.numerator << work) // (x.denominator << halvings)
    r_hi = r_lo + 1
    lo = hi = term_lo = term_hi = unit
    n = 0
    while term_hi > 1:
        n += 1
        term_lo = term_lo * r_lo // (n << work)
        term_hi = _up(term_hi * r_hi, n << work)
        lo += term_lo
        hi += term_hi
    hi += term_hi
    lo, hi = (unit << work) // hi, _up(unit << work, lo)
    for _ in range(halvings):
        lo, hi = lo * lo >> work, _up(hi * hi, unit)
    return Interval(Fraction(lo, unit), Fraction(min(hi, unit), unit))


def log(x: Fraction, bits: int) -> Interval:
    """An enclosure of ln x at most 2^-bits wide. Raises ValueError for x ≤ 0.

    x = m·2^e with 1/2 < m < 2; ln m = 2·artanh((m-1)/(m+1)) and ln 2 = 2·artanh(1/3).
    """
    if x <= 0:
        raise ValueError("log takes x > 0")
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** exponent
    work = bits + abs(exponent).bit_length() + 4
    z = (m - 1) / (m + 1)
    part = mul(point(2 if z >= 0 else -2), _artanh(abs(z), work))
    return add(mul(point(2 * exponent), _artanh(Fraction(1, 3), work)), part)


def _artanh(z: Fraction, bits: int) -> Interval:
    """An enclosure of artanh z = z + z³/3 + z⁵/5 + …, for 0 ≤ z ≤ 1/3; the tail after z^n/n is below z^n."""
    work = bits + 12
    z_lo = (z.numerator << work) // z.denominator
    z_hi = z_lo + 1
    square_lo, square_hi = z_lo * z_lo >> work, _up(z_hi * z_hi, 1 << work)
    lo, hi, power_lo, power_hi, n = z_lo, z_hi, z_lo, z_hi, 1
    while power_hi > 1:
        n += 2
        power_lo = power_lo * square_lo >> work
        power_hi = _up(power_hi * square_hi, 1 << work)
        lo += power_lo // n
        hi += _up(power_hi, n)
    hi += power_hi
    return Interval(Fraction(lo, 1 << work), Fraction(hi, 1 << work))


def _up(a: int, b: int) -> int:
    """⌈a/b⌉"""
    return -(-a // b)


def monotone(f: Callable[[Fraction], Interval], x: Interval) -> Interval:
    """An enclosure of the image of a bounded interval under a monotone function, given its enclosures at a point."""
    if x.lo is None or x.hi is None:
        raise ValueError("monotone takes a bounded interval")
    return hull(f(Fraction(x.lo)), f(Fraction(x.hi)))


def floor(enclosure: Callable[[int], Interval], bits: int = 64) -> int:
    """⌊v⌋, where enclosure(bits) holds v. v must not be an integer, or no number of bits would decide.

    Raises ArithmeticError if 2^20 bits do not decide.
    """
    while bits <= _MOST_BITS:
        found = enclosure(bits)
        if found.lo is not None and found.hi is not None:
            lo = math.floor(found.lo)
            # The value is not an integer, so an upper end that *is* the next integer decides as well.
            if math.ceil(found.hi) <= lo + 1:
                return lo
        bits *= 2
    raise ArithmeticError("an enclosure did not become narrow enough")
