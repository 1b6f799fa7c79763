"""Helpers the families share: type checks with readable messages, common types, conversions that cannot overflow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import reduce, wraps
from itertools import pairwise

from dpsql.core.ir.types import DOUBLE, NULL, Kind, SqlType, decimal, integer_type_for
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import loosened, rounded
from dpsql.core.numbers.interval import Exact, Interval
from dpsql.core.values.value import TRUTH, TRUTH_OR_NULL, Args, Domain, Scalar, Value, stored
from dpsql.diagnostics.diagnostic import ForCustodian
from dpsql.functions.function import SignatureError

WITHOUT_A_ZONE = ForCustodian(
    "make it the time of a zone:  x: {from: \"x AT TIME ZONE 'Europe/Berlin'\", type: timestamp}"
)
"""The repair for a TIMESTAMPTZ: its calendar is the session's, and no accepted expression takes the zone away."""


def count(args: Args, low: int, high: int | None = None) -> None:
    """Check the number of arguments: exactly `low`, or between `low` and `high` (-1: any number)."""
    high = low if high is None else high
    if len(args) < low or (high >= 0 and len(args) > high):
        wanted = str(low) if high == low else f"at least {low}" if high < 0 else f"{low} to {high}"
        raise SignatureError(f"expects {wanted} argument{'s' if wanted != '1' else ''}, got {len(args)}")


def number(a: Value) -> None:
    """Check that an argument is a number (or NULL)."""
    if a.type.numeric or a.type.kind is Kind.NULL:
        return
    repair = {
        Kind.BOOLEAN: "cast it first: CAST(… AS INTEGER)",
        Kind.VARCHAR: "convert it first: CAST(… AS DOUBLE)",
    }.get(a.type.kind, "")
    raise SignatureError(f"expects a number, got {a.type}", repair)


def integer(a: Value) -> None:
    """Check that an argument is an INTEGER of any width (or NULL)."""
    if a.type.kind not in (Kind.INTEGER, Kind.NULL):
        raise SignatureError(f"expects an integer, got {a.type}", "convert it first: CAST(… AS BIGINT)")


def text(a: Value) -> None:
    """Check that an argument is a VARCHAR (or NULL)."""
    if a.type.kind not in (Kind.VARCHAR, Kind.NULL):
        raise SignatureError(f"expects text, got {a.type}", "convert it first: CAST(… AS VARCHAR)")


def boolean(a: Value) -> None:
    """Check that an argument is a BOOLEAN (or NULL)."""
    if a.type.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise SignatureError(f"expects a condition, got {a.type}", f"compare it with a value, as in {compared(a.type)}")


def compared(type: SqlType) -> str:
    """A condition on a value of this type, as an example."""
    if type.kind is Kind.VARCHAR:
        return "x = 'yes'"
    return "x >= '2024-12-31'" if type.temporal else "x <> 0" if type.numeric else "x IS NOT NULL"


def temporal(a: Value, *more: Kind) -> None:
    """Check that an argument is a DATE or TIMESTAMP (or one of `more`, or NULL)."""
    if a.type.temporal or a.type.kind in (Kind.NULL, *more):
        return
    repair = {
        Kind.TIMESTAMPTZ: WITHOUT_A_ZONE,
        Kind.VARCHAR: "convert it first: CAST(… AS DATE)",
    }.get(a.type.kind, "")
    raise SignatureError(f"expects a date or timestamp, got {a.type}", repair)


def constant_int(a: Value, low: int, high: int, what: str) -> int:
    """The integer literal of an argument, checked to lie in [low, high]."""
    value = a.constant
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SignatureError(f"expects {what} as an integer literal from {low} to {high}")
    return value


def constant_text(a: Value, what: str) -> str:
    """The string literal of an argument."""
    if not isinstance(a.constant, str):
        raise SignatureError(f"expects {what} as a string literal")
    return a.constant


def on_ranges(args: Args) -> Args:
    """The arguments with their ranges in place of their intervals, for the second call of an interval rule."""
    return [a if (held := stored(a)) is a.interval else a.with_interval(held) for a in args]


def reach_of(a: Value) -> Exact | None:
    """The largest sum or product of some of the parts that it is made of; of one that is no chain, its own size."""
    return a.reach if a.reach is not None else stored(a).magnitude


def in_doubles(a: Value) -> Interval:
    """The interval of an argument once the engine has converted it to DOUBLE.

    A whole number is rounded once; a decimal may be divided by a power of ten, both of them rounded before.
    """
    if a.type.kind not in (Kind.INTEGER, Kind.DECIMAL):
        return a.interval
    if a.is_constant:
        with suppress(ValueError):
            value = as_double(a.constant)  # type: ignore[arg-type]
            return a.interval if value is None else iv.point(Fraction(value))  # type: ignore[arg-type]
    if a.interval.lo == 0 == a.interval.hi:
        return a.interval
    return rounded(a.interval if a.type.kind is Kind.INTEGER else loosened(a.interval, 50))


def digits(i: Interval, scale: int) -> int | None:
    """Decimal digits that DECIMAL(?, scale) needs to hold every multiple of 10^-scale in `i`."""
    if i.lo is None or i.hi is None:
        return None
    top = max(abs(end.numerator) * 10**scale // end.denominator for end in (i.lo, i.hi))
    return max(len(str(top)), scale, 1)


def decimal_for(i: Interval, scale: int) -> SqlType | None:
    """The narrowest DECIMAL of this scale that holds `i`, or None beyond 38 digits."""
    need = digits(i, scale)
    return decimal(need, scale) if need is not None and need <= 38 and scale <= 38 else None


def exact_type(result: Interval, args: Args, scale: int = 0) -> SqlType:
    """INTEGER, BIGINT, HUGEINT, DECIMAL or else DOUBLE, wide enough for `result` and for every argument."""
    kinds = {a.type.kind for a in args}
    if Kind.DOUBLE in kinds:
        return DOUBLE
    whole = reduce(iv.hull, map(stored, args), result)
    if Kind.DECIMAL in kinds:
        return decimal_for(whole, scale) or DOUBLE
    return integer_type_for(whole) or DOUBLE


def common_type(args: Args) -> SqlType:
    """The one type that CASE, COALESCE, greatest … give their branches. NULL literals of any type fit everywhere.

    Raises SignatureError if the kinds cannot be mixed.
    """
    typed = [a for a in args if a.type.kind is not Kind.NULL]
    if not typed:
        return NULL
    types = list(dict.fromkeys(a.type for a in typed))
    if len(types) == 1:
        return types[0]
    comparable(*typed)
    if all(a.type.numeric for a in typed):
        return exact_type(stored(typed[0]), typed, max(a.type.scale for a in typed))
    kinds = {t.kind for t in types}
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return next(t for t in types if t.kind is Kind.TIMESTAMP)
    raise SignatureError(f"cannot mix {' and '.join(str(t) for t in types)}")


def comparable(*args: Value) -> None:
    """Check that values may be compared: numbers with numbers, dates with timestamps, else like with like."""
    typed = [a.type for a in args if a.type.kind is not Kind.NULL]
    for t in typed:
        if t.kind in (Kind.LIST, Kind.INTERVAL):
            raise SignatureError(f"cannot compare {t} values")
    for a, b in pairwise(typed):
        if (a.numeric and b.numeric) or (a.temporal and b.temporal) or a.kind is b.kind:
            continue
        other = a if b.kind is Kind.VARCHAR else b
        if Kind.VARCHAR in (a.kind, b.kind):
            repair = f"convert the text first: TRY_CAST(… AS {other}), or write the other one as a text"
        elif Kind.BOOLEAN in (a.kind, b.kind):
            repair = "convert the condition first: CAST(… AS INTEGER); or write a < b AND b < c"
        elif Kind.TIMESTAMPTZ in (a.kind, b.kind):
            repair = WITHOUT_A_ZONE
        else:
            repair = "convert one of them with CAST"
        raise SignatureError(f"cannot mix {a} and {b}", repair)


def comparison_types(args: Args) -> SqlType | None:
    """The type to compare in, or None where the engine's own promotion is exact and total (same kind, integers)."""
    typed = [a for a in args if a.type.kind is not Kind.NULL]
    if not typed or len({a.type for a in typed}) == 1 or all(a.type.kind is Kind.INTEGER for a in typed):
        return None
    return common_type(typed)


def as_double(value: Scalar) -> Scalar:
    """A number as the engine converts it to DOUBLE. Raises ValueError where its conversion may round differently."""
    match value:
        case bool():
            return value
        case int():
            if abs(value) > 2**53:
                raise ValueError("a long integer")
            return float(value)
        case Decimal():
            exact = value.as_tuple()
            if len(exact.digits) > 15 or not isinstance(exact.exponent, int) or not -22 <= exact.exponent <= 0:
                raise ValueError("a long decimal")
            return float(value)
        case _:
            return value


def strict(f: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """`f` with SQL's usual rule for NULL: if any argument is None, so is the result."""

    @wraps(f)
    def lifted(*values: Scalar) -> Scalar:
        return None if None in values else f(*values)

    return lifted


def returns(t: SqlType, *checks: Callable[[Value], None], optional: int = 0) -> Callable[[Args], SqlType]:
    """A `type` rule: one check per argument, the last `optional` of which may be left out; the result is `t`."""

    def rule(args: Args) -> SqlType:
        count(args, len(checks) - optional, len(checks))
        for check, a in zip(checks, args, strict=False):
            check(a)
        return t

    return rule


def interval_of(lo: int | Fraction | None, hi: int | Fraction | None) -> Callable[[Args], Interval]:
    """An `interval` rule that does not depend on the arguments."""
    fixed = iv.interval(lo, hi)
    return lambda args: fixed


def truth_domain(args: Args, nullable: bool) -> Domain:
    """{false, true}, and NULL if it can occur."""
    return TRUTH_OR_NULL if nullable else TRUTH


def if_null(a: Value) -> bool:
    """Whether NULL belongs into the list of keys of an image of `a`: the list of `a` decides if there is one."""
    return a.nullable if a.domain is None else a.domain.null


def anything(a: Value) -> None:
    """Accept every type."""
