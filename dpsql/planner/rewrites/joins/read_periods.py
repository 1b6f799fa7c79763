"""Which periods of a growing table a query reads: those in which its own conditions may be true, of the closed ones.

A guess: the core prints it below everything else, so that a wrong one gives wrong numbers, and never less privacy.
Nothing is inferred through DISTINCT, GROUP BY, a window, LIMIT or the padded side of an outer join. Of two tables that
are joined by their days, either reads the days of which the other one's conditions may be true.

Example:
    >>> before_after(read_periods, "SELECT COUNT(*) FROM trips WHERE day >= DATE '2026-01-03'")
    scan trips  →  scan trips 2026-01-03 … 2026-01-10
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsql.core.analysis.period_parts import last_of
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column, Expr, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Filter, Join, JoinKind, Node, Project, Scan, Unnest, inputs
from dpsql.core.ir.periods import DAY, ReadPeriods, common, covers, words
from dpsql.core.ir.periods import Span as Days
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import with_inputs
from dpsql.core.policy.growing import Growth, close_first
from dpsql.core.policy.tables import Table
from dpsql.core.value_classes import replace
from dpsql.core.values.value import MISSING
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.functions.expression_values import evaluate
from dpsql.planner.rewrites.rewrite_context import RewriteContext

ALL: Sequence[Days] = ((dt.date.min, None),)
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def read_periods(root: Node, ctx: RewriteContext) -> Node:
    """Say of every scan of a growing table what it reads. Raises Rejected DP017: nothing."""
    if not any(table.grows for table in ctx.analysis.policy.tables.values()):
        return root
    return _read(root, (), ctx)


def all_closed(table: Table, span: Span | None, ctx: RewriteContext) -> ReadPeriods | None:
    """All that may be read of a growing table; None for any other. Raises Rejected DP017: no period is closed."""
    return None if table.grows is None else _periods(table, table.grows, ALL, span, ctx)


def _read(node: Node, terms: tuple[Expr, ...], ctx: RewriteContext) -> Node:
    """terms: conditions that every row has to satisfy which matters above."""
    match node:
        case Scan(table=name):
            table = ctx.analysis.table(name)
            if table.grows is None:
                return node
            day = next(c for c in node.columns if c.name == table.grows.by)
            days = ALL
            for term in terms:
                days = common(days, _possible(term, day).days)
            return replace(node, periods=_periods(table, table.grows, days, node.span, ctx))
        case Filter(input=child, predicate=predicate):
            return with_inputs(node, (_read(child, (*terms, *conjuncts(predicate)), ctx),))
        case Unnest(input=child):
            return with_inputs(node, (_read(child, terms, ctx),))
        case Project(input=child, items=items):
            made = {item.column.uid: item.expr for item in items}
            return with_inputs(node, (_read(child, tuple(_replaced(t, made) for t in terms), ctx),))
        case Join(kind=kind, left=left, right=right):
            own = () if node.residual is None else tuple(conjuncts(node.residual))
            inner = kind in (JoinKind.INNER, JoinKind.CROSS)
            # Rows that the other side pads satisfy nothing of ON; nor do those that an ANTI join keeps.
            of_left = (*terms, *own) if inner or kind is JoinKind.SEMI else () if kind is JoinKind.FULL else terms
            of_right = (*terms, *own) if inner else () if kind is JoinKind.FULL else own
            if kind is not JoinKind.FULL:  # what is true of one side's day is true of the day that it equals
                pairs = [(e.left, e.right) for e in node.equalities]
                more = _moved((*terms, *_above(left)), pairs)
                of_left += _moved((*terms, *_above(right)), [(b, a) for a, b in pairs]) if inner else ()
                of_right += more
            return with_inputs(node, (_read(left, of_left, ctx), _read(right, of_right, ctx)))
        case _:
            return with_inputs(node, tuple(_read(child, (), ctx) for child in inputs(node)))


def _above(node: Node) -> tuple[Expr, ...]:
    """The conditions of the filters that a side begins with."""
    found: list[Expr] = []
    while isinstance(node, Filter):
        found += conjuncts(node.predicate)
        node = node.input
    return tuple(found)


def _moved(terms: Sequence[Expr], pairs: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, ...]:
    """Conditions of one side's columns alone, of those that equal them."""
    made = {a.uid: b for a, b in pairs if isinstance(a, Column) and isinstance(b, Column) and a.type == b.type}
    return tuple(_replaced(t, made) for t in terms if (read := columns_of(t)) and read <= made.keys())


def _replaced(term: Expr, made: Mapping[int, Expr]) -> Expr:
    return transform_expr(term, lambda e: made.get(e.uid, e) if isinstance(e, Column) else e)


def _periods(table: Table, grows: Growth, days: Sequence[Days], span: Span | None, ctx: RewriteContext) -> ReadPeriods:
    closed = ctx.analysis.public.closed(table.name)
    readable = grows.readable(closed)
    found = common(grows.whole(common(days, ((grows.first, None),))), readable)
    found = common(found, ctx.only.get(table.name, ALL))
    if found:
        times = 0 if closed is None else closed.times(found)
        return ReadPeriods(grows.by, found, times, grows.every, tuple(_missing(days, readable, grows)))
    if not readable:
        raise reject(
            "DP017", f"{table.name}: no period is closed yet", span=span, help=[close_first(table.name)]
        )  # fmt: skip
    raise reject(
        "DP017", f"{table.name}: the query reads no closed period", span=span,
        help=[f"closed and kept are  {words(readable)}:  WHERE {grows.by} >= DATE '{readable[0][0]}'"],
    )  # fmt: skip


def _missing(asked: Sequence[Days], readable: Sequence[Days], grows: Growth) -> Iterator[str]:
    """What a query asks for outside of the days that may be read. Before the first period only what it names."""
    (first, _), (_, last) = readable[0], readable[-1]
    early = [day for day, _ in asked if day < first]
    if first > grows.first and early:
        yield f"what is earlier than {first} is kept no longer: not read"
    elif any(day > dt.date.min for day in early):
        yield f"what is earlier than {first} is before the first period: not read"
    if last is not None and any(end is None or end > last for _, end in asked):
        yield f"what is later than {last} is not closed: not read"


# --- one condition ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PossibleDays:
    """The days on which a condition may be true, whatever other columns hold. only: it is true on all of these."""

    days: Sequence[Days] = ALL
    only: bool = False


def holds(term: Expr, day: Column, days: Sequence[Days]) -> bool:
    """Whether a condition is known to be true of every row of these days."""
    found = _possible(term, day)
    return found.only and covers(found.days, days)


def _possible(term: Expr, day: Column) -> PossibleDays:
    match term:
        case Call(function="and", args=args):
            found = PossibleDays(only=True)
            for each in (_possible(arg, day) for arg in args):
                found = PossibleDays(common(found.days, each.days), found.only and each.only)
            return found
        case Call(function="or", args=args):
            return _either(_possible(arg, day) for arg in args)
        case Call(function="in", args=(subject, *rest)):
            return _either(_compared("eq", subject, each, day) for each in rest)
        case Call(function=name, args=(left, right)) if name in _FLIPPED:
            if columns_of(right):
                return _compared(_FLIPPED[name], right, left, day)
            return _compared(name, left, right, day)
    return PossibleDays()


def _either(each: Iterable[PossibleDays]) -> PossibleDays:
    found = list(each)
    return PossibleDays([span for own in found for span in own.days], all(own.only for own in found))


def _compared(name: str, subject: Expr, bound: Expr, day: Column) -> PossibleDays:
    """Of `subject name bound`, where the one is the day, or the beginning of its month, and the other is a constant."""
    at = _date(bound)
    last = last_of(subject, day)
    if at is None or last is None:
        return PossibleDays()
    if not isinstance(subject, Column):  # of another day than the first of a month no row has it
        begins = at > dt.date.min and last(at - DAY) < at
        return PossibleDays(((at, last(at)),), begins) if name == "eq" else PossibleDays()
    try:
        match name:
            case "eq":
                return PossibleDays(((at, at),), only=True)
            case "ge":
                return PossibleDays(((at, None),), only=True)
            case "gt":
                return PossibleDays(((at + DAY, None),), only=True)
            case "le":
                return PossibleDays(((dt.date.min, at),), only=True)
            case "lt":
                return PossibleDays(((dt.date.min, at - DAY),), only=True)
    except OverflowError:  # there is no such day
        return PossibleDays((), only=True)
    return PossibleDays()


def _date(bound: Expr) -> dt.date | None:
    """The day that a constant is; None if it is none, or a time within one."""
    if columns_of(bound):
        return None
    try:
        constant = evaluate(bound, {}).constant
    except Rejected:
        return None
    if constant is MISSING or not isinstance(constant, dt.date):
        return None
    if isinstance(constant, dt.datetime):
        return constant.date() if constant.time() == dt.time() and bound.type.kind is Kind.TIMESTAMP else None
    return constant
