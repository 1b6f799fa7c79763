"""Dates, times and intervals: text as with DateStyle ISO, and bytes counted from 2000-01-01."""

from __future__ import annotations

import datetime as dt
import re
import struct

_EPOCH_DAY = dt.date(2000, 1, 1).toordinal()
_EPOCH = dt.datetime(2000, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000
_INTERVAL = struct.Struct("!qii")


def date_text(value: dt.date | str) -> str:
    return value if isinstance(value, str) else value.isoformat()


def date_binary(value: dt.date) -> bytes:
    return struct.pack("!i", value.toordinal() - _EPOCH_DAY)


def date_from_text(text: str) -> dt.date:
    """Of a time with a zone the day that is written, as in PostgreSQL: drivers of Node send a Date so."""
    return dt.datetime.fromisoformat(text.strip()).date()


def date_from_binary(data: bytes) -> dt.date:
    return dt.date.fromordinal(struct.unpack("!i", data)[0] + _EPOCH_DAY)


def _clock(value: dt.time | dt.datetime) -> str:
    text = f"{value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def time_text(value: dt.time | str) -> str:
    return value if isinstance(value, str) else _clock(value)


def time_binary(value: dt.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 1_000_000 + value.microsecond)


def time_from_text(text: str) -> dt.time:
    found = dt.time.fromisoformat(text.strip())
    if found.tzinfo is not None:
        raise ValueError
    return found


def time_from_binary(data: bytes) -> dt.time:
    (count,) = struct.unpack("!q", data)
    if not 0 <= count < _DAY:
        raise ValueError
    return (_EPOCH + dt.timedelta(microseconds=count)).time()


def timestamp_text(value: dt.datetime | str) -> str:
    return value if isinstance(value, str) else f"{value.date().isoformat()} {_clock(value)}"


def timestamptz_text(value: dt.datetime | str) -> str:
    return value if isinstance(value, str) else f"{timestamp_text(_in_utc(value))}+00"


def timestamp_binary(value: dt.datetime) -> bytes:
    return struct.pack("!q", (_in_utc(value) - _EPOCH) // _MICROSECOND)


def _in_utc(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def timestamp_from_text(text: str) -> dt.datetime:
    """A zone that is written counts for nothing, as in PostgreSQL."""
    return dt.datetime.fromisoformat(text.strip()).replace(tzinfo=None)


def timestamptz_from_text(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text.strip())
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def timestamp_from_binary(data: bytes) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=struct.unpack("!q", data)[0])


def timestamptz_from_binary(data: bytes) -> dt.datetime:
    return timestamp_from_binary(data).replace(tzinfo=dt.UTC)


def interval_text(value: dt.timedelta | str) -> str:
    """As with IntervalStyle postgres; days and times have the signs that add up to the value."""
    if isinstance(value, str):
        return value
    days, micros = _parts(value)
    parts = [f"{days} day{'' if days == 1 else 's'}"] if days else []
    if micros or not days:
        seconds, rest = divmod(abs(micros), 1_000_000)
        sign = "-" if micros < 0 else "+" if days < 0 else ""
        text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        parts.append(f"{text}.{rest:06d}".rstrip("0") if rest else text)
    return " ".join(parts)


def _parts(value: dt.timedelta) -> tuple[int, int]:
    """Days and microseconds of the same sign."""
    count = value // _MICROSECOND
    days = abs(count) // _DAY * (-1 if count < 0 else 1)
    return days, count - days * _DAY


def interval_binary(value: dt.timedelta) -> bytes:
    days, micros = _parts(value)
    return _INTERVAL.pack(micros, days, 0)


_UNITS = {"day": _DAY, "hour": 3_600_000_000, "min": 60_000_000, "minute": 60_000_000, "sec": 1_000_000,
          "second": 1_000_000, "week": 7 * _DAY}  # fmt: skip
_PART = re.compile(r"\s*([+-]?\d{1,9})\s*([a-z]+?)s?(?=[\s\d+-]|$)")
_TIME = re.compile(r"\s*([+-]?)(\d{1,9}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")


def interval_from_text(text: str) -> dt.timedelta:
    """Weeks, days, hours, minutes and seconds, and h:mm:ss; a month has no fixed length and is refused."""
    rest, micros, any_part = text.strip().lower(), 0, False
    while rest:
        if found := _TIME.match(rest):
            sign, hours, minutes, seconds, fraction = found.groups()
            count = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)) * 1_000_000
            count += int((fraction or "").ljust(6, "0"))
            micros += -count if sign == "-" else count
        elif (found := _PART.match(rest)) and found[2] in _UNITS:
            micros += int(found[1]) * _UNITS[found[2]]
        else:
            raise ValueError
        rest, any_part = rest[found.end() :].strip(), True
    if not any_part:
        raise ValueError
    return dt.timedelta(microseconds=micros)


def interval_from_binary(data: bytes) -> dt.timedelta:
    micros, days, months = _INTERVAL.unpack(data)
    if months:
        raise ValueError
    return dt.timedelta(days=days, microseconds=micros)
