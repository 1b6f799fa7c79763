"""A second database, for what is public already: noisy tables and the public tables that post-processing needs.

It is in memory, locked like the first, and never sees a private row.
"""

from __future__ import annotations

import json
import operator
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from dpsql.core.engine import RawTable, guarded
from dpsql.core.ir.types import INTEGER, NULL, Kind, SqlType, parse_type
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.core.stopping import Stop, until_stopped
from dpsql.engines.duckdb import DIALECT

if TYPE_CHECKING:
    from dpsql.engines.duckdb.locked.connections import Connection

T = TypeVar("T")
_CHUNK = 100_000
_MANY = 1000
"""Rows from which on numpy is worth its while."""
_PLAIN: dict[Kind, tuple[type, str]] = {
    Kind.INTEGER: (int, "int64"),
    Kind.DOUBLE: (float, "float64"),
    Kind.BOOLEAN: (bool, "bool"),
    Kind.VARCHAR: (str, "object"),
}
_ARRAYS = "loaded_arrays"
_TEXTS = '["VARCHAR"]'


class Scratch:
    """Tables by name, and SELECTs over them. The database is made when first needed; one lock, any thread.

    dialect: what its SELECTs are written in. row: the column of each table that numbers its rows, from 0 in the order
    in which they came.
    """

    dialect: ClassVar[Dialect] = DIALECT
    row: ClassVar[str] = "rowid"

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._lock = threading.RLock()
        self._stop = Stop()
        self._closed = False

    @staticmethod
    def table_sql(name: str) -> str:
        """The loaded table's name as SQL must use it."""
        return f'"memory"."main".{quoted(name)}'

    def load(self, name: str, columns: Sequence[tuple[str, SqlType]], rows: Sequence[Sequence[Any]]) -> None:
        """Make (or replace) a table from rows; see `load_columns`."""
        values = list(zip(*rows, strict=True)) if rows else [() for _ in columns]
        self.load_columns(name, columns, values)

    def load_columns(self, name: str, columns: Sequence[tuple[str, SqlType]], values: Sequence[Sequence[Any]]) -> None:
        """Make (or replace) a table of these types from one sequence per column; None is NULL.

        Values: int, Decimal, float, bool, str, date, datetime or their numpy kin, each exactly representable in its
        column's type. Types: every kind but BLOB, INTERVAL and LIST.
        Raises: TypeError, ValueError if a value does not fit its type (the values are public); EngineError (DP901).
        """
        if len(values) != len(columns):
            raise ValueError(f"{len(columns)} columns, {len(values)} sequences of values")
        if len({len(column) for column in values}) > 1:
            raise ValueError("the columns differ in length")
        writers = [_writer(type_) for _, type_ in columns]
        arrays = _arrays([type_ for _, type_ in columns], values)
        texts = [
            [None if value is None else write(value) for value in column]
            for write, column in zip(writers, values if arrays is None else [], strict=arrays is None)
        ]
        target = self.table_sql(name)
        fields = ", ".join(f"{quoted(n)} {_stored(t).name}" for n, t in columns)
        items = ", ".join(
            f"CAST(unnest(from_json(${i}, '{_TEXTS}')) AS {_stored(t).name})" for i, (_, t) in enumerate(columns, 1)
        )

        def run() -> None:
            connection = self._open()
            connection.execute(f"CREATE OR REPLACE TABLE {target} ({fields})")
            if arrays is not None:
                connection.register(_ARRAYS, arrays)
                try:
                    cast = ", ".join(f"CAST({c} AS {t.name})" for c, (_, t) in zip(arrays, columns, strict=True))
                    connection.execute(f"INSERT INTO {target} SELECT {cast} FROM {_ARRAYS}")
                finally:
                    connection.unregister(_ARRAYS)
                return
            for start in until_stopped(self._stop, range(0, len(texts[0]) if texts else 0, _CHUNK)):
                part = [json.dumps(column[start : start + _CHUNK]) for column in texts]
                connection.execute(f"INSERT INTO {target} SELECT {items}", part)

        self._guarded(run)

    def make(self, name: str, select: str) -> None:
        """Make (or replace) a table from a SELECT over loaded tables; its rows keep their order.

        Raises: EngineError (DP901).
        """
        self._guarded(lambda: self._open().execute(f"CREATE OR REPLACE TABLE {self.table_sql(name)} AS {select}"))

    def drop(self, name: str) -> None:
        """Forget a table; unknown names are ignored."""
        self._guarded(lambda: self._open().execute(f"DROP TABLE IF EXISTS {self.table_sql(name)}"))

    def fetch(self, sql: str) -> tuple[RawTable, tuple[SqlType, ...]]:
        """Run one SELECT over loaded tables: its rows in order, and the types of its columns.

        Raises: EngineError (DP901); KeyboardInterrupt.
        """

        def run() -> tuple[RawTable, tuple[SqlType, ...]]:
            from dpsql.engines.duckdb.reading import read_typed

            table, names = read_typed(self._open(), sql, self._stop)
            return table, tuple(map(_known, names))

        return self._guarded(run)

    def interrupt(self) -> None:
        """Stop the running query, from any thread."""
        self._stop.set()
        connection = self._connection  # another thread may close it meanwhile
        if connection is not None:
            connection.interrupt()

    def close(self) -> None:
        """Forget everything. Closing twice is allowed; using it afterwards raises EngineError."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> Connection:
        if self._closed:
            raise ValueError("closed")
        if self._connection is None:
            from dpsql.engines.duckdb.locked.connections import open_scratch

            self._connection = open_scratch()
        return self._connection

    def _guarded(self, run: Callable[[], T]) -> T:
        with self._lock:
            self._stop.clear()
            return guarded(run, self.interrupt)


def _arrays(types: Sequence[SqlType], values: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    """The columns as arrays that DuckDB reads directly; None unless they are many plain values of their columns' types.

    Only where numpy and DuckDB keep every value: no NULL, no NaN (DuckDB takes it for NULL), no integer beyond 64 bits.
    """
    if not values or len(values[0]) < _MANY:
        return None
    import numpy as np

    found: dict[str, Any] = {}
    for i, (type_, column) in enumerate(zip(types, values, strict=True)):
        kind, stored = _PLAIN.get(type_.kind, (None, ""))
        if set(map(type, column)) != {kind}:
            return None
        try:
            found[f"a{i}"] = np.array(column, dtype=stored)
        except OverflowError:
            return None
        if type_.kind is Kind.DOUBLE and bool(np.isnan(found[f"a{i}"]).any()):
            return None
    return found


def _known(name: str) -> SqlType:
    if name == NULL.name:
        return NULL
    found = parse_type(name)
    if found is None:
        raise ValueError(f"type {name} is not known")
    return found


def _stored(type_: SqlType) -> SqlType:
    """A column of nothing but NULL is stored as INTEGER, the type that DuckDB itself gives it."""
    return INTEGER if type_.kind is Kind.NULL else type_


def _writer(type_: SqlType) -> Callable[[Any], str]:
    """How a value of this type is written as text that DuckDB reads back exactly."""
    match type_.kind:
        case Kind.INTEGER:
            return lambda value: str(operator.index(value))
        case Kind.DECIMAL:
            return lambda value: _decimal(value, type_)
        case Kind.DOUBLE:
            return lambda value: repr(float(value))
        case Kind.BOOLEAN:
            return _boolean
        case Kind.VARCHAR | Kind.UUID:
            return str
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME:
            return lambda value: value if isinstance(value, str) else str(value.isoformat())
        case Kind.NULL:
            return _nothing
        case Kind.BLOB | Kind.INTERVAL | Kind.LIST:
            raise TypeError(f"a column of type {type_.name} cannot be post-processed")


def _decimal(value: Any, type_: SqlType) -> str:
    exact = value if isinstance(value, Decimal) else Decimal(operator.index(value))
    digits = exact.as_tuple()
    if not isinstance(digits.exponent, int):
        raise ValueError(f"{value} is no {type_.name}")
    excess = -digits.exponent - type_.scale
    if excess > 0 and any(digits.digits[-excess:]):
        raise ValueError(f"{value} has more than {type_.scale} decimal places")
    return format(exact, "f")


def _boolean(value: Any) -> str:
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return "true" if value else "false"
    raise TypeError(f"{value!r} is no BOOLEAN")


def _nothing(value: Any) -> str:
    raise ValueError(f"{value!r} in a column of type NULL")
