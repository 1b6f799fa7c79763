"""The rows of tests/support/function_rows.py in DuckDB and in PostgreSQL, and calls of functions on both.

What PostgreSQL's calendar does not hold is NULL in both, or 1970-01-01 where a column is NOT NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import psycopg

from dpsql.core.ir.types import FLOAT, HUGEINT, Kind, SqlType
from dpsql.core.printing.dialect import CannotSpell
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.core.values.value import Value
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import apply
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.functions.test_function_contract import FUNCTIONS, Lab
from tests.support.function_checker import Argument
from tests.support.function_rows import COLUMNS, ROWS, fetch

FIRST_DAY, LAST_DAY = -2_440_588, 2_145_031_948
"""The ends of PostgreSQL's DATE, in days since 1970."""
FAR_DAY, FAR_TIME = 2**31 - 1, 2**63 - 1
"""±infinity, as `fetch` gives it."""
_KEPT = {
    Kind.DATE: "DATE '4713-11-24 (BC)' AND DATE '5874897-12-31'",
    Kind.TIMESTAMP: "TIMESTAMP '4713-11-24 (BC) 00:00:00' AND TIMESTAMP '294247-01-10 04:00:54'",
}


class Both(Lab):
    """A laboratory whose rows another engine holds as well."""

    def __init__(self, seed: int, engine: Bare) -> None:
        super().__init__(seed)
        for c in COLUMNS:
            kind = c.value.type.kind
            if kind in _KEPT:
                instead = f"CAST({'NULL' if c.value.nullable else repr('1970-01-01')} AS {c.value.type})"
                near = f"NOT isfinite({c.name}) OR {c.name} BETWEEN {_KEPT[kind]}"
                self.con.execute(f"UPDATE t SET {c.name} = CASE WHEN {near} THEN {c.name} ELSE {instead} END")
        self.values = {c.name: fetch(self.con, c.name, c.value.type) for c in COLUMNS}
        self.columns = [Argument(c.name, c.value, self.values[c.name]) for c in COLUMNS]
        self.engine = engine
        self._load(engine)

    def _load(self, engine: Bare) -> None:
        listed = ", ".join(f"{c.name} {type_name(c.value.type)}" for c in COLUMNS)
        engine.connection.execute(f"CREATE TEMP TABLE t (i integer, {listed})")
        for start in range(0, ROWS, 20):
            rows = [
                f"({i}, {', '.join(_literal(self.values[c.name][i], c.value.type) for c in COLUMNS)})"
                for i in range(start, min(start + 20, ROWS))
            ]
            engine.connection.execute(f"INSERT INTO t VALUES {', '.join(rows)}".encode())

    def printed(self, a: Argument) -> str:
        """An argument as PostgreSQL reads it."""
        if a.value.is_constant:
            return f"({POSTGRES.constant(a.value.constant, a.value.type)})"  # type: ignore[arg-type]
        return POSTGRES.column(a.sql, a.value.type)

    def nested(self, depth: int) -> tuple[str, str, Value] | None:
        """A random well-typed expression of calls within calls, in both dialects; None where one is not spelled."""
        if depth == 0 or self.rng.random() < 0.15:
            a = self.rng.choice(self.columns)
            return self.printed(a), a.sql, a.value
        for _ in range(2000):
            function = self.rng.choice([f for f in FUNCTIONS if POSTGRES.spells(f.name)])
            args = [self._nested_argument(function, i, depth) for i in range(self.rng.choice([1, 2, 3]))]
            if any(a is None for a in args):
                continue
            found = [a for a in args if a is not None]
            known = [value for _, _, value in found]
            try:
                result = apply(function, known)
                sql = POSTGRES.call(function.name, [f"({a})" for a, _, _ in found], known, result)
            except (SignatureError, CannotSpell):
                continue
            if function.name == "round" and len(found) > 1 and result.type.kind is Kind.DOUBLE:
                continue  # DuckDB rounds the exact multiple, PostgreSQL the nearest DOUBLE: 2.675 gives 2.67 and 2.68
            return sql, DUCKDB.call(function.name, [f"({a})" for _, a, _ in found], known, result), result
        return None

    def _nested_argument(self, function: Function, at: int, depth: int) -> tuple[str, str, Value] | None:
        if at in function.literal or self.rng.random() < 0.3:
            a = self.argument(function, at)
            return self.printed(a), a.sql, a.value
        return self.nested(depth - 1)

    def differences(self, sql: str, other: str, result: Value) -> list[str]:
        """How a value of each row is another here than there, what raises an error, and what has another type.

        sql: as PostgreSQL reads it. other: as DuckDB does.
        """
        item = result.type.item
        if item is not None and item.temporal:  # which no client reads as a list
            return self.differences(f"({sql})[1]", f"({other})[1]", Value(item))
        wanted = fetch(self.con, other, result.type)
        try:
            rows = self.engine.connection.execute(
                f"SELECT {_comparable(sql, result.type)} FROM t ORDER BY i".encode(), binary=True
            )
            found = [row[0] for row in rows.fetchall()]
        except psycopg.Error as error:
            return [f"raises {str(error).splitlines()[0]}: {sql}"]
        types = f"SELECT pg_typeof({sql})::text, pg_typeof(CAST(NULL AS {type_name(result.type)}))::text FROM t LIMIT 1"
        typed, wanted_type = self.engine.connection.execute(types.encode()).fetchall()[0]
        wrong = [f"has type {typed}, not {wanted_type}: {sql}"] if typed not in (wanted_type, "unknown") else []
        if result.type.kind is Kind.VARCHAR:
            rows = self.engine.connection.execute(f"SELECT pg_collation_for({sql}) FROM t LIMIT 1".encode())
            wrong += [f"has collation {name}: {sql}" for (name,) in rows if name != '"C"']
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            if not same(a, b):
                return [*wrong, f"gives {a!r}, not {b!r}, in row {i}: {sql}"]
        return wrong


def same(a: Any, b: Any) -> bool:
    """Equal to the bit."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b) or (a is not None and b is not None and str(a) == str(b))


def _comparable(sql: str, t: SqlType) -> str:
    """A value as `fetch` of tests/support/function_rows.py gives it."""
    match t.kind:
        case Kind.DATE:
            ends = f"WHEN r = 'infinity' THEN {FAR_DAY} WHEN r = '-infinity' THEN {-FAR_DAY}"
            return f"(SELECT CASE {ends} ELSE r - DATE '1970-01-01' END FROM (SELECT {sql} AS r) AS v)"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            ends = f"WHEN r = 'infinity' THEN {FAR_TIME} WHEN r = '-infinity' THEN {-FAR_TIME}"
            micros = "CAST(extract(epoch FROM r) * 1000000 AS bigint)"
            return f"(SELECT CASE {ends} ELSE {micros} END FROM (SELECT {sql} AS r) AS v)"
        case _:
            return sql


def _literal(value: Any, t: SqlType) -> str:
    """A value of a DuckDB row as it is written for PostgreSQL."""
    if value is None:
        return f"CAST(NULL AS {type_name(t)})"
    match t.kind:
        case Kind.DATE:
            return f"DATE '{'-' * (value < 0)}infinity'" if abs(value) == FAR_DAY else f"DATE '1970-01-01' + ({value})"
        case Kind.TIMESTAMP:
            if abs(value) == FAR_TIME:
                return f"TIMESTAMP '{'-' * (value < 0)}infinity'"
            days, rest = divmod(value, 86_400_000_000)
            return f"CAST(DATE '1970-01-01' + ({days}) AS timestamp) + CAST('{rest} microseconds' AS interval)"
        case Kind.INTEGER:
            return POSTGRES.constant(value, HUGEINT)
        case Kind.LIST:
            assert t.item is not None
            return f"CAST(ARRAY[{', '.join(_literal(x, t.item) for x in value)}] AS {type_name(t)})"
        case Kind.UUID:
            return f"CAST('{value}' AS uuid)"
        case Kind.DOUBLE if t == FLOAT:
            return f"CAST('{value!r}' AS real)"
        case _:
            return POSTGRES.constant(value, t)


def facts(args: Sequence[Argument]) -> list[Value]:
    """What is known of them."""
    return [a.value for a in args]
