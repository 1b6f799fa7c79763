"""Bounds and domain values, read by the column's type: exactly, or refused in words."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.core.ir.types import Kind, SqlType, value_range
from dpsql.core.numbers.interval import Exact
from dpsql.core.policy.tables import Bound, DomainValue
from dpsql.diagnostics.words import number
from dpsql.functions.numbers.clipping import FARTHEST
from dpsql.policy.file.scalars import exact
from dpsql.policy.issues import shown

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?) ?(Z|[-+]\d{2}:?\d{2})?")


class ValueProblem(ValueError):
    """The value does not fit; the message continues "… ": `must hold whole numbers, got 0.5`."""


def read_bounds(pair: list[Any], type: SqlType | None) -> tuple[Bound | None, Bound | None]:
    """[lower, upper] with exact ends, None for an open one. `type` None: as the values themselves look."""
    ends = tuple(None if end is None else _bound(end, type) for end in pair)
    lower, upper = ends
    if lower is None or upper is None:
        return lower, upper
    if isinstance(lower, Fraction) != isinstance(upper, Fraction) or _aware(lower) != _aware(upper):
        raise ValueProblem(f"must be [lower, upper] of one kind, got {shown(pair)}")
    if isinstance(lower, dt.datetime) != isinstance(upper, dt.datetime):
        lower, upper = _as_datetime(lower), _as_datetime(upper)
    if not _below(lower, upper):
        raise ValueProblem(f"must be [lower, upper] with lower < upper, got {shown(pair)}")
    return lower, upper


def _below(lower: Bound, upper: Bound) -> bool:
    """lower < upper, for two of one kind."""
    if isinstance(lower, Fraction) or isinstance(upper, Fraction):
        return isinstance(lower, Fraction) and isinstance(upper, Fraction) and lower < upper
    return lower < upper


def read_value(value: Any, type: SqlType | None) -> DomainValue:
    """A domain's value as the column holds it. `type` None: as it stands."""
    if type is None:
        plain: DomainValue = float(value) if isinstance(value, Fraction) else value
        return plain
    match type.kind:
        case Kind.BOOLEAN:
            if isinstance(value, bool):
                return value
            raise ValueProblem(f"must list true or false, got {shown(value)}")
        case Kind.VARCHAR:
            if isinstance(value, str):
                return value
            raise ValueProblem(f"must list text, got {shown(value)}; put it in quotes")
        case Kind.INTEGER:
            return int(_number(value, type))
        case Kind.DECIMAL:
            x = _number(value, type)
            scaled = x * 10**type.scale
            return Decimal((0 if x >= 0 else 1, tuple(map(int, str(abs(int(scaled))))), -type.scale))
        case Kind.DOUBLE:
            return _double(_number(value, type))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            moment = _moment(value, type)
            return moment
        case _:
            raise ValueProblem(
                f"cannot be given for {type}; a domain lists booleans, numbers, text, dates or timestamps"
            )


def _bound(value: Any, type: SqlType | None) -> Bound:
    if type is None:
        x = exact(value)
        return x if x is not None else _moment(value, None)
    if type.numeric:
        x = _number(value, type)
        if abs(x) >= FARTHEST or (type.kind is Kind.DOUBLE and abs(float(x)) >= FARTHEST):
            raise ValueProblem(f"must lie between -1e300 and 1e300, got {shown(value)}")
        return x
    if type.temporal or type.kind is Kind.TIMESTAMPTZ:
        return _moment(value, type)
    raise ValueProblem(f"fit numbers, dates and timestamps only, and the column is {type}")


def _number(value: Any, type: SqlType) -> Fraction:
    x = exact(value)
    if x is None:
        hint = "; remove the quotes" if isinstance(value, str) and re.fullmatch(r"[-+.\d]+", value) else ""
        raise ValueProblem(f"must hold finite numbers for {type}, got {shown(value)}{hint}")
    if type.kind is Kind.INTEGER and x.denominator != 1:
        raise ValueProblem(f"must hold whole numbers for {type}, got {shown(value)}")
    if type.kind is Kind.DECIMAL and (x * 10**type.scale).denominator != 1:
        raise ValueProblem(f"must have at most {type.scale} decimals for {type}, got {shown(value)}")
    held = value_range(type)
    if held is not None and x not in held:
        raise ValueProblem(f"must fit {type}, which holds {_end(held.lo)} to {_end(held.hi)}, got {shown(value)}")
    if type.kind is Kind.DOUBLE:
        _double(x)
    return x


def _double(x: Fraction) -> float:
    try:
        value = float(x)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueProblem("must fit DOUBLE, got a number that is too large")
    return value


def _end(x: Exact | None) -> str:
    return "-∞" if x is None else number(x)


def _moment(value: Any, type: SqlType | None) -> dt.date | dt.datetime:
    words = {None: "a number, date or timestamp", Kind.DATE: "a date, e.g. 2024-01-31"}.get(
        None if type is None else type.kind, "a timestamp, e.g. 2024-01-31 12:00:00"
    )
    found = _parse_moment(value)
    if found is None:
        raise ValueProblem(f"must hold {words}, got {shown(value)}")
    if type is None:
        return found
    if type.kind is Kind.DATE:
        if isinstance(found, dt.datetime):
            raise ValueProblem(f"must hold {words}, got {shown(value)}")
        return found
    moment = _as_datetime(found)
    if type.kind is Kind.TIMESTAMPTZ:
        if not isinstance(found, dt.datetime) or moment.tzinfo is None:
            raise ValueProblem(f"must say its offset for {type}, e.g. 2024-01-31 12:00:00Z, got {shown(value)}")
        return moment.astimezone(dt.UTC)
    if moment.tzinfo is not None:
        raise ValueProblem(f"must have no offset for {type}, got {shown(value)}")
    return moment


def _parse_moment(value: Any) -> dt.date | dt.datetime | None:
    if isinstance(value, dt.date):
        return value
    if not isinstance(value, str):
        return None
    try:
        if _DATE.fullmatch(value):
            return dt.date.fromisoformat(value)
        stamp = _TIMESTAMP.fullmatch(value)
        if stamp is None:
            return None
        day, time, offset = stamp.groups()
        found = dt.datetime.fromisoformat(f"{day}T{time}{offset or ''}")
        return found.astimezone(dt.UTC) if found.tzinfo is not None else found
    except (ValueError, OverflowError):
        return None


def _as_datetime(value: Any) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)


def _aware(value: Bound) -> bool:
    return isinstance(value, dt.datetime) and value.tzinfo is not None
