"""Tables that reach their privacy unit through foreign keys are joined to the table that names the owner.

Where the query itself joins the path, no second join is made: the owner is then found in the query's own row. The path
is looked up in the unfiltered table, so that an owner never depends on the query's conditions.

Example:
    >>> before_after(follow_paths, "SELECT AVG(dose) FROM drugs")
    scan drugs  →  join inner visit = visit
                   ├─ scan drugs
                   └─ scan visits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Equality, Filter, Join, JoinKind, Node, Project, Scan, Truncate, Unnest, inputs
from dpsql.core.ir.walk import unused_numbers, walk, with_inputs
from dpsql.core.policy.units import Hop, PathUnit
from dpsql.diagnostics.errors import reject
from dpsql.planner.rewrites.joins.read_periods import all_closed
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def follow_paths(root: Node, ctx: RewriteContext) -> Node:
    """Join every table that has a unit path, and that the query does not join to it, with the tables of the path."""
    if not any(isinstance(t.protection, PathUnit) for t in ctx.analysis.policy.tables.values()):
        return root
    paths = _Paths(ctx, unused_numbers(root))
    node, pending = paths.visit(root)
    return paths.resolved(node, pending)


@dataclass(frozen=True, slots=True)
class _Paths:
    ctx: RewriteContext
    numbers: Iterator[int]

    def visit(self, node: Node) -> tuple[Node, tuple[Scan, ...]]:
        """The node, and its scans whose owner is not known yet."""
        match node:
            case Scan():
                return node, (node,) if self._path(node) else ()
            case Filter(input=child) | Unnest(input=child) | Truncate(input=child) | Project(input=child):
                below, pending = self.visit(child)
                return with_inputs(node, (below,)), pending
            case Join():
                return self._joined(node)
            case _:
                return with_inputs(node, tuple(self.resolved(*self.visit(child)) for child in inputs(node))), ()

    def _joined(self, node: Join) -> tuple[Node, tuple[Scan, ...]]:
        left, pending_left = self.visit(node.left)
        right, pending_right = self.visit(node.right)
        if self.ctx.private(left) and self.ctx.private(right):
            # The preserved side of an outer join needs an owner of its own; a row of the other side has its partner's.
            kept = [s for s in pending_left if node.kind is not JoinKind.INNER or not self._found(s, node, right)]
            left = self.resolved(left, kept)
            kept_right = [s for s in pending_right if node.kind is JoinKind.FULL or not self._found(s, node, left)]
            right = self.resolved(right, kept_right)
            pending_left = pending_right = ()
        elif node.kind.filters:
            pending_right = ()
        return with_inputs(node, (left, right)), (*pending_left, *pending_right)

    def _path(self, scan: Scan) -> Sequence[Hop]:
        protection = self.ctx.analysis.table(scan.table).protection
        return protection.path if isinstance(protection, PathUnit) else ()

    def _found(self, scan: Scan, join: Join, other: Node) -> bool:
        """Whether the join equates the scan's foreign key with the key it references, in a table of the other side."""
        hop = self._path(scan)[0]
        pairs = {
            frozenset((e.left.uid, e.right.uid))
            for e in join.equalities
            if isinstance(e.left, Column) and isinstance(e.right, Column)
        }
        own = [_named(scan, c).uid for c in hop.columns]
        return any(
            all(frozenset((a, _named(s, r).uid)) in pairs for a, r in zip(own, hop.references, strict=True))
            for s in walk(other)
            if isinstance(s, Scan) and s.table == hop.table
        )

    def resolved(self, node: Node, pending: Sequence[Scan]) -> Node:
        """The node with each of these scans joined to the tables of its path."""
        for scan in pending:
            node = _replaced(node, scan, self._looked_up(scan))
        return node

    def _looked_up(self, scan: Scan) -> Node:
        found: Node = scan
        at = scan
        for hop in self._path(scan):
            table = self.ctx.analysis.table(hop.table)
            columns = []
            for column in table.columns.values():
                if column.sql_type is None:
                    raise reject(
                        "DP005", f"the type of {table.name}.{column.name} is not known without the data",
                        span=scan.span, help=[f"custodian: add  type: …  to tables.{table.name}.columns.{column.name}"],
                    )  # fmt: skip
                columns.append(Column(next(self.numbers), column.name, column.sql_type))
            owner = Scan(table.name, tuple(columns), all_closed(table, scan.span, self.ctx), table.name, scan.span)
            pairs = tuple(
                Equality(_named(at, c), _named(owner, r)) for c, r in zip(hop.columns, hop.references, strict=True)
            )
            found = Join(JoinKind.INNER, found, owner, pairs, span=scan.span)
            at = owner
        return found


def _named(scan: Scan, name: str) -> Column:
    return next(c for c in scan.columns if c.name.lower() == name.lower())


def _replaced(node: Node, old: Scan, new: Node) -> Node:
    if isinstance(node, Scan):
        return new if node.columns == old.columns else node
    return with_inputs(node, tuple(_replaced(child, old, new) for child in inputs(node)))
