"""The operators + - * / // % and unary minus. Integers widen, decimals stay exact, a zero divisor gives NULL."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import prod

from dpsql.core.ir.types import DOUBLE, HUGEINT, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import rounded
from dpsql.core.numbers.interval import Exact, Interval
from dpsql.core.values.value import Args, Scalar, Value, stored
from dpsql.diagnostics.diagnostic import Mark, Reason
from dpsql.functions.dates import date_arithmetic as shift
from dpsql.functions.function import Function
from dpsql.functions.signature import count, decimal_for, exact_type, integer, number, on_ranges, reach_of, strict

ZERO_DIVISOR = Reason(
    "DP202",
    "the divisor may come arbitrarily close to zero, so the quotient has no bounds",
    help=(
        "keep the divisor away from zero: x / CLIP(y, lower, upper)",
        "or bound the quotient: CLIP(x / y, lower, upper)",
    ),
    mark=Mark.ZERO_DIVISOR,
)


def _add(args: Args) -> Interval:
    return iv.add(args[0].interval, args[1].interval)


def _sub(args: Args) -> Interval:
    return iv.sub(args[0].interval, args[1].interval)


def _mul(args: Args) -> Interval:
    return iv.mul(args[0].interval, args[1].interval)


def _neg(args: Args) -> Interval:
    return iv.neg(args[0].interval)


def _div(args: Args) -> Interval:
    return iv.mul(args[0].interval, iv.reciprocal(args[1].interval, ZERO_DIVISOR))


def _sum_of_parts(args: Args) -> Exact | None:
    parts = [reach_of(a) for a in args]
    return None if None in parts else sum(p for p in parts if p is not None)


def _product_of_parts(args: Args) -> Exact | None:
    """A part below 1 may be left out."""
    parts = [reach_of(a) for a in args]
    return None if None in parts else prod(max(1, p) for p in parts if p is not None)


def _regrouped(found: Interval, args: Args, reach: Exact | None) -> Interval:
    """What a type has to hold: the result, and of a chain every sum or product of some of its parts.

    *Claim.* No order in which an engine takes the operands of a chain of +, - and * overflows. *Why.* Each operation of
    it has a type that holds `reach`, which no partial result exceeds. *When it would be false.* The range of the result
    alone: `(a + 1) + (b + 2)`, regrouped to `a + 3 + b`, overflows where b is negative; a chain that runs through a
    subquery's column, were its parts forgotten there. *Tested by* tests/functions/test_chains.py.
    """
    if reach is None or all(a.reach is None for a in args):
        return found
    return iv.hull(found, Interval(-reach, reach))


def _added(args: Args) -> Interval:
    return _regrouped(_add(args), args, _sum_of_parts(args))


def _subtracted(args: Args) -> Interval:
    """What is subtracted may be added with the other sign."""
    return iv.hull(_regrouped(_sub(args), args, _sum_of_parts(args)), _neg(args[1:]))


def trunc_interval(i: Interval) -> Interval:
    """The image under truncation towards zero, which never falls."""
    lo, hi = (None if end is None else math.trunc(end) for end in (i.lo, i.hi))
    return Interval(lo, hi, i.why)


def _intdiv(args: Args) -> Interval:
    """A divisor that is not zero is at least 1 in magnitude, so |a // b| ≤ |a|."""
    a, b = args[0].interval, args[1].interval
    if (b.lo is not None and b.lo > 0) or (b.hi is not None and b.hi < 0):
        return trunc_interval(rounded(iv.mul(a, iv.reciprocal(b))))  # of what no integer holds, in DOUBLE
    if b.lo is not None and b.lo >= 0:
        lo = None if a.lo is None else min(a.lo, 0)
        hi = None if a.hi is None else max(a.hi, 0)
        return Interval(lo, hi, a.why)
    top = a.magnitude
    return Interval(None, None, a.why) if top is None else Interval(-top, top)


def _mod(args: Args) -> Interval:
    """The remainder has the dividend's sign and is no larger than the dividend; it is smaller than the divisor."""
    a, top = args[0].interval, args[1].interval.magnitude
    lo = None if a.lo is None else min(a.lo, 0)
    hi = None if a.hi is None else max(a.hi, 0)
    if top is None:
        return Interval(lo, hi, (*a.why, *args[1].interval.why))
    if _mod_type(args).kind is not Kind.DOUBLE:
        units = 10 ** _scale(args)  # a remainder is a whole number of the finer scale's units, and below the divisor
        top = Fraction(max(0, math.ceil(top * units) - 1), units)
    return Interval(-top if lo is None else max(lo, -top), top if hi is None else min(hi, top))


def _scale(args: Args) -> int:
    return max(a.type.scale for a in args)


def _linear_type(rule: Callable[[Args], Interval]) -> Callable[[Args], SqlType]:
    def type_of(args: Args) -> SqlType:
        count(args, 2)
        for a in args:
            number(a)
        return exact_type(rule(on_ranges(args)), args, _scale(args))

    return type_of


def _mul_type(args: Args) -> SqlType:
    count(args, 2)
    for a in args:
        number(a)
    result = _regrouped(_mul(on_ranges(args)), args, _product_of_parts(args))
    if Kind.DECIMAL in (args[0].type.kind, args[1].type.kind):
        scale = args[0].type.scale + args[1].type.scale
        factors = all(a.type.kind is Kind.DOUBLE or decimal_for(stored(a), a.type.scale) for a in args)
        return exact_type(result, args, scale) if factors and scale <= 38 else DOUBLE
    found = exact_type(result, args)
    # The engine multiplies magnitudes, so that a product of the least HUGEINT overflows.
    return DOUBLE if found == HUGEINT and result.lo is not None and result.lo <= -(2**127) else found


def _neg_type(args: Args) -> SqlType:
    count(args, 1)
    number(args[0])
    if args[0].type.kind is Kind.INTEGER:
        return exact_type(_regrouped(_neg(on_ranges(args)), args, _sum_of_parts(args)), args)
    return DOUBLE if args[0].type.kind is Kind.DOUBLE else args[0].type


def _div_type(args: Args) -> SqlType:
    count(args, 2)
    for a in args:
        number(a)
    return DOUBLE


def _intdiv_type(args: Args) -> SqlType:
    count(args, 2)
    for a in args:
        integer(a)
    # The quotient of the ranges includes |min| / -1, the one quotient that overflows.
    return exact_type(_intdiv(on_ranges(args)), args)


def _mod_type(args: Args) -> SqlType:
    count(args, 2)
    for a in args:
        number(a)
    held = stored(args[0])
    # The engine divides before it takes the remainder, and refuses min % -1: leave room for -min.
    return exact_type(iv.hull(held, iv.neg(held)), args, _scale(args))


def may_be_zero(a: Value) -> bool:
    """False if no row can give zero. A DOUBLE may be 0 whatever is known of it, unless it is a constant."""
    return (0 in a.interval or (a.type.kind is Kind.DOUBLE and not a.is_constant)) and a.constant is not None


def _zero_or_null(args: Args) -> bool:
    return any(a.nullable for a in args) or may_be_zero(args[1])


def _py_div(a: Scalar, b: Scalar) -> Scalar:
    x, y = float(a), float(b)  # type: ignore[arg-type]
    return None if y == 0 else x / y


def _py_intdiv(a: int, b: int) -> Scalar:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _py_mod(a: Scalar, b: Scalar) -> Scalar:
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(float(a), float(b))  # type: ignore[arg-type]
    x, y = Fraction(a), Fraction(b)  # type: ignore[arg-type]
    rest = x - math.trunc(x / y) * y
    return int(rest) if rest.denominator == 1 else Decimal(rest.numerator) / Decimal(rest.denominator)


def _mixed(f: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """Python refuses Decimal with float; SQL computes in DOUBLE then."""

    def lifted(*values: Scalar) -> Scalar:
        if any(isinstance(v, float) for v in values):
            return f(*(float(v) for v in values))  # type: ignore[arg-type]
        return f(*values)

    return strict(lifted)


def _plus(a: int, b: int) -> Scalar:
    return a + b


def _minus(a: int, b: int) -> Scalar:
    return a - b


def _times(a: int, b: int) -> Scalar:
    return a * b


def _either(when: Callable[[Args], bool], dates: Function, numbers: Function) -> Function:
    """One operator for two families: date arithmetic where an argument is a date, else numbers."""

    def pick(args: Args) -> Function:
        return dates if len(args) == 2 and when(args) else numbers

    def python(*values: Scalar) -> Scalar:
        dated = any(isinstance(v, (dt.date, dt.timedelta)) for v in values)
        chosen = dates.python if dated else numbers.python
        assert chosen is not None
        return chosen(*values)

    return Function(
        numbers.names,
        numbers.signature,
        numbers.summary,
        type=lambda args: pick(args).type(args),
        interval=lambda args: pick(args).interval(args),
        reach=lambda args: None if pick(args) is dates else _sum_of_parts(args),
        nullable=lambda args: pick(args).nullable(args),
        domain=lambda args: pick(args).domain(args),
        python=python,
        operator=True,
    )


_NUMERIC_ADD = Function(
    ("add",),
    "x + y: number, number → number · date + days → date · date ± INTERVAL → timestamp",
    "Sum; the result type is wide enough for every possible sum.",
    type=_linear_type(_added),
    interval=_add,
    reach=_sum_of_parts,
    python=_mixed(_plus),
    operator=True,
)
_NUMERIC_SUB = Function(
    ("sub",),
    "x - y: number, number → number · date - days → date · date - date → days",
    "Difference; the result type is wide enough for every possible difference.",
    type=_linear_type(_subtracted),
    interval=_sub,
    reach=_sum_of_parts,
    python=_mixed(_minus),
    operator=True,
)

FUNCTIONS = (
    _either(shift.is_dated, shift.ADD, _NUMERIC_ADD),
    _either(shift.is_dated, shift.SUB, _NUMERIC_SUB),
    Function(
        ("mul",),
        "x * y: number, number → number",
        "Product; the result type is wide enough for every possible product.",
        type=_mul_type,
        interval=_mul,
        reach=_product_of_parts,
        python=_mixed(_times),
        operator=True,
    ),
    Function(
        ("div",),
        "x / y: number, number → double",
        "Quotient in DOUBLE; NULL where the divisor is zero.",
        type=_div_type,
        interval=_div,
        python=strict(_py_div),
        operator=True,
    ),
    Function(
        ("intdiv", "divide"),
        "x // y: integer, integer → integer",
        "Quotient rounded towards zero; NULL where the divisor is zero.",
        type=_intdiv_type,
        interval=_intdiv,
        nullable=_zero_or_null,
        python=strict(_py_intdiv),
    ),
    Function(
        ("mod",),
        "x % y: number, number → number",
        "Remainder with the sign of x; NULL where the divisor is zero.",
        type=_mod_type,
        interval=_mod,
        nullable=_zero_or_null,
        python=strict(_py_mod),
    ),
    Function(
        ("neg",),
        "- x: number → number",
        "Negation.",
        type=_neg_type,
        interval=_neg,
        reach=_sum_of_parts,
        python=strict(lambda x: -x),
        operator=True,
    ),
)
