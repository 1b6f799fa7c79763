"""A subquery that is correlated with public columns is computed for the public values that it is looked up by.

`(SELECT AVG(l.qty) FROM lineitem l WHERE l.partkey = part.partkey)` is grouped by l.partkey, whose values are private.
Only those of the part table, under the query's own conditions on it, are ever looked up. A semi join with a second
reading of these rows makes them the public list of groups. It changes no answer.

Example:
    >>> before_after(
    ...     correlate_publicly, "SELECT chapter, (SELECT COUNT(*) FROM visits v WHERE v.code = i.code) FROM icd10 i"
    ... )
    scan visits  →  join semi code = code
                    ├─ scan visits
                    └─ scan icd10
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpsql.core.ir.conditions import conjunction, conjuncts
from dpsql.core.ir.expressions import Column, Expr, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Aggregate, Equality, Filter, Join, JoinKind, Node, Project, Scan, inputs, output_columns
from dpsql.core.ir.walk import renumbered, unused_numbers, walk, with_inputs
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def correlate_publicly(root: Node, ctx: RewriteContext) -> Node:
    """Restrict the groups of correlated subqueries over private rows to the public values they are looked up by."""
    if not any(isinstance(node, Join) and node.scalar for node in walk(root)):
        return root
    numbers = unused_numbers(root)
    return _visited(root, (), numbers, ctx)


def _visited(node: Node, terms: Sequence[Expr], numbers: Iterator[int], ctx: RewriteContext) -> Node:
    """terms: conditions above, which every row that is used satisfies."""
    match node:
        case Filter(input=child, predicate=predicate):
            below = _visited(child, [*terms, *conjuncts(predicate)], numbers, ctx)
            return with_inputs(node, (below,))
        case Join(left=left, right=right):
            inner = node.kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar
            kept = terms if node.kind is not JoinKind.FULL else ()
            left = _visited(left, kept, numbers, ctx)
            right = _visited(right, terms if inner else (), numbers, ctx)
            if node.scalar and node.equalities:
                right = _restricted(replace(node, left=left, right=right), kept, numbers, ctx)
            return with_inputs(node, (left, right))
        case _:
            return with_inputs(node, tuple(_visited(child, (), numbers, ctx) for child in inputs(node)))


def _restricted(node: Join, terms: Sequence[Expr], numbers: Iterator[int], ctx: RewriteContext) -> Node:
    """The right side with a semi join below its aggregate, for as many of the equalities as one public part covers."""
    pairs = [(e.left, e.right) for e in node.equalities if isinstance(e.left, Column) and isinstance(e.right, Column)]
    for wanted in [pairs, *([p] for p in pairs if len(pairs) > 1)]:
        found = _public_part(node.left, {a.uid for a, _ in wanted}, terms, ctx) if wanted else None
        if found is None:
            continue
        part, held = found
        copy, fresh = renumbered(part, lambda c: replace(c, uid=next(numbers)))
        predicate = conjunction(_renamed(t, fresh) for t in held)
        if predicate is not None:
            copy = Filter(copy, predicate)
        return _joined(node.right, [(fresh[a.uid], b) for a, b in wanted], copy, ctx)
    return node.right


def _public_part(
    node: Node, wanted: set[int], terms: Sequence[Expr], ctx: RewriteContext
) -> tuple[Node, list[Expr]] | None:
    """The largest public relation in `node` that has these columns, and the conditions that its rows have to meet."""
    columns = {c.uid for c in output_columns(node)}
    if not wanted <= columns:
        return None
    if _is_public(node, ctx):
        return node, [t for t in terms if columns_of(t) and columns_of(t) <= columns]
    match node:
        case Filter(input=child, predicate=predicate):
            return _public_part(child, wanted, [*terms, *conjuncts(predicate)], ctx)
        case Join(kind=kind, left=left, right=right):
            if kind is JoinKind.FULL:
                return None
            found = _public_part(left, wanted, terms, ctx)
            if found is None and kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar:
                found = _public_part(right, wanted, terms, ctx)
            return found
        case _:
            return None


def _is_public(node: Node, ctx: RewriteContext) -> bool:
    """Whether a relation is made of public tables alone, so that its rows are known when the query is planned."""
    return not any(isinstance(n, Scan) and not ctx.analysis.table(n.table).public for n in walk(node))


def _renamed(expr: Expr, fresh: dict[int, Column]) -> Expr:
    return transform_expr(expr, lambda e: fresh.get(e.uid, e) if isinstance(e, Column) else e)


def _joined(node: Node, pairs: list[tuple[Column, Column]], public: Node, ctx: RewriteContext) -> Node:
    """The subquery with a semi join on its group columns, below its aggregate."""
    match node:
        case Project(input=child, items=items):
            own = {i.column.uid: i.expr for i in items}
            inner = [(a, own.get(b.uid)) for a, b in pairs]
            below = [(a, e) for a, e in inner if isinstance(e, Column)]
            return with_inputs(node, (_joined(child, below, public, ctx),)) if len(below) == len(pairs) else node
        case Aggregate(input=child, keys=keys) if ctx.private(child):
            groups = {k.column.uid: k.expr for k in keys}
            equal = [Equality(groups[b.uid], a) for a, b in pairs if b.uid in groups and groups[b.uid].type == a.type]
            if len(equal) < len(pairs):
                return node
            return replace(node, input=Join(JoinKind.SEMI, child, public, tuple(equal), span=node.span))
        case _:
            return node
