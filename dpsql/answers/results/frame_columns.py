"""Released columns as pandas, polars and Arrow columns of fixed types: the SQL type decides, not the values.

The exceptions are told in the docstrings of `Release.df` and its kin: integers that no column of 64 bits holds, and
NULL among pandas' integers and booleans.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.noise.integer_columns import Integers
from dpsql.diagnostics.errors import Rejected, reject

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Column = Sequence[Any]
_WORD = {"TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32", "UTINYINT": "uint8", "USMALLINT": "uint16",
         "UINTEGER": "uint32", "UBIGINT": "uint64"}  # fmt: skip
"""Integer types and what holds them; int64 holds all others as long as the values allow."""


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Where one of the packages of an extra is used. Raises Rejected DP903 if it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing != {"arrow": "pyarrow", "plot": "matplotlib"}.get(name, name):
            raise
        raise reject(
            "DP903", f"{missing} is not installed", help=[f"pip install 'dpsql[{name}]'"],
            notes=["the answer is there all the same: its rows, columns and intervals can be read"],
        ) from None  # fmt: skip


def _held(values: Column) -> Any:
    """The 64-bit integers that a column is held in, of which no list need be made; else the column."""
    return values.array if isinstance(values, Integers) and values.array.dtype == "int64" else values


def to_arrow(columns: Mapping[str, Column], types: Sequence[SqlType]) -> pyarrow.Table:
    """An Arrow table. Raises Rejected DP903 for a value that Arrow has no place for."""
    import pyarrow

    arrays = [_arrow_array(name, _held(values), t) for (name, values), t in zip(columns.items(), types, strict=True)]
    return pyarrow.Table.from_arrays(arrays, names=list(columns))


def _arrow_array(name: str, values: Any, type_: SqlType) -> pyarrow.Array:
    import pyarrow

    for wanted in _arrow_types(type_):
        with contextlib.suppress(pyarrow.ArrowException, OverflowError):
            return pyarrow.array(_texts(values) if type_.kind is Kind.UUID else values, wanted)
    raise _no_place(name, type_, "Arrow")


def _arrow_types(type_: SqlType) -> list[pyarrow.DataType]:
    """The type to hold a column; behind it wider ones, for numbers that noise has carried out of the type's range."""
    import pyarrow as pa

    match type_.kind:
        case Kind.INTEGER:
            return [getattr(pa, _WORD.get(type_.name, "int64"))(), pa.int64(), pa.decimal128(38, 0), pa.decimal256(76)]
        case Kind.DECIMAL:
            return [pa.decimal128(type_.precision, type_.scale), pa.decimal256(76, type_.scale)]
        case Kind.LIST:
            return [pa.list_(item) for item in _arrow_types(type_.item)] if type_.item else [pa.list_(pa.null())]
    simple: dict[Kind, pyarrow.DataType] = {
        Kind.BOOLEAN: pa.bool_(),
        Kind.DOUBLE: pa.float64(),
        Kind.VARCHAR: pa.string(),
        Kind.UUID: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
        Kind.TIME: pa.time64("us"),
        Kind.INTERVAL: pa.duration("us"),
        Kind.BLOB: pa.binary(),
        Kind.NULL: pa.null(),
    }
    return [simple[type_.kind]]


def to_polars(columns: Mapping[str, Column], types: Sequence[SqlType]) -> polars.DataFrame:
    """A polars DataFrame. Raises Rejected DP903 for a value that polars has no place for."""
    import polars

    return polars.DataFrame(
        [_polars_series(name, _held(values), t) for (name, values), t in zip(columns.items(), types, strict=True)]
    )


def _polars_series(name: str, values: Any, type_: SqlType) -> polars.Series:
    import polars

    if type_.kind is Kind.UUID:
        values = _texts(values)
    for wanted in _polars_types(type_):
        with contextlib.suppress(OverflowError, TypeError, polars.exceptions.PolarsError):
            return polars.Series(name, values, wanted)
    raise _no_place(name, type_, "polars")


def _polars_types(type_: SqlType) -> list[Any]:
    import polars as pl

    match type_.kind:
        case Kind.INTEGER:
            word = _WORD.get(type_.name, "int64")
            return [getattr(pl, word.replace("int", "Int").replace("uI", "UI")), pl.Int64, pl.Int128]
        case Kind.DECIMAL:
            return [pl.Decimal(38, type_.scale)]
        case Kind.LIST:
            return [pl.List(item) for item in _polars_types(type_.item)] if type_.item else [pl.List(pl.Null)]
    simple: dict[Kind, Any] = {
        Kind.BOOLEAN: pl.Boolean,
        Kind.DOUBLE: pl.Float64,
        Kind.VARCHAR: pl.String,
        Kind.UUID: pl.String,
        Kind.DATE: pl.Date,
        Kind.TIMESTAMP: pl.Datetime("us"),
        Kind.TIMESTAMPTZ: pl.Datetime("us", "UTC"),
        Kind.TIME: pl.Time,
        Kind.INTERVAL: pl.Duration("us"),
        Kind.BLOB: pl.Binary,
        Kind.NULL: pl.Null,
    }
    return [simple[type_.kind]]


def to_pandas(columns: Mapping[str, Column], types: Sequence[SqlType]) -> pandas.DataFrame:
    """A pandas DataFrame. Raises Rejected DP903 for a value that pandas has no place for."""
    import pandas

    found: dict[str, pandas.Series[Any]] = {}
    for (name, values), type_ in zip(columns.items(), types, strict=True):
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            found[name] = _pandas_series(_held(values), type_)
        if name not in found:
            raise _no_place(name, type_, "pandas")
    return pandas.DataFrame(found)


def _pandas_series(values: Any, type_: SqlType) -> pandas.Series[Any]:
    import numpy
    import pandas

    if isinstance(values, numpy.ndarray):
        return pandas.Series(values.copy())  # which nobody else may write to
    missing = any(value is None for value in values)
    match type_.kind:
        case Kind.INTEGER:
            wide = type_.name in ("UBIGINT", "HUGEINT") and not all(v is None or -(2**63) <= v < 2**63 for v in values)
            dtype = "object" if wide else "Int64" if missing else "int64"
        case Kind.BOOLEAN:
            dtype = "boolean" if missing else "bool"
        case Kind.DOUBLE:
            dtype = "float64"
        case Kind.VARCHAR:
            dtype = "str" if int(pandas.__version__.split(".")[0]) >= 3 else "object"
        case Kind.DATE | Kind.TIMESTAMP | Kind.INTERVAL:
            unit = {Kind.DATE: "datetime64[s]", Kind.TIMESTAMP: "datetime64[us]", Kind.INTERVAL: "timedelta64[us]"}
            return pandas.Series(numpy.array(values, dtype=unit[type_.kind]))
        case Kind.TIMESTAMPTZ:
            dtype = "datetime64[us, UTC]"
        case _:
            dtype = "object"
    return pandas.Series(values, dtype=dtype)


def _no_place(name: str, type_: SqlType, library: str) -> Rejected:
    """What SQL has and the library has not: a day after the year 9999, TIME '24:00:00'."""
    return reject(
        "DP903", f"column {name} holds a {type_} that {library} has no place for",
        help=["take the rows themselves:  answer.rows,  or convert it in the query:  CAST(… AS VARCHAR)"],
    )  # fmt: skip


def _texts(values: Column) -> Column:
    text: Callable[[Any], Any] = lambda value: None if value is None else str(value)  # noqa: E731
    return list(map(text, values))
