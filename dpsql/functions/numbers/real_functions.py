"""Real functions: roots, logarithms, powers, trigonometry. Outside their domain they give NULL, never an error.

Ends of intervals are computed in floating point and loosened, by far more than the error of any library's elementary
functions: not even that these never fall is believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import loosened, monotone
from dpsql.core.numbers.interval import Interval, iv_meet
from dpsql.core.values.value import Args, Value
from dpsql.diagnostics.diagnostic import Reason
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import count, number, returns


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


def _real(names: tuple[str, ...], summary: str, rule: Callable[[Interval], Interval]) -> Function:
    """f(x) of one DOUBLE."""
    return Function(
        names,
        f"{names[0]}(x: number) → double",
        summary,
        type=returns(DOUBLE, number),
        interval=lambda args: rule(args[0].interval),
    )


def _sqrt(i: Interval) -> Interval:
    return iv_meet(monotone(math.sqrt, iv_meet(i, iv.interval(0, None))), iv.interval(0, None))


def _log(f: Callable[[float], float]) -> Callable[[Interval], Interval]:
    return lambda i: monotone(f, iv_meet(i, iv.interval(0, None)), _LOG)


def _exp(i: Interval) -> Interval:
    image = monotone(math.exp, i, _EXP)
    return iv_meet(image, iv.interval(0, None))


def _waves(i: Interval) -> Interval:
    return iv.interval(-1, 1)


def _about(lo: float, hi: float) -> Callable[[Interval], Interval]:
    ends = loosened(Interval(Fraction(lo), Fraction(hi)))
    return lambda i: ends


def _pow_interval(args: Args) -> Interval:
    base, exponent = args[0].interval, args[1].interval
    if exponent.lo is not None and exponent.lo == exponent.hi:
        k = exponent.lo
        if k.denominator == 1 and 0 <= k <= 64:
            return loosened(_whole_power(base, int(k)), 50)
        if k > 0 and base.lo is not None and base.lo >= 0:
            image = monotone(lambda x: math.pow(x, float(k)), base, _POW)
            return iv_meet(image, iv.interval(0, None))
    return Interval(None, None, (_POW, *base.why))


def _whole_power(i: Interval, k: int) -> Interval:
    """{x^k} for a whole number k ≥ 0, in real arithmetic."""
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


FUNCTIONS = (
    _real(("sqrt",), "Square root; NULL for negative numbers.", _sqrt),
    _real(("cbrt",), "Cube root.", lambda i: monotone(lambda x: math.copysign(abs(x) ** (1 / 3), x), i)),
    _real(("ln",), "Natural logarithm; NULL unless x > 0.", _log(math.log)),
    _real(("log10",), "Logarithm to base 10; NULL unless x > 0.", _log(math.log10)),
    _real(("log2",), "Logarithm to base 2; NULL unless x > 0.", _log(math.log2)),
    Function(
        ("log",),
        "log(x: number) → double · log(base: literal, x: number) → double",
        "Logarithm to base 10, or to the given base; NULL unless x > 0.",
        type=_log_type,
        interval=_log_interval,
    ),
    _real(("exp",), "e to the power of x.", _exp),
    Function(
        ("pow", "power"),
        "pow(x: number, y: number) → double",
        "x to the power of y, in DOUBLE; NaN for a negative x and a fractional y.",
        type=_pow_type,
        interval=_pow_interval,
    ),
    _real(("sin",), "Sine; NULL for NaN and ±∞.", _waves),
    _real(("cos",), "Cosine; NULL for NaN and ±∞.", _waves),
    _real(("tan",), "Tangent; NULL for NaN and ±∞.", lambda i: Interval(None, None, (_TAN,))),
    _real(("asin",), "Arc sine; NULL outside [-1, 1].", _about(-math.pi / 2, math.pi / 2)),
    _real(("acos",), "Arc cosine; NULL outside [-1, 1].", _about(0, math.pi)),
    _real(("atan",), "Arc tangent.", _about(-math.pi / 2, math.pi / 2)),
    _real(("radians",), "Degrees to radians.", lambda i: monotone(math.radians, i)),
    _real(("degrees",), "Radians to degrees.", lambda i: monotone(math.degrees, i)),
)
