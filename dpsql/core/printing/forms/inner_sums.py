"""Inner sums (F10): what is added up of the rows of one unit is exact, has no order and does not overflow.

*Claim.* An aggregate of a group of private rows has one value, whatever the order of rows and the engine's threads, and
fails for none. *Why.* A sum adds integers of a grid, each clipped to ±2⁶² at most (F1), in 128 bits, which hold 2⁴⁰
rows of them; an average divides two such sums, and a variance products of them that are cut to what 2³² rows can give.
Zeros lose their sign. DISTINCT tells values of the grid apart. *When it would be false.* A sum of DOUBLEs as they are;
a product that is cut after it has overflowed; a sum that is cast to the type of its column before it is known to fit:
that type holds 2⁴⁰ rows of the argument's.
*Not proved:* a sum of integers that does not overflow is E2.
*Tested by* tests/core/analysis/test_aggregate.py,
tests/core/printing/test_spreads.py, tests/deep/core/analysis/test_operators.py.

    SUM(CASE WHEN i.a0 < … END)                                     DuckDB: of integers a HUGEINT
    SUM(CAST(GREATEST(LEAST(i.a0, …), …) AS numeric))               PostgreSQL: exact
    SUM(…a0 >> 44) * 2⁴⁴ + SUM(…) * 2²² + SUM(…)                    Spark: three sums of 64 bits
"""

from __future__ import annotations

from dpsql.core.analysis.rules.private_aggregate import VARIANCES
from dpsql.core.ir.components import ValueSum
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, Kind, SqlType
from dpsql.core.printing.expressions import Names
from dpsql.core.printing.forms.one_row import one_zero
from dpsql.core.printing.grid_integers import clipped_column, held_in, quantized
from dpsql.core.printing.waist import text
from dpsql.diagnostics.errors import reject

MOST_ROWS = 2**32
"""Rows of a group from which on its variance is NULL."""


def exact_call(c: AggregateCall, names: Names) -> str:
    """An aggregate of private rows."""
    d, where = names.dialect, filter_of(c, names)
    if c.arg is None:
        return f"COUNT(*){where}"
    sql, value = text(c.arg, names)
    match c.function:
        case "count":
            return f"COUNT({'DISTINCT ' if c.distinct else ''}{sql}){where}"
        case "min" | "max":
            return d.aggregate(c.function.upper(), one_zero(sql, value.type, names), value.type, where)
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
    d, where = names.dialect, filter_of(c, names)
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


def filter_of(c: AggregateCall, names: Names) -> str:
    """Its FILTER, with a blank before it."""
    return "" if c.filter is None else f" FILTER (WHERE {text(c.filter, names)[0]})"
