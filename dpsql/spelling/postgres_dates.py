"""How PostgreSQL spells the functions of dates and timestamps.

Its calendar begins in 4713 BC, so that what is moved further back has no date here: by a constant it is refused, by a
column it is NULL. Numbers of microseconds are computed exactly, in integers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from dpsql.core.ir.types import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, Kind
from dpsql.core.numbers import interval as iv
from dpsql.core.printing.conversions import as_time, safe
from dpsql.core.printing.dialect import CannotSpell, Dialect, Spelling
from dpsql.core.printing.dialects.postgres_casts import bound, once
from dpsql.core.values.calendar_years import DAY_US
from dpsql.core.values.value import Args, Value
from dpsql.functions.dates.date_arithmetic import MOST_DAYS, which_is_dated
from dpsql.functions.dates.date_parts import BY_NAME, DatePart, is_epoch, named_part
from dpsql.functions.dates.dates import CALENDAR, FIXED, unit_of
from dpsql.functions.dates.time_buckets import starts_in_calendar, width
from dpsql.functions.dates.zones import zone_of
from dpsql.spelling.alike import between_zones

BACK = 1_720_000
"""Days by which every date of the years 1 to 9999 can be moved back."""
_FIELDS = {
    "dayofweek": "dow", "dayofyear": "doy", "millisecond": "milliseconds", "microsecond": "microseconds",
}  # fmt: skip
"""Part → its name in EXTRACT, where it has another."""


def _micros(sql: str) -> str:
    """A timestamp in microseconds since 1970, numeric."""
    return f"extract(epoch FROM {sql}) * 1000000"


# --- parts ------------------------------------------------------------------------------------------------------------


def _part_of(d: Dialect, sql: str, a: Value, part: DatePart) -> str:
    if a.type.kind is Kind.TIME:
        return _whole_part(d, sql, part)
    if part.name in ("week", "isoyear") or (part.timed and a.type.kind is Kind.DATE):
        return _whole_part(d, as_time(d, sql, a), part)
    finite = once(sql, lambda x: f"CASE WHEN isfinite({x}) THEN {x} END")  # the others' parts are infinite, or NULL
    if part.name not in ("year", "decade", "century"):
        return _whole_part(d, finite, part)
    year = d.cast(f"extract(year FROM {finite})", BIGINT)
    astronomical = once(year, lambda y: f"CASE WHEN {y} < 0 THEN {y} + 1 ELSE {y} END")  # there is a year 0
    match part.name:
        case "year":
            return astronomical
        case "decade":
            return f"({once(astronomical, lambda y: f'({y}) / 10')})"
        case _:
            return once(
                astronomical, lambda y: f"CASE WHEN {y} > 0 THEN (({y} - 1) / 100) + 1 ELSE ({y} / 100) - 1 END"
            )


def _whole_part(d: Dialect, sql: str, part: DatePart) -> str:
    return d.cast(f"floor(extract({_FIELDS.get(part.name, part.name)} FROM {sql}))", BIGINT)


def _date_part(name: str) -> Spelling:
    part = BY_NAME[name]
    return lambda d, sql, args, result: _part_of(d, sql[0], args[0], part)


def _named_part(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if is_epoch(args):
        return _epoch(d, sql[1:], args[1:], result)
    return _part_of(d, sql[1], args[1], named_part(args))


def _epoch(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """The microseconds as a DOUBLE, then divided: as DuckDB rounds them."""
    micros = d.cast(d.cast(_micros(as_time(d, sql[0], args[0])), BIGINT), DOUBLE)
    return f"({micros} / {d.constant(1e6, DOUBLE)})"


def _named(pattern: str) -> Spelling:
    """English, whatever the locale: for that the pattern would have to ask."""
    return lambda d, sql, args, result: d.cast(f"to_char({as_time(d, sql[0], args[0])}, '{pattern}')", VARCHAR)


_PATTERNS = {
    "Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "j": "DDD", "b": "Mon", "B": "FMMonth",
    "a": "Dy", "A": "FMDay", "p": "AM", "I": "HH12", "y": "YY", "f": "US",
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
                parts.append(f"to_char({x}, '{_PATTERNS[letter]}')")
                plain = ""
            else:
                plain += written[at]
            at += 2 if letter else 1
        parts += [d.constant(plain, VARCHAR)] * bool(plain)
        text = d.cast(" || ".join(parts), VARCHAR)
        return f"CASE WHEN {x} IS NOT NULL THEN {text} END"

    return once(as_time(d, sql[0], args[0]), body)


def _in_zone(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """A zone that the server does not know is an error in each row that is reached: asked first, it is NULL in all."""
    name = zone_of(args[0])
    zone = d.constant(name, VARCHAR)
    known = f"(SELECT count(*) > 0 FROM pg_catalog.pg_timezone_names AS z WHERE z.name = {zone})"
    shown = between_zones(d, sql[1], args[1], lambda x: f"timezone({zone}, {x})")
    return shown if name == "UTC" else f"CASE WHEN {known} THEN {shown} END"  # the session's own is known


# --- starts, differences ----------------------------------------------------------------------------------------------


def _truncated(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return d.cast(f"date_trunc('{unit_of(args[0])}', {as_time(d, sql[1], args[1])})", result.type)


def _crossed(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """date_diff: the difference of the starts of both units, which is a whole number of units."""
    unit = unit_of(args[0])
    a, b = (as_time(d, s, x) for s, x in zip(sql[1:], args[1:], strict=True))
    if unit == "week":
        return d.cast(f"({d.cast(b, DATE)} - {d.cast(a, DATE)}) / 7", BIGINT)
    if unit in CALENDAR:
        first, last = (_month_number(x) for x in (a, b))
        return d.cast(f"div({last}, {CALENDAR[unit]}) - div({first}, {CALENDAR[unit]})", BIGINT)
    if unit != "microsecond":
        a, b = (f"date_trunc('{unit}', {x})" for x in (a, b))
    return d.cast(f"div({_micros(b)} - {_micros(a)}, {FIXED[unit]})", BIGINT)


def _passed(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """date_sub of units of a fixed length."""
    unit = unit_of(args[0])
    if unit in CALENDAR:
        raise CannotSpell(f"engines count the {unit}s that have passed differently; use date_diff")
    a, b = (_micros(as_time(d, s, x)) for s, x in zip(sql[1:], args[1:], strict=True))
    return d.cast(f"div({b} - {a}, {FIXED[unit]})", BIGINT)


def _month_number(sql: str) -> str:
    """Months since the year 0 of a timestamp of the years 1 to 9999, numeric."""
    return once(f"({sql})", lambda x: f"(extract(year FROM {x}) * 12 + extract(month FROM {x}) - 1)")


# --- moved dates ------------------------------------------------------------------------------------------------------


def _moved(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    unit, n = unit_of(args[2]), args[1].constant
    assert isinstance(n, int)
    days = 31 * n * CALENDAR[unit] if unit in CALENDAR else n * FIXED[unit] // DAY_US
    if days < -BACK:
        raise CannotSpell("the calendar begins in 4713 BC")
    if unit in CALENDAR:
        step = f"CAST('{n * CALENDAR[unit]} months' AS interval)"
    else:
        step = f"CAST('{n * FIXED[unit]} microseconds' AS interval)"
    return f"({as_time(d, sql[0], args[0])} + {step})"


def _bucket(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    months, micros = width(args)
    if micros >= 2**53:
        raise CannotSpell("the buckets are too long")
    first = d.constant(dt.datetime.min, TIMESTAMP)

    def body(x: str) -> str:
        if months:
            since = f"(extract(year FROM {x}) * 12 + extract(month FROM {x}) - 1 - 24000)"
            back = d.cast(f"({since} % {months} + {months}) % {months}", INTEGER)
            start = f"date_trunc('month', {x}) - make_interval(months => {back})"
        else:
            since = f"({_micros(x)} - {_micros(d.constant(dt.datetime(2000, 1, 3), TIMESTAMP))})"
            back = d.cast(f"({since} % {micros} + {micros}) % {micros}", DOUBLE)
            start = f"{x} - {back} * CAST('1 microsecond' AS interval)"
        if not starts_in_calendar(args):
            start = once(f"({start})", lambda s: f"CASE WHEN {s} >= {first} THEN {s} END")
        return d.cast(start, result.type)

    return once(as_time(d, sql[0], args[0]), body)


def shifted(operator: str) -> Spelling:
    """Days or an interval added to, or subtracted from, a date; the days between two."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        if result.type == BIGINT:
            a, b = (safe(d, s, x) for s, x in zip(sql, args, strict=True))
            return d.cast(f"({a}) - ({b})", BIGINT)
        at, by = which_is_dated(args)
        step = args[by].constant
        if isinstance(step, dt.timedelta):
            back = step.days if operator == "+" else -step.days
            if back < -BACK:
                raise CannotSpell("the calendar begins in 4713 BC")
            moved = d.constant(step, args[by].type)
            return f"({as_time(d, sql[at], args[at])} {operator} {moved})"
        base = safe(d, sql[at], args[at])
        if args[by].interval.within(iv.interval(-BACK, BACK)):
            return f"(({base}) {operator} {d.cast(sql[by], INTEGER)})"
        least = -BACK if operator == "+" else -MOST_DAYS
        most = MOST_DAYS if operator == "+" else BACK
        inside = f"BETWEEN {least} AND {most}"

        def body(x: list[str]) -> str:
            days = d.cast(f"CASE WHEN {x[1]} {inside} THEN {x[1]} END", INTEGER)
            return f"(({x[0]}) {operator} {days})"

        return bound([base, sql[by]], body)

    return spell


def _last_day(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    start = f"date_trunc('month', {as_time(d, sql[0], args[0])})"
    return d.cast(f"{start} + CAST('1 month' AS interval) - CAST('1 day' AS interval)", DATE)


def _made(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    def body(x: list[str]) -> str:
        y, m, day = x
        leap = f"{y} % 4 = 0 AND ({y} % 100 <> 0 OR {y} % 400 = 0)"
        days = f"CASE WHEN {m} IN (4, 6, 9, 11) THEN 30 WHEN {m} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
        made = f"make_date({', '.join(d.cast(part, INTEGER) for part in x)})"
        inside = f"{y} BETWEEN 1 AND 9999 AND {m} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
        return f"CASE WHEN {inside} THEN CASE WHEN {day} <= {days} THEN {made} END END"

    return bound(list(sql), body)


DATES: Mapping[str, Spelling] = {
    **{name: _date_part(name) for name in (
        "year", "month", "day", "quarter", "week", "isoyear", "dayofweek", "isodow", "dayofyear", "decade", "century",
        "hour", "minute", "second", "millisecond", "microsecond",
    )},
    "date_part": _named_part,
    "epoch": _epoch,
    "monthname": _named("FMMonth"),
    "dayname": _named("FMDay"),
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
