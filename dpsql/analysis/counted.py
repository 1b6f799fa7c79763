"""Which private tables' rows the rows of a relation are, so that their limits speak of them.

Limits count joined rows (semantics.md §2). `lineitem JOIN orders` gives rows of lineitem, each with its one order: a
limit on the orders of a customer would throw most of them away, and one on lineitem is meant for exactly these rows.
Any limit is sound, because it is enforced; which one applies is a matter of what people mean by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.analysis.context import Context
from dpsql.analysis.facts import Facts
from dpsql.numbers.cap import Finite
from dpsql.plan.expr import Column, Expr
from dpsql.plan.nodes import Join, Node, Scan, inputs
from dpsql.policy.tables import Table


def counted(node: Node, ctx: Context) -> list[Table]:
    """The private tables below `node` that a join does not merely look up by a key. Its facts must be known."""
    match node:
        case Scan(table=name):
            table = ctx.table(name)
            return [] if table.public else [table]
        case Join(kind=kind, left=left, right=right):
            known_left, known_right = ctx.derived[id(left)].fact, ctx.derived[id(right)].fact
            if kind.filters or known_right.public:
                return counted(left, ctx)
            if known_left.public:
                return counted(right, ctx)
            single_left = _single(known_left, [e.left for e in node.equalities])
            single_right = _single(known_right, [e.right for e in node.equalities])
            if single_right and not single_left:
                return counted(left, ctx)
            if single_left and not single_right:
                return counted(right, ctx)
            return counted(left, ctx) + counted(right, ctx)
        case _:
            return [table for child in inputs(node) for table in counted(child, ctx)]


def _single(side: Facts, ends: Sequence[Expr]) -> bool:
    """Whether at most one row of this side can match."""
    most = side.most_rows(frozenset(e.uid for e in ends if isinstance(e, Column)))
    return isinstance(most, Finite) and most.value <= 1
