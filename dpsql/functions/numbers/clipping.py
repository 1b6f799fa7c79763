"""CLIP, greatest and least."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpsql.core.ir.types import DOUBLE, INTEGER, Kind, SqlType, integer_type_for
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Exact, Interval, exact
from dpsql.core.values.domains import DateRange, TimestampRange
from dpsql.core.values.value import Args, Domain, Missing, Scalar, Value, is_null, may_fail, stored
from dpsql.functions.conditions.comparison import compare
from dpsql.functions.conditions.conditional import finite_of, hull_of, scaled
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import common_type, count, decimal_for, if_null, number, strict

FARTHEST = 10**300
"""Bounds lie below it."""


def clip_bounds(args: Args) -> tuple[Exact, Exact]:
    """The two literals, as the engine will hold them (the nearest DOUBLE when x is a DOUBLE); of dates where they lie.

    Raises SignatureError if they are not finite numbers, or dates or timestamps as x is one, with lo ≤ hi.
    """
    if args[0].type.temporal:
        return _calendar_ends(args)
    return _ends(args[1].constant, args[2].constant, args[0].type.kind is Kind.DOUBLE)


def _calendar_ends(args: Args) -> tuple[Exact, Exact]:
    lower, upper = (a.interval.lo if a.constant is not None and a.type == args[0].type else None for a in args[1:3])
    if lower is None or upper is None:
        raise SignatureError(
            f"expects bounds of type {args[0].type}", "CLIP(day, DATE '2024-01-01', DATE '2024-12-31')"
        )
    if lower > upper:
        raise SignatureError("expects the earlier bound first")
    return lower, upper


@lru_cache(maxsize=64, typed=True)
def _ends(lower: Scalar | Missing, upper: Scalar | Missing, double: bool) -> tuple[Exact, Exact]:
    """`clip_bounds` of two constants: each is asked for by every rule of a CLIP, several times in a plan."""
    ends: list[Exact] = []
    for value in (lower, upper):
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not math.isfinite(value):
            raise SignatureError("expects numbers as bounds: CLIP(x, 0, 100)")
        if not -FARTHEST <= value <= FARTHEST:
            raise SignatureError("expects bounds below 1e300")
        ends.append(exact(Fraction(float(value) if double else value)))
    if ends[0] > ends[1]:
        raise SignatureError(f"expects the lower bound first, got CLIP(x, {float(ends[0]):g}, {float(ends[1]):g})")
    return ends[0], ends[1]


def _clip(args: Args) -> Interval:
    return iv.clamp(args[0].interval, *clip_bounds(args))


def _clip_type(args: Args) -> SqlType:
    """x keeps its type unless a bound does not fit into it."""
    count(args, 3)
    if not args[0].type.temporal:
        number(args[0])
    lo, hi = clip_bounds(args)
    t = args[0].type
    if t.temporal:
        return t
    if t.kind is Kind.NULL:
        return INTEGER
    if t.kind is Kind.DOUBLE:
        return DOUBLE
    if Kind.DOUBLE in (args[1].type.kind, args[2].type.kind) and (lo.denominator > 1 or hi.denominator > 1):
        raise SignatureError(f"expects bounds of type {t}", "write them without an exponent")
    held = iv.clamp(stored(args[0]), lo, hi)
    scale = max(t.scale, *(a.type.scale for a in args[1:]))
    if t.kind is Kind.INTEGER and lo.denominator == hi.denominator == 1:
        return integer_type_for(held, t) or integer_type_for(held) or DOUBLE
    if t.kind is Kind.DECIMAL and scale == t.scale and held.within(stored(Value(t))):
        return t
    return decimal_for(iv.hull(held, stored(args[0])), scale) or DOUBLE


def _clip_domain(args: Args) -> Domain | None:
    """All days, or instants, from bound to bound: infinite ones are clipped as well."""
    first, last, null = args[1].constant, args[2].constant, if_null(args[0])
    if isinstance(first, dt.datetime) and isinstance(last, dt.datetime):
        return Domain(TimestampRange(first, last), null)
    if isinstance(first, dt.date) and isinstance(last, dt.date):
        return Domain(DateRange(first, last), null)
    return None


def _py_clip(x: Scalar, lo: Scalar, hi: Scalar) -> Scalar:
    if isinstance(x, dt.date):
        assert isinstance(lo, dt.date) and isinstance(hi, dt.date)
        return min(max(x, lo), hi)
    assert isinstance(x, (int, float, Decimal))
    assert isinstance(lo, (int, float, Decimal)) and isinstance(hi, (int, float, Decimal))
    if isinstance(x, float):
        return min(max(x, float(lo)), float(hi)) if math.isfinite(x) else None
    return lo if x < lo else hi if x > hi else x


# GREATEST and LEAST ignore NULL


def _constants(args: Args) -> list[Interval]:
    """Arguments that take part in every row, because they are written there: constants, neither NULL nor NaN."""
    target = common_type(args)
    present = [a for a in args if a.is_constant and not is_null(a) and a.finite and not may_fail(a, target)]
    return [scaled(a, target) for a in present]


def _greatest(args: Args) -> Interval:
    """One of the arguments, which may be any: NULLs are left out. No less than a constant, which never is."""
    found = hull_of(args)
    low = max([i.lo for i in (found, *_constants(args)) if i.lo is not None], default=None)
    return Interval(low, found.hi, found.why)


def _least(args: Args) -> Interval:
    """The mirror image; a NaN is the greatest value of all and gives way to the others."""
    found = hull_of(args)
    high = min([i.hi for i in (found, *_constants(args)) if i.hi is not None], default=None)
    return Interval(found.lo, high, found.why)


def _extreme_type(args: Args) -> SqlType:
    count(args, 1, -1)
    return common_type(args)


def _extreme_nullable(args: Args) -> bool:
    target = common_type(args)
    return all(a.nullable or may_fail(a, target) for a in args)


def _extreme(name: str, rule: Callable[[Args], Interval], better: Callable[[object, object], bool]) -> Function:

    def python(*values: Scalar) -> Scalar:
        best: Scalar = None
        for v in values:
            if v is not None and (best is None or compare(v, best, better)):
                best = v
        return best

    return Function(
        (name,),
        f"{name}(x, y, …) → any",
        f"The {name} argument; NULLs are ignored, NaN is the greatest number.",
        type=_extreme_type,
        interval=rule,
        range=hull_of,
        nullable=_extreme_nullable,
        finite=finite_of,
        python=python,
    )


FUNCTIONS = (
    Function(
        ("clip", "clamp", "clamped"),
        "clip(x: number | date | timestamp, lo: literal, hi: literal) → as x",
        "x bounded to [lo, hi]. NULL stays NULL; NaN and ±∞ become NULL. This is how a query bounds a value.",
        type=_clip_type,
        interval=_clip,
        nullable=lambda args: args[0].nullable or not args[0].finite,
        finite=lambda args: True,  # the printed text makes it so
        domain=_clip_domain,
        python=strict(_py_clip),
        literal=frozenset({1, 2}),
    ),
    _extreme("greatest", _greatest, lambda a, b: a > b),  # type: ignore[operator]
    _extreme("least", _least, lambda a, b: a < b),  # type: ignore[operator]
)
