"""Where DOUBLEs lie: the ends of an interval, moved outwards to numbers that the engine can really compute.

*Claim.* If an engine rounds a number of an interval to a DOUBLE, to nearest or in any direction, the result lies in
`rounded` of that interval; if a library's function is wrong by less than 2⁻⁴⁰ of its value, in `loosened` of it.
*Why.* Rounding never falls: what lies between two DOUBLEs is rounded to what lies between them. So the image of `+`,
`-`, `*`, `/` and `√`, worked out exactly at the corners and rounded outwards, holds every value that is computed, also
where a sum cancels: `x + 1e19 - 1e19` of [1, 2049] lies in [0, 4096], and not in [1, 2049]. Beyond 2¹⁰⁰⁰, where values
may be infinite, an end is open. *When it would be false.* Ends that are rounded to nearest, or that move inwards; an
engine that computes in fewer bits (FLOAT: `functions/cast.py`). *Tested by* tests/core/numbers/test_doubles.py,
tests/functions/test_function_contract.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.core.numbers.interval import Exact, Interval, exact, quotient
from dpsql.diagnostics.diagnostic import Reason

HUGE = 2**1000
"""A DOUBLE whose real value stays below this is finite whatever the rounding (the largest DOUBLE is near 2¹⁰²⁴)."""
_EXACT = 2**53
"""Whole numbers up to it are DOUBLEs."""


def below(end: Exact) -> float:
    """The largest DOUBLE that is at most `end`, which is less than 2¹⁰²³ in size."""
    nearest = float(end)
    return nearest if Fraction(nearest) <= end else math.nextafter(nearest, -math.inf)


def above(end: Exact) -> float:
    """The least DOUBLE that is at least `end`."""
    return -below(-end)


def rounded(i: Interval) -> Interval:
    """The interval with ends that are DOUBLEs: moved outwards to the next ones, and open beyond 2¹⁰⁰⁰."""
    lo, hi = i.lo, i.hi
    if lo is not None and not (lo.denominator == 1 and -_EXACT <= lo <= _EXACT):
        lo = None if lo <= -HUGE else HUGE if lo >= HUGE else exact(Fraction(below(lo)))
    if hi is not None and not (hi.denominator == 1 and -_EXACT <= hi <= _EXACT):
        hi = None if hi >= HUGE else -HUGE if hi <= -HUGE else exact(Fraction(above(hi)))
    return i if lo is i.lo and hi is i.hi else Interval(lo, hi, i.why)


def loosened(i: Interval, bits: int = 40) -> Interval:
    """The interval with ends moved outwards by 2^-bits of their size; an end that is 0 stays, as errors are relative.

    bits: 40 for a library's functions; 50, which is 8 units of a DOUBLE's last place, for powers and a few roundings.
    """

    def moved(end: Exact | None, sign: int) -> Exact | None:
        return end + sign * (abs(quotient(end, 2**bits)) + Fraction(1, 2**1000)) if end else end

    return Interval(moved(i.lo, -1), moved(i.hi, 1), i.why)


def _end(f: Callable[[float], float], x: Exact | None) -> Fraction | None:
    """f at an end; None where the end is open or f leaves the range of DOUBLE."""
    if x is None:
        return None
    try:
        y = f(float(x))
    except (OverflowError, ValueError):
        return None
    return Fraction(y) if math.isfinite(y) else None


def monotone(f: Callable[[float], float], i: Interval, *why: Reason) -> Interval:
    """The image of `i` under a function that never falls but for a library's errors; open ends stay open."""
    return loosened(Interval(_end(f, i.lo), _end(f, i.hi), (*i.why, *why)))
