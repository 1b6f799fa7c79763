"""Below an aggregate over private rows, CTEs and derived tables disappear: their expressions stand where they are used.

After this, expressions read the columns of tables (and of earlier releases) only, so that clips reach the columns the
policy bounds, and one question asked in several ways gives one plan. A projection stays where its values are more than
its columns: on the padded side of an outer join, an expression that is not NULL for columns that are.

Example:
    >>> before_after(inline_projections, "WITH v AS (SELECT cost / 2 AS half FROM visits) SELECT SUM(half) FROM v")
    aggregate SUM(half)  →  aggregate SUM(cost / 2)
    └─ project half         └─ scan visits
       └─ scan visits
"""

from __future__ import annotations

from dpsql.core.ir.expressions import MOST_NODES, Column, Expr, columns_of, larger_than
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Equality,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    SetOperation,
    Unnest,
    output_columns,
)
from dpsql.core.ir.walk import transform
from dpsql.core.ir.walk import walk as walk_nodes
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import too_large
from dpsql.planner.rewrites.joins.padding import is_null
from dpsql.planner.rewrites.rewrite_context import RewriteContext

Definitions = dict[int, Expr]


def inline_projections(root: Node, ctx: RewriteContext) -> Node:
    """Inline every projection below an aggregate that reads private tables, directly or through other aggregates."""

    def change(node: Aggregate) -> Node:
        if not _reads_private(node, ctx):
            return node
        below, known = _inlined(node.input)
        if below is node.input:
            return node
        keys = tuple(replace(k, expr=_use(k.expr, known)) for k in node.keys)
        calls = tuple(
            replace(
                c,
                arg=None if c.arg is None else _use(c.arg, known),
                second=None if c.second is None else _use(c.second, known),
                filter=None if c.filter is None else _use(c.filter, known),
            )
            for c in node.calls
        )
        return replace(node, input=below, keys=keys, calls=calls)

    return transform(root, Aggregate, change)


def _reads_private(node: Node, ctx: RewriteContext) -> bool:
    return any(isinstance(n, Scan) and not ctx.analysis.table(n.table).public for n in walk_nodes(node))


def _inlined(node: Node) -> tuple[Node, Definitions]:
    """The node without projections, and what its columns are in terms of the new node's columns: nothing, if it is
    the very same node."""
    match node:
        case Project(input=child, items=items):
            child, items = _called(child, items)
            below, known = _inlined(child)
            return below, {**known, **{i.column.uid: _use(i.expr, known) for i in items}}
        case Filter(input=child, predicate=predicate):
            below, known = _inlined(child)
            return (node if below is child else replace(node, input=below, predicate=_use(predicate, known))), known
        case Unnest(input=child, list=listed):
            below, known = _inlined(child)
            return (node if below is child else replace(node, input=below, list=_use(listed, known))), known
        case Join(left=left, right=right, kind=kind):
            below_left, known_left = _padded(left) if kind is JoinKind.FULL else _inlined(left)
            below_right, known_right = _padded(right) if kind in (JoinKind.FULL, JoinKind.LEFT) else _inlined(right)
            if below_left is left and below_right is right:
                return node, {}
            known = {**known_left, **known_right}
            return replace(
                node,
                left=below_left,
                right=below_right,
                equalities=tuple(Equality(_use(e.left, known), _use(e.right, known)) for e in node.equalities),
                residual=None if node.residual is None else _use(node.residual, known),
            ), known
        case SetOperation(left=left, right=right, columns=columns):
            below_left, known_left = _inlined(left)
            below_right, known_right = _inlined(right)
            if below_left is left and below_right is right:
                return node, {}
            used = tuple(replace(c, left=_use(c.left, known_left), right=_use(c.right, known_right)) for c in columns)
            return replace(node, left=below_left, right=below_right, columns=used), {}
        case _:
            return node, {}


def _called(node: Node, items: tuple[Item, ...]) -> tuple[Node, tuple[Item, ...]]:
    """Aggregates under the names that the projection above gives them: messages about them speak of those."""
    match node:
        case Filter(input=child):
            below, items = _called(child, items)
            return replace(node, input=below), items
        case Aggregate(calls=calls):
            names = {i.expr.uid: i.column.name for i in items if isinstance(i.expr, Column)}
            named = {c.column.uid: replace(c.column, name=names.get(c.column.uid, c.column.name)) for c in calls}
            renamed = tuple(
                replace(i, expr=replace(i.expr, name=named[i.expr.uid].name))
                if isinstance(i.expr, Column) and i.expr.uid in named
                else i
                for i in items
            )
            return replace(node, calls=tuple(replace(c, column=named[c.column.uid]) for c in calls)), renamed
        case _:
            return node, items


def _padded(node: Node) -> tuple[Node, Definitions]:
    """As `_inlined`, for rows that may be missing: where they are, every definition has to be NULL."""
    below, known = _inlined(node)
    if below is node or all(is_null(e, columns_of(e)) for e in known.values()):
        return below, known
    return Project(below, tuple(Item(c, known.get(c.uid, c)) for c in output_columns(node))), {}


def _use(expr: Expr, known: Definitions) -> Expr:
    def change(e: Expr) -> Expr:
        if isinstance(e, Column) and e.uid in known:
            found = known[e.uid]
            # Point at where the analyst used it: that is the text the message is about.
            return replace(found, span=e.span) if e.span is not None and isinstance(found, Column) else found
        return e

    found = transform_expr(expr, change)
    if found is not expr and larger_than(found, MOST_NODES):
        raise too_large(
            "the expression is too large", expr.span,
            "a column of a WITH query is written out wherever it is used: use it fewer times",
        )  # fmt: skip
    return found
