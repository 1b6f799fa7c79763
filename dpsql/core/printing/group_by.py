"""GROUP BY that is no release: plain SQL over public rows, exact and order-free over private ones.

A value that one unit's rows give must not depend on how the engine spreads other units' rows over its threads: sums of
DOUBLEs and of squares are made of integers on a grid, averages and variances divide such sums, and zeros lose their
sign. DISTINCT tells values of the grid apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from dpsql.core.analysis.rules.private_aggregate import VARIANCES
from dpsql.core.ir.components import ValueSum
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Aggregate, AggregateCall
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, Kind, SqlType
from dpsql.core.printing.block import Block
from dpsql.core.printing.dialect import CannotSpell
from dpsql.core.printing.expressions import Names, cannot_compute, spell
from dpsql.core.printing.grid_integers import clipped_column, held_in, quantized
from dpsql.core.printing.waist import text, waist
from dpsql.core.printing.windows import require_known
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import number

MOST_ROWS = 2**32
"""Rows of a group from which on its variance is NULL."""


def grouped(node: Aggregate, block: Block, columns: Sequence[Column] | None, private: bool) -> str:
    """A complete SELECT whose columns are named c<number>. Public groups come in the order of their keys."""
    spelled = _exact_call if private else _plain_call
    made = [*(k.column.uid for k in node.keys), *(c.column.uid for c in node.calls)]

    def all_of(names: Names) -> list[str]:
        terms = [_key(k.expr, k.column, names, private) for k in node.keys]
        return [*terms, *(spelled(c, names) for c in node.calls)]

    items, block = waist(block, all_of)
    keys, printed = items[: len(node.keys)], dict(zip(made, items, strict=True))
    chosen = list(printed) if columns is None else [c.uid for c in columns]
    listed = [f"{printed[uid]} AS c{uid}" for uid in chosen]
    if not keys:
        return f"SELECT {', '.join(listed) or 'COUNT(*) AS nothing'}\n{block.clause()}"
    terms = ", ".join(keys)
    # In full: what a bare ORDER BY means is a setting of whoever owns the connection.
    ordered = [block.names.dialect.sorted(sql, descending=False, nulls_first=False) for sql in keys]
    order = "" if private else f"\nORDER BY {', '.join(ordered)}"
    return f"SELECT {', '.join(listed) or 'NULL'}\n{block.clause()}\nGROUP BY {terms}{order}"


def _key(expr: Expr, column: Column, names: Names, private: bool) -> str:
    sql, value = spell(expr, names)
    if value.is_constant:
        sql = names.dialect.cast(sql, column.type)  # a bare number in GROUP BY and ORDER BY names a column of the list
    return _one_zero(sql, column.type, names) if private else sql


def _one_zero(sql: str, type_: SqlType, names: Names) -> str:
    """Zero has one sign: which of two equal values stands for both would depend on the order of rows."""
    return names.dialect.positive_zero(sql, type_) if type_.kind is Kind.DOUBLE else sql


def _plain_call(c: AggregateCall, names: Names) -> str:
    if c.p is not None:
        return _plain_quantile(c, c.p, names)
    if c.function == "mode":
        return _plain_mode(c, names)
    require_known(c.function, c.span)
    arg, type_ = ("*", BIGINT) if c.arg is None else (spell(c.arg, names)[0], c.arg.type)
    try:
        called = names.dialect.aggregate(c.function, arg, type_, _where(c, names), c.distinct)
    except CannotSpell as refusal:
        raise cannot_compute(c.function, names.dialect, c.span, str(refusal)) from None
    return names.dialect.cast(called, c.column.type)


def _plain_mode(c: AggregateCall, names: Names) -> str:
    """Of equally frequent values the first in order: the least, or the greatest where DESC was written."""
    assert c.arg is not None
    if c.arg.type.kind in (Kind.LIST, Kind.INTERVAL, Kind.BLOB):
        raise reject(
            "DP101", f"MODE of {c.arg.type} is not supported", span=c.span,
            help=["compute a number, a date or a text from it first"],
        )  # fmt: skip
    arg = _one_zero(spell(c.arg, names)[0], c.arg.type, names)
    term = names.dialect.sorted(arg, descending=c.descending, nulls_first=False)
    return names.dialect.cast(f"MODE() WITHIN GROUP (ORDER BY {term}){_where(c, names)}", c.column.type)


_DIGITS = 17


def _plain_quantile(c: AggregateCall, p: Fraction, names: Names) -> str:
    """As written: at or above the share 1 - p where that was asked for, which is another value if p·N is an integer.

    A p that no decimal is, is rounded down: the engine takes the least value with at least the share p below it, and
    for fewer than 10^11 rows that of a p less than 10^-17 lower is the same (p's denominator is at most 10^6).
    """
    assert c.arg is not None
    if c.function == "quantile_cont" and c.column.type.kind is Kind.DATE:
        name, arg = c.written or c.function.upper(), c.arg.name if isinstance(c.arg, Column) else "…"
        raise reject(
            "DP101", f"{name} of dates over released or public rows is not supported", span=c.span,
            label="may lie between two days", help=[f"a day that is there:  QUANTILE_DISC({arg}, {number(p)})"],
        )  # fmt: skip
    share = floor((1 - p if c.descending else p) * 10**_DIGITS)
    term = names.dialect.sorted(spell(c.arg, names)[0], descending=c.descending, nulls_first=False)
    ordered = f"PERCENTILE_{c.function[-4:].upper()}(0.{share:0{_DIGITS}}) WITHIN GROUP (ORDER BY {term})"
    return names.dialect.cast(f"{ordered}{_where(c, names)}", c.column.type)


def _exact_call(c: AggregateCall, names: Names) -> str:
    d, where = names.dialect, _where(c, names)
    if c.arg is None:
        return f"COUNT(*){where}"
    sql, value = text(c.arg, names)
    match c.function:
        case "count":
            return f"COUNT({'DISTINCT ' if c.distinct else ''}{sql}){where}"
        case "min" | "max":
            return d.aggregate(c.function.upper(), _one_zero(sql, value.type, names), value.type, where)
        case "sum" | "avg":
            pass
        case name if name in VARIANCES and not c.distinct and c.summed is not None:
            return _spread(c, c.summed, names)
        case _:
            raise reject("DP101", f"{c.function.upper()} is not supported here", span=c.span)
    distinct = "DISTINCT " * c.distinct

    def added(sql: str, type_: SqlType) -> str:
        return d.total(sql, type_, where, c.distinct)

    if c.summed is not None and c.column.type == HUGEINT:
        return f"COALESCE({d.total(quantized(c.summed, names), held_in(c.summed), where)}, 0)"
    if value.type.kind is Kind.DOUBLE:
        if c.summed is None:
            raise reject("DP904", "a sum over private rows has no grid", span=c.span)
        units = clipped_column(c.summed, names)
        total = f"{d.cast(added(units, INTEGER), DOUBLE)} * {d.constant(float(c.summed.grid), DOUBLE)}"
        if c.function == "sum":
            return f"({total})"
        return f"({total} / COUNT({distinct}{units}){where})"
    if c.function == "avg":
        return f"({d.cast(added(sql, value.type), DOUBLE)} / COUNT({distinct}{sql}){where})"
    return d.cast(added(sql, value.type), c.column.type)


def _spread(c: AggregateCall, y: ValueSum, names: Names) -> str:
    """A variance, or its root: (n·Σy² - (Σy)²) / n², or over n·(n - 1); NULL of too few rows.

    y is of at most 2³⁰ units. While n is below 2³² the difference fits 128 bits, exact and never below 0. Of more rows
    it is NULL: whatever stands in the products is cut to what rows below that number can give, so that none fails.
    """
    d, where = names.dialect, _where(c, names)
    units = d.cast(clipped_column(y, names), BIGINT)
    counted = d.wide(f"COUNT({units}){where}")
    few, end = d.wide(str(MOST_ROWS)), d.wide(str(MOST_ROWS * 2**30))
    n = d.least(counted, few)
    squares = d.least(d.wide(d.total(f"{units} * {units}", BIGINT, where)), d.wide(str(MOST_ROWS * 2**60)))
    total = d.least(d.greatest(d.wide(d.total(units, BIGINT, where)), f"-{end}"), end)
    pairs = f"{n} * ({n} - 1)" if c.function.endswith("samp") else f"{n} * {n}"
    pairs = f"CASE WHEN {counted} < {few} THEN {pairs} END"
    found = f"{d.cast(f'{n} * {squares} - {total} * {total}', DOUBLE)} / NULLIF({d.cast(pairs, DOUBLE)}, 0)"
    if c.function.startswith("stddev"):
        return f"(SQRT({found}) * {d.constant(float(y.grid), DOUBLE)})"
    return f"({found} * {d.constant(float(y.grid**2), DOUBLE)})"


def _where(c: AggregateCall, names: Names) -> str:
    return "" if c.filter is None else f" FILTER (WHERE {text(c.filter, names)[0]})"
