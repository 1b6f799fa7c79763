"""How Spark spells the functions of dates and timestamps.

A timestamp is a TIMESTAMP_NTZ: what Spark computes as one of the session's zone, which is UTC, is cast back. What has
no function of its own is computed in whole days or microseconds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from dpsql.core.ir.types import BIGINT, DATE, DOUBLE, INTEGER, INTERVAL, TIMESTAMP, VARCHAR, Kind
from dpsql.core.printing.conversions import as_time, known_to, safe
from dpsql.core.printing.dialect import CannotSpell, Dialect, Spelling
from dpsql.core.printing.dialects.spark_casts import bound, once, tried
from dpsql.core.values.calendar_years import DAY_US
from dpsql.core.values.value import Args, Value
from dpsql.functions.dates.date_arithmetic import MOST_DAYS, step_is_safe, which_is_dated
from dpsql.functions.dates.date_parts import BY_NAME, DatePart, is_epoch, named_part
from dpsql.functions.dates.dates import CALENDAR, FIXED, unit_of
from dpsql.functions.dates.time_buckets import starts_in_calendar, width
from dpsql.functions.dates.zones import zone_of
from dpsql.spelling.alike import between_zones


def _day(d: Dialect, sql: str, a: Value) -> str:
    """A date or timestamp of the years 1 to 9999, as a date."""
    sql = safe(d, sql, a)
    return sql if a.type == DATE else d.cast(sql, DATE)


def _at(d: Dialect, micros: str) -> str:
    """The timestamp so many microseconds after 1970."""
    return d.cast(f"timestamp_micros({micros})", TIMESTAMP)


# --- parts ------------------------------------------------------------------------------------------------------------

_FIELDS = {
    "dayofweek": "(dayofweek({0}) - 1)", "isodow": "(weekday({0}) + 1)", "week": "weekofyear({0})",
    "isoyear": "extract(YEAROFWEEK FROM {0})", "decade": "(year({0}) div 10)",
    "century": "CASE WHEN year({0}) > 0 THEN (year({0}) - 1) div 100 + 1 ELSE year({0}) div 100 - 1 END",
    "millisecond": "floor(extract(SECOND FROM {0}) * 1000)", "microsecond": "(extract(SECOND FROM {0}) * 1000000)",
}  # fmt: skip
"""Part → how it is computed of a date or timestamp, where it is no function of its name."""


def _part_of(d: Dialect, sql: str, a: Value, part: DatePart) -> str:
    if a.type.kind is Kind.TIME:
        raise CannotSpell("it has no times of day")
    if part.timed and a.type.kind is Kind.DATE:
        sql = as_time(d, sql, a)
    elif part.name in ("week", "isoyear"):
        sql = safe(d, sql, a)
    return d.cast(once(sql, _FIELDS.get(part.name, f"{part.name}({{0}})").format), BIGINT)


def _date_part(name: str) -> Spelling:
    part = BY_NAME[name]
    return lambda d, sql, args, result: _part_of(d, sql[0], args[0], part)


def _named_part(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if is_epoch(args):
        return _epoch(d, sql[1:], args[1:], result)
    return _part_of(d, sql[1], args[1], named_part(args))


def _epoch(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """The microseconds as a DOUBLE, then divided: as DuckDB rounds them."""
    micros = d.cast(f"unix_micros({as_time(d, sql[0], args[0])})", DOUBLE)
    return f"({micros} / {d.constant(1e6, DOUBLE)})"


def _named(pattern: str) -> Spelling:
    """English, whatever the locale of the machine."""
    return lambda d, sql, args, result: f"date_format({as_time(d, sql[0], args[0])}, '{pattern}')"


_PATTERNS = {
    "Y": "yyyy", "m": "MM", "d": "dd", "H": "HH", "M": "mm", "S": "ss", "j": "DDD", "b": "MMM", "B": "MMMM", "a": "E",
    "A": "EEEE", "p": "a", "I": "hh", "y": "yy", "f": "SSSSSS",
}  # fmt: skip


def _strftime(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    written = args[1].constant
    assert isinstance(written, str)

    def body(x: str) -> str:
        parts, plain, at = [], "", 0
        while at < len(written):
            letter = written[at + 1] if written[at] == "%" else ""
            if letter and letter != "%":
                parts += [d.constant(plain, VARCHAR)] * bool(plain)
                parts.append(f"date_format({x}, '{_PATTERNS[letter]}')")
                plain = ""
            else:
                plain += written[at]
            at += 2 if letter else 1
        parts += [d.constant(plain, VARCHAR)] * bool(plain)
        return f"CASE WHEN {x} IS NOT NULL THEN {' || '.join(parts)} END"

    return once(as_time(d, sql[0], args[0]), body)


def _in_zone(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """A moment is shown in the session's zone, UTC. A zone that its Java does not know is an error in each row that is
    reached, and no expression asks for it.
    """
    if zone_of(args[0]) != "UTC":
        raise CannotSpell("which zones it knows cannot be asked; UTC it does")
    return between_zones(d, sql[1], args[1], lambda x: d.cast(x, result.type))


# --- starts, differences ----------------------------------------------------------------------------------------------


def _truncated(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    unit = unit_of(args[0])
    if unit == "decade":
        day = _day(d, sql[1], args[1])
        return d.cast(once(day, "make_date(year({0}) div 10 * 10, 1, 1)".format), result.type)
    return d.cast(f"date_trunc('{unit}', {as_time(d, sql[1], args[1])})", result.type)


def _crossed(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """date_diff: the difference of the starts of both units, which is a whole number of units."""
    unit = unit_of(args[0])
    if unit in ("day", "week"):
        a, b = (_day(d, s, x) for s, x in zip(sql[1:], args[1:], strict=True))
        return d.cast(f"datediff({b}, {a}) div {FIXED[unit] // DAY_US}", BIGINT)
    a, b = (as_time(d, s, x) for s, x in zip(sql[1:], args[1:], strict=True))
    if unit in CALENDAR:
        first, last = (once(x, "(year({0}) * 12 + month({0}) - 1)".format) for x in (a, b))
        return d.cast(f"{last} div {CALENDAR[unit]} - {first} div {CALENDAR[unit]}", BIGINT)
    if unit != "microsecond":
        a, b = (f"date_trunc('{unit}', {x})" for x in (a, b))
    return f"((unix_micros({b}) - unix_micros({a})) div {FIXED[unit]})"


def _passed(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """date_sub of units of a fixed length."""
    unit = unit_of(args[0])
    if unit in CALENDAR:
        raise CannotSpell(f"engines count the {unit}s that have passed differently; use date_diff")
    a, b = (as_time(d, s, x) for s, x in zip(sql[1:], args[1:], strict=True))
    return f"((unix_micros({b}) - unix_micros({a})) div {FIXED[unit]})"


# --- moved dates ------------------------------------------------------------------------------------------------------


def _moved(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    unit, n = unit_of(args[2]), args[1].constant
    assert isinstance(n, int)
    if unit in CALENDAR:
        step = f"INTERVAL '{n * CALENDAR[unit]}' MONTH"
    else:
        step = d.constant(dt.timedelta(microseconds=n * FIXED[unit]), INTERVAL)
    return f"({as_time(d, sql[0], args[0])} + {step})"


def _bucket(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    months, micros = width(args)
    first = d.constant(dt.datetime.min, TIMESTAMP)
    monday = (dt.datetime(2000, 1, 3) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)

    def body(x: str) -> str:
        if months:
            back = f"pmod(year({x}) * 12 + month({x}) - 1 - 24000, {months})"
            start = d.cast(f"add_months(trunc({x}, 'MONTH'), - {back})", TIMESTAMP)
        else:
            since = f"unix_micros({x})"
            start = _at(d, f"{since} - pmod({since} - {monday}, {micros})")
        if not starts_in_calendar(args):
            start = once(start, lambda s: f"CASE WHEN {s} >= {first} THEN {s} END")
        return d.cast(start, result.type)

    return once(as_time(d, sql[0], args[0]), body)


def shifted(operator: str) -> Spelling:
    """Days or an interval added to, or subtracted from, a date; the days between two."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        if result.type == BIGINT:
            a, b = (safe(d, s, x) for s, x in zip(sql, args, strict=True))
            return d.cast(f"datediff({a}, {b})", BIGINT)
        at, by = which_is_dated(args)
        step = args[by].constant
        if isinstance(step, dt.timedelta):
            return f"({as_time(d, sql[at], args[at])} {operator} {d.constant(step, args[by].type)})"
        days = sql[by]
        if not step_is_safe(known_to(d, args[by])):
            days = once(days, lambda x: f"CASE WHEN {x} BETWEEN {-MOST_DAYS} AND {MOST_DAYS} THEN {x} END")
        called = "date_add" if operator == "+" else "date_sub"
        return f"{called}({safe(d, sql[at], args[at])}, {d.cast(days, INTEGER)})"

    return spell


def _last_day(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"last_day({_day(d, sql[0], args[0])})"


def _made(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    limits = ((1, 9999), (1, 12), (1, 31))

    def body(x: list[str]) -> str:
        parts = (f"CASE WHEN {s} BETWEEN {lo} AND {hi} THEN {s} END" for s, (lo, hi) in zip(x, limits, strict=True))
        year, month, day = (
            f"lpad({d.cast(part, VARCHAR)}, {n}, '0')" for part, n in zip(parts, (4, 2, 2), strict=True)
        )
        return tried(f"{year} || '-' || {month} || '-' || {day}", DATE)

    return bound(list(sql), body)


DATES: Mapping[str, Spelling] = {
    **{name: _date_part(name) for name in (
        "year", "month", "day", "quarter", "week", "isoyear", "dayofweek", "isodow", "dayofyear", "decade", "century",
        "hour", "minute", "second", "millisecond", "microsecond",
    )},
    "date_part": _named_part,
    "epoch": _epoch,
    "monthname": _named("MMMM"),
    "dayname": _named("EEEE"),
    "strftime": _strftime,
    "date_trunc": _truncated,
    "date_diff": _crossed,
    "date_sub": _passed,
    "date_shift": _moved,
    "time_bucket": _bucket,
    "timezone": _in_zone,
    "date_add": shifted("+"),
    "last_day": _last_day,
    "make_date": _made,
}  # fmt: skip
"""By the first name of the function."""
