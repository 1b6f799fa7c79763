"""The result of one SELECT, converted exactly."""

from __future__ import annotations

import datetime as dt
import importlib
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from dpsql.core.engine import RawTable
from dpsql.core.stopping import CHUNK, Stop, until_stopped
from dpsql.engines.calendar import DAY, clock, far

_SELECT: Final = re.compile(r"\s*(SELECT|WITH|\()", re.IGNORECASE)
_FIRST: Final = dt.date(1, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
_LAST: Final = dt.date.max.toordinal() - dt.date(1970, 1, 1).toordinal()
_TO_2000: Final = dt.date(2000, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()


def read(session: Any, sql: str, stop: Stop) -> RawTable:
    """Run exactly one SELECT and convert its result exactly; any exception may come out of it.

    stop: set by another thread to have no more of the result converted; see core/stopping.py.
    """
    table = session.sql(only_select(sql)).toArrow()
    if table.num_rows == 0:
        return RawTable(tuple(table.column_names), tuple([] for _ in table.column_names))
    columns: tuple[list[Any], ...] = tuple([] for _ in table.column_names)
    converters = [_converter(type_) for type_ in table.schema.types]
    for batch in until_stopped(stop, table.to_batches(max_chunksize=CHUNK)):
        for column, values, convert in zip(columns, batch.columns, converters, strict=True):
            column.extend(convert(values))
    return RawTable(tuple(table.column_names), columns)


def only_select(sql: str) -> str:
    """The statement in brackets, where nothing but a SELECT is one: no second one, nor WITH … INSERT, which Spark runs.

    Raises ValueError.
    """
    if not _SELECT.match(sql):
        raise ValueError("not a SELECT")
    return f"SELECT * FROM (\n{sql}\n)"


def _converter(type_: Any) -> Callable[[Any], Sequence[Any]]:
    """How values of an Arrow type become Python's: never with an error that depends on a row."""
    kinds = importlib.import_module("pyarrow").types
    if kinds.is_decimal(type_) and type_.precision == 38 and type_.scale == 0:
        return lambda values: [_integer(value) for value in values.to_pylist()]  # whole numbers beyond 64 bits
    if kinds.is_date32(type_):
        return lambda values: [None if days is None else _date(days) for days in values.cast("int32").to_pylist()]
    if kinds.is_timestamp(type_):
        zone = None if type_.tz is None else dt.UTC
        return lambda values: [_timestamp(micros, zone) for micros in values.cast("int64").to_pylist()]
    return lambda values: list(values.to_pylist())


def _integer(value: Decimal | None) -> int | None:
    return None if value is None else int(value)


def _date(days: int) -> dt.date | str:
    """days: since 1970."""
    if _FIRST <= days <= _LAST:
        return dt.date.fromordinal(days - _FIRST + 1)
    return far(days - _TO_2000)


def _timestamp(micros: int | None, zone: dt.timezone | None) -> dt.datetime | str | None:
    """micros: since 1970."""
    if micros is None:
        return None
    days, rest = divmod(micros, DAY)
    if _FIRST <= days <= _LAST:
        midnight = dt.datetime.combine(dt.date.fromordinal(days - _FIRST + 1), dt.time(), zone)
        return midnight + dt.timedelta(microseconds=rest)
    return f"{far(days - _TO_2000, clock(rest))}{'' if zone is None else '+00'}"
