"""Constants: SQL's spelling, parameters from Python, and text that a comparison makes a date or a number."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from sqlglot import exp

from dpsql.core.ir.expressions import Literal, LiteralValue
from dpsql.core.ir.types import (
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
    integer_type_of,
)
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import with_article
from dpsql.frontend.bind.expressions.unknown_values import UnknownValue
from dpsql.functions.signature import WITHOUT_A_ZONE

_DAYS = {"day": 1, "week": 7}
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}
MOST_DIGITS = 400
"""Longest number: a DOUBLE has at most 309 digits before the point, and Python takes its time over long ones."""
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def number(text: str, span: Span) -> Literal:
    """An unsigned SQL number: integer, decimal, or (with an exponent) double."""
    if len(text) > MOST_DIGITS:
        raise reject("DP106", f"a number of more than {MOST_DIGITS} characters", span=span)
    if re.fullmatch(r"[0-9_]+", text):
        return integer(int(text.replace("_", "")), span)
    if re.fullmatch(r"[0-9_]*\.[0-9_]*", text) and text != ".":
        return exact(Decimal(text.replace("_", "")), span)
    try:
        value = float(text)
    except ValueError:
        raise reject("DP010", f"{text} is not a number", span=span, help=["write it as in  1.5  or  2e3"]) from None
    return double(value, span)


def integer(value: int, span: Span | None = None) -> Literal:
    """An integer in the narrowest of INTEGER, BIGINT, HUGEINT; beyond that, DOUBLE as in the engine."""
    held = integer_type_of(value)
    if held is not None:
        return Literal(value, held, span)
    # 2**1024 is above the largest DOUBLE: float() would raise.
    return double(float(value) if value.bit_length() < 1024 else math.inf, span)


def exact(value: Decimal, span: Span | None = None) -> Literal:
    """A DECIMAL literal; DOUBLE beyond 38 digits."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    return Literal(value, decimal(precision, scale), span) if precision <= 38 else double(float(value), span)


def double(value: float, span: Span | None = None) -> Literal:
    """A DOUBLE literal; must be finite. -0.0 is 0.0: as values of a plan the two are equal, so they mean one number."""
    if not math.isfinite(value):
        raise reject("DP106", "the number is too large", span=span, help=["numbers go up to about 1.8e308"])
    return Literal(value + 0.0, DOUBLE, span)


def text(value: str, span: Span, code: str = "DP106") -> Literal:
    """A text. Raises Rejected (`code`) if it holds half of a surrogate pair, which no engine takes."""
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise reject(code, "a text cannot contain half of a surrogate pair", span=span, help=["remove it"])
    return Literal(value, VARCHAR, span)


def from_python(value: Any, span: Span) -> Literal:
    """A bound parameter. Raises Rejected DP013 for types that have no SQL constant here."""
    try:
        value = _itself(value)
    except TypeError:  # a proxy, which only says that it is a text, say
        raise _no_constant(value, span) from None
    match value:
        case None:
            return Literal(None, NULL, span)
        case bool():
            return Literal(value, BOOLEAN, span)
        case int():
            return integer(value, span)
        case float():
            if not math.isfinite(value):
                raise _not_finite(span)
            return double(value, span)
        case Decimal():
            if not value.is_finite():
                raise _not_finite(span)
            return exact(value, span)
        case str():
            if "\0" in value:
                raise reject("DP013", "a text cannot contain a NUL character", span=span, help=["remove it"])
            return text(value, span, "DP013")
        case bytes():
            return Literal(value, BLOB, span)
        case dt.datetime():
            if value.tzinfo is not None:
                try:
                    value = value.astimezone(dt.UTC).replace(tzinfo=None)
                except OverflowError:
                    raise reject(
                        "DP013", "in UTC, this time is before the year 1 or after 9999", span=span,
                        help=["pass it without a time zone"],
                    ) from None  # fmt: skip
            return Literal(value, TIMESTAMP, span)
        case dt.date():
            return Literal(value, DATE, span)
        case dt.timedelta():
            return Literal(value, INTERVAL, span)
    item = getattr(value, "item", None)  # numpy scalars
    if callable(item):
        plain = item()
        if type(plain) is not type(value):
            return from_python(plain, span)
    raise _no_constant(value, span)


def _no_constant(value: Any, span: Span) -> Rejected:
    return reject(
        "DP013", f"a parameter cannot be {with_article(type(value).__name__)}", span=span,
        help=["pass a number, text, boolean, date, datetime, timedelta or None; a list's values one by one"],
    )  # fmt: skip


def _itself(value: Any) -> Any:
    """What an object of a subclass of Python's own types holds, by their own methods.

    An `int` whose class prints itself as other text (an enumeration may) must not be printed into the engine's SQL.
    """
    match value:
        case bool():
            return value
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case Decimal():
            return Decimal(value)
        case str():
            return str.__str__(value)
        case bytes():
            return bytes.__bytes__(value)
        case dt.datetime() if value != value:  # pandas' NaT; its fields say the year 1
            return None
        case dt.datetime():
            fields = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
            return dt.datetime(*_held(dt.datetime, value, *fields))
        case dt.date():
            return dt.date(*_held(dt.date, value, "year", "month", "day"))
        case dt.timedelta():
            return dt.timedelta(*_held(dt.timedelta, value, "days", "seconds", "microseconds"))
        case _:
            return value


def _held(own: type, value: Any, *fields: str) -> list[Any]:
    """Attributes as the class itself reads them, whatever its subclasses say."""
    return [getattr(own, field).__get__(value) for field in fields]


def _not_finite(span: Span) -> Rejected:
    return reject(
        "DP013", "a parameter must be a finite number", span=span, help=["leave the condition out, or pass a number"]
    )


def from_text(text: str, target: SqlType, span: Span | None) -> Literal | None:
    """The literal that a string stands for where `target` is expected, or None if it is not one."""
    if isinstance(text, UnknownValue):
        return text.read_as(target, span)
    stripped = text.strip()
    try:
        match target.kind:
            case Kind.DATE:
                return Literal(_instant(without_zone(stripped)).date(), DATE, span)
            case Kind.TIMESTAMP:
                return Literal(_instant(without_zone(stripped)), TIMESTAMP, span)
            case Kind.TIMESTAMPTZ:
                return Literal(_in_utc(stripped), TIMESTAMPTZ, span)
            case Kind.INTEGER | Kind.DECIMAL:
                held = Decimal(stripped)
                if not held.is_finite() or abs(held.adjusted()) > MOST_DIGITS:
                    return None  # '1e999999999' has as many digits as it says
                return integer(int(held), span) if held == held.to_integral_value() else exact(held, span)
            case Kind.DOUBLE:
                plain = float(stripped)
                return double(plain, span) if math.isfinite(plain) else None
            case Kind.BOOLEAN:
                known = {"true": True, "t": True, "false": False, "f": False}.get(stripped.lower())
                return None if known is None else Literal(known, BOOLEAN, span)
            case Kind.VARCHAR:
                return Literal(text, VARCHAR, span)
    except (ValueError, InvalidOperation, OverflowError):
        return None
    return None


_INSTANT = re.compile(
    r"(\d{1,4})([-/ \\])(\d{1,2})\2(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?", re.ASCII
)
"""1995-4-10, 1995/04/10 8:05, 1995-04-10T08:05:00.5: what DuckDB reads. Digits below a microsecond drop."""


def _instant(text: str) -> dt.datetime:
    """The time that a text means; of a day its midnight. Raises ValueError if it is none, or has a time zone."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError
    year, _, month, day, hour, minute, second, fraction = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6])
    return dt.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros)


AS_MOMENT: Final = (
    "write it with its offset from UTC, as in  TIMESTAMPTZ '2024-12-31 23:59:59+01'", f"or, {WITHOUT_A_ZONE}"
)  # fmt: skip
"""Repairs for a text that says no moment."""
_OFFSET = re.compile(r"(.*\d)(?:Z|([+-])(\d{1,2})(?::?(\d{2}))?)", re.ASCII | re.IGNORECASE)
"""2024-01-31 12:00:00+01, …+01:30, …Z: a time that says how far its clock is from UTC."""


def without_zone(text: str) -> str:
    """A time that says its offset, without it: PostgreSQL and DuckDB leave it out where a TIMESTAMP is wanted."""
    found = _OFFSET.fullmatch(text)
    return found[1] if found is not None and ":" in found[1] else text


def is_shifted(text: str) -> bool:
    """Whether a text is a time with an offset other than UTC's."""
    found = _OFFSET.fullmatch(text.strip())
    return found is not None and ":" in found[1] and bool(int(found[3] or 0) or int(found[4] or 0))


def _in_utc(text: str) -> dt.datetime:
    """The moment that a text means; without an offset, by the clock of UTC. Raises ValueError, OverflowError."""
    found = _OFFSET.fullmatch(text)
    if found is None or ":" not in found[1]:
        return _instant(text).replace(tzinfo=dt.UTC)
    time, sign, hours, minutes = found.groups()
    offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return (_instant(time) - (-offset if sign == "-" else offset)).replace(tzinfo=dt.UTC)


def months(node: exp.Interval) -> int | None:
    """The number of calendar months in INTERVAL n MONTH | QUARTER | YEAR; None for any other interval."""
    parts = _amount(node)
    return None if parts is None or parts[1] not in _MONTHS else parts[0] * _MONTHS[parts[1]]


_SAME = {(7, "day"): "week", (3, "month"): "quarter", (12, "month"): "year", (4, "quarter"): "year"}


def one_unit(node: exp.Interval) -> str | None:
    """The unit whose length an interval is: INTERVAL 7 DAY is a week; None if it is none."""
    parts = _amount(node)
    if parts is None:
        return None
    known = {*_DAYS, *_SECONDS, *_MONTHS} - {"decade"}
    return parts[1] if parts[0] == 1 and parts[1] in known else _SAME.get(parts)


def length(node: exp.Interval) -> tuple[int, str] | None:
    """(number, second | minute | … | year) of an interval; None if it is none of these, or not longer than nothing."""
    parts = _amount(node)
    return parts if parts is not None and parts[0] > 0 and parts[1] in {*_DAYS, *_SECONDS, *_MONTHS} else None


def interval(node: exp.Interval, span: Span) -> Literal:
    """INTERVAL 3 DAY, INTERVAL '2 hours': a fixed length. Raises Rejected DP115, DP106."""
    parts = _amount(node)
    if parts is None:
        raise reject("DP115", "an INTERVAL must be a whole literal number of units", span=span, help=["INTERVAL 3 DAY"])
    count, name = parts
    if name in _DAYS:
        return Literal(dt.timedelta(days=count * _DAYS[name]), INTERVAL, span)
    if name in _SECONDS:
        return Literal(dt.timedelta(seconds=count * _SECONDS[name]), INTERVAL, span)
    raise reject(
        "DP106", f"INTERVAL … {name.upper() or '?'} cannot stand here", span=span,
        help=["add or subtract it from a date or timestamp:  day + INTERVAL 1 MONTH"],
    )  # fmt: skip


def _amount(node: exp.Interval) -> tuple[int, str] | None:
    """(number, unit in singular) of an interval literal; None if it is not one whole number of one unit."""
    amount, unit = node.this, node.args.get("unit")
    text = str(amount.this) if isinstance(amount, exp.Literal) else None
    name = unit.name.lower() if isinstance(unit, exp.Var) else ""
    if isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        text = f"-{amount.this.this}"
    if text is not None and not name:
        parts = text.split()
        text, name = (parts[0], parts[1].lower()) if len(parts) == 2 else (None, "")
    if text is None or not re.fullmatch(r"-?[0-9]{1,9}", text):
        return None
    return int(text), name.removesuffix("s")


def negated(literal: Literal, span: Span | None) -> Literal | None:
    """-literal, folded; None if it is no number."""
    value: LiteralValue = literal.value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return integer(-value, span)
    if isinstance(value, Decimal):
        # A minus would round to 28 digits.
        return Literal(value.copy_negate() if value else value, literal.type, span)
    if isinstance(value, float):
        return double(-value, span)
    return None
