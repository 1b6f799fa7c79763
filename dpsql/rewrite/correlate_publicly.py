"""A correlated subquery is computed for the public values it is asked for, where its correlation names a public column.

`(SELECT AVG(l.qty) FROM lineitem l WHERE l.partkey = part.partkey)` is grouped by l.partkey, whose values are private;
only those of part.partkey are ever looked up. A semi join with that table makes them the public list of groups, and
changes no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from dpsql.plan.expr import Column
from dpsql.plan.nodes import Aggregate, Equality, Item, Join, JoinKind, Node, Project, Scan, output_columns
from dpsql.plan.walk import transform, walk
from dpsql.rewrite.context import RewriteContext


def correlate_publicly(root: Node, ctx: RewriteContext) -> Node:
    """Restrict the groups of correlated subqueries over private rows to the public values they are looked up by."""
    numbers = count(1 + max((c.uid for n in walk(root) for c in output_columns(n)), default=0))

    def change(node: Node) -> Node:
        if not isinstance(node, Join) or not node.scalar or not node.equalities:
            return node
        right = node.right
        for pair in node.equalities:
            if isinstance(pair.left, Column) and isinstance(pair.right, Column):
                table = _public_table(node.left, pair.left, ctx)
                if table is not None:
                    right = _restricted(right, pair.right, table, pair.left, numbers, ctx)
        return node if right is node.right else replace(node, right=right)

    return transform(root, change)


def _public_table(node: Node, column: Column, ctx: RewriteContext) -> Scan | None:
    """The public table whose column this is."""
    for scan in walk(node):
        if isinstance(scan, Scan) and ctx.analysis.table(scan.table).public and column in scan.columns:
            return scan
    return None


def _restricted(
    node: Node, key: Column, table: Scan, partner: Column, numbers: Iterator[int], ctx: RewriteContext
) -> Node:
    """The subquery with a semi join on its group column, below its aggregate."""
    match node:
        case Project(input=child, items=items):
            inner = next((i for i in items if i.column == key), None)
            if inner is None or not isinstance(inner.expr, Column):
                return node
            below = _restricted(child, inner.expr, table, partner, numbers, ctx)
            return node if below is child else replace(node, input=below)
        case Aggregate(input=child, keys=keys) if ctx.private(child):
            group: Item | None = next((k for k in keys if k.column == key), None)
            if group is None or group.expr.type != partner.type:
                return node
            columns = tuple(replace(c, uid=next(numbers)) for c in table.columns)
            listed = replace(table, columns=columns)
            own = columns[table.columns.index(partner)]
            return replace(
                node, input=Join(JoinKind.SEMI, child, listed, (Equality(group.expr, own),), span=table.span)
            )
        case _:
            return node
