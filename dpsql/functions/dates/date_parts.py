"""Parts of dates and timestamps: numbers with a fixed range, whatever the date. Infinite dates have no parts: NULL."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.doubles import loosened
from dpsql.core.numbers.interval import Exact, Interval
from dpsql.core.values.calendar_years import DAY_US, DAYS, EPOCH, is_safe
from dpsql.core.values.value import Args, Domain, Scalar, Value
from dpsql.functions.domains.made_domains import span_of
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_text, count, if_null, strict, temporal


@dataclass(frozen=True, slots=True)
class DatePart:
    """One part: its names, what it is, its range, and its value in Python. timed: of a time of day."""

    names: tuple[str, ...]
    summary: str
    lo: int | None
    hi: int | None
    python: Callable[[dt.datetime], int]
    timed: bool = False

    @property
    def name(self) -> str:
        """The first of its names, which is that of its function."""
        return self.names[0]


def _us(x: dt.datetime) -> int:
    return x.second * 1_000_000 + x.microsecond


PARTS = (
    DatePart(("year",), "Year.", None, None, lambda x: x.year),
    DatePart(("month",), "Month, 1 to 12.", 1, 12, lambda x: x.month),
    DatePart(("day", "dayofmonth"), "Day of the month, 1 to 31.", 1, 31, lambda x: x.day),
    DatePart(("quarter",), "Quarter, 1 to 4.", 1, 4, lambda x: (x.month + 2) // 3),
    DatePart(("week", "weekofyear"), "ISO week, 1 to 53.", 1, 53, lambda x: x.isocalendar()[1]),
    DatePart(
        ("isoyear",),
        "The year the ISO week belongs to.",
        None,
        None,
        lambda x: x.isocalendar()[0],
    ),
    DatePart(
        ("dayofweek", "dow", "weekday"),
        "Weekday, Sunday = 0 to Saturday = 6.",
        0,
        6,
        lambda x: x.isoweekday() % 7,
    ),
    DatePart(("isodow",), "Weekday, Monday = 1 to Sunday = 7.", 1, 7, lambda x: x.isoweekday()),
    DatePart(("dayofyear", "doy"), "Day of the year, 1 to 366.", 1, 366, lambda x: x.timetuple().tm_yday),
    DatePart(("decade",), "Year divided by ten.", None, None, lambda x: x.year // 10),
    DatePart(("century",), "Century.", None, None, lambda x: (x.year - 1) // 100 + 1),
    DatePart(("hour",), "Hour, 0 to 23.", 0, 23, lambda x: x.hour, timed=True),
    DatePart(("minute",), "Minute, 0 to 59.", 0, 59, lambda x: x.minute, timed=True),
    DatePart(("second",), "Second, 0 to 59.", 0, 59, lambda x: x.second, timed=True),
    DatePart(
        ("millisecond",), "Seconds and fraction in milliseconds.", 0, 59_999, lambda x: _us(x) // 1000, timed=True
    ),
    DatePart(("microsecond",), "Seconds and fraction in microseconds.", 0, 59_999_999, _us, timed=True),
)
BY_NAME = {name + plural: part for part in PARTS for name in part.names for plural in ("", "s")}


def _check(a: Value, part: DatePart) -> None:
    if part.timed:
        temporal(a, Kind.TIME)
    else:
        temporal(a)


def _days(a: Value) -> Interval:
    """The interval in whole days."""
    i = a.interval
    if a.type.kind is Kind.DATE:
        return i
    lo, hi = (None if end is None else end // DAY_US for end in (i.lo, i.hi))
    return Interval(lo, hi, i.why)


def _year(day: Exact | None, up: bool) -> int | None:
    if day is None:
        return None
    if day in DAYS:
        return (EPOCH + dt.timedelta(days=math.floor(day))).year
    # The mean Gregorian year has 146097/400 days; two years of slack cover leap years and the missing year 0.
    return 1970 + day * 400 // 146097 + (2 if up else -2)


def _years(a: Value, part: DatePart) -> Interval:
    """The range of year-like parts. ISO years differ by at most one."""
    days = _days(a)
    lo, hi = _year(days.lo, False), _year(days.hi, True)
    match part.name:
        case "isoyear":
            return iv.interval(None if lo is None else lo - 1, None if hi is None else hi + 1, days.why)
        case "decade":
            return iv.interval(None if lo is None else lo // 10 - 1, None if hi is None else hi // 10 + 1, days.why)
        case "century":
            return iv.interval(None if lo is None else lo // 100 - 1, None if hi is None else hi // 100 + 2, days.why)
        case _:
            return iv.interval(lo, hi, days.why)


def part_interval(a: Value, part: DatePart) -> Interval:
    """The range of a part of `a`: fixed, or derived from the years `a` can lie in. TIME '24:00:00' has an hour 24."""
    if part.lo is not None and part.hi is not None:
        return iv.interval(part.lo, part.hi + (part.name == "hour" and a.type.kind is Kind.TIME))
    return _years(a, part)


def part_domain(a: Value, part: DatePart) -> Domain | None:
    """Parts with a small fixed range list all of it, or what occurs in a year or less; years those of the days."""
    if part.lo is not None and part.hi is not None:
        if part.hi > 366 or (part.timed and a.type.kind is Kind.DATE):
            return None
        span = None if part.timed or a.domain is None else span_of(a.domain.values)
        if span is not None and len(span) <= 366:
            return Domain(tuple(sorted({part_of(part, day) for day in span})), null=if_null(a))
        return Domain(range(part.lo, part.hi + 1), null=if_null(a))
    span = span_of(a.domain.values) if a.domain is not None else None
    if span is None:
        return None
    first, last = part_of(part, span.first), part_of(part, span.last)
    return Domain(range(first, last + 1), null=if_null(a))


def part_of(part: DatePart, day: dt.date | dt.time) -> int:
    """The part of a Python date, datetime or time."""
    if isinstance(day, dt.time):
        day = dt.datetime.combine(EPOCH, day)
    elif not isinstance(day, dt.datetime):
        day = dt.datetime(day.year, day.month, day.day)
    return part.python(day)


def part_nullable(a: Value) -> bool:
    """Infinite dates and, for some parts, those outside the years 1 to 9999 give NULL."""
    return a.nullable or not (a.type.kind is Kind.TIME or is_safe(a))


def _function(part: DatePart) -> Function:
    def type_of(args: Args) -> SqlType:
        count(args, 1)
        _check(args[0], part)
        return BIGINT

    return Function(
        part.names,
        f"{part.name}(x: date | timestamp{' | time' if part.timed else ''}) → integer",
        part.summary,
        type=type_of,
        interval=lambda args: part_interval(args[0], part),
        nullable=lambda args: part_nullable(args[0]),
        domain=lambda args: part_domain(args[0], part),
        python=strict(lambda x: part_of(part, x)),
    )


def named_part(args: Args) -> DatePart:
    """The part that the literal first argument names."""
    name = constant_text(args[0], "the part").lower()
    part = BY_NAME.get(name)
    if part is None:
        raise SignatureError(
            f"does not know the part '{name}'", f"it knows {', '.join(p.name for p in PARTS)} and epoch"
        )
    return part


def is_epoch(args: Args) -> bool:
    """Whether date_part is asked for seconds since 1970."""
    return isinstance(args[0].constant, str) and args[0].constant.lower() == "epoch"


def _extract_type(args: Args) -> SqlType:
    count(args, 2)
    if is_epoch(args):
        temporal(args[1])
        return DOUBLE
    _check(args[1], named_part(args))
    return BIGINT


def _extract_interval(args: Args) -> Interval:
    return _epoch_interval(args[1:]) if is_epoch(args) else part_interval(args[1], named_part(args))


def _extract_python(name: Scalar, x: Scalar) -> Scalar:
    if not isinstance(name, str) or not isinstance(x, (dt.date, dt.time)) or name.lower() == "epoch":
        raise ValueError
    return part_of(BY_NAME[name.lower()], x)


def _epoch_type(args: Args) -> SqlType:
    count(args, 1)
    temporal(args[0])
    return DOUBLE


def _epoch_interval(args: Args) -> Interval:
    a = args[0]
    if a.type.kind is Kind.DATE:
        return iv.mul(a.interval, iv.point(86_400))
    return loosened(iv.mul(a.interval, iv.point(Fraction(1, 1_000_000))), 50)  # a conversion and a division are rounded


_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _name(name: str, summary: str, names: tuple[str, ...], index: Callable[[dt.date], int]) -> Function:
    def type_of(args: Args) -> SqlType:
        count(args, 1)
        temporal(args[0])
        return VARCHAR

    return Function(
        (name,),
        f"{name}(x: date | timestamp) → text",
        summary,
        type=type_of,
        nullable=lambda args: part_nullable(args[0]),
        domain=lambda args: Domain(names, null=if_null(args[0])),
        python=strict(lambda x: names[index(x)]),
    )


FUNCTIONS = (
    *(_function(part) for part in PARTS),
    Function(
        ("date_part", "datepart", "extract"),
        "date_part(part: literal, x: date | timestamp) → number",
        "A part of a date by name; 'epoch' gives seconds since 1970-01-01.",
        type=_extract_type,
        interval=_extract_interval,
        nullable=lambda args: part_nullable(args[1]),
        domain=lambda args: None if is_epoch(args) else part_domain(args[1], named_part(args)),
        python=strict(_extract_python),
        literal=frozenset({0}),
    ),
    Function(
        ("epoch",),
        "epoch(x: date | timestamp) → double",
        "Seconds since 1970-01-01, with fraction.",
        type=_epoch_type,
        interval=_epoch_interval,
        nullable=lambda args: part_nullable(args[0]),
    ),
    _name("monthname", "English name of the month.", _MONTHS, lambda x: x.month - 1),
    _name("dayname", "English name of the weekday.", _WEEKDAYS, lambda x: x.isoweekday() - 1),
)
