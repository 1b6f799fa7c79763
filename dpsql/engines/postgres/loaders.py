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

from dpsql.engines.calendar import DAY, clock, far

_EPOCH: Final = dt.date(2000, 1, 1)
_MIDNIGHT: Final = dt.datetime(2000, 1, 1)
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
            return far(days)


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
            days, rest = divmod(micros, DAY)
            return f"{far(days, clock(rest))}{'' if self.zone is None else '+00'}"


class _TimestampTZ(_Timestamp):
    zone = dt.UTC


class _Time(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> dt.time | str:
        (micros,) = struct.unpack("!q", data)
        if micros >= DAY:
            return "24:00:00"
        return (_MIDNIGHT + dt.timedelta(microseconds=micros)).time()
