"""Prepared tables that are joined on the foreign key of their path are joined by their owners, too.

In a copy the owner stands in the row; that the joined row has the same one is no fact of two copies. With the equality
it is one. It takes no pair away: copies are made of one state of the data, where both owners are found by the same key.

Example:
    >>> before_after(
    ...     join_owners, "SELECT COUNT(*) FROM drugs d JOIN visits v ON d.visit = v.visit", prepared=True
    ... )
    join inner visit = visit  →  join inner visit = visit and "patient of visits" = pat…
    ├─ scan drugs                ├─ scan drugs
    └─ scan visits               └─ scan visits
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Equality, Join, Node, Scan, output_columns
from dpsql.core.ir.walk import transform, walk
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import Hop, IdUnit
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def join_owners(root: Node, ctx: RewriteContext) -> Node:
    """Add equalities of owners to joins of copies."""
    if not ctx.reads_copies:
        return root

    def change(node: Join) -> Node:
        left, right = (tuple(_copies(side, ctx)) for side in (node.left, node.right))
        pairs = {
            (e.left.uid, e.right.uid)
            for e in node.equalities
            if isinstance(e.left, Column) and isinstance(e.right, Column)
        }
        swapped = {(b, a) for a, b in pairs}
        found = [
            (_owner(a, s), _owner(b, t))
            for a, s in left
            for b, t in right
            if _meet(a, s, b, t, pairs) or _meet(b, t, a, s, swapped) or _children(a, s, b, t, pairs)
        ]
        seen = [{c.uid for c in output_columns(side)} for side in (node.left, node.right)]
        more = [
            Equality(a, b) for a, b in found if a.uid in seen[0] and b.uid in seen[1] and (a.uid, b.uid) not in pairs
        ]
        return replace(node, equalities=(*node.equalities, *more)) if more else node

    return transform(root, Join, change)


def _copies(side: Node, ctx: RewriteContext) -> Iterator[tuple[Scan, Table]]:
    for scan in walk(side):
        if isinstance(scan, Scan) and (table := ctx.analysis.table(scan.table)).copied is not None:
            yield scan, table


def _owner(scan: Scan, table: Table) -> Column:
    assert isinstance(table.protection, IdUnit)
    return _named(scan, table.protection.column)


def _meet(child: Scan, of: Table, parent: Scan, table: Table, pairs: set[tuple[int, int]]) -> bool:
    """Whether the pairs equate the child's foreign key with the key of the parent that it references."""
    hop = _hop(of)
    return (
        hop is not None
        and hop.table == table.name
        and all(
            (_named(child, c).uid, _named(parent, r).uid) in pairs
            for c, r in zip(hop.columns, hop.references, strict=True)
        )
    )


def _children(a: Scan, s: Table, b: Scan, t: Table, pairs: set[tuple[int, int]]) -> bool:
    """Whether both refer to one row of the same table."""
    first, second = _hop(s), _hop(t)
    if first is None or second is None or first.table != second.table or first.references != second.references:
        return False
    return all(
        (_named(a, x).uid, _named(b, y).uid) in pairs for x, y in zip(first.columns, second.columns, strict=True)
    )


def _hop(table: Table) -> Hop | None:
    return None if table.copied is None else table.copied.hop


def _named(scan: Scan, name: str) -> Column:
    return next(c for c in scan.columns if c.name.casefold() == name.casefold())
