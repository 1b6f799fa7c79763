"""Run one call of a scalar function over the test rows and list every claim that does not hold."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.printing.dialect import Dialect
from dpsql.core.values.value import Scalar, Value
from dpsql.functions.function import Function
from dpsql.functions.registry import evaluate
from tests.support.function_rows import as_python, fetch, typed


@dataclass(frozen=True)
class Argument:
    """An argument of a call: its SQL, its facts and, for a column or constant, its fetched values row by row."""

    sql: str
    value: Value
    values: Sequence[Any] | None


def constant_sql(value: Scalar, t: SqlType) -> str:
    """A literal as the planner would print it."""
    if isinstance(value, dt.timedelta):
        return f"to_microseconds({value // dt.timedelta(microseconds=1)})"
    return typed("NULL" if value is None else str(value), t)


def check_call(con: Any, dialect: Dialect, function: Function, args: Sequence[Argument], result: Value) -> list[str]:
    """Every broken claim about the call, in words; empty if all hold in every row."""
    facts = [a.value for a in args]
    sql = dialect.call(function.name, [a.sql for a in args], facts, result)
    wrong, got = check_sql(con, sql, result, facts)
    if got is not None and function.python is not None and all(a.values is not None for a in args):
        wrong += _python_disagrees(function, args, result, got)
    return wrong


def check_sql(con: Any, sql: str, result: Value, facts: Sequence[Value]) -> tuple[list[str], list[Any] | None]:
    """Broken claims about a printed expression, and its values (None if the engine raised an error)."""
    try:
        stored = con.execute(f"SELECT typeof({sql}) FROM t LIMIT 1").fetchall()[0][0]
        got = fetch(con, sql, result.type)
    except Exception as error:
        return [f"raises {str(error).splitlines()[0]}: {sql}"], None
    wrong = []
    if stored != result.type.name:
        wrong.append(f"has type {stored}, not {result.type}: {sql}")
    for value in dict.fromkeys(got) if result.type.kind is not Kind.LIST else got:
        complaint = _broken(value, result, facts)
        if complaint:
            wrong.append(f"{complaint}: {sql}")
    return wrong, got


def _broken(value: Any, result: Value, facts: Sequence[Value]) -> str:
    """The first claim that one value of the result breaks."""
    if value is None:
        closed = all(a.is_constant or a.domain is not None for a in facts)
        if not result.nullable:
            return "gives NULL"
        if result.domain is not None and closed and not result.domain.null:
            return "gives NULL outside of its domain"
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        if result.finite:
            return f"gives {value}"
        low, high = result.interval.lo, result.interval.hi
        outside = (value == math.inf and high is not None) or (value == -math.inf and low is not None)
        return f"gives {value}, outside of {result.interval}" if outside else ""
    if isinstance(value, bool | int | float | Decimal):
        for what, claim in (("interval", result.interval), ("range", result.range)):
            at = Fraction(value)
            if (claim.lo is not None and at < claim.lo) or (claim.hi is not None and at > claim.hi):
                return f"gives {value}, outside of its {what} {claim}"
    if result.domain is not None:
        try:
            key = as_python(value, result.type)
        except OverflowError:
            return f"gives {value}, outside of its domain"
        if key not in result.domain.values:
            return f"gives {key!r}, outside of its domain"
    if result.is_constant and not _same(value, result.constant, result.type):
        return f"gives {value!r}, not {result.constant!r}"
    return ""


def _same(value: Any, expected: Any, t: SqlType) -> bool:
    if value is None or expected is None:
        return value is expected
    if isinstance(value, float) or isinstance(expected, float):
        return float(value) == float(expected) or (math.isnan(value) and math.isnan(expected))
    try:
        return bool(as_python(value, t) == expected)
    except OverflowError:
        return False


def _python_disagrees(function: Function, args: Sequence[Argument], result: Value, got: Sequence[Any]) -> list[str]:
    """Rows where the function's Python twin gives another value than the engine."""
    assert function.python is not None
    rows = zip(*(a.values for a in args if a.values is not None), strict=True)
    seen = set()
    for row, value in zip(rows, got, strict=True):
        if repr(row) in seen:
            continue
        seen.add(repr(row))
        try:
            inputs = [as_python(v, a.value.type) for v, a in zip(row, args, strict=True)]
            expected = evaluate(function, inputs, result.type)
        except (ArithmeticError, ValueError, TypeError, AssertionError):
            continue
        if not _same(value, expected, result.type):
            return [f"gives {value!r} where Python gives {expected!r} for {row}: {function.name}"]
    return []
