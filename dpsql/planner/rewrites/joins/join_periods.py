"""Where the unit is an id in one period: what is joined, grouped or divided by both is so by the unit.

The unit stands in a hidden column that holds the id and the period. Rows that agree on both agree on it, so that an
equality of it takes no pair away, and no group is divided by it. With the id or the date alone nothing is added: then
rows of several units meet. In groups that lie in one period, there are as many ids as units.

Example:
    >>> before_after(
    ...     join_periods, "SELECT COUNT(*) FROM rides r JOIN walks w ON r.rider = w.rider AND r.day = w.day",
    ...     of_days=True,
    ... )
    join inner rider = rider and day = day  →  join inner rider = rider and day = day and "rider of e…
    ├─ scan rides 2026-01-01 … 2026-01-10      ├─ scan rides 2026-01-01 … 2026-01-10
    └─ scan walks 2026-01-01 … 2026-01-10      └─ scan walks 2026-01-01 … 2026-01-10
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import Aggregate, Equality, Join, Node, Scan, Window, output_columns
from dpsql.core.ir.periods import canonical
from dpsql.core.ir.walk import transform, walk
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.rewrite_context import RewriteContext

Part = tuple[str, int, str]
"""`id` or `period`, which scan has it (the number of its first column), and the name of the table."""


def has_period_ids(policy: Policy) -> bool:
    """Whether the unit of any table is an id in one period."""
    return any(table.period_id is not None for table in policy.tables.values())


def join_periods(root: Node, ctx: RewriteContext) -> Node:
    """Add the hidden columns to joins and windows by both of what they hold."""
    if not has_period_ids(ctx.analysis.policy):
        return root

    def joined(node: Join) -> Node:
        return joined_by_period(node, ctx)

    root = transform(transform(root, Join, joined), Window, lambda node: _divided(node, ctx))
    return transform(root, Aggregate, lambda node: _counted(node, ctx))


def joined_by_period(node: Join, ctx: RewriteContext) -> Join:
    """A join by id and period of both sides, by the hidden columns, too."""
    if not has_period_ids(ctx.analysis.policy) or not (ctx.private(node.left) and ctx.private(node.right)):
        return node
    try:
        left, right = (derive_once(side, ctx.analysis).fact for side in (node.left, node.right))
    except Rejected:  # an aggregate of which it is not decided yet what it becomes
        return node
    if not left.ids or not right.ids or left.units != right.units:
        return node
    found = set[str]()
    for e in node.equalities:
        a, b = _part(e.left, left, ctx), _part(e.right, right, ctx)
        if a is not None and b is not None and a[0] == b[0] and _own(a, left) and _own(b, right):
            found.add(a[0])
    mine, its = held(node.left, left), held(node.right, right)
    if found != {"id", "period"} or mine is None or its is None:
        return node
    if any(e.left == mine and e.right == its for e in node.equalities):
        return node
    return replace(node, equalities=(*node.equalities, Equality(mine, its)))


def held(side: Node, facts: Facts) -> Column | None:
    """The column of the unit, where it is to be had."""
    return next((c for c in output_columns(side) if c.uid in facts.ids), None)


def told_by(exprs: Iterable[Expr], facts: Facts, ctx: RewriteContext) -> bool:
    """Whether some expressions tell the unit: the id and the period of one scan are among them."""
    found = [part for expr in exprs if (part := _part(expr, facts, ctx)) is not None and _own(part, facts)]
    return {kind for kind, *_ in found} == {"id", "period"}


def _divided(node: Window, ctx: RewriteContext) -> Node:
    if not ctx.private(node.input):
        return node
    facts = derive_once(node.input, ctx.analysis).fact
    own = held(node.input, facts)
    if own is None:
        return node
    calls = tuple(
        replace(c, partition=(*c.partition, own))
        if own not in c.partition and told_by(c.partition, facts, ctx) else c
        for c in node.calls
    )  # fmt: skip
    return node if calls == node.calls else replace(node, calls=calls)


def _counted(node: Aggregate, ctx: RewriteContext) -> Aggregate:
    """COUNT(DISTINCT id) in groups that lie in one period: as many as there are units."""
    if not any(c.distinct and c.function == "count" for c in node.calls) or not ctx.private(node.input):
        return node
    try:
        facts = derive_once(node.input, ctx.analysis).fact
    except Rejected:
        return node
    own = held(node.input, facts)
    if own is None:
        return node
    keys = [k.expr for k in node.keys]

    def one_period(arg: Expr) -> bool:
        part = _part(arg, facts, ctx)
        if part is None or part[0] != "id" or not _own(part, facts):
            return False
        return told_by((*keys, arg), facts, ctx) or _reads_one_period(node.input, ctx)

    calls = tuple(
        replace(c, arg=own)
        if c.distinct and c.function == "count" and c.second is None and c.arg is not None and one_period(c.arg) else c
        for c in node.calls
    )  # fmt: skip
    return node if calls == node.calls else replace(node, calls=calls)


def _reads_one_period(node: Node, ctx: RewriteContext) -> bool:
    scans = [n for n in walk(node) if isinstance(n, Scan) and ctx.analysis.table(n.table).period_id is not None]
    read = canonical(span for n in scans if n.periods is not None for span in n.periods.days)
    grows = None if not scans else ctx.analysis.table(scans[0].table).grows
    return grows is not None and len(read) == 1 and read[0][1] == grows.ends(read[0][0])


def _part(expr: Expr, facts: Facts, ctx: RewriteContext) -> Part | None:
    """Which half of a unit an expression is: the id, or the period or a day in it."""
    match expr:
        case Column(uid=uid) if uid in facts.columns:
            hint = facts.columns[uid].hint
            table = None if hint is None or not hint.table else ctx.analysis.table(hint.table)
            if hint is None or table is None or table.period_id is None or table.grows is None:
                return None
            if hint.column == table.per:
                return "id", hint.scan, table.name
            return ("period", hint.scan, table.name) if hint.column == table.grows.by else None
        case Call(function="date_trunc", args=(Literal(value=str(unit)), Column() as day)):
            found = _part(day, facts, ctx)
            if found is None or found[0] != "period":
                return None
            return found if unit.lower() in _FINER[_every(ctx.analysis.table(found[2]))] else None
    return None


_FINER = {"day": ("day",), "week": ("day", "week"), "month": ("day", "month")}
"""Which units of time lie in one period."""


def _every(table: Table) -> str:
    assert table.grows is not None
    return table.grows.every


def _own(part: Part, facts: Facts) -> bool:
    """Whether it is of a scan whose hidden column says whose the rows are."""
    return any((h := facts.columns[uid].hint) is not None and h.scan == part[1] for uid in facts.ids)
