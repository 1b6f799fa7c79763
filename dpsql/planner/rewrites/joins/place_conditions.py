"""WHERE a.x = b.y over a comma join is an inner join on that equality: every spelling of a join gives one plan.

Example:
    >>> before_after(
    ...     place_conditions, "SELECT COUNT(*) FROM visits v, patients p WHERE v.patient = p.patient AND age > 40"
    ... )
    filter (patient = patient) AND (age > 40)  →  filter age > 40
    └─ join cross                                 └─ join inner patient = patient
       ├─ scan visits                                ├─ scan visits
       └─ scan patients                              └─ scan patients
"""

from __future__ import annotations

from dpsql.core.ir.conditions import conjunction, conjuncts, equality_between
from dpsql.core.ir.expressions import Call, Expr, columns_of
from dpsql.core.ir.nodes import Equality, Filter, Join, JoinKind, Node, output_columns
from dpsql.core.ir.walk import transform
from dpsql.core.value_classes import replace
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def place_conditions(root: Node, ctx: RewriteContext) -> Node:
    """Move equalities from a filter, and from residuals, down to the join whose two sides they connect."""
    return transform(root, Filter, _place)


def _place(node: Filter) -> Node:
    kept: list[Expr] = []
    below = node.input
    for term in conjuncts(node.predicate):
        placed = _sink(below, term) if isinstance(term, Call) and term.function == "eq" else None
        if placed is None:
            kept.append(term)
        else:
            below = placed
    predicate = conjunction(kept)
    return below if predicate is None else replace(node, input=below, predicate=predicate)


def _sink(node: Node, term: Expr) -> Node | None:
    """The join tree with `term` placed, or None if no join here connects the two sides of it."""
    if isinstance(node, Filter):
        below = _sink(node.input, term)
        return None if below is None else replace(node, input=below)
    if not isinstance(node, Join) or node.kind is JoinKind.FULL:
        return None
    left, right = (frozenset(c.uid for c in output_columns(n)) for n in (node.left, node.right))
    inner = node.kind in (JoinKind.INNER, JoinKind.CROSS) and not node.scalar
    pair = equality_between(term, left, right) if inner else None
    if pair is not None:
        return replace(node, kind=JoinKind.INNER, equalities=(*node.equalities, Equality(*pair)))
    # What is filtered before an outer, semi or anti join may only be its left side.
    for side, columns in (("left", left), ("right", right)) if inner else (("left", left),):
        child = node.left if side == "left" else node.right
        if columns_of(term) <= columns:
            placed = _sink(child, term)
            if placed is not None:
                return replace(node, left=placed) if side == "left" else replace(node, right=placed)
    return None
