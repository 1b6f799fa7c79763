"""Outer joins whose padded rows never count become inner joins: the same answer, with less noise.

A LEFT join becomes an inner one in two cases:

- a condition above it cannot hold for padded rows;
- the aggregate above it counts none of them, because each of its arguments is NULL there
  (`public LEFT JOIN t … COUNT(t.id)`). Where the public side lists the group keys, groups without rows are released
  all the same.

The second case needs care where another aggregate reads the groups. A group of padded rows alone (a customer without
orders) is a row of that aggregate. So the join stays as it is, unless the public side lists these groups here, too.

Example:
    >>> before_after(
    ...     narrow_joins, "SELECT COUNT(v.visit) FROM patients p LEFT JOIN visits v ON v.patient = p.patient"
    ... )
    join left patient = patient  →  join inner patient = patient
    ├─ scan patients                ├─ scan patients
    └─ scan visits                  └─ scan visits
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Expr, columns_of
from dpsql.core.ir.nodes import Aggregate, Filter, Join, JoinKind, Node, Scan, inputs, output_columns
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import walk, with_inputs
from dpsql.core.value_classes import replace, value
from dpsql.planner.rewrites.joins.padding import is_null, value_where_null
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def narrow_joins(root: Node, ctx: RewriteContext) -> Node:
    """Make inner joins of the outer joins whose padded rows are left out above them."""
    if not any(isinstance(node, Join) and node.kind is JoinKind.LEFT for node in walk(root)):
        return root
    return _narrowed(root, [], _Use(), ctx)


@value(frozen=True, slots=True)
class _Use:
    """What the rows are for.

    counted: the arguments of the aggregate above, if that is all that is made of them. grouped: by keys, and each group
    is a row of another aggregate. below: some aggregate is above on this branch.
    """

    counted: Sequence[Expr] | None = None
    grouped: bool = False
    below: bool = False

    @property
    def rows(self) -> _Use:
        """For rows that are used otherwise before they are counted."""
        return _Use(below=self.below)


def _narrowed(node: Node, required: list[Expr], use: _Use, ctx: RewriteContext) -> Node:
    """required: conditions that rows must meet to be of use."""
    match node:
        case Aggregate(input=child, keys=keys, calls=calls):
            arguments = [c.arg for c in calls if c.arg is not None]
            known = bool(calls) and len(arguments) == len(calls)
            below = _narrowed(child, [], _Use(arguments if known else None, use.below and bool(keys), True), ctx)
            return node if below is child else replace(node, input=below)
        case Filter(input=child, predicate=predicate):
            below = _narrowed(child, [*required, *conjuncts(predicate)], use, ctx)
            return node if below is child else replace(node, input=below)
        case Join(kind=kind, left=left, right=right):
            if kind is JoinKind.LEFT and not node.scalar and _left_out(right, left, required, use, ctx):
                return _narrowed(replace(node, kind=JoinKind.INNER, narrowed=True), required, use, ctx)
            inner = kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar
            terms = (
                [*required, *(_present(e) for pair in node.equalities for e in (pair.left, pair.right))]
                if inner
                else required
            )
            other = _Use() if node.scalar else use.rows
            new_left = (
                _narrowed(left, terms, use, ctx) if kind is not JoinKind.FULL else _narrowed(left, [], use.rows, ctx)
            )
            new_right = _narrowed(right, terms, use, ctx) if inner else _narrowed(right, [], other, ctx)
            return with_inputs(node, (new_left, new_right))
        case _:
            return with_inputs(node, tuple(_narrowed(child, [], use.rows, ctx) for child in inputs(node)))


def _left_out(padded: Node, kept: Node, required: list[Expr], use: _Use, ctx: RewriteContext) -> bool:
    """Whether rows of `kept` without a partner in `padded` are of no use."""
    missing = {c.uid for c in output_columns(padded)}
    if any(columns_of(term) & missing and not _may_hold(term, missing) for term in required):
        return True
    if use.counted is None or not ctx.private(padded):
        return False
    if use.grouped and (ctx.private(kept) or _by_rows(padded, ctx)):
        return False
    return all(columns_of(e) & missing and is_null(e, missing) for e in use.counted)


def _by_rows(node: Node, ctx: RewriteContext) -> bool:
    """Whether rows are the unit: then groups below another aggregate stay private, and nothing lists them."""
    return any(isinstance(n, Scan) and ctx.analysis.table(n.table).by_rows for n in walk(node))


def _present(expr: Expr) -> Expr:
    """What an equality asks of each of its sides: FALSE is a value like others there."""
    return Call("is_not_null", (expr,), BOOLEAN)


def _may_hold(term: Expr, missing: set[int]) -> bool:
    """False only if the condition is certainly NULL or false for padded rows."""
    value = value_where_null(term, missing)
    return value is None or not value.is_constant or (value.constant is not None and value.constant is not False)
