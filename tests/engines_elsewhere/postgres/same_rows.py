"""The rows of a policy's tables in DuckDB and in PostgreSQL, and a DuckDB that chooses rows as PostgreSQL does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsql.core.ir.types import BIGINT, DOUBLE, Kind, SqlType
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.plan_rows import HEIGHT, Table
from tests.engines_elsewhere.postgres.bare import Bare


class Portable(DuckDB):
    """DuckDB, but what is kept of an id is chosen by a hash that PostgreSQL has as well."""

    def order_hash(self, keys: Sequence[Typed], salt: str) -> str:
        parts = [f"COALESCE({_text(sql, type_)}, 'n')" for sql, type_ in keys]
        return f"md5({' || chr(44) || '.join([*parts, f'CAST({salt} AS VARCHAR)'])})"


def _text(sql: str, t: SqlType) -> str:
    text = f"CAST({sql} AS VARCHAR)"
    if t.kind is Kind.DECIMAL:
        text = f"regexp_replace(regexp_replace({text}, '0+$', ''), '[.]$', '')"
    if t == DOUBLE:  # of the few DOUBLEs below
        text = f"regexp_replace(replace(replace({text}, 'inf', 'Infinity'), 'nan', 'NaN'), '[.]0$', '')"
    return f"length({text}) || ':' || {text}"


PORTABLE = Portable(DUCKDB.spellings)


def load(table: Table, con: Any, engine: Bare) -> None:
    """The same rows in both."""
    name = POSTGRES.identifier(table.name)
    columns = table.columns or (("nothing", BIGINT),)
    rows = table.rows if table.columns else tuple((i,) for i in range(HEIGHT))
    for d, run in ((PORTABLE, con.execute), (POSTGRES, lambda sql: engine.connection.execute(sql.encode()))):
        listed = ", ".join(f"{d.identifier(n)} {t.name if d is PORTABLE else type_name(t)}" for n, t in columns)
        run(f"CREATE TABLE {name} ({listed})")
        written = [", ".join(_written(d, v, t) for v, (_, t) in zip(row, columns, strict=True)) for row in rows]
        run(f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in written)}")


def _written(d: Dialect, value: Any, t: SqlType) -> str:
    if isinstance(value, list):
        assert t.item is not None
        items = ", ".join(_written(d, x, t.item) for x in value)
        return d.cast(f"[{items}]" if isinstance(d, DuckDB) else f"ARRAY[{items}]", t)
    if t.kind is Kind.UUID and value is not None:
        return d.cast(d.text(value), t)
    return d.constant(value, t)
