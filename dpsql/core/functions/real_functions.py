"""Real functions: roots, logarithms, powers, trigonometry. Outside their domain they give NULL, never an error.

Ends of intervals are computed in floating point and moved outwards by 2⁻⁴⁰ of their size, far more than the error of
any library's elementary functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.core.functions.arithmetic import may_be_zero
from dpsql.core.functions.function import Args, Function, SignatureError, null_if_any_is_null
from dpsql.core.functions.signature import (
    bounded_double,
    count,
    iv_meet,
    number,
    returns,
)
from dpsql.core.functions.value import Value
from dpsql.core.ir.types import DOUBLE, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Exact, Interval
from dpsql.diagnostics.diagnostic import Reason

_SLACK = Fraction(1, 2**40)


def _lost(what: str, repair: str) -> Reason:
    return Reason("DP202", what, help=(repair,))


_LOG = _lost(
    "the logarithm falls without bound near zero",
    "keep the argument away from zero:  LN(CLIP(x, lower, upper)), lower above 0",
)
_EXP = _lost("the power exceeds every DOUBLE", "bound the argument:  EXP(CLIP(x, lower, upper)), upper at most 700")
_TAN = _lost("the tangent has no bounds", "bound the result:  CLIP(TAN(x), lower, upper)")
_POW = _lost(
    "the power has no bounds for this base and exponent",
    "bound the base and use a constant exponent:  POW(CLIP(x, lower, upper), 2)",
)


def _end(f: Callable[[float], float], x: Exact | None, up: bool) -> Fraction | None:
    """f at an end, moved outwards; None where the end is open or f leaves the range of DOUBLE."""
    if x is None:
        return None
    try:
        y = f(float(x))
    except (OverflowError, ValueError):
        return None
    if not math.isfinite(y):
        return None
    slack = abs(Fraction(y)) * _SLACK + Fraction(1, 2**1000)
    return Fraction(y) + slack if up else Fraction(y) - slack


def monotone(f: Callable[[float], float], i: Interval, *why: Reason) -> Interval:
    """The image of `i` under a function that never falls; open ends stay open."""
    return Interval(_end(f, i.lo, False), _end(f, i.hi, True), (*i.why, *why))


def _real(
    names: tuple[str, ...],
    summary: str,
    rule: Callable[[Interval], Interval],
    *,
    inside: Callable[[Value], bool] | None = None,
    finite: Callable[[Args], bool] | None = None,
) -> Function:
    """f(x) of one DOUBLE.

    inside: of f that is NULL where it is not defined, whether it is defined for every finite value of an argument.
    """

    def interval(args: Args) -> Interval:
        return rule(args[0].interval)

    def nullable(args: Args) -> bool:
        a = args[0]
        return a.nullable or (inside is not None and not (a.finite and inside(a)))

    return Function(
        names,
        f"{names[0]}(x: number) → double",
        summary,
        type=returns(DOUBLE, number),
        interval=interval,
        nullable=nullable,
        finite=finite or bounded_double(interval),
    )


def _sqrt(i: Interval) -> Interval:
    return iv_meet(monotone(math.sqrt, iv_meet(i, iv.interval(0, None))), iv.interval(0, None))


def _log(f: Callable[[float], float]) -> Callable[[Interval], Interval]:
    return lambda i: monotone(f, iv_meet(i, iv.interval(0, None)), _LOG)


def _exp(i: Interval) -> Interval:
    image = monotone(math.exp, i, _EXP)
    return iv_meet(image, iv.interval(0, None))


def _positive(a: Value) -> bool:
    return a.interval.lo is not None and a.interval.lo > 0 and not may_be_zero(a)


def _not_negative(a: Value) -> bool:
    """A DOUBLE that is ≥ 0 in real arithmetic may be rounded below zero; other numbers are exact."""
    exact = a.type.kind is not Kind.DOUBLE and a.interval.lo is not None and a.interval.lo >= 0
    return exact or _positive(a)


def _anywhere(a: Value) -> bool:
    return True


def _unit(a: Value) -> bool:
    return a.interval.within(iv.interval(Fraction(-999, 1000), Fraction(999, 1000)))


def _waves(i: Interval) -> Interval:
    return iv.interval(-1, 1)


def _about(lo: float, hi: float) -> Callable[[Interval], Interval]:
    ends = Interval(Fraction(lo) - _SLACK, Fraction(hi) + _SLACK)
    return lambda i: ends


def _finite_argument(args: Args) -> bool:
    return args[0].finite


def _always(args: Args) -> bool:
    return True


def _pow_interval(args: Args) -> Interval:
    base, exponent = args[0].interval, args[1].interval
    if exponent.lo is not None and exponent.lo == exponent.hi:
        k = exponent.lo
        if k.denominator == 1 and 0 <= k <= 64:
            return _whole_power(base, int(k))
        if k > 0 and base.lo is not None and base.lo >= 0:
            image = monotone(lambda x: math.pow(x, float(k)), base, _POW)
            return iv_meet(image, iv.interval(0, None))
    return Interval(None, None, (_POW, *base.why))


def _whole_power(i: Interval, k: int) -> Interval:
    """{x^k} for a whole number k ≥ 0, exact."""
    if k == 0:
        return iv.point(1)
    if k % 2 == 0:
        size = iv.absolute(i)
        assert size.lo is not None or size.hi is None
        return Interval((size.lo or Fraction(0)) ** k, None if size.hi is None else size.hi**k, size.why)
    return Interval(None if i.lo is None else i.lo**k, None if i.hi is None else i.hi**k, i.why)


def _pow_type(args: Args) -> SqlType:
    count(args, 2)
    for a in args:
        number(a)
    return DOUBLE


def _pow_finite(args: Args) -> bool:
    """A negative base with a fractional exponent is NaN; the interval rule is open there."""
    return bounded_double(_pow_interval)(args)


def _log_type(args: Args) -> SqlType:
    count(args, 1, 2)
    for a in args:
        number(a)
    if len(args) == 2:
        base = args[0].constant
        if not isinstance(base, int) or isinstance(base, bool) or not 2 <= base <= 1000:
            raise SignatureError("expects the base as an integer literal from 2 to 1000: LOG(2, x)")
    return DOUBLE


def _log_argument(args: Args) -> Value:
    return args[-1]


def log_base(args: Args) -> int:
    """The base of a logarithm, 10 where none is given."""
    base = args[0].constant if len(args) == 2 else 10
    assert isinstance(base, int)
    return base


def _log_interval(args: Args) -> Interval:
    base = log_base(args)
    return _log(lambda x: math.log(x) / math.log(base))(_log_argument(args).interval)


def _log_nullable(args: Args) -> bool:
    a = _log_argument(args)
    return a.nullable or not a.finite or not _positive(a)


FUNCTIONS = (
    _real(("sqrt",), "Square root; NULL for negative numbers.", _sqrt, inside=_not_negative),
    _real(("cbrt",), "Cube root.", lambda i: monotone(lambda x: math.copysign(abs(x) ** (1 / 3), x), i)),
    _real(("ln",), "Natural logarithm; NULL unless x > 0.", _log(math.log), inside=_positive),
    _real(("log10",), "Logarithm to base 10; NULL unless x > 0.", _log(math.log10), inside=_positive),
    _real(("log2",), "Logarithm to base 2; NULL unless x > 0.", _log(math.log2), inside=_positive),
    Function(
        ("log",),
        "log(x: number) → double · log(base: literal, x: number) → double",
        "Logarithm to base 10, or to the given base; NULL unless x > 0.",
        type=_log_type,
        interval=_log_interval,
        nullable=_log_nullable,
        finite=bounded_double(_log_interval),
    ),
    _real(("exp",), "e to the power of x.", _exp),
    Function(
        ("pow", "power"),
        "pow(x: number, y: number) → double",
        "x to the power of y, in DOUBLE; NaN for a negative x and a fractional y.",
        type=_pow_type,
        interval=_pow_interval,
        nullable=null_if_any_is_null,
        finite=_pow_finite,
    ),
    _real(("sin",), "Sine; NULL for NaN and ±∞.", _waves, inside=_anywhere, finite=_always),
    _real(("cos",), "Cosine; NULL for NaN and ±∞.", _waves, inside=_anywhere, finite=_always),
    _real(
        ("tan",),
        "Tangent; NULL for NaN and ±∞.",
        lambda i: Interval(None, None, (_TAN,)),
        inside=_anywhere,
    ),
    _real(
        ("asin",),
        "Arc sine; NULL outside [-1, 1].",
        _about(-math.pi / 2, math.pi / 2),
        inside=_unit,
        finite=_always,
    ),
    _real(
        ("acos",),
        "Arc cosine; NULL outside [-1, 1].",
        _about(0, math.pi),
        inside=_unit,
        finite=_always,
    ),
    _real(("atan",), "Arc tangent.", _about(-math.pi / 2, math.pi / 2), finite=_finite_argument),
    _real(("radians",), "Degrees to radians.", lambda i: monotone(math.radians, i)),
    _real(("degrees",), "Radians to degrees.", lambda i: monotone(math.degrees, i)),
)
