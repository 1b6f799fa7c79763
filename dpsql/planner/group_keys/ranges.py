"""Ranges of whole numbers, dates and timestamps between declared ends and those that comparisons set."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, LiteralValue
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.domains import DAY, DateRange, TimestampRange
from dpsql.core.values.value import Domain, Value

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "is_not_distinct_from": "is_not_distinct_from"}
_EXACT = 2**53
RANGED = frozenset({Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP})
"""Kinds of which two ends make a list."""


def ranged(subject: Column, value: Value, bounds: Interval | None, own: Sequence[Expr]) -> Domain | None:
    """Everything between the ends that are declared and those that comparisons set."""
    first, last = _declared(value.domain, bounds)
    low, high = first, last
    for term in own:
        lo, hi = _ends(term, subject)
        low = lo if low is None else low if lo is None else max(low, lo)
        high = hi if high is None else high if hi is None else min(high, hi)
    if low is None or high is None or (low, high) == (first, last):
        return value.domain
    if low > high:  # nothing satisfies this: any list will do
        return value.domain
    found = _between(low, high, subject.type)
    return value.domain if found is None else Domain(found)  # a comparison holds for no NULL


def _declared(domain: Domain | None, bounds: Interval | None) -> tuple[int | None, int | None]:
    match domain.values if domain is not None else None:
        case range(start=start, stop=stop, step=1):
            return start, stop - 1
        case DateRange(first, last, "day"):
            return _place(first, Kind.DATE), _place(last, Kind.DATE)
        case TimestampRange(first, last, step) if step == _MICROSECOND:
            return _place(first, Kind.TIMESTAMP), _place(last, Kind.TIMESTAMP)
    if domain is not None or bounds is None:
        return None, None
    low, high = bounds.lo, bounds.hi
    return (None if low is None else math.ceil(low)), (None if high is None else math.floor(high))


def _place(at: dt.date, kind: Kind) -> int:
    if kind is Kind.DATE:
        return _day(at)
    assert isinstance(at, dt.datetime)
    return (at - _EPOCH) // _MICROSECOND


def _between(low: int, high: int, type_: SqlType) -> range | DateRange | TimestampRange | None:
    try:
        match type_.kind:
            case Kind.INTEGER:
                return range(low, high + 1)
            case Kind.DATE:
                return DateRange(_EPOCH.date() + low * DAY, _EPOCH.date() + high * DAY)
            case _:
                return TimestampRange(_EPOCH + low * _MICROSECOND, _EPOCH + high * _MICROSECOND)
    except OverflowError:
        return None


def _ends(term: Expr, subject: Column) -> tuple[int | None, int | None]:
    """The least and the greatest value of the column for which the condition may hold; None: no limit is known."""
    match term:
        case Call(function="and" | "or" as name, args=args):
            found = [_ends(a, subject) for a in args]
            if name == "or":
                return _ends_of_any(found)
            return (
                max((lo for lo, _ in found if lo is not None), default=None),
                min((hi for _, hi in found if hi is not None), default=None),
            )
        case Call(function=name, args=(Column(uid=uid), Literal(value=end))) if uid == subject.uid:
            return _end(name, end, subject.type.kind)
        case Call(function=name, args=(Literal(value=end), Column(uid=uid))) if uid == subject.uid:
            return _end(_FLIPPED.get(name, ""), end, subject.type.kind)
        case Call(function=name, args=(Call() | Cast() as image, Literal(value=end))):
            return _behind(image, name, end, subject)
        case Call(function=name, args=(Literal(value=end), Call() | Cast() as image)):
            return _behind(image, _FLIPPED.get(name, ""), end, subject)
        case Call(function="in", args=(image, *rest)) if all(isinstance(r, Literal) for r in rest):
            one = [_ends(Call("eq", (image, r), term.type), subject) for r in rest]
            return _ends_of_any(one)
    return None, None


def _ends_of_any(found: Sequence[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    lows, highs = [lo for lo, _ in found], [hi for _, hi in found]
    return (
        None if None in lows else min((lo for lo in lows if lo is not None), default=None),
        None if None in highs else max((hi for hi in highs if hi is not None), default=None),
    )


def _behind(image: Expr, name: str, end: LiteralValue, subject: Column) -> tuple[int | None, int | None]:
    """What a limit on the year or the day of a time says about the time itself."""
    kind = subject.type.kind
    match image:
        case Call(function="year", args=(Column(uid=uid),)) if uid == subject.uid:
            pass
        case Call(function="date_part", args=(Literal(value="year"), Column(uid=uid))) if uid == subject.uid:
            pass
        case Cast(arg=Column(uid=uid)) if uid == subject.uid and (kind, image.type.kind) == (Kind.TIMESTAMP, Kind.DATE):
            return _instants(*_end(name, end, Kind.DATE))
        case _:
            return None, None
    first, last = _end(name, end, Kind.INTEGER)
    low = None if first is None or not 1 <= first <= 9999 else _day(dt.date(first, 1, 1))
    high = None if last is None or not 1 <= last <= 9999 else _day(dt.date(last, 12, 31))
    return (low, high) if kind is Kind.DATE else _instants(low, high)


def _day(at: dt.date) -> int:
    return at.toordinal() - _EPOCH.toordinal()


def _instants(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """The first and the last microsecond of a range of days."""
    return None if first is None else first * _DAY, None if last is None else (last + 1) * _DAY - 1


def _end(name: str, end: LiteralValue, kind: Kind) -> tuple[int | None, int | None]:
    at = _position(end, kind)
    if at is None:
        return None, None
    match name:
        case "ge":
            return math.ceil(at), None
        case "gt":
            return math.floor(at) + 1, None
        case "le":
            return None, math.floor(at)
        case "lt":
            return None, math.ceil(at) - 1
        case "eq":
            return math.ceil(at), math.floor(at)
        case _:
            return None, None


def _position(end: LiteralValue, kind: Kind) -> Fraction | None:
    """A constant on the number line of the column: whole numbers, days or microseconds."""
    if kind is Kind.INTEGER:
        if not is_number(end):
            return None
        assert isinstance(end, (int, float, Decimal))
        return Fraction(end)
    if not isinstance(end, dt.date):
        return None
    at = end if isinstance(end, dt.datetime) else dt.datetime(end.year, end.month, end.day)
    if at.tzinfo is not None:
        return None
    micros = Fraction((at - _EPOCH) // _MICROSECOND)
    return micros / _DAY if kind is Kind.DATE else micros


def is_number(value: LiteralValue) -> bool:
    """Whether a constant is an exact number: a DOUBLE counts as far as whole numbers have no gaps."""
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) <= _EXACT
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)
