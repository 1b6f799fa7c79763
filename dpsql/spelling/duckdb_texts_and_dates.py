"""How DuckDB spells the functions of texts and dates."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from dpsql.core.ir.types import BIGINT, DATE, INTEGER, TIMESTAMP, VARCHAR, Kind
from dpsql.core.printing.conversions import safe
from dpsql.core.printing.dialect import Dialect, Spelling
from dpsql.core.printing.dialects.duckdb import tried
from dpsql.core.values.value import Args, Value
from dpsql.functions.dates.date_arithmetic import MOST_DAYS, step_is_safe, which_is_dated
from dpsql.functions.dates.date_parts import BY_NAME, DatePart, is_epoch, named_part
from dpsql.functions.dates.dates import CALENDAR, FIXED, unit_of
from dpsql.functions.dates.time_buckets import starts_in_calendar, width
from dpsql.functions.dates.zones import zone_of
from dpsql.functions.text.concatenation import JOINED
from dpsql.functions.text.regular_expressions import replaced_room
from dpsql.functions.text.strings import FAR, is_near, replace_room
from dpsql.spelling.alike import between_zones, counted


def _called(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({', '.join(sql)})"


# --- texts ------------------------------------------------------------------------------------------------------------


def _part(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        numbers = (_near(d, s, a) for s, a in zip(sql[1:], args[1:], strict=True))
        return f"{name}({', '.join([sql[0], *numbers])})"

    return spell


def _near(d: Dialect, sql: str, a: Value) -> str:
    """An integer argument as BIGINT, NULL where it is too far from zero for a position in a text."""
    if not is_near(a):
        sql = f"CASE WHEN {sql} BETWEEN {-FAR} AND {FAR} THEN {sql} END"
    return tried(sql, BIGINT)


def _padded(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        return f"{name}({sql[0]}, {d.cast(repr(args[1].constant), INTEGER)}, {sql[2]})"

    return spell


def _replace(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    printed, room = f"replace({', '.join(sql)})", replace_room(args)
    return printed if room is None else f"CASE WHEN strlen({sql[0]}) <= {room} THEN {printed} END"


def _extract(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    group = [str(args[2].constant)] if len(args) > 2 else []  # of a number that is cast DuckDB asks what it is
    return f"regexp_extract({', '.join([*sql[:2], *group, *sql[3:]])})"


def _in_json(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"CASE WHEN json_valid({sql[0]}) THEN json_extract_string({', '.join(sql)}) END"


def _replace_pattern(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"CASE WHEN strlen({sql[0]}) <= {replaced_room(args)} THEN regexp_replace({', '.join(sql)}) END"


def _split(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"split_part({sql[0]}, {sql[1]}, {d.cast(repr(args[2].constant), BIGINT)})"


def _cut(name: str) -> Spelling:
    return lambda d, sql, args, result: f"left({name}({', '.join(sql)}), {JOINED})"


def _like(word: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        escape = f" ESCAPE {sql[2]}" if len(args) > 2 else ""
        return f"({sql[0]} {word} {sql[1]}{escape})"

    return spell


# --- dates ------------------------------------------------------------------------------------------------------------

_FAIL_FAR_AWAY = frozenset({"week", "isoyear"})
"""Parts for which DuckDB raises an error near the ends of its calendar."""


def _part_of(d: Dialect, sql: str, a: Value, part: DatePart) -> str:
    if part.name in _FAIL_FAR_AWAY or (part.timed and a.type.kind is Kind.DATE):
        sql = safe(d, sql, a)
    return d.cast(f"{part.name}({sql})", BIGINT)


def _date_part(name: str) -> Spelling:
    part = BY_NAME[name]
    return lambda d, sql, args, result: _part_of(d, sql[0], args[0], part)


def _named_part(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if is_epoch(args):
        return f"epoch({safe(d, sql[1], args[1])})"
    return _part_of(d, sql[1], args[1], named_part(args))


def _within_years(name: str) -> Spelling:
    """A function of a date, then of texts, that DuckDB knows of the years 1 to 9999."""
    return lambda d, sql, args, result: f"{name}({', '.join([safe(d, sql[0], args[0]), *sql[1:]])})"


def _truncated(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return d.cast(f"date_trunc('{unit_of(args[0])}', {safe(d, sql[1], args[1])})", result.type)


def _between(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        ends = (d.cast(safe(d, s, a), TIMESTAMP) for s, a in zip(sql[1:], args[1:], strict=True))
        return f"{name}('{unit_of(args[0])}', {', '.join(ends)})"

    return spell


def _moved(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    unit, n = unit_of(args[2]), args[1].constant
    assert isinstance(n, int)
    if unit in CALENDAR:
        step = f"to_months({d.cast(str(n * CALENDAR[unit]), INTEGER)})"
    else:
        step = f"to_microseconds({d.cast(str(n * FIXED[unit]), BIGINT)})"
    return f"({d.cast(safe(d, sql[0], args[0]), TIMESTAMP)} + {step})"


def _bucket(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    months, micros = width(args)
    step = f"to_months({d.cast(str(months), INTEGER)})" if months else f"to_microseconds({d.cast(str(micros), BIGINT)})"
    start = f"time_bucket({step}, {d.cast(safe(d, sql[0], args[0]), TIMESTAMP)})"
    if not starts_in_calendar(args):
        start = f"CASE WHEN {start} >= {d.constant(dt.datetime.min, TIMESTAMP)} THEN {start} END"
    return d.cast(start, result.type)


def _in_zone(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    zone = d.constant(zone_of(args[0]), VARCHAR)
    return between_zones(d, sql[1], args[1], lambda x: f"timezone({zone}, {x})")


def shifted(operator: str) -> Spelling:
    """Days or an interval added to, or subtracted from, a date; the days between two."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        if result.type == BIGINT:
            a, b = (_bracketed(safe(d, s, x)) for s, x in zip(sql, args, strict=True))
            return d.cast(f"{a} - {b}", BIGINT)
        at, by = which_is_dated(args)
        base = _bracketed(safe(d, sql[at], args[at]))
        if result.type == TIMESTAMP and args[at].type.kind is Kind.DATE:
            base = tried(base, TIMESTAMP)
        return f"({base} {operator} {_step(d, sql[by], args[by])})"

    return spell


def _bracketed(sql: str) -> str:
    return f"({sql})" if sql.startswith("CASE ") else sql


def _step(d: Dialect, sql: str, a: Value) -> str:
    if isinstance(a.constant, dt.timedelta):
        return f"to_microseconds({d.cast(str(a.constant // dt.timedelta(microseconds=1)), BIGINT)})"
    if not step_is_safe(a):
        sql = f"CASE WHEN {sql} BETWEEN {-MOST_DAYS} AND {MOST_DAYS} THEN {sql} END"
    return tried(sql, INTEGER)


def _made(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    limits = ((1, 9999), (1, 12), (1, 31))
    parts = (f"CASE WHEN {s} BETWEEN {lo} AND {hi} THEN {s} END" for s, (lo, hi) in zip(sql, limits, strict=True))
    year, month, day = (f"lpad({d.cast(part, VARCHAR)}, {n}, '0')" for part, n in zip(parts, (4, 2, 2), strict=True))
    return tried(f"{year} || '-' || {month} || '-' || {day}", DATE)


TEXTS_AND_DATES: Mapping[str, Spelling] = {
    "lower": _called("lower"),
    "upper": _called("upper"),
    "reverse": _called("reverse"),
    "strip_accents": _called("strip_accents"),
    "md5": _called("md5"),
    "sha256": _called("sha256"),
    "trim": _called("trim"),
    "ltrim": _called("ltrim"),
    "rtrim": _called("rtrim"),
    "length": counted("length"),
    "strlen": counted("strlen"),
    "bit_length": counted("bit_length"),
    "left": _part("left"),
    "right": _part("right"),
    "substring": _part("substring"),
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "replace": _replace,
    "translate": _called("translate"),
    "split_part": _split,
    "ascii": counted("ascii"),
    "unicode": counted("unicode"),
    "concat": _cut("concat"),
    "concat_ws": _cut("concat_ws"),
    "regexp_matches": _called("regexp_matches"),
    "regexp_full_match": _called("regexp_full_match"),
    "regexp_extract": _extract,
    "regexp_replace": _replace_pattern,
    "json_extract_string": _in_json,
    "starts_with": _called("starts_with"),
    "ends_with": _called("ends_with"),
    "contains": _called("contains"),
    "strpos": counted("strpos"),
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "year": _date_part("year"),
    "month": _date_part("month"),
    "day": _date_part("day"),
    "quarter": _date_part("quarter"),
    "week": _date_part("week"),
    "isoyear": _date_part("isoyear"),
    "dayofweek": _date_part("dayofweek"),
    "isodow": _date_part("isodow"),
    "dayofyear": _date_part("dayofyear"),
    "decade": _date_part("decade"),
    "century": _date_part("century"),
    "hour": _date_part("hour"),
    "minute": _date_part("minute"),
    "second": _date_part("second"),
    "millisecond": _date_part("millisecond"),
    "microsecond": _date_part("microsecond"),
    "date_part": _named_part,
    "epoch": _within_years("epoch"),
    "monthname": _within_years("monthname"),
    "dayname": _within_years("dayname"),
    "date_trunc": _truncated,
    "date_diff": _between("date_diff"),
    "date_sub": _between("date_sub"),
    "date_shift": _moved,
    "time_bucket": _bucket,
    "timezone": _in_zone,
    "date_add": shifted("+"),
    "last_day": _within_years("last_day"),
    "make_date": _made,
    "strftime": _within_years("strftime"),
}
"""By the first name of the function."""
