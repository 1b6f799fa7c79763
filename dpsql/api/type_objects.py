"""PEP 249's type objects and constructors.

A column's type code is the name of its SQL type, e.g. `BIGINT` or `DECIMAL(38,2)`; it equals the type object of its
kind.

>>> con = dpsql.connect("clinic.yaml", epsilon=1)
>>> cur = con.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
>>> [column[:2] for column in cur.description]
[('region', 'VARCHAR'), ('n', 'BIGINT')]
>>> cur.description[0][1] == dpsql.STRING, cur.description[1][1] == dpsql.NUMBER
(True, True)
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Final

from dpsql.core.ir.types import Kind, parse_type


class DBAPIType:
    """Equal to the type codes of its kinds."""

    __slots__ = ("_kinds", "_name")

    def __init__(self, name: str, *kinds: Kind) -> None:
        self._name = name
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return self is other
        found = parse_type(other)
        return found is not None and found.kind in self._kinds

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"dpsql.{self._name}"


STRING: Final = DBAPIType("STRING", Kind.VARCHAR, Kind.UUID)
BINARY: Final = DBAPIType("BINARY", Kind.BLOB)
NUMBER: Final = DBAPIType("NUMBER", Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.BOOLEAN)
DATETIME: Final = DBAPIType("DATETIME", Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.INTERVAL)
ROWID: Final = DBAPIType("ROWID")

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    """The local date of a number of seconds since 1970."""
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    """The local time of day of a number of seconds since 1970."""
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """The local date and time of a number of seconds since 1970."""
    return dt.datetime(*time.localtime(ticks)[:6])
