"""Dates and timestamps with + and -: days, intervals and differences, all NULL outside the years 1 to 9999."""

from __future__ import annotations

import datetime as dt

from dpsql.core.ir.types import BIGINT, DATE, TIMESTAMP, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval, iv_meet
from dpsql.core.values.calendar_years import DAY_US, is_safe, safe_span
from dpsql.core.values.value import Args, Scalar, Value
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import count, strict

MOST_DAYS = 4_000_000


_DATED = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.INTERVAL})


def near(a: Value) -> Interval:
    """The interval of what `safe` lets through. Open ends stay open: the guard is no bound that anybody asked for."""
    return iv_meet(a.interval, safe_span(a.type)) if a.interval.bounded else a.interval


def is_dated(args: Args) -> bool:
    """True if this is date arithmetic."""
    return any(a.type.kind in _DATED for a in args)


def which_is_dated(args: Args) -> tuple[int, int]:
    """Positions of the date and of what is added to it."""
    return (0, 1) if args[0].type.temporal else (1, 0)


def _shift_type(args: Args) -> SqlType:
    count(args, 2)
    day, step = (args[i] for i in which_is_dated(args))
    if day.type.kind is Kind.DATE and step.type.kind is Kind.INTEGER:
        return DATE
    if day.type.temporal and step.type.kind is Kind.INTERVAL:
        if not isinstance(step.constant, dt.timedelta) or abs(step.constant) > dt.timedelta(days=MOST_DAYS):
            raise SignatureError("expects a literal INTERVAL of at most 10,000 years")
        return TIMESTAMP
    if day.type.kind is Kind.TIMESTAMP and step.type.kind is Kind.INTEGER:
        raise SignatureError("cannot add a number to a TIMESTAMP", "name the unit: x + INTERVAL 3 DAY")
    raise SignatureError(f"cannot add {step.type} and {day.type}")


def _sub_type(args: Args) -> SqlType:
    count(args, 2)
    a, b = (x.type for x in args)
    if a.kind is Kind.DATE and b.kind is Kind.DATE:
        return BIGINT
    if a.temporal and b.temporal:
        raise SignatureError("the difference of timestamps has no unit", "name it: date_diff('second', y, x)")
    if not a.temporal:
        raise SignatureError(f"cannot subtract {b} from {a}")
    return _shift_type(args)


def _step(a: Value, t: SqlType) -> Interval:
    """What is added, in the unit of the result type."""
    if isinstance(a.constant, dt.timedelta):
        return iv.point(a.constant // dt.timedelta(microseconds=1))
    days = iv_meet(a.interval, iv.interval(-MOST_DAYS, MOST_DAYS)) if a.interval.bounded else a.interval
    return days if t.kind is Kind.DATE else iv.mul(days, iv.point(DAY_US))


def _base(a: Value, t: SqlType) -> Interval:
    if t.kind is Kind.TIMESTAMP and a.type.kind is Kind.DATE:
        return iv.mul(near(a), iv.point(DAY_US))
    return near(a)


def _add_interval(args: Args) -> Interval:
    at, by = which_is_dated(args)
    t = _shift_type(args)
    return iv.add(_base(args[at], t), _step(args[by], t))


def _sub_interval(args: Args) -> Interval:
    t = _sub_type(args)
    if t == BIGINT:
        return iv.sub(near(args[0]), near(args[1]))
    return iv.sub(_base(args[0], t), _step(args[1], t))


def step_is_safe(a: Value) -> bool:
    """True if no row can move a date by more than `MOST_DAYS`."""
    return a.type.kind is Kind.INTERVAL or a.interval.within(iv.interval(-MOST_DAYS, MOST_DAYS))


def _nullable(args: Args) -> bool:
    return any(a.nullable or not (is_safe(a) if a.type.temporal else step_is_safe(a)) for a in args)


def _py_add(a: Scalar, b: Scalar) -> Scalar:
    day, step = (a, b) if isinstance(a, dt.date) else (b, a)
    return _moved(day, step, 1)


def _moved(day: Scalar, step: Scalar, sign: int) -> Scalar:
    if isinstance(step, dt.timedelta):
        if not isinstance(day, dt.datetime):
            assert isinstance(day, dt.date)
            day = dt.datetime(day.year, day.month, day.day)
        return day + sign * step
    if isinstance(day, dt.datetime) or not isinstance(day, dt.date) or not isinstance(step, int):
        raise TypeError
    return day + dt.timedelta(days=sign * step)


def _py_sub(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, dt.date) and isinstance(b, dt.date):
        return (a - b).days
    return _moved(a, b, -1)


ADD = Function(
    ("add",), "", "",
    type=_shift_type,
    interval=_add_interval,
    nullable=_nullable,
    python=strict(_py_add),
    operator=True,
)  # fmt: skip
SUB = Function(
    ("sub",), "", "",
    type=_sub_type,
    interval=_sub_interval,
    nullable=_nullable,
    python=strict(_py_sub),
    operator=True,
)  # fmt: skip
