"""How values of the server become Python's: exactly, and never with an error that depends on a row.

What Python's calendar cannot hold arrives as DuckDB hands it over: infinite dates and times as the last and the first
ones, others as text.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any, Final

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

_EPOCH: Final = dt.date(2000, 1, 1)
_MIDNIGHT: Final = dt.datetime(2000, 1, 1)
_CYCLE: Final = 146_097
"""Days of 400 years, after which the calendar repeats itself."""
_DAY: Final = 86_400_000_000
_INFINITE_DAY, _INFINITE_TIME = 2**31 - 1, 2**63 - 1


def register(connection: Connection[Any]) -> None:
    """Have a connection's binary results converted here, where psycopg's own way may fail."""
    for name, loader in (
        ("date", _Date), ("timestamp", _Timestamp), ("timestamptz", _TimestampTZ), ("time", _Time),
    ):  # fmt: skip
        connection.adapters.register_loader(name, loader)


class _Date(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> dt.date | str:
        (days,) = struct.unpack("!i", data)
        if days == _INFINITE_DAY:
            return dt.date.max
        if days == -_INFINITE_DAY - 1:
            return dt.date.min
        try:
            return _EPOCH + dt.timedelta(days)
        except OverflowError:
            return _far(days)


class _Timestamp(Loader):
    format = Format.BINARY
    zone: dt.timezone | None = None

    def load(self, data: Buffer) -> dt.datetime | str:
        (micros,) = struct.unpack("!q", data)
        if micros == _INFINITE_TIME:
            return dt.datetime.max.replace(tzinfo=self.zone)
        if micros == -_INFINITE_TIME - 1:
            return dt.datetime.min.replace(tzinfo=self.zone)
        try:
            return (_MIDNIGHT + dt.timedelta(microseconds=micros)).replace(tzinfo=self.zone)
        except OverflowError:
            days, rest = divmod(micros, _DAY)
            return f"{_far(days, _clock(rest))}{'' if self.zone is None else '+00'}"


class _TimestampTZ(_Timestamp):
    zone = dt.UTC


class _Time(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> dt.time | str:
        (micros,) = struct.unpack("!q", data)
        if micros >= _DAY:
            return "24:00:00"
        return (_MIDNIGHT + dt.timedelta(microseconds=micros)).time()


def _clock(micros: int) -> str:
    """A time of the day, as DuckDB writes it."""
    return f" {(_MIDNIGHT + dt.timedelta(microseconds=micros)).time()}"


def _far(days: int, clock: str = "") -> str:
    """A day outside of the years 1 to 9999, as DuckDB writes it. days: since 2000."""
    cycles, rest = divmod(days, _CYCLE)
    day = _EPOCH + dt.timedelta(rest)  # of the years 2000 to 2399
    year = day.year + 400 * cycles
    text = f"{year if year > 0 else 1 - year:04}-{day:%m-%d}"
    return text + clock if year > 0 else f"{text} (BC){clock}"
