"""The result of one SELECT, converted exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpsql.core.engine import RawTable
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.stopping import Stop, columns_of, until_stopped

# The kinds of column whose values are the same Python objects whether they come through numpy or row by row.
_THROUGH_NUMPY: Final = frozenset(
    {"boolean", "float", "double", "varchar", "hugeint"}
    | {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"}
)


def read(connection: duckdb.DuckDBPyConnection, sql: str, stop: Stop) -> RawTable:
    """Run exactly one SELECT and convert its result exactly; any exception may come out of it.

    Simple types come through numpy, five times faster than row by row. There a HUGEINT would become a float, so it is
    cut into two 64-bit halves by the engine and put together again here.

    stop: set by another thread to have no more of the result converted; see core/stopping.py.
    """
    statement = _only_select(connection, sql)
    shape = connection.sql(statement)  # binds and runs nothing
    names, kinds = tuple(shape.columns), [str(t.id) for t in shape.types]
    del shape
    if not _THROUGH_NUMPY.issuperset(kinds):
        return RawTable(names, columns_of(connection.execute(statement).fetchmany, len(names), stop))
    if "hugeint" not in kinds and len({name.lower() for name in names}) == len(names):
        arrays = connection.execute(statement).fetchnumpy()
        return RawTable(names, tuple(column(arrays[name]) for name in until_stopped(stop, names)))
    aliases = [f"c{i}" for i in range(len(names))]
    items = [SPLIT.format(a) if kind == "hugeint" else a for a, kind in zip(aliases, kinds, strict=True)]
    body = sql.rstrip().rstrip(";")
    arrays = connection.execute(f"SELECT {', '.join(items)} FROM (\n{body}\n) AS q({', '.join(aliases)})").fetchnumpy()
    columns = (
        rejoin(arrays[a + "_high"], arrays[a + "_low"]) if kind == "hugeint" else column(arrays[a])
        for a, kind in until_stopped(stop, zip(aliases, kinds, strict=True))
    )
    return RawTable(names, tuple(columns))


def read_typed(connection: duckdb.DuckDBPyConnection, sql: str, stop: Stop) -> tuple[RawTable, list[str]]:
    """Run exactly one SELECT, row by row in its order; the values, and the types' names. stop: as for `read`."""
    found = connection.execute(_only_select(connection, sql))
    names, types = tuple(str(d[0]) for d in found.description or ()), [str(d[1]) for d in found.description or ()]
    return RawTable(names, columns_of(found.fetchmany, len(names), stop)), types


def _only_select(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("not exactly one SELECT")
    return statements[0]


# h = high·2⁶⁴ + low with 0 ≤ low < 2⁶⁴: a shift rounds down and & takes the two's complement, for negative h too.
SPLIT: Final = "CAST({0} >> 64 AS BIGINT) AS {0}_high, CAST({0} & 18446744073709551615::HUGEINT AS UBIGINT) AS {0}_low"


def column(values: NDArray[Any]) -> Sequence[Any]:
    """What numpy holds of a column, as Python's values, None where masked (NULL); integers stay as they are."""
    if values.dtype.kind in "iu" and values.dtype != np.uint64 and not np.ma.isMaskedArray(values):
        return Integers(values.astype(np.int64, copy=False))
    listed: list[Any] = values.tolist()
    return listed


def rejoin(high: NDArray[np.int64], low: NDArray[np.uint64]) -> Sequence[Any]:
    """The integers high·2⁶⁴ + low, None where masked (NULL)."""
    missing = np.ma.getmaskarray(high)
    upper, lower = np.ma.getdata(high), np.ma.getdata(low)
    small = lower.view(np.int64)
    if bool(((upper == small >> 63) | missing).all()):  # every value fits 64 bits
        if not missing.any():
            return Integers(small)
        values: list[Any] = small.tolist()
    else:
        values = [(h << 64) | rest for h, rest in zip(upper.tolist(), lower.tolist(), strict=True)]
    for i in np.flatnonzero(missing).tolist():
        values[i] = None
    return values
