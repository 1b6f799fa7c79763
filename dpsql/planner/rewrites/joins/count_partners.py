"""Public rows with a private partner are counted as different keys of the rows that they are joined to.

Whose a public row is that EXISTS or IN keeps cannot be told: several units may keep it. Joined to its partners it is a
row of each of them, and COUNT(DISTINCT key) counts it once: the same number, of which a unit changes no more than the
different keys that are counted of it.

Example:
    >>> before_after(count_partners, "SELECT COUNT(*) FROM icd10 i WHERE i.code IN (SELECT v.code FROM visits v)")
    aggregate COUNT(*)        →  aggregate COUNT(DISTINCT code)
    └─ join semi code = code     └─ join inner code = code
       ├─ scan icd10                ├─ scan icd10
       └─ scan visits               └─ scan visits
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Filter, Join, JoinKind, Node, output_columns
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import transform
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def count_partners(root: Node, ctx: RewriteContext) -> Node:
    """Count keys in place of the public rows that rows of an id keep."""

    def change(node: Aggregate) -> Node:
        if node.inner or not node.calls:
            return node
        join = _below_filters(node.input)
        if not isinstance(join, Join) or join.kind is not JoinKind.SEMI or ctx.private(join.left):
            return node
        if not ctx.private(join.right) or not derive_once(join.right, ctx.analysis).fact.ids:
            return node
        left = derive_once(join.left, ctx.analysis).fact
        key = _key(join, left)
        if key is None or not all(_counts_rows(c, left) for c in node.calls):
            return node
        calls = tuple(c if c.distinct else replace(c, arg=key, distinct=True) for c in node.calls)
        return replace(node, input=_joined(node.input), calls=calls)

    return transform(root, Aggregate, change)


def _below_filters(node: Node) -> Node:
    while isinstance(node, Filter):
        node = node.input
    return node


def _joined(node: Node) -> Node:
    """With all partners of each row."""
    if isinstance(node, Filter):
        return replace(node, input=_joined(node.input))
    assert isinstance(node, Join)
    return replace(node, kind=JoinKind.INNER)


def _key(join: Join, left: Facts) -> Column | None:
    """A column that is another one in each row with a partner, and NULL in none."""
    equated = {e.left.uid for e in join.equalities if isinstance(e.left, Column)}
    for column in output_columns(join.left):
        sure = column.uid in equated or not left.columns[column.uid].value.nullable
        if sure and left.is_key(frozenset({column.uid})) and column.type.kind is not Kind.DOUBLE:
            return column
    return None


def _counts_rows(call: AggregateCall, left: Facts) -> bool:
    """Whether it is a number of rows, or of different values: of these it does not matter how often a row is there."""
    if call.function != "count" or call.per_group is not None:
        return False
    if call.distinct or call.arg is None:
        return True
    return isinstance(call.arg, Column) and not left.columns[call.arg.uid].value.nullable
