"""abs, sign, floor, ceil, round, trunc."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from dpsql.core.ir.types import DOUBLE, INTEGER, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Exact, Interval, outward, quotient
from dpsql.core.values.value import Args, Scalar, Value, stored
from dpsql.functions.function import Function
from dpsql.functions.numbers.arithmetic import trunc_interval
from dpsql.functions.signature import constant_int, count, decimal_for, exact_type, number, on_ranges, returns, strict


def _abs(args: Args) -> Interval:
    return iv.absolute(args[0].interval)


def _abs_type(args: Args) -> SqlType:
    count(args, 1)
    number(args[0])
    if args[0].type.kind is Kind.INTEGER:
        return exact_type(_abs(on_ranges(args)), args)
    return DOUBLE if args[0].type.kind is Kind.DOUBLE else args[0].type


def _sign(args: Args) -> Interval:
    """Of a DOUBLE nothing narrower is believed: `x + 1e19 - 1e19` is 0 where x is 1."""
    if args[0].type.kind is Kind.DOUBLE and not args[0].is_constant:
        return iv.interval(-1, 1)
    lo, hi = args[0].interval.lo, args[0].interval.hi
    return iv.interval(
        -1 if lo is None or lo < 0 else 0 if lo == 0 else 1, 1 if hi is None or hi > 0 else 0 if hi == 0 else -1
    )


def multiplied(i: Interval, places: int) -> Interval:
    """The engine multiplies by 10^places in DOUBLE: from 2⁵⁰ on, products may be rounded past the next whole number."""

    def moved(end: Exact | None, sign: int) -> Exact | None:
        if end is None or abs(end) * 10**places < 2**50:
            return end
        return end + sign * abs(quotient(end, 2**50))

    return Interval(moved(i.lo, -1), moved(i.hi, 1), i.why)


def places(args: Args) -> int:
    """The decimal places asked for; none: 0."""
    return constant_int(args[1], 0, 15, "the number of decimal places") if len(args) > 1 else 0


def _floor(args: Args) -> Interval:
    i = args[0].interval
    lo, hi = (None if end is None else math.floor(end) for end in (i.lo, i.hi))
    return Interval(lo, hi, i.why)


def _ceil(args: Args) -> Interval:
    return iv.neg(_floor([_negated(args[0])]))


def _negated(a: Value) -> Value:
    return Value(a.type, iv.neg(a.interval))


def _trunc(args: Args) -> Interval:
    return trunc_interval(args[0].interval)


def _round(args: Args) -> Interval:
    kept = places(args)
    return outward(multiplied(args[0].interval, kept) if args[0].type.kind is Kind.DOUBLE else args[0].interval, kept)


def _rounded_type(args: Args) -> SqlType:
    """DECIMAL keeps the places asked for and gets room for the carry; whole numbers stay what they are."""
    number(args[0])
    t = args[0].type
    if t.kind is Kind.INTEGER:
        return t
    if t.kind is Kind.DECIMAL:
        kept = min(places(args), t.scale)
        room = outward(stored(args[0]), 0)
        return decimal_for(room, kept) or DOUBLE if decimal_for(room, t.scale) else DOUBLE
    return DOUBLE


def _unary_rounded(args: Args) -> SqlType:
    count(args, 1)
    return _rounded_type(args)


def _round_type(args: Args) -> SqlType:
    count(args, 1, 2)
    return _rounded_type(args)


def _py_round(x: Scalar, places: int = 0) -> Scalar:
    if isinstance(x, int):
        return x
    if isinstance(x, float) and places:
        raise ValueError("the engine scales by a power of ten first, which rounds twice")
    return _whole(x, places, ROUND_HALF_UP)


def _whole(x: Scalar, places: int, rounding: str) -> Scalar:
    assert isinstance(x, (float, Decimal))
    exact = Decimal(x)
    rounded = exact.quantize(Decimal(1).scaleb(-places), rounding)
    return float(rounded) if isinstance(x, float) else rounded


def _py_integral(f: Callable[[Decimal | float | int], int]) -> Callable[..., Scalar]:
    def lifted(x: Scalar) -> Scalar:
        assert isinstance(x, (int, float, Decimal))
        return float(f(x)) if isinstance(x, float) else f(x)

    return strict(lifted)


def _unary(name: tuple[str, ...], summary: str, rule: Callable[[Args], Interval], f: Callable[..., int]) -> Function:
    return Function(
        name,
        f"{name[0]}(x: number) → number",
        summary,
        type=_unary_rounded,
        interval=rule,
        python=_py_integral(f),
    )


def _py_sign(x: int) -> Scalar:
    return (x > 0) - (x < 0)


FUNCTIONS = (
    Function(
        ("abs",),
        "abs(x: number) → number",
        "Absolute value.",
        type=_abs_type,
        interval=_abs,
        python=strict(abs),
    ),
    Function(
        ("sign",),
        "sign(x: number) → integer",
        "-1, 0 or 1; 0 for NaN.",
        type=returns(INTEGER, number),
        interval=_sign,
        python=strict(_py_sign),
    ),
    _unary(("floor",), "The greatest whole number that is at most x.", _floor, math.floor),
    _unary(("ceil", "ceiling"), "The least whole number that is at least x.", _ceil, math.ceil),
    _unary(("trunc", "truncate"), "x without its fraction, towards zero.", _trunc, math.trunc),
    Function(
        ("round",),
        "round(x: number, places: literal 0…15 = 0) → number",
        "The nearest multiple of 10^-places, halves away from zero.",
        type=_round_type,
        interval=_round,
        python=strict(_py_round),
        literal=frozenset({1}),
    ),
)
