"""Closed intervals with exact ends; an open end is None and carries the reason why nothing is known there.

The ends are exact rationals. What the engine computes in DOUBLE is rounded outwards after each operation
(`core/numbers/doubles.py`); an aggregate's argument is clipped once more to its interval all the same.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import Reason

Exact = int | Fraction
"""A rational number. Whole ones are ints where that is easily had: Python compares them twenty times as fast.

Two of them are never divided by `/`, which makes a float of two ints, but by `quotient` or `//`.
"""


def exact(x: Exact) -> Exact:
    """The same number, as an int if it is whole."""
    return x.numerator if x.denominator == 1 else x


def quotient(x: Exact, y: Exact) -> Fraction:
    """x / y, exactly."""
    return Fraction(x) / y


@value(frozen=True, slots=True)
class Interval:
    """All reals x with lo ≤ x ≤ hi; None is an open end. `why` explains open ends and takes no part in equality.

    Raises ValueError for ends that are the wrong way round, TypeError for a float.
    """

    lo: Exact | None
    hi: Exact | None
    why: tuple[Reason, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        lo, hi = self.lo, self.hi
        for end in (lo, hi):
            if isinstance(end, float):  # to mypy an int may be one
                raise TypeError(f"the ends of an interval are exact, got {end!r}")
        if lo is not None and hi is not None and lo is not hi and lo > hi:
            raise ValueError(f"empty interval [{lo}, {hi}]")

    @property
    def bounded(self) -> bool:
        """True if both ends are known."""
        return self.lo is not None and self.hi is not None

    @property
    def magnitude(self) -> Exact | None:
        """max(|lo|, |hi|), or None if an end is open."""
        if self.lo is None or self.hi is None:
            return None
        return max(self.hi, -self.lo)

    def __contains__(self, value: Exact) -> bool:
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)

    def within(self, other: Interval) -> bool:
        """True if every point of this interval is in `other`."""
        lo = other.lo is None or (self.lo is not None and self.lo >= other.lo)
        hi = other.hi is None or (self.hi is not None and self.hi <= other.hi)
        return lo and hi

    def because(self, why: tuple[Reason, ...]) -> Interval:
        """The same ends, with these reasons."""
        return Interval(self.lo, self.hi, why)

    def __str__(self) -> str:
        lo = "-∞" if self.lo is None else _show(self.lo)
        hi = "∞" if self.hi is None else _show(self.hi)
        return f"[{lo}, {hi}]"


def _show(x: Exact) -> str:
    return str(x.numerator) if x.denominator == 1 else f"{float(x):g}"


def interval(lo: Exact | None, hi: Exact | None, why: tuple[Reason, ...] = ()) -> Interval:
    """The interval with these ends, the whole ones as ints."""
    return Interval(None if lo is None else exact(lo), None if hi is None else exact(hi), why)


def point(value: Exact) -> Interval:
    """The interval that holds one number."""
    at = exact(value)
    return Interval(at, at)


def everything(*why: Reason) -> Interval:
    """No bound known on either side, for these reasons."""
    return Interval(None, None, why) if why else _EVERYTHING


_EVERYTHING = Interval(None, None)


def _why(*intervals: Interval) -> tuple[Reason, ...]:
    return tuple(dict.fromkeys(reason for i in intervals if not i.bounded for reason in i.why))


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that holds both (CASE, COALESCE, UNION)."""
    lo = None if a.lo is None or b.lo is None else min(a.lo, b.lo)
    hi = None if a.hi is None or b.hi is None else max(a.hi, b.hi)
    return Interval(lo, hi, _why(a, b) if lo is None or hi is None else ())


def clamp(a: Interval, lo: Exact | None, hi: Exact | None) -> Interval:
    """The image of `a` under x ↦ min(max(x, lo), hi); None does not clip that side."""

    def one(end: Exact | None, open_to: Exact | None) -> Exact | None:
        if end is None:
            return open_to
        if lo is not None and end < lo:
            end = lo
        if hi is not None and end > hi:
            end = hi
        return end

    return Interval(one(a.lo, lo), one(a.hi, hi), a.why)


def neg(a: Interval) -> Interval:
    """{-x}"""
    return Interval(None if a.hi is None else -a.hi, None if a.lo is None else -a.lo, a.why)


def add(a: Interval, b: Interval) -> Interval:
    """{x + y}"""
    lo = None if a.lo is None or b.lo is None else a.lo + b.lo
    hi = None if a.hi is None or b.hi is None else a.hi + b.hi
    return Interval(lo, hi, _why(a, b))


def sub(a: Interval, b: Interval) -> Interval:
    """{x - y}"""
    return add(a, neg(b))


def mul(a: Interval, b: Interval) -> Interval:
    """{x · y}; a factor that is exactly zero makes the product zero, otherwise an open end opens what it can reach."""
    if a.lo == 0 == a.hi or b.lo == 0 == b.hi:
        return point(0)
    if a.lo is not None and a.hi is not None and b.lo is not None and b.hi is not None:
        if a.lo >= 0 and b.lo >= 0:
            return Interval(a.lo * b.lo, a.hi * b.hi)
        ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return Interval(min(ends), max(ends))
    lo: Exact | None = None
    hi: Exact | None = None
    if a.lo is not None and b.lo is not None and a.lo >= 0 and b.lo >= 0:
        lo = a.lo * b.lo
    elif a.hi is not None and b.hi is not None and a.hi <= 0 and b.hi <= 0:
        lo = a.hi * b.hi
    elif a.lo is not None and b.hi is not None and a.lo >= 0 and b.hi <= 0:
        hi = a.lo * b.hi
    elif a.hi is not None and b.lo is not None and a.hi <= 0 and b.lo >= 0:
        hi = a.hi * b.lo
    return Interval(lo, hi, _why(a, b))


def reciprocal(a: Interval, *why: Reason) -> Interval:
    """{1/x}; unbounded for the given reasons if 0 is in `a`."""
    if a.lo is not None and a.lo > 0:
        return Interval(0 if a.hi is None else Fraction(1, a.hi), Fraction(1, a.lo), a.why)
    if a.hi is not None and a.hi < 0:
        return Interval(Fraction(1, a.hi), 0 if a.lo is None else Fraction(1, a.lo), a.why)
    return Interval(None, None, (*why, *a.why))


def absolute(a: Interval) -> Interval:
    """{|x|}"""
    if a.lo is not None and a.lo >= 0:
        return a
    if a.hi is not None and a.hi <= 0:
        return neg(a)
    top = None if a.lo is None or a.hi is None else max(-a.lo, a.hi)
    return Interval(0, top, a.why)


def least(a: Interval, b: Interval) -> Interval:
    """{min(x, y)}: an open upper end is closed by the other side."""
    lo = None if a.lo is None or b.lo is None else min(a.lo, b.lo)
    hi = b.hi if a.hi is None else a.hi if b.hi is None else min(a.hi, b.hi)
    return Interval(lo, hi, _why(a, b))


def greatest(a: Interval, b: Interval) -> Interval:
    """{max(x, y)}: an open lower end is closed by the other side."""
    return neg(least(neg(a), neg(b)))


def iv_meet(a: Interval, b: Interval) -> Interval:
    """The intersection of two valid claims; `b` if they contradict each other (no row can reach this place)."""
    lo = b.lo if a.lo is None else a.lo if b.lo is None or a.lo >= b.lo else b.lo
    hi = b.hi if a.hi is None else a.hi if b.hi is None or a.hi <= b.hi else b.hi
    why = () if lo is not None and hi is not None else (*a.why, *b.why)
    if lo is a.lo and hi is a.hi and why == a.why:
        return a
    if lo is not None and hi is not None and lo > hi:
        return b
    return Interval(lo, hi, why)


def outward(i: Interval, places: int) -> Interval:
    """Every value moves by less than one unit of the last place kept, and never past the next such place."""
    step = Fraction(10) ** -places
    lo = None if i.lo is None else i.lo // step * step
    hi = None if i.hi is None else -(-i.hi // step) * step
    return Interval(lo, hi, i.why)
