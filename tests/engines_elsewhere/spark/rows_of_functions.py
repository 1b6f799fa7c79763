"""The rows of tests/support/function_rows.py in DuckDB and in Spark, and calls of functions on both.

Infinite dates, which Spark does not have, are NULL in both, or 1970-01-01 where a column is NOT NULL; so are days
beyond all timestamps, of which DuckDB's optimizer says otherwise than its cast. Columns of types that Spark does not
have are left out. A second table holds what is only to raise no error: the farthest days, and texts that are no UTF-8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpsql.core.ir.types import FLOAT, HUGEINT, Kind, SqlType
from dpsql.core.printing.dialect import CannotSpell
from dpsql.core.printing.dialects.spark_casts import type_name
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import apply
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.bare import Bare
from tests.functions.test_function_contract import FUNCTIONS, Lab
from tests.support.function_checker import Argument
from tests.support.function_rows import COLUMNS, ROWS, fetch

Call = tuple[str, str, Value]
"""An expression as Spark reads it, as DuckDB does, and what is known of it."""


def held(name: str, t: SqlType) -> bool:
    """Whether Spark has such a column."""
    return t.kind not in (Kind.TIME, Kind.UUID) and not name.startswith("hugeint")


class Both(Lab):
    """A laboratory whose rows another engine holds as well."""

    def __init__(self, seed: int, engine: Bare) -> None:
        super().__init__(seed)
        for c in COLUMNS:
            if c.value.type.temporal:
                instead = f"CAST({'NULL' if c.value.nullable else repr('1970-01-01')} AS {c.value.type})"
                near = f"isfinite({c.name}) AND TRY_CAST({c.name} AS TIMESTAMP) IS NOT NULL"
                self.con.execute(f"UPDATE t SET {c.name} = {instead} WHERE NOT ({near})")
        kept = [c for c in COLUMNS if held(c.name, c.value.type)]
        self.values = {c.name: fetch(self.con, c.name, c.value.type) for c in kept}
        self.columns = [Argument(c.name, c.value, self.values[c.name]) for c in kept]
        self.engine = engine
        rows = [f"({i}, {', '.join(literal(self.values[c.name][i], c.value.type) for c in kept)})" for i in range(ROWS)]
        names = ", ".join(["i", *(c.name for c in kept)])
        engine.keep("t", f"SELECT * FROM (VALUES {', '.join(rows)}) AS v({names})")
        engine.keep("far", f"SELECT i, {', '.join(_far(c.name, c.value.type) for c in kept)} FROM t")

    def printed(self, a: Argument) -> str:
        """An argument as Spark reads it."""
        if a.value.is_constant:
            return f"({SPARK.constant(a.value.constant, a.value.type)})"  # type: ignore[arg-type]
        return SPARK.column(a.sql, a.value.type)

    def call(self, function: Function, args: Sequence[Argument], result: Value) -> Call:
        """A call in both dialects. Raises CannotSpell, or Rejected."""
        known = facts(args)
        sql = SPARK.call(function.name, [self.printed(a) for a in args], known, result)
        return sql, DUCKDB.call(function.name, [a.sql for a in args], known, result), result

    def nested(self, depth: int) -> Call | None:
        """A random well-typed expression of calls within calls, in both dialects; None where one is not spelled."""
        if depth == 0 or self.rng.random() < 0.15:
            a = self.rng.choice(self.columns)
            return self.printed(a), a.sql, a.value
        for _ in range(2000):
            function = self.rng.choice([f for f in FUNCTIONS if SPARK.spells(f.name)])
            args = [self._nested_argument(function, i, depth) for i in range(self.rng.choice([1, 2, 3]))]
            if any(a is None for a in args):
                continue
            found = [a for a in args if a is not None]
            known = [value for _, _, value in found]
            try:
                result = apply(function, known)
                sql = SPARK.call(function.name, [f"({a})" for a, _, _ in found], known, result)
            except (SignatureError, CannotSpell, Rejected):
                continue
            return sql, DUCKDB.call(function.name, [f"({a})" for _, a, _ in found], known, result), result
        return None

    def _nested_argument(self, function: Function, at: int, depth: int) -> Call | None:
        if at in function.literal or self.rng.random() < 0.3:
            a = self.argument(function, at)
            try:
                return self.printed(a), a.sql, a.value
            except Rejected:
                return None
        return self.nested(depth - 1)

    def differences(self, calls: Sequence[Call]) -> list[str]:
        """How values of each row are others here than there, what raises an error, and what has another type.

        All calls are asked in one SELECT; one by one where that fails.
        """
        listed = ", ".join(f"{_comparable(sql, t.type)} AS c{i}" for i, (sql, _, t) in enumerate(calls))
        types = ", ".join(f"typeof({sql}) AS c{i}" for i, (sql, _, _) in enumerate(calls))
        try:
            found = self.engine.fetch(f"SELECT {listed} FROM t ORDER BY i").columns
            typed = self.engine.fetch(f"SELECT {types} FROM t LIMIT 1").columns
        except Exception as error:
            if len(calls) > 1:
                return [wrong for call in calls for wrong in self.differences([call])]
            return [f"raises {str(error).splitlines()[0]}: {calls[0][0]}"]
        wrong = []
        for (sql, other, result), column, (name,) in zip(calls, found, typed, strict=True):
            wanted_name = "void" if result.type.kind is Kind.NULL else _shown(result.type)
            if name not in (wanted_name, "void"):
                wrong.append(f"has type {name}, not {wanted_name}: {sql}")
            for i, (a, b) in enumerate(zip(column, _wanted(self.con, other, result.type), strict=True)):
                if not same(a, b):
                    wrong.append(f"gives {a!r}, not {b!r}, in row {i}: {sql}")
                    break
        return wrong

    def failures(self, calls: Sequence[Call]) -> list[str]:
        """What raises an error on the farthest days and on texts that are no UTF-8."""
        counted = ", ".join(f"COUNT({sql}) AS c{i}" for i, (sql, _, _) in enumerate(calls))
        try:
            self.engine.fetch(f"SELECT {counted} FROM far")
        except Exception as error:
            if len(calls) > 1:
                return [wrong for call in calls for wrong in self.failures([call])]
            return [f"raises {str(error).splitlines()[0]}: {calls[0][0]}"]
        return []


_RAW = {
    name + suffix: values
    for names, values in (
        (("day", "day_nn"), [f"date_from_unix_date({n})" for n in (-(2**31), 2**31 - 1, 106_751_992)]),
        (("ts", "ts_nn"), [f"CAST(timestamp_micros({n}) AS TIMESTAMP_NTZ)" for n in (1 - 2**63, 2**63 - 1, -(10**17))]),
        (("txt", "txt_nn"), [f"CAST(X'{text}' AS STRING)" for text in ("ff", "61c3", "80e9")]),
    )
    for name in names
    for suffix in ("", "_2")
}
"""Columns of which nothing is known but their type → odd values."""


def _far(name: str, t: SqlType) -> str:
    values = _RAW.get(name)
    if values is None:
        return name
    arms = " ".join(f"WHEN {n} THEN {value}" for n, value in enumerate(values))
    return f"CASE i % 4 {arms} ELSE {name} END AS {name}"


def same(a: Any, b: Any) -> bool:
    """Equal to the bit."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _shown(t: SqlType) -> str:
    return type_name(t).lower().replace(", ", ",").replace("timestamp_ltz", "timestamp")


def _comparable(sql: str, t: SqlType) -> str:
    """A value as `fetch` of tests/support/function_rows.py gives it."""
    if t.kind is Kind.DATE:
        return f"unix_date({sql})"
    if t.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return f"unix_micros({sql})"
    if t.item is not None and t.item.temporal:
        return f"transform({sql}, e -> {_comparable('e', t.item)})"
    return sql


def _wanted(con: Any, sql: str, t: SqlType) -> list[Any]:
    if t.item is not None and t.item.temporal:
        shown = "e - DATE '1970-01-01'" if t.item.kind is Kind.DATE else "epoch_us(e)"
        sql = f"list_transform({sql}, lambda e: {shown})"
    return fetch(con, sql, t)


def literal(value: Any, t: SqlType) -> str:
    """A value of a DuckDB row as it is written for Spark."""
    if value is None:
        return f"CAST(NULL AS {type_name(t)})"
    match t.kind:
        case Kind.DATE:
            return f"date_from_unix_date({value})"
        case Kind.TIMESTAMP:
            return f"CAST(timestamp_micros({value}) AS TIMESTAMP_NTZ)"
        case Kind.INTEGER:
            return SPARK.cast(SPARK.constant(value, HUGEINT), t)
        case Kind.LIST:
            assert t.item is not None
            return SPARK.cast(f"array({', '.join(literal(x, t.item) for x in value)})", t)
        case Kind.DOUBLE if t == FLOAT:
            return f"CAST('{value!r}' AS FLOAT)"
        case _:
            return SPARK.constant(value, t)


def facts(args: Sequence[Argument]) -> list[Value]:
    """What is known of them."""
    return [a.value for a in args]
