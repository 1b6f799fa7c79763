"""Inside an aggregate, a column is clipped to the bounds the policy declares for it.

Predicates, group keys and MODE, whose values are listed as keys are, see raw values. NULL stays NULL; NaN and ±∞ become
NULL. The length of a list is clipped to the column's `max_length`. A date or time is clipped in MIN and MAX, whose
values may be group keys (the month of a first order), in quantiles, and where a number is computed from it that has no
bounds otherwise: an age, a duration. A computed column of the policy without bounds of its own is written out, so that
those of the columns it is made of are used.

Example:
    >>> before_after(clip_columns, "SELECT SUM(cost) FROM visits WHERE cost > 5")
    aggregate SUM(cost)  →  aggregate SUM(CLIP(cost, 0.0, 1000.0))
    └─ filter cost > 5      └─ filter cost > 5
       └─ scan visits          └─ scan visits
"""

from __future__ import annotations

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Join, JoinKind, Node
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import transform, walk
from dpsql.core.value_classes import replace
from dpsql.frontend.aggregates.arguments import bound
from dpsql.planner.rewrites.joins.padding import is_null
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def clip_columns(root: Node, ctx: RewriteContext) -> Node:
    """Wrap every column with finite declared bounds inside the arguments of aggregates in CLIP."""

    def change(node: Aggregate) -> Node:
        if not ctx.private(node.input):
            return node
        facts = derive_once(node.input, ctx.analysis).fact
        padded = any(isinstance(n, Join) and n.kind in (JoinKind.LEFT, JoinKind.FULL) for n in walk(node.input))
        return replace(node, calls=tuple(_clipped(c, facts, ctx, padded) for c in node.calls))

    return transform(root, Aggregate, change)


def _clipped(call: AggregateCall, facts: Facts, ctx: RewriteContext, padded: bool) -> AggregateCall:
    extreme = call.function in ("min", "max")
    if call.arg is None or call.function == "mode" or (call.distinct and call.function == "count"):
        return call

    def change(e: Expr) -> Expr:
        if isinstance(e, Call) and _of_dates(e) and not facts.value(e).interval.bounded:
            return replace(e, args=tuple(transform_expr(a, clipped) if a.type.temporal else a for a in e.args))
        if e.type.numeric or extreme or call.p is not None:
            return clipped(e)
        return e

    def clipped(e: Expr) -> Expr:
        if isinstance(e, Call) and e.function == "list_length":
            most = _max_length(e.args[0], facts, ctx)
            ends = (Literal(0, e.type, e.span), Literal(most, e.type, e.span))
            return e if most is None else Call("clip", (e, *ends), e.type, e.span)
        if not isinstance(e, Column) or not (e.type.numeric or e.type.temporal):
            return e
        written = _written_out(e, facts, ctx)
        if written is not None:
            made = transform_expr(written, change)
            if padded and not is_null(written, columns_of(written)):  # of a row that is missing it would make a value
                there = Call("is_not_null", (e,), BOOLEAN)
                made = Call("case", (there, made, Literal(None, made.type)), made.type, e.span)
            return made if facts.value(made).interval.bounded else e  # else what is missing are bounds of its own
        hint = facts.columns[e.uid].hint
        if hint is None or hint.bounds is None or hint.bounds.lo is None or hint.bounds.hi is None:
            return e
        low, high = (bound(x, e.type, up) for x, up in ((hint.bounds.lo, False), (hint.bounds.hi, True)))
        return Call("clip", (e, low, high), e.type, e.span)

    second = None if call.second is None else transform_expr(call.second, change)
    return replace(call, arg=transform_expr(call.arg, change), second=second)


def _written_out(column: Column, facts: Facts, ctx: RewriteContext) -> Expr | None:
    """What a computed column without bounds is made of, over the columns of the same rows; None of any other column."""
    hint = facts.columns[column.uid].hint
    if hint is None or not hint.table:
        return None
    table = ctx.analysis.table(hint.table)
    declared, names = table.column(hint.column), tuple(table.columns)
    if declared is None or declared.computed is None or declared.bounds or declared.search_bounds:
        return None
    expr, same = declared.computed.expr, {}
    for uid, other in facts.columns.items():
        if other.hint is not None and (other.hint.table, other.hint.scan) == (hint.table, hint.scan):
            same[other.hint.column] = uid
    if expr is None or any(names[place] not in same for place in columns_of(expr)):
        return None

    def placed(e: Expr) -> Expr:
        return replace(e, uid=same[names[e.uid]], span=column.span) if isinstance(e, Column) else e

    return transform_expr(expr, placed)


def _max_length(arg: Expr, facts: Facts, ctx: RewriteContext) -> int | None:
    """The most elements of a list that the policy lets count; None where it is no column of a table, or says none."""
    hint = facts.columns[arg.uid].hint if isinstance(arg, Column) else None
    declared = ctx.analysis.table(hint.table).column(hint.column) if hint is not None and hint.table else None
    return None if declared is None else declared.max_length


def _of_dates(e: Call) -> bool:
    """Whether a number is computed from columns that are dates or times."""
    return e.type.numeric and any(a.type.temporal and columns_of(a) for a in e.args)
