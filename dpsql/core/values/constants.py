"""What is known of a constant: it needs no function."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from types import NoneType

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers.interval import Exact, everything, exact, point
from dpsql.core.values.value import Domain, Scalar, Value, type_range

EPOCH = dt.datetime(1970, 1, 1)


def position(value: Scalar, t: SqlType) -> Exact | None:
    """Where a non-NULL value of type `t` lies on the number line of Value.interval; None if it has no place there."""
    match value:
        case bool():
            return int(value)
        case int():
            return value
        case Decimal():
            return exact(Fraction(value))
        case float():
            return exact(Fraction(value)) if isfinite(value) else None
        case dt.datetime():
            at = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return (at - EPOCH) // dt.timedelta(microseconds=1)
        case dt.date() if t.kind is Kind.DATE and not isinstance(value, dt.datetime):
            return (value - EPOCH.date()).days
        case _:
            return None


def literal(value: Scalar, type: SqlType) -> Value:
    """The facts of a constant. NULL gets the interval [0, 0]: nothing but NULL ever occurs there."""
    kind = value.__class__
    if kind in _SAME and not (kind is str and len(value) > LONG):  # type: ignore[arg-type]
        written = ""  # of these, values that are equal are the same
    elif kind is Decimal or kind is float:
        written = str(value)  # 0.2 equals 0.20, and 0.0 equals -0.0
    else:
        return _literal(value, type)
    asked = kind, value, written, type.name
    known = _LITERALS.get(asked)
    if known is None:
        if len(_LITERALS) >= MOST_LITERALS:
            _LITERALS.clear()
        known = _LITERALS[asked] = _literal(value, type)
    return known


LONG = 64
"""Of longer texts nothing is kept."""
MOST_LITERALS = 1024
"""Most constants whose facts are kept: each stage of a plan asks for those of the same ones."""
_LITERALS: dict[tuple[object, ...], Value] = {}
_SAME = frozenset({bool, int, str, dt.date, NoneType})


def _literal(value: Scalar, type: SqlType) -> Value:
    if value is None:
        return Value(type, point(0), point(0), True, True, Domain((), null=True), None)
    at = position(value, type)
    exact = everything() if at is None else point(at)
    finite = not isinstance(value, float) or isfinite(value)
    held = type_range(type) if at is None or type.kind is Kind.DOUBLE else exact
    return Value(type, exact, held, False, finite, Domain((value,)) if finite else None, value)
