"""CAST: what a conversion does to the facts about a value.

A value that does not convert becomes NULL. DOUBLE → INTEGER rounds halves to even, DECIMAL → INTEGER rounds
them away from zero, as the engine does.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import rounded
from dpsql.core.numbers.interval import Exact, Interval, everything, iv_meet, outward, quotient
from dpsql.core.values.calendar_years import DAY_US
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Domain, Missing, Scalar, Value, may_fail, stored, type_range
from dpsql.functions.domains.made_domains import Midnights, map_domain, span_of
from dpsql.functions.function import SignatureError
from dpsql.functions.numbers.rounding import multiplied
from dpsql.functions.signature import WITHOUT_A_ZONE, in_doubles

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
_TARGETS: dict[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: _NUMBERS | {Kind.BOOLEAN, Kind.VARCHAR},
    **{kind: _NUMBERS | {Kind.BOOLEAN, Kind.VARCHAR} for kind in _NUMBERS},
    Kind.VARCHAR: _NUMBERS | {Kind.BOOLEAN, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.TIME, Kind.UUID},
    Kind.DATE: frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.VARCHAR}),
    Kind.TIMESTAMP: frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIME, Kind.VARCHAR}),
    Kind.TIME: frozenset({Kind.TIME, Kind.VARCHAR}),
    Kind.UUID: frozenset({Kind.UUID, Kind.VARCHAR}),
}
_FLOAT_MAX = Fraction(2) ** 127


def cast(arg: Value, target: SqlType) -> Value:
    """The facts about CAST(arg AS target). Raises SignatureError for conversions that dpsql does not know."""
    if arg.type == target:
        return arg
    if arg.is_constant and arg.constant is None:
        return literal(None, target)
    if target.kind not in _TARGETS.get(arg.type.kind, frozenset()):
        repair = WITHOUT_A_ZONE if Kind.TIMESTAMPTZ in (arg.type.kind, target.kind) else ""
        raise SignatureError(f"cannot convert {arg.type} to {target}", repair)
    if arg.is_constant:
        folded = _folded(_known(arg), target)
        if folded is not None:
            return literal(folded, target)
    found = _image(in_doubles(arg) if target.kind is Kind.DOUBLE else arg.interval, arg.type, target)
    held = type_range(target)
    if target.kind in (Kind.INTEGER, Kind.DECIMAL):
        held = iv_meet(_image(stored(arg), arg.type, target), held)
        found = iv_meet(found, type_range(target)) if found.bounded else found
    return Value(target, found, held, _nullable(arg, target), _finite(arg, target), _domain(arg, target))


def _image(i: Interval, source: SqlType, target: SqlType) -> Interval:
    """Where the converted value lies, before it is checked against what the target can hold."""
    match source.kind, target.kind:
        case _, Kind.BOOLEAN:
            return iv.interval(0, 1)
        case Kind.BOOLEAN, _ if target.numeric:
            return iv_meet(i, iv.interval(0, 1))
        case Kind.DOUBLE, (Kind.INTEGER | Kind.DECIMAL):
            return outward(multiplied(i, target.scale), target.scale)
        case ((Kind.INTEGER | Kind.DECIMAL), (Kind.INTEGER | Kind.DECIMAL)):
            return outward(i, target.scale)
        case ((Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE), Kind.DOUBLE):
            return rounded(_rounded(i) if target.name == "FLOAT" else i)
        case Kind.DATE, Kind.TIMESTAMP:
            return iv.mul(i, iv.point(DAY_US))
        case Kind.TIMESTAMP, Kind.DATE:
            lo, hi = (None if end is None else end // DAY_US for end in (i.lo, i.hi))
            return Interval(lo, hi, i.why)
        case _:
            return everything(*i.why)


def _rounded(i: Interval) -> Interval:
    """FLOAT keeps 24 binary digits: an end moves by at most 2⁻²³ of its size, or by the least subnormal number."""

    def moved(end: Exact | None, sign: int) -> Exact | None:
        return None if end is None else end + sign * (abs(quotient(end, 2**23)) + Fraction(1, 2**149))

    return Interval(moved(i.lo, -1), moved(i.hi, 1), i.why)


def _nullable(arg: Value, target: SqlType) -> bool:
    if arg.nullable:
        return True
    match arg.type.kind, target.kind:
        case Kind.DOUBLE, (Kind.INTEGER | Kind.DECIMAL):
            return True  # where it lies is only believed
        case Kind.DOUBLE, Kind.DOUBLE:
            return target.name == "FLOAT" or not arg.finite
        case _, Kind.VARCHAR:
            return False
        case (Kind.VARCHAR, _) | (_, Kind.TIME):
            return True
        case _, Kind.BOOLEAN:
            return False
        case _, (Kind.INTEGER | Kind.DECIMAL):
            return not outward(stored(arg), target.scale).within(type_range(target))
        case Kind.BOOLEAN, _:
            return False
        case ((Kind.INTEGER | Kind.DECIMAL), Kind.DOUBLE) if target.name == "FLOAT":
            top = stored(arg).magnitude
            return top is None or top >= _FLOAT_MAX
        case _:
            return may_fail(arg, target)


def _finite(arg: Value, target: SqlType) -> bool:
    if target.kind is not Kind.DOUBLE:
        return True
    return arg.type.kind is not Kind.VARCHAR and arg.finite


def _known(arg: Value) -> Scalar:
    assert not isinstance(arg.constant, Missing)
    return arg.constant


def _domain(arg: Value, target: SqlType) -> Domain | None:
    if arg.domain is None or target.kind is Kind.DOUBLE:
        return Domain((False, True), null=_nullable(arg, target)) if target.kind is Kind.BOOLEAN else None
    span = span_of(arg.domain.values)
    if span is not None and target.kind is Kind.DATE:
        return Domain(span, null=arg.domain.null)
    if span is not None and target.kind is Kind.TIMESTAMP:
        return Domain(Midnights(span), null=arg.domain.null)

    def image(key: Scalar) -> Scalar:
        if key is None:
            return None
        converted = _folded(key, target)
        if converted is None:
            raise ValueError("not known without the engine")
        return converted

    return map_domain(arg.domain, image)


_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,40}")
_DATE_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP_TEXT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
_DECIMAL_TEXT = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?")


def converted(value: Scalar, target: SqlType) -> Scalar:
    """A value other than NULL after the conversion, exactly as the engine gives it; None where that is not known."""
    return _folded(value, target)


def _folded(value: Scalar, target: SqlType) -> Scalar:
    """The converted value where Python gives it exactly as the engine does; None where that is not known."""
    if isinstance(value, str):
        return _from_text(value, target)
    if isinstance(value, bool):
        return {
            Kind.VARCHAR: "true" if value else "false",
            Kind.INTEGER: int(value),
            Kind.DOUBLE: float(value),
        }.get(target.kind)
    if isinstance(value, (int, Decimal, float)):
        return _from_number(value, target)
    if isinstance(value, dt.datetime):
        return value.date() if target.kind is Kind.DATE else None
    if isinstance(value, dt.date):
        if target.kind is Kind.TIMESTAMP:
            return dt.datetime(value.year, value.month, value.day)
        return value.isoformat() if target.kind is Kind.VARCHAR else None
    return None


def _from_number(value: int | Decimal | float, target: SqlType) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    match target.kind:
        case Kind.BOOLEAN:
            return value != 0
        case Kind.DOUBLE if target.name == "DOUBLE":
            return float(value)
        case Kind.VARCHAR if isinstance(value, int):
            return str(value)
        case Kind.INTEGER:
            half_up = math.floor(abs(Fraction(value)) + Fraction(1, 2))
            whole = round(value) if isinstance(value, float) else half_up if value >= 0 else -half_up
            return whole if whole in type_range(target) else None
        case Kind.DECIMAL if isinstance(value, (int, Decimal)):
            exact = Fraction(value) * 10**target.scale
            if exact.denominator == 1 and Fraction(value) in type_range(target):
                return Decimal(f"{int(exact)}E-{target.scale}")
            return None
        case Kind.DECIMAL if abs(value) < 2**52 / 10**target.scale and round(value, target.scale) == value:
            # No engine rounds it elsewhere; beyond the type it becomes NULL.
            return _from_number(Decimal(f"{round(value * 10**target.scale)}E-{target.scale}"), target)
        case _:
            return None


def _from_text(value: str, target: SqlType) -> Scalar:
    try:
        match target.kind:
            case Kind.DATE if _DATE_TEXT.fullmatch(value):
                return dt.date.fromisoformat(value)
            case Kind.TIMESTAMP if _DATE_TEXT.fullmatch(value) or _TIMESTAMP_TEXT.fullmatch(value):
                return dt.datetime.fromisoformat(value)
            case Kind.INTEGER | Kind.DECIMAL if _INTEGER_TEXT.fullmatch(value):
                return _from_number(int(value), target)
            case Kind.DOUBLE if target.name == "DOUBLE" and _DECIMAL_TEXT.fullmatch(value):
                return float(value)
            case _:
                return None
    except ValueError:
        return None
