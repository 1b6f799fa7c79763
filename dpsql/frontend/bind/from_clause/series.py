"""generate_series and range with constants, in FROM: the rows of a VALUES list, which are public.

    generate_series(DATE '2024-01-01', DATE '2024-01-03', INTERVAL 1 DAY) AS g(day)
        →  (VALUES (DATE '2024-01-01'), (DATE '2024-01-02'), (DATE '2024-01-03')) AS g(day)

Of days and whole days it gives days, where DuckDB and PostgreSQL give their midnights: so they are joined with days.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from dpsql.core.ir.nodes import Values
from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import DATE, TIMESTAMP, SqlType, integer_type_for
from dpsql.core.numbers.interval import interval
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject, too_large
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.from_clause.values import MOST_ROWS
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn
from dpsql.functions.registry import evaluate, lookup


def bind_series(node: exp.Expr, alias: str, binder: ExprBinder) -> BoundRelation:
    """Its rows, of one column: whole numbers, or times, as DuckDB and PostgreSQL count them.

    alias: of the relation, which its column is called by, too. Raises Rejected.
    """
    at = binder.span(node)
    binder.numbering.leaf(at)
    first, last = (_constant(binder, node.args.get(end), at) for end in ("start", "end"))
    step = node.args.get("step")
    type_: SqlType
    if isinstance(first, int) and isinstance(last, int):
        width = 1 if step is None else _constant(binder, step, at)
        if not isinstance(width, int) or width == 0:
            raise _no_series(at)
        values = _counted(first, lambda x: x + width, width > 0, last, bool(node.args.get("is_end_exclusive")), at)
        held = integer_type_for(interval(min(first, last), max(first, last)))
        if held is None:
            raise _no_series(at)
        type_ = held
    else:
        ends, moved, rises = (_time(first, at), _time(last, at)), *_step(step, at)
        values = _counted(ends[0], moved, rises, ends[1], bool(node.args.get("is_end_exclusive")), at)
        type_ = TIMESTAMP
        days = not any(isinstance(end, dt.datetime) for end in (first, last)) and isinstance(first, dt.date)
        if days and all(value.time() == dt.time() for value in values):  # a calendar of days, to be joined with days
            values, type_ = [value.date() for value in values], DATE
    if not values:
        raise reject("DP101", "the series has no rows", span=at, help=["write the lower end first"])
    column = binder.numbering.column(alias or "generate_series", type_)
    rows = tuple((value,) for value in values)
    return BoundRelation(Values((column,), rows, at), (VisibleColumn("", column.name, column),))


def _constant(binder: ExprBinder, node: Any, at: Span) -> Any:
    """The value of a constant expression, perhaps of the clock or a parameter."""
    if not isinstance(node, exp.Expr):
        raise _no_series(at)
    value = binder.value(binder.bind(node))
    if not value.is_constant or isinstance(value.constant, bool):
        raise _no_series(at)
    return value.constant


def _time(value: Any, at: Span) -> dt.datetime:
    if isinstance(value, str):
        read = literals.from_text(value, TIMESTAMP, at)
        value = None if read is None else read.value
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time())
    raise _no_series(at)


def _step(step: Any, at: Span) -> tuple[Callable[[dt.datetime], dt.datetime], bool]:
    """What makes the next time of one, and whether it is a later one."""
    if isinstance(step, exp.Literal) and step.args.get("is_string"):
        step = exp.Interval(this=step)
    if not isinstance(step, exp.Interval):
        raise _no_series(at)
    months = literals.months(step)
    if months:
        shift = lookup("date_shift")
        assert shift is not None

        def moved(x: dt.datetime) -> dt.datetime:
            found = evaluate(shift, (x, months, "month"), TIMESTAMP)
            assert isinstance(found, dt.datetime)
            return found

        return moved, months > 0
    length = literals.interval(step, at).value
    if not isinstance(length, dt.timedelta) or not length:
        raise _no_series(at)
    return lambda x: x + length, length > dt.timedelta()


def _counted(first: Any, moved: Callable[[Any], Any], rises: bool, last: Any, exclusive: bool, at: Span) -> list[Any]:
    def within() -> Iterator[Any]:
        x = first
        while (x < last if rises else x > last) or (x == last and not exclusive):
            yield x
            try:
                x = moved(x)
            except (OverflowError, ValueError):
                return

    found = []
    for x in within():
        take()
        found.append(x)
        if len(found) > MOST_ROWS:
            raise too_large(
                f"a series of more than {MOST_ROWS:,} rows", at, "custodian: provide a long list as a public table"
            )
    return found


def _no_series(at: Span) -> Rejected:
    return reject(
        "DP106", "a series takes constants: two whole numbers, or two times and an interval", span=at,
        help=["as in  generate_series(DATE '2024-01-01', DATE '2024-12-31', INTERVAL '1 day') AS g(day)"],
    )  # fmt: skip
