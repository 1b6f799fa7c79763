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

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.core.ir.expressions import Column, columns_of
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
    SetColumn,
    SetOperation,
    Unnest,
    output_columns,
)
from dpsql.core.ir.walk import transform, unused_numbers
from dpsql.core.ir.walk import walk as walk_nodes
from dpsql.core.value_classes import replace
from dpsql.planner.rewrites.joins.padding import is_null
from dpsql.planner.rewrites.releases.gather_branches import Definitions, gathered, is_part, written_out
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def inline_projections(root: Node, ctx: RewriteContext) -> Node:
    """Inline every projection below an aggregate that reads private tables, directly or through other aggregates."""
    numbers = unused_numbers(root)

    def change(node: Aggregate) -> Node:
        found = _Inlining(ctx, numbers, bool(node.keys))
        if not found.reads_private(node):
            return node
        below, known = found.inlined(node.input)
        if below is node.input:
            return node
        keys = tuple(replace(k, expr=written_out(k.expr, known)) for k in node.keys)
        calls = tuple(
            replace(
                c,
                arg=None if c.arg is None else written_out(c.arg, known),
                second=None if c.second is None else written_out(c.second, known),
                filter=None if c.filter is None else written_out(c.filter, known),
            )
            for c in node.calls
        )
        return replace(node, input=below, keys=keys, calls=calls)

    return transform(root, Aggregate, change)


@dataclass(frozen=True, slots=True)
class _Inlining:
    """numbers: unused, of columns. grouped: whether what is inlined is grouped."""

    ctx: RewriteContext
    numbers: Iterator[int]
    grouped: bool

    def reads_private(self, node: Node) -> bool:
        """Whether any table below is private."""
        tables = (n.table for n in walk_nodes(node) if isinstance(n, Scan))
        return any(not self.ctx.analysis.table(name).public for name in tables)

    def inlined(self, node: Node, part: bool = False) -> tuple[Node, Definitions]:
        """The node without projections, and what its columns are in terms of the new node's columns: nothing, if it is
        the very same node. part: of a UNION whose branches were looked at."""
        match node:
            case Project(input=child, items=items):
                child, items = _called(child, items)
                below, known = self.inlined(child, part)
                return below, {**known, **{i.column.uid: written_out(i.expr, known) for i in items}}
            case Filter(input=child, predicate=predicate):
                below, known = self.inlined(child)
                if below is child:
                    return node, known
                return replace(node, input=below, predicate=written_out(predicate, known)), known
            case Unnest(input=child, list=listed):
                below, known = self.inlined(child)
                return (node if below is child else replace(node, input=below, list=written_out(listed, known))), known
            case Join(left=left, right=right, kind=kind):
                padded = kind in (JoinKind.FULL, JoinKind.LEFT)
                below_left, known_left = self.padded(left) if kind is JoinKind.FULL else self.inlined(left)
                below_right, known_right = self.padded(right) if padded else self.inlined(right)
                if below_left is left and below_right is right:
                    return node, {}
                known = {**known_left, **known_right}
                pairs = [(written_out(e.left, known), written_out(e.right, known)) for e in node.equalities]
                return replace(
                    node,
                    left=below_left,
                    right=below_right,
                    equalities=tuple(Equality(*pair) for pair in pairs),
                    residual=None if node.residual is None else written_out(node.residual, known),
                ), known
            case SetOperation(left=left, right=right, columns=columns):
                found = None if part else gathered(node, self.inlined, self.reads_private, self.numbers, self.grouped)
                if found is not None:
                    return found
                below_left, known_left = self.inlined(left, is_part(left, node))
                below_right, known_right = self.inlined(right, is_part(right, node))
                if below_left is left and below_right is right:
                    return node, {}
                used = [(written_out(c.left, known_left), written_out(c.right, known_right)) for c in columns]
                made = tuple(SetColumn(c.column, *pair) for c, pair in zip(columns, used, strict=True))
                return replace(node, left=below_left, right=below_right, columns=made), {}
            case _:
                return node, {}

    def padded(self, node: Node) -> tuple[Node, Definitions]:
        """As `inlined`, for rows that may be missing: where they are, every definition has to be NULL."""
        below, known = self.inlined(node)
        if below is node or all(is_null(e, columns_of(e)) for e in known.values()):
            return below, known
        return Project(below, tuple(Item(c, known.get(c.uid, c)) for c in output_columns(node))), {}


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
