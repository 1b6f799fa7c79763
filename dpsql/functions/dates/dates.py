"""Functions that give dates or differences of dates. Outside the years 1 to 9999 they give NULL."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ir.types import BIGINT, DATE, TIMESTAMP, VARCHAR, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Exact, Interval
from dpsql.core.values.calendar_years import DAY_US, EPOCH, FIRST_DAY, LAST_DAY, is_safe
from dpsql.core.values.domains import TimestampRange, truncate
from dpsql.core.values.value import Args, Domain, Scalar, Value
from dpsql.functions.dates import date_arithmetic as shift
from dpsql.functions.dates.date_arithmetic import near
from dpsql.functions.domains.made_domains import Midnights, midnight, span_of
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.numbers.arithmetic import trunc_interval
from dpsql.functions.signature import constant_int, constant_text, count, if_null, integer, returns, strict, temporal

CALENDAR = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
FIXED = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": DAY_US, "week": 7 * DAY_US,
}  # fmt: skip
UNITS = {name + plural: name for name in (*FIXED, *CALENDAR) for plural in ("", "s")}
_CLOCK = ("microsecond", "millisecond", "second", "minute", "hour")


def unit_of(a: Value) -> str:
    """The unit that a literal argument names, singular."""
    name = constant_text(a, "the unit").lower()
    if name not in UNITS:
        raise SignatureError(f"does not know the unit '{name}'", f"it knows {', '.join((*FIXED, *CALENDAR))}")
    return UNITS[name]


def _micros(a: Value) -> Interval:
    """What `safe` lets through, in microseconds."""
    return iv.mul(near(a), iv.point(DAY_US)) if a.type.kind is Kind.DATE else near(a)


def _index(us: Exact | None, unit: str) -> int | None:
    """The number of the unit that holds an instant, or of that in which the calendar begins or ends; never falls with
    time."""
    if us is None:
        return None
    if unit in FIXED:
        return us // FIXED[unit]
    day = EPOCH + dt.timedelta(days=min(max(int(us // DAY_US), FIRST_DAY), LAST_DAY))
    return (day.year * 12 + day.month - 1) // CALENDAR[unit]


def _nullable(args: Args) -> bool:
    return any(a.nullable or (a.type.temporal and not is_safe(a)) for a in args)


# date_trunc


def _trunc_type(args: Args) -> SqlType:
    count(args, 2)
    unit = unit_of(args[0])
    temporal(args[1])
    if args[1].type.kind is Kind.DATE and unit in _CLOCK:
        raise SignatureError(f"a DATE has no {unit}s")
    return args[1].type if args[1].type.temporal else DATE


def _trunc_interval(args: Args) -> Interval:
    """Truncation moves back by less than one unit (a decade at most 3653 days) and never forward."""
    a, unit = args[1], unit_of(args[0])
    length = Fraction(FIXED.get(unit) or 31 * DAY_US * CALENDAR[unit])
    if a.type.kind is Kind.DATE:
        length /= DAY_US
    i = near(a)
    return Interval(None if i.lo is None else i.lo - length, i.hi, i.why)


def _trunc_domain(args: Args) -> Domain | None:
    a, unit = args[1], unit_of(args[0])
    if a.domain is None:
        return None
    null = if_null(a)
    span = span_of(a.domain.values)
    if span is not None and unit in ("day", "week", "month", "quarter", "year"):
        days = span.truncated(unit)
        return Domain(days if a.type.kind is Kind.DATE else Midnights(days), null=null)
    if isinstance(a.domain.values, TimestampRange) and unit in _CLOCK:
        first, last = (_py_trunc(unit, end) for end in (a.domain.values.first, a.domain.values.last))
        assert isinstance(first, dt.datetime) and isinstance(last, dt.datetime)
        return Domain(TimestampRange(first, last, dt.timedelta(microseconds=FIXED[unit])), null=null)
    return None


def _py_trunc(unit: str, x: Scalar) -> Scalar:
    unit = UNITS[unit.lower()]
    if isinstance(x, dt.datetime):
        if unit in _CLOCK:
            since = x - midnight(x.date())
            return x - since % dt.timedelta(microseconds=FIXED[unit])
        return midnight(_day_trunc(unit, x.date()))
    assert isinstance(x, dt.date)
    return _day_trunc(unit, x)


def _day_trunc(unit: str, day: dt.date) -> dt.date:
    return dt.date(day.year // 10 * 10, 1, 1) if unit == "decade" else truncate(day, unit)


# date_diff, date_sub


def _diff_type(args: Args) -> SqlType:
    count(args, 3)
    unit_of(args[0])
    for a in args[1:]:
        temporal(a)
    return BIGINT


def _diff_interval(args: Args) -> Interval:
    unit = unit_of(args[0])
    a, b = _micros(args[1]), _micros(args[2])
    if unit == "week":
        return trunc_interval(iv.mul(iv.sub(_day_numbers(b), _day_numbers(a)), iv.point(Fraction(1, 7))))
    a_lo, a_hi, b_lo, b_hi = (_index(end, unit) for end in (a.lo, a.hi, b.lo, b.hi))
    lo = None if b_lo is None or a_hi is None else b_lo - a_hi
    hi = None if b_hi is None or a_lo is None else b_hi - a_lo
    return iv.interval(lo, hi, (*a.why, *b.why))


def _day_numbers(micros: Interval) -> Interval:
    lo, hi = (None if end is None else end // DAY_US for end in (micros.lo, micros.hi))
    return Interval(lo, hi, micros.why)


def _sub_interval(args: Args) -> Interval:
    """Whole units that have passed: at most the number of unit starts between the two, plus one against the clock."""
    i = _diff_interval(args)
    lo = None if i.lo is None else min(i.lo, Fraction(0))
    return Interval(lo, None if i.hi is None else max(i.hi, Fraction(0)), i.why)


def _py_diff(unit: str, a: Scalar, b: Scalar) -> Scalar:
    unit, ends = UNITS[unit.lower()], []
    for x in (a, b):
        assert isinstance(x, dt.date)
        at = x if isinstance(x, dt.datetime) else midnight(x)
        ends.append(
            _index(Fraction((at - midnight(EPOCH)) // dt.timedelta(microseconds=1)), "day" if unit == "week" else unit)
        )
    assert ends[0] is not None and ends[1] is not None
    found = ends[1] - ends[0]
    return math.trunc(Fraction(found, 7)) if unit == "week" else found


# x + n units


def _moved_type(args: Args) -> SqlType:
    count(args, 3)
    temporal(args[0])
    unit = unit_of(args[2])
    longest = 10_000 * 366 * DAY_US
    most = 120_000 // CALENDAR[unit] if unit in CALENDAR else longest // FIXED[unit]
    constant_int(args[1], -most, most, f"the number of {unit}s")
    return TIMESTAMP


def _moved_interval(args: Args) -> Interval:
    """n months are between 28·n and 31·n days."""
    unit, n = unit_of(args[2]), args[1].constant
    assert isinstance(n, int)
    if unit in FIXED:
        return iv.add(_micros(args[0]), iv.point(n * FIXED[unit]))
    months = n * CALENDAR[unit]
    low, high = sorted((28 * months * DAY_US, 31 * months * DAY_US))
    return iv.add(_micros(args[0]), iv.interval(low, high))


def _py_moved(x: Scalar, n: Scalar, unit: Scalar) -> Scalar:
    assert isinstance(x, dt.date) and isinstance(n, int) and isinstance(unit, str)
    at, step = x if isinstance(x, dt.datetime) else midnight(x), UNITS[unit.lower()]
    if step in FIXED:
        return at + dt.timedelta(microseconds=n * FIXED[step])
    month = at.year * 12 + at.month - 1 + n * CALENDAR[step]
    year, month = month // 12, month % 12 + 1
    return at.replace(year=year, month=month, day=min(at.day, _last(dt.date(year, month, 1)).day))


# last_day, make_date, strftime


def _last(day: dt.date) -> dt.date:
    if day.month == 12:
        return dt.date(day.year, 12, 31)
    return dt.date(day.year, day.month + 1, 1) - dt.timedelta(days=1)


def _last_interval(args: Args) -> Interval:
    i = near(args[0])
    if args[0].type.kind is Kind.TIMESTAMP:
        lo, hi = (None if end is None else end // DAY_US for end in (i.lo, i.hi))
        i = Interval(lo, hi, i.why)
    return Interval(i.lo, None if i.hi is None else i.hi + 30, i.why)


def _make_interval(args: Args) -> Interval:
    year = args[0].interval
    if not year.bounded:
        return Interval(None, None, year.why)
    assert year.lo is not None and year.hi is not None
    lo, hi = (min(max(math.floor(end), 1), 9999) for end in (year.lo, year.hi))
    return iv.interval((dt.date(lo, 1, 1) - EPOCH).days, (dt.date(hi, 12, 31) - EPOCH).days)


def _py_make(year: int, month: int, day: int) -> Scalar:
    try:
        return dt.date(year, month, day)
    except (ValueError, OverflowError):
        return None


_DIRECTIVES = "YmdHMSjbBaApIyf%"


def _letters(text: str) -> list[str]:
    """What follows each percent sign that is not itself escaped; '' at the end of the text."""
    found, at = [], 0
    while (at := text.find("%", at)) >= 0:
        found.append(text[at + 1 : at + 2])
        at += 2
    return found


def _format(a: Value) -> str:
    text = constant_text(a, "the format")
    if any(letter not in tuple(_DIRECTIVES) for letter in _letters(text)):
        raise SignatureError(f"knows only the directives {' '.join('%' + d for d in _DIRECTIVES)}")
    if not 1 <= len(text) <= 100 or "\0" in text:
        raise SignatureError("expects a format of 1 to 100 characters")
    return text


def _strftime_type(args: Args) -> SqlType:
    count(args, 2)
    temporal(args[0])
    _format(args[1])
    return VARCHAR


def _strftime_domain(args: Args) -> Domain | None:
    """Formats made of year and month only have one value per month: map the months, not the days."""
    a = args[0]
    span = span_of(a.domain.values) if a.domain is not None else None
    if span is None or span.first.year < 1000 or not set(_letters(_format(args[1]))) <= set("YmbB%y"):
        return None
    months = span.truncated("month")
    if len(months) > 10_000:
        return None
    names = dict.fromkeys(_py_strftime(day, _format(args[1])) for day in months)
    return Domain(tuple(names), null=if_null(a))


def _py_strftime(x: dt.date, text: str) -> Scalar:
    if x.year < 1000:
        raise ValueError("Python does not pad years below 1000 everywhere")
    return x.strftime(text)


FUNCTIONS = (
    Function(
        ("date_trunc", "datetrunc"),
        "date_trunc(unit: literal, x: date | timestamp) → the same type",
        "The start of the day, week, month, quarter, year … that holds x.",
        type=_trunc_type,
        interval=_trunc_interval,
        nullable=_nullable,
        domain=_trunc_domain,
        python=strict(_py_trunc),
        literal=frozenset({0}),
    ),
    Function(
        ("date_diff", "datediff"),
        "date_diff(unit: literal, x: date | timestamp, y: date | timestamp) → integer",
        "How many starts of a unit lie between x and y; for weeks, how many times seven days.",
        type=_diff_type,
        interval=_diff_interval,
        nullable=_nullable,
        python=strict(_py_diff),
        literal=frozenset({0}),
    ),
    Function(
        ("date_sub", "datesub"),
        "date_sub(unit: literal, x: date | timestamp, y: date | timestamp) → integer",
        "How many whole units have passed from x to y.",
        type=_diff_type,
        interval=_sub_interval,
        nullable=_nullable,
        literal=frozenset({0}),
    ),
    Function(
        ("date_shift",),
        "x + INTERVAL n unit: date | timestamp, literal, literal → timestamp",
        "x moved by n units; the last day of a shorter month replaces days it does not have.",
        type=_moved_type,
        interval=_moved_interval,
        nullable=_nullable,
        python=strict(_py_moved),
        literal=frozenset({1, 2}),
        operator=True,
    ),
    replace(
        shift.ADD,
        names=("date_add",),
        signature="date_add(x: date | timestamp, y: integer | INTERVAL literal) → date | timestamp",
        summary="x moved by a number of days or by an interval.",
        operator=False,
    ),
    Function(
        ("last_day",),
        "last_day(x: date | timestamp) → date",
        "The last day of the month.",
        type=returns(DATE, temporal),
        interval=_last_interval,
        nullable=_nullable,
        python=strict(_last),
    ),
    Function(
        ("make_date",),
        "make_date(year: integer, month: integer, day: integer) → date",
        "The date with these parts; NULL if there is none in the years 1 to 9999.",
        type=returns(DATE, integer, integer, integer),
        interval=_make_interval,
        nullable=lambda args: True,
        python=strict(_py_make),
    ),
    Function(
        ("strftime",),
        "strftime(x: date | timestamp, format: literal) → text",
        "x as text, by a format of %Y %m %d %H %M %S %j %b %B %a %A %p %I %y %f.",
        type=_strftime_type,
        nullable=_nullable,
        domain=_strftime_domain,
        python=strict(_py_strftime),
        literal=frozenset({1}),
    ),
)
