"""Where private tables are joined on something other than their privacy unit, declared limits are made true.

A limit that the policy wants enforced (`max_frequency`, `unique`) truncates its side of such a join, above its filters;
where public tables are joined to that side first, the private rows below them. Rows without an id are left out: they
are nobody's, and no limit counts them.

Example:
    >>> before_after(limit_frequencies, "SELECT COUNT(*) FROM calls c JOIN alarms a ON c.phone = a.phone")
    scan alarms  →  keep 3 rows of each phone
                    └─ scan alarms
"""

from __future__ import annotations

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.rules.join_same_unit import joins_same_unit
from dpsql.core.ir.expressions import Call, Column
from dpsql.core.ir.nodes import Filter, Join, Node, Scan, Truncate, output_columns
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import transform
from dpsql.core.policy.tables import Enforce
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def limit_frequencies(root: Node, ctx: RewriteContext) -> Node:
    """Truncate what a join of private tables needs truncated."""

    def change(node: Join) -> Node:
        if not (ctx.private(node.left) and ctx.private(node.right)):
            return node
        try:
            left, right = (derive_once(n, ctx.analysis).fact for n in (node.left, node.right))
        except Rejected:  # a FULL join that `keep_private` will part; anything else is refused by the analysis
            return node
        if joins_same_unit(node, left, right):
            return node
        ends_left = [e.left for e in node.equalities if isinstance(e.left, Column)]
        ends_right = [e.right for e in node.equalities if isinstance(e.right, Column)]
        return replace(
            node, left=_limited(node.left, left, ends_left, ctx), right=_limited(node.right, right, ends_right, ctx)
        )

    return transform(root, Join, change)


def _limited(side: Node, facts: Facts, ends: list[Column], ctx: RewriteContext) -> Node:
    columns = {c.uid: c for c in output_columns(side)}
    owners = sorted(facts.ids & columns.keys())
    if owners:
        side = Filter(side, Call("is_not_null", (columns[owners[0]],), BOOLEAN))
    equated = frozenset(e.uid for e in ends)
    return side if facts.most_rows(equated) is not None else _truncated(side, equated, ctx)


def _truncated(side: Node, equated: Columns, ctx: RewriteContext) -> Node:
    """The rows with the least limit that is declared for some of these columns; as they are if none is."""
    match side:
        case Join(left=left, right=right) if not ctx.private(right):
            return replace(side, left=_truncated(left, equated, ctx))
        case Join(left=left, right=right) if not ctx.private(left):
            return replace(side, right=_truncated(right, equated, ctx))
        case Filter(input=Join() as below):
            return replace(side, input=_truncated(below, equated, ctx))
    scan = _one_scan(side)
    if scan is None:
        return side
    best: Truncate | None = None
    for listed, rows, enforce in _declared(scan, ctx):
        names = {n.lower() for n in listed}
        wanted = [c for c in scan.columns if c.name.lower() in names]
        if {c.uid for c in wanted} <= equated and (best is None or rows < best.rows):
            best = Truncate(side, tuple(wanted), rows, drop=enforce == "drop")
    return side if best is None else best


def _declared(scan: Scan, ctx: RewriteContext) -> list[tuple[tuple[str, ...], int, Enforce]]:
    """Limits of a table that the plan has to make true: columns, rows that may agree on them, and how."""
    table = ctx.analysis.table(scan.table)
    found = [(f.columns, f.rows, f.enforce) for f in table.max_frequency if not f.assumed]
    return found + [(k.columns, 1, k.enforce) for k in table.keys if not k.assumed]


def _one_scan(node: Node) -> Scan | None:
    match node:
        case Scan():
            return node
        case Filter(input=child):
            return _one_scan(child)
        case _:
            return None
