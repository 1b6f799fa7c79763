"""The result of one SELECT, converted exactly.

The rows are streamed: neither the client nor the server holds a large result twice, and reading can stop between two
chunks. A cursor that is DECLAREd on the server would do the same, but no plan of such a cursor runs in parallel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from psycopg import Connection, capabilities

from dpsql.core.engine import RawTable
from dpsql.core.stopping import CHUNK, Stop, until_stopped

_SELECT: Final = re.compile(r"\s*(SELECT|WITH|\()", re.IGNORECASE)
_NUMERIC: Final = 1700
_LARGE: Final = CHUNK if capabilities.has_stream_chunked() else 1


def read(connection: Connection[Any], sql: str, stop: Stop) -> RawTable:
    """Run exactly one SELECT and convert its result exactly; any exception may come out of it.

    Binary results have the server take one statement and no more. stop: set by another thread to have no more of the
    result converted; see core/stopping.py.
    """
    if not _SELECT.match(sql):
        raise ValueError("not a SELECT")
    cursor = connection.cursor(binary=True)
    rows = cursor.stream(sql, binary=True, size=_LARGE)
    try:
        columns = _columns(until_stopped(stop, rows))
    finally:
        rows.close()  # type: ignore[attr-defined]  # it is a generator, which cancels what it has not read
    if columns is None:  # psycopg tells no names of no rows; of these, no row is computed
        cursor = connection.execute(f"SELECT * FROM (\n{_one(sql)}\n) AS q LIMIT 0", binary=True)
        assert cursor.description is not None
        return RawTable(tuple(c.name for c in cursor.description), tuple([] for _ in cursor.description))
    assert cursor.description is not None
    names = tuple(c.name for c in cursor.description)
    found = [
        _whole(column) if c.type_code == _NUMERIC and c.precision is None else column
        for c, column in zip(cursor.description, columns, strict=True)
    ]
    return RawTable(names, tuple(found))


def _columns(rows: Iterator[Sequence[Any]]) -> tuple[list[Any], ...] | None:
    """The rows column by column; None if there are none."""
    first = next(rows, None)
    if first is None:
        return None
    columns: tuple[list[Any], ...] = tuple([value] for value in first)
    part: list[Sequence[Any]] = []
    for row in rows:
        part.append(row)
        if len(part) == CHUNK:
            _append(columns, part)
            part = []
    _append(columns, part)
    return columns


def _append(columns: tuple[list[Any], ...], rows: list[Sequence[Any]]) -> None:
    if rows:
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(values)


def _whole(column: list[Any]) -> list[Any]:
    """Numbers of no declared precision: without decimal places they are integers."""
    return [_integer(value) if isinstance(value, Decimal) else value for value in column]


def _integer(value: Decimal) -> int | Decimal:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError("not a finite number")
    return int(value) if exponent == 0 else value


def _one(sql: str) -> str:
    return sql.rstrip().removesuffix(";")
