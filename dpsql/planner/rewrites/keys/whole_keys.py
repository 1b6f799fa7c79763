"""A group key that is typed DOUBLE and is a whole number by what it computes becomes one, and a DOUBLE again above.

NaN, infinities and what no BIGINT holds are NULL as a key.

Example:
    >>> before_after(whole_keys, "SELECT FLOOR(cost / 100) * 100 AS bin, COUNT(*) FROM visits GROUP BY bin")
    aggregate COUNT(*) by bin  →  project bin, count
    └─ scan visits                └─ aggregate COUNT(*) by bin
                                     └─ scan visits
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal
from dpsql.core.ir.nodes import Aggregate, Item, Node, Project
from dpsql.core.ir.renumber import unused_numbers
from dpsql.core.ir.types import BIGINT, Kind
from dpsql.core.ir.walk import transform
from dpsql.planner.rewrites.rewrite_context import RewriteContext

_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
_KEEP_WHOLE = frozenset({"add", "sub", "mul", "neg"})


def whole_keys(root: Node, ctx: RewriteContext) -> Node:
    """Cast the keys of releases that are whole numbers typed DOUBLE."""
    numbers = unused_numbers(root)

    def change(node: Aggregate) -> Node:
        if node.inner or not ctx.private(node.input):
            return node
        return _cast(node, numbers) if any(map(_bin, node.keys)) else node

    return transform(root, Aggregate, change)


def _cast(node: Aggregate, numbers: Iterator[int]) -> Node:
    whole = {k: Column(next(numbers), k.column.name, BIGINT, k.column.span) for k in node.keys if _bin(k)}
    keys = tuple(Item(whole[k], Cast(k.expr, BIGINT, k.expr.span)) if k in whole else k for k in node.keys)
    items = [Item(k.column, Cast(whole[k], k.column.type) if k in whole else k.column) for k in node.keys]
    items += [Item(c.column, c.column) for c in node.calls]
    return Project(replace(node, keys=keys), tuple(items), node.span)


def _bin(key: Item) -> bool:
    return key.expr.type.kind is Kind.DOUBLE and _is_whole(key.expr)


def _is_whole(e: Expr) -> bool:
    """Whether every value of an expression is a whole number, whatever its columns hold."""
    match e:
        case Literal(value=value):
            return isinstance(value, int) and not isinstance(value, bool)
        case Call(function=name, args=(_,)) if name in _WHOLE:
            return True
        case Call(function=name, args=args) if name in _KEEP_WHOLE:
            return all(map(_is_whole, args))
        case _:
            return e.type.kind is Kind.INTEGER
