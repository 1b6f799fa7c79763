"""time_bucket: the start of the part of time that holds a date or timestamp, where all parts have one length.

Parts of days and seconds are counted from Monday 2000-01-03, those of months from 2000-01-01, as DuckDB counts them.
What starts before the year 1 is NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from dpsql.core.ir.types import DATE, Kind, SqlType
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.calendar_years import DAY_US, is_safe, safe_span
from dpsql.core.values.domains import ENUMERABLE, TimestampRange
from dpsql.core.values.value import Args, Domain, Scalar
from dpsql.functions.dates.date_arithmetic import near
from dpsql.functions.dates.dates import CALENDAR, FIXED, UNITS, unit_of
from dpsql.functions.domains.made_domains import midnight, span_of
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_int, count, if_null, strict, temporal

_FIRST = dt.datetime(2000, 1, 3)
_LONGEST = 1_000 * 366 * DAY_US


def _type(args: Args) -> SqlType:
    count(args, 3)
    temporal(args[0])
    unit = unit_of(args[2])
    most = 12_000 // CALENDAR[unit] if unit in CALENDAR else _LONGEST // FIXED[unit]
    n = constant_int(args[1], 1, most, f"the number of {unit}s")
    if args[0].type.kind is Kind.DATE and unit in FIXED and n * FIXED[unit] % DAY_US:
        raise SignatureError(f"a DATE has no {unit}s", "bucket whole days, or CAST(x AS TIMESTAMP)")
    return args[0].type if args[0].type.temporal else DATE


def width(args: Args) -> tuple[int, int]:
    """Months, or microseconds: the other is 0."""
    unit, n = unit_of(args[2]), args[1].constant
    assert isinstance(n, int)
    return (n * CALENDAR[unit], 0) if unit in CALENDAR else (0, n * FIXED[unit])


def _interval(args: Args) -> Interval:
    """It moves back by less than its length, and never forward."""
    months, micros = width(args)
    length = micros or 31 * DAY_US * months
    i = near(args[0])
    back = length // DAY_US if args[0].type.kind is Kind.DATE else length
    return Interval(None if i.lo is None else i.lo - back, i.hi, i.why)


def _nullable(args: Args) -> bool:
    a = args[0]
    return a.nullable or not is_safe(a) or not starts_in_calendar(args)


def starts_in_calendar(args: Args) -> bool:
    """True if no part can start before the year 1."""
    return _interval(args).within(safe_span(args[0].type))


def _domain(args: Args) -> Domain | None:
    domain = args[0].domain
    if domain is None:
        return None
    match domain.values:
        case TimestampRange(first, last):
            ends = first, last
        case values if (span := span_of(values)) is not None:
            ends = midnight(span.first), midnight(span.last)
        case _:
            return None
    months, micros = width(args)
    start = _start(ends[0], months, micros)
    if start is None:
        return None
    if micros and args[0].type.kind is Kind.TIMESTAMP:
        return Domain(TimestampRange(start, ends[1], dt.timedelta(microseconds=micros)), null=if_null(args[0]))
    found: list[Scalar] = []
    for at in _starts(start, ends[1], months, micros):
        if len(found) == ENUMERABLE:
            return None
        found.append(at.date() if args[0].type.kind is Kind.DATE else at)
    return Domain(tuple(found), null=if_null(args[0]))


def _starts(start: dt.datetime, last: dt.datetime, months: int, micros: int) -> Iterator[dt.datetime]:
    at: dt.datetime | None = start
    while at is not None and at <= last:
        yield at
        at = _month(at.year * 12 + at.month - 1 + months) if months else _later(at, micros)


def _later(at: dt.datetime, micros: int) -> dt.datetime | None:
    return _within(lambda: at + dt.timedelta(microseconds=micros))


def _start(at: dt.datetime, months: int, micros: int) -> dt.datetime | None:
    """Where the part begins that holds a time; None before the year 1."""
    if months:
        since = (at.year - 2000) * 12 + at.month - 1
        return _month(24_000 + since // months * months)
    step = dt.timedelta(microseconds=micros)
    return _within(lambda: _FIRST + (at - _FIRST) // step * step)


def _month(index: int) -> dt.datetime | None:
    return _within(lambda: dt.datetime(index // 12, index % 12 + 1, 1))


def _within(found: Callable[[], dt.datetime]) -> dt.datetime | None:
    try:
        return found()
    except (OverflowError, ValueError):
        return None


def _python(x: Scalar, n: Scalar, unit: str) -> Scalar:
    assert isinstance(x, dt.date) and isinstance(n, int)
    named = UNITS[unit.lower()]
    months, micros = (n * CALENDAR[named], 0) if named in CALENDAR else (0, n * FIXED[named])
    if isinstance(x, dt.datetime):
        return _start(x, months, micros)
    found = _start(midnight(x), months, micros)
    return None if found is None else found.date()


BUCKET = Function(
    ("time_bucket",),
    "time_bucket(INTERVAL n unit, x: date | timestamp) → the same type",
    "The start of the n units that hold x, counted from Monday 2000-01-03, or of months from January 2000.",
    type=_type,
    interval=_interval,
    nullable=_nullable,
    domain=_domain,
    python=strict(_python),
    literal=frozenset({1, 2}),
    operator=True,
)
