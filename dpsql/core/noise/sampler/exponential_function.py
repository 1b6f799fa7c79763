"""e^-x in whole numbers: a lower bound good to nine decimals in bulk, and any number of exact digits for one x.

Everything is integer arithmetic, so a bound holds on every machine, in every rounding mode.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsql.core.numbers.enclosures import exp_minus, floor
from dpsql.core.numbers.interval import Interval

Integers = NDArray[np.uint64]

POINT = 24
"""Binary digits after the point of a fixed-point x."""
LIMIT = 8
"""Fixed-point x lie in [0, LIMIT)."""
ONE = 32
"""`exp_below` gives multiples of 2^-ONE."""
SHORT = 6
"""`exp_below` falls short of the truth by less than SHORT·2^-ONE."""

_GROUP = 9  # LIMIT·2^POINT = 2^27: three groups of nine digits
_DEEP = 80


@lru_cache(maxsize=1)
def _tables() -> tuple[Integers, Integers, Integers]:
    """Table i holds for every group of digits d an integer at most 2^ONE·e^(-d·2^(9i-POINT)), below it by < 1 + 2^-37.

    Repeated products, rounded down at 80 binary digits: 512 steps lose less than 2^11 units of 2^-80 of the value. The
    entry for d = 0 is 2^32 - 1, so that no product of two entries leaves 64 bits.
    """

    def table(i: int) -> Integers:
        ratio, _ = exp_bounds(Fraction(1 << _GROUP * i, 1 << POINT), _DEEP)
        value, entries = (1 << _DEEP) - 1, []
        for _ in range(1 << _GROUP):
            entries.append(value >> (_DEEP - ONE))
            value = value * ratio >> _DEEP
        return np.array(entries, np.uint64)

    return table(0), table(1), table(2)


def exp_below(x: Integers) -> Integers:
    """Integers P with P ≤ 2^ONE·e^(-x/2^POINT) < P + SHORT, for integers x in [0, LIMIT·2^POINT).

    Proof. x = d₀ + 2⁹d₁ + 2¹⁸d₂, so the truth is abc/2^(2·ONE) with a, b, c the true values behind the three entries,
    each at most 2^ONE and above its entry A, B, C by less than t = 1 + 2^-37. AB > (a-t)(b-t) > ab - 2t·2^ONE, hence
    P' = ⌊AB/2^ONE⌋ > ab/2^ONE - 2t - 1, and likewise P = ⌊P'C/2^ONE⌋ > abc/2^(2·ONE) - (2t + 1) - t - 1, that is
    more than abc/2^(2·ONE) - 6. Nothing rounds up.
    """
    low, middle, high = _tables()
    mask = np.uint64((1 << _GROUP) - 1)
    group, one = np.uint64(_GROUP), np.uint64(ONE)
    # The indices are below 2^9, so that the view as signed integers, which numpy looks up faster, changes nothing.
    product = low.take((x & mask).view(np.int64)) * middle.take((x >> group & mask).view(np.int64)) >> one
    return product * high.take((x >> group >> group).view(np.int64)) >> one


def exp_digits(x: Fraction, count: int) -> int:
    """⌊2^count·e^-x⌋, x > 0 rational: the first `count` binary digits of e^-x, exactly.

    e^-x is irrational (Lindemann), so the digits are unique and enough accuracy always decides them.
    """
    one = 1 << count

    def scaled(bits: int) -> Interval:
        p = exp_minus(x, bits)
        assert p.lo is not None and p.hi is not None
        return Interval(p.lo * one, p.hi * one)

    return floor(scaled, count + 16)


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers (lo, hi) with lo ≤ 2^bits·e^-x ≤ hi, at most 3 apart, for rational x ≥ 0."""
    p = exp_minus(x, bits)
    assert p.lo is not None and p.hi is not None
    return math.floor(p.lo * (1 << bits)), math.ceil(p.hi * (1 << bits))
