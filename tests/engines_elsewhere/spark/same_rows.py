"""The rows of a policy's tables in DuckDB and in Spark, and a DuckDB that chooses rows as Spark does."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from dpsql.core.ir.types import BIGINT, BLOB, DOUBLE, VARCHAR, Kind, SqlType
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.dialects.spark_casts import type_name
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.plan_rows import HEIGHT, Table, duckdb_connection
from tests.engines_elsewhere.spark.bare import Bare

_BITS = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip


class Portable(DuckDB):
    """DuckDB, but what is kept of an id is chosen by a hash that Spark has as well."""

    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        parts = [f"COALESCE({_text(sql, type_)}, 'n')" for sql, type_ in keys]
        return f"md5({' || chr(44) || '.join([*parts, f'CAST({salt} AS VARCHAR)'])})"


def _text(sql: str, t: SqlType) -> str:
    text = f"CAST({sql} AS VARCHAR)"
    if t.kind is Kind.DECIMAL and t.scale:
        text = f"rtrim(rtrim({text}, '0'), '.')"
    if t.kind is Kind.DOUBLE:
        text = f"xxhash64(CAST({sql} AS DOUBLE))"
    if t == BLOB:
        text = f"hex({sql})"
    return f"length({text}) || ':' || {text}"


def xxhash64(x: float | None) -> str | None:
    """Spark's function of a DOUBLE, by the definition of XXH64 for eight bytes, and the seed 42."""
    if x is None:
        return None
    bits = 0x7FF8 << 48 if x != x else struct.unpack("<Q", struct.pack("<d", x + 0.0))[0]
    mixed = _turned(bits * _P2, 31) * _P1 & _BITS
    found = _turned((42 + _P5 + 8 & _BITS) ^ mixed, 27) * _P1 + _P4 & _BITS
    for shift, prime in ((33, _P2), (29, _P3), (32, 1)):
        found = (found ^ found >> shift) * prime & _BITS
    return str(found - 2**64 if found >= 2**63 else found)


def _turned(x: int, by: int) -> int:
    x &= _BITS
    return (x << by | x >> 64 - by) & _BITS


PORTABLE = Portable(DUCKDB.spellings)


def connection() -> Any:
    """An empty database that knows Spark's hash of a DOUBLE."""
    con = duckdb_connection()
    con.create_function("xxhash64", xxhash64, ["DOUBLE"], "VARCHAR", null_handling="special")
    return con


def load(table: Table, con: Any, engine: Bare) -> None:
    """The same rows in both; columns of types that Spark lacks in DuckDB alone."""
    columns = table.columns or (("nothing", BIGINT),)
    rows = table.rows if table.columns else tuple((i,) for i in range(HEIGHT))
    con.execute(f"CREATE TABLE {PORTABLE.identifier(table.name)} ({', '.join(_declared(n, t) for n, t in columns)})")
    con.execute(f"INSERT INTO {PORTABLE.identifier(table.name)} VALUES {_written(PORTABLE, rows, columns)}")
    kept = [i for i, (_, t) in enumerate(columns) if t.kind not in (Kind.TIME, Kind.UUID)]
    columns, rows = tuple(columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows)
    listed = ", ".join(f"CAST(c{i} AS {type_name(t)}) AS {SPARK.identifier(n)}" for i, (n, t) in enumerate(columns))
    names = ", ".join(f"c{i}" for i in range(len(columns)))
    engine.keep(table.name, f"SELECT {listed} FROM (VALUES {_written(SPARK, rows, columns)}) AS v({names})")


def _declared(name: str, t: SqlType) -> str:
    return f"{PORTABLE.identifier(name)} {t.name}"


def _written(d: Dialect, rows: Sequence[Sequence[Any]], columns: Sequence[tuple[str, SqlType]]) -> str:
    return ", ".join(f"({', '.join(_cell(d, v, t) for v, (_, t) in zip(row, columns, strict=True))})" for row in rows)


def _cell(d: Dialect, value: Any, t: SqlType) -> str:
    if isinstance(value, list):
        assert t.item is not None
        items = ", ".join(_cell(d, x, t.item) for x in value)
        return d.cast(f"array({items})" if d is SPARK else f"[{items}]", t)
    if t.kind is Kind.UUID and value is not None:
        return d.cast(d.text(value), t)
    return d.cast(d.constant(value, t), t) if t != VARCHAR and t != DOUBLE else d.constant(value, t)
