"""Window functions over released values and within one unit: which there are, their types, how they are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Frame, SortKey, WindowCall
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, Kind, SqlType
from dpsql.core.printing.dialect import CannotSpell
from dpsql.core.printing.expressions import Names, cannot_compute, spell
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject

ResultType = Callable[[tuple[SqlType, ...]], SqlType]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """One window function; aggregates over a window keep the type that they have without one.

    least, most: how many arguments it takes. result: their types → its type.
    signature, summary: for the documentation.
    """

    least: int
    most: int
    result: ResultType
    signature: str
    summary: str


def _always(t: SqlType) -> ResultType:
    return lambda types: t


def _first(types: tuple[SqlType, ...]) -> SqlType:
    return types[0]


def _place(name: str, result: SqlType, summary: str) -> dict[str, WindowFunction]:
    return {name: WindowFunction(0, 0, _always(result), f"{name}()", summary)}


def _value(name: str, least: int, most: int, signature: str, summary: str) -> dict[str, WindowFunction]:
    return {
        name: WindowFunction(least, most, _first, signature, summary),
        f"{name} ignore nulls": WindowFunction(
            least, most, _first,
            signature.replace(")", " IGNORE NULLS)", 1), f"{summary[:-1]}; rows where x is NULL are skipped.",
        ),
    }  # fmt: skip


WINDOW_FUNCTIONS: Mapping[str, WindowFunction] = {
    **_place("row_number", BIGINT, "The row's number in its partition, from 1."),
    **_place("rank", BIGINT, "The number of the first row that sorts like this one."),
    **_place("dense_rank", BIGINT, "The number of different sort keys up to this row."),
    **_place("percent_rank", DOUBLE, "(rank - 1) / (rows of the partition - 1)."),
    **_place("cume_dist", DOUBLE, "The part of the partition's rows that do not sort behind this one."),
    "ntile": WindowFunction(
        1, 1, _always(BIGINT), "ntile(n: integer literal)",
        "The number of the row's bucket, of n buckets as equal as possible.",
    ),
    **_value("lag", 1, 3, "lag(x, n = 1, default = NULL)", "x of the row n rows before."),
    **_value("lead", 1, 3, "lead(x, n = 1, default = NULL)", "x of the row n rows after."),
    **_value("first_value", 1, 1, "first_value(x)", "x of the first row of the frame."),
    **_value("last_value", 1, 1, "last_value(x)", "x of the last row of the frame."),
    **_value("nth_value", 2, 2, "nth_value(x, n: integer literal)", "x of the frame's row n, from 1."),
}  # fmt: skip
"""Every window function that is no aggregate."""

AGGREGATES = ("count", "sum", "avg", "min", "max", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
"""The aggregates that the engine knows: over a window, and of groups of released or public rows."""


def require_known(function: str, span: Span | None) -> None:
    """Refuses an aggregate that is measured, and no function of the engine. Raises Rejected DP101."""
    if function not in (*AGGREGATES, *WINDOW_FUNCTIONS, "list"):
        raise reject(
            "DP101", f"{function.upper()} over released or public rows is not supported", span=span,
            help=["aggregate private rows with it, or use COUNT, SUM, AVG, MIN or MAX here"],
        )  # fmt: skip


def private_order(names: Names, columns: Sequence[Column]) -> tuple[str, ...]:
    """What decides between private rows of equal order: all of their columns, and the text of those with two forms.

    Rows that are still equal are the same, so that the order is total, whatever the order they arrive in.
    """
    held = [(names.sql[c.uid], c.type) for c in columns]
    return (*(sql for sql, _ in held), *(names.dialect.cast(sql, VARCHAR) for sql, t in held if not t.one_form))


def _reads_places(call: WindowCall) -> bool:
    """Whether a call tells rows of equal order apart."""
    name, _, _ = call.function.partition(" ")
    if name in AGGREGATES:
        return call.frame is not None and call.frame.unit == "ROWS"
    return name not in ("rank", "dense_rank", "percent_rank", "cume_dist")


def spell_window(call: WindowCall, names: Names, ties: Sequence[str] = ()) -> str:
    """A window call as SQL. ties: what decides between rows of equal order, where the rows are private."""
    require_known(call.function, call.span)
    zero = bool(ties) and call.function in ("min", "max")  # has one sign, as in groups
    args = [(_one_zero(a, names) if zero else spell(a, names)[0], a.type) for a in call.args]
    name, _, ignore_nulls = call.function.partition(" ")
    order = [sort_term(k, names) for k in call.order]
    if _reads_places(call):
        order += [names.dialect.sorted(sql, descending=False, nulls_first=False) for sql in ties]
    try:
        called = names.dialect.window(name, args, bool(ignore_nulls))
        terms, frame = names.dialect.over(name, order, call.frame)
    except CannotSpell as refusal:
        raise cannot_compute(call.function, names.dialect, call.span, str(refusal)) from None
    parts = []
    if call.partition:
        parts.append(f"PARTITION BY {', '.join(spell(p, names)[0] for p in call.partition)}")
    if terms:
        parts.append(f"ORDER BY {', '.join(terms)}")
    if frame is not None:
        parts.append(_frame(frame))
    return names.dialect.cast(f"{called} OVER ({' '.join(parts)})", call.column.type)


def _one_zero(arg: Expr, names: Names) -> str:
    sql, value = spell(arg, names)
    return names.dialect.positive_zero(sql, value.type) if value.type.kind is Kind.DOUBLE else sql


def sort_term(key: SortKey, names: Names) -> str:
    """One term of ORDER BY."""
    return names.dialect.sorted(spell(key.expr, names)[0], key.descending, key.nulls_first)


def _frame(frame: Frame) -> str:
    return f"{frame.unit} BETWEEN {_end(frame.start, 'PRECEDING')} AND {_end(frame.end, 'FOLLOWING')}"


def _end(offset: int | None, unbounded: str) -> str:
    if offset is None:
        return f"UNBOUNDED {unbounded}"
    if offset == 0:
        return "CURRENT ROW"
    return f"{abs(offset)} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"
