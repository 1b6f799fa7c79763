"""Random rows for the tables of a policy, loaded into DuckDB and PostgreSQL alike, and plans printed for both."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb

from dpsql.core.ir.nodes import Release
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, Kind, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, ValuesDomain
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.core.printing.dialects.postgres import POSTGRES
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.planner.plan import Plan
from tests.engines_elsewhere.postgres.bare import Bare

HEIGHT = 120
SALT = 4_611_686_018_427_387_903


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


PORTABLE = Portable()

_DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=9 * n) for n in range(40)]
_ODD: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False],
    Kind.INTEGER: [-7, -1, 0, 1, 2, 3, 7, 41, 100],
    Kind.DECIMAL: [Decimal(n) / 100 for n in (-1050, -1, 0, 1, 50, 250, 9999)],
    Kind.DOUBLE: [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 0.5, -2.25, 1.5, 3.25, 100.125, 5e-324, 1e300],
    Kind.VARCHAR: ["", "a", "A", "a ", "é", "z", "north", "it's", "\\", "%", "日本語", "b2", "10"],
    Kind.DATE: [*_DAYS, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    Kind.TIMESTAMP: [dt.datetime(d.year, d.month, d.day, 7 * d.day % 24, d.day) for d in _DAYS],
    Kind.TIME: [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999)],
    Kind.BLOB: [b"", b"\0\xff"],
    Kind.UUID: ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
}


@dataclass(frozen=True)
class Table:
    """A table of a policy with rows."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    rows: tuple[tuple[Any, ...], ...]


def tables_of(policy: Policy, rng: random.Random) -> Iterator[Table]:
    """Every table, with rows that join often, and hold odd values."""
    for table in policy.tables.values():
        columns = [(c.name, c.sql_type or VARCHAR, _pool(c, rng)) for c in table.columns.values()]
        unique = [key for key in (table.primary_key, *table.unique) if key is not None]
        keys = {name for key in unique for name in key.columns}
        rows = []
        for i in range(HEIGHT):
            row = []
            for name, type_, pool in columns:
                numbered = name in keys and type_.kind is Kind.INTEGER
                row.append(i % 40 if numbered else rng.choice(pool))
            rows.append(tuple(row))
        yield Table(table.name, tuple((name, t) for name, t, _ in columns), tuple(rows))


def _pool(c: Column, rng: random.Random) -> list[Any]:
    t = c.sql_type or VARCHAR
    pool = list(_ODD.get(t.kind, [None]))
    if t.kind is Kind.LIST:
        items = _ODD[t.item.kind] if t.item is not None else []
        pool = [[], *([rng.choice([*items, None]) for _ in range(n)] for n in (1, 2, 3, 8))]
    if t.kind is Kind.INTEGER and not c.bounds:
        pool = list(range(12)) * 2
    if t.kind is Kind.DECIMAL:
        top = Decimal(10 ** (t.precision - t.scale)) - Decimal(1).scaleb(-t.scale)
        pool = [x.quantize(Decimal(1).scaleb(-t.scale)) for x in pool if abs(x) < top] + [top, -top]
    if c.bounds is not None and t.numeric:
        ends = [end for end in c.bounds if isinstance(end, int | float | Decimal) and not isinstance(end, bool)]
        pool += [_as(end + step, t) for end in ends for step in (0, 1, -1)] * 3
    if isinstance(c.domain, ValuesDomain):
        pool = [v for v in list(c.domain.values)[:30] if v is not None] * 3 + pool
    return pool if c.nullable is False else [*pool, None]


def _as(value: Any, t: SqlType) -> Any:
    match t.kind:
        case Kind.INTEGER:
            return int(value)
        case Kind.DECIMAL:
            return Decimal(value).quantize(Decimal(1).scaleb(-t.scale))
        case _:
            return float(value)


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


def texts(plan: Plan, d: Dialect) -> list[str]:
    """All that a plan asks of an engine; noisy rows and numbers of earlier releases are made up."""
    released = {r.label: _made_up(r.measured.node, d) for r in plan.releases}
    found = []
    for release in plan.releases:
        for statement in release.statements:
            names = set(re.findall("\0number (\\w+)\0", statement.sql))
            found.append(statement.salted(SALT, released, dict.fromkeys(names, 3)))
    return [*found, *([plan.post.sql] if not plan.post.steps and plan.post.sql else [])]


def _made_up(node: Release, d: Dialect) -> str:
    columns = [*node.keys, *(o.column for o in node.outputs)]
    if not columns:
        return "(SELECT 1 AS c0)"
    rows = []
    for i in range(4):
        cells = []
        for c in columns:
            pool = _ODD.get(c.type.kind, [None])
            cells.append(d.constant(_fitting(pool[i % len(pool)], c.type), c.type))
        rows.append(", ".join(cells))
    names = [f"c{c.uid}" for c in columns]
    listed = ", ".join(f"{d.cast(n, c.type)} AS {n}" for n, c in zip(names, columns, strict=True))
    return f"(SELECT {listed} FROM {d.values(rows, names, 'v')})"


def _fitting(value: Any, t: SqlType) -> Any:
    return Decimal(value).quantize(Decimal(1).scaleb(-t.scale)) if isinstance(value, Decimal) else value


def bag(rows: Sequence[Sequence[Any]]) -> Counter[tuple[str, ...]]:
    """Rows in any order; DOUBLEs by their bits, but for the sign of zero, and numbers by their value."""
    return Counter(tuple(_shown(v) for v in row) for row in rows)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, Decimal):
        return str(int(value)) if value == value.to_integral_value() else str(value.normalize())
    return str(value)


def duckdb_connection() -> Any:
    """An empty database that sorts as ours do."""
    con = duckdb.connect()
    con.execute("SET default_collation = ''; SET TimeZone = 'UTC'")
    return con
