"""A group key that is typed DOUBLE becomes a whole number or a DECIMAL, and what it was above.

So do whole numbers by what they compute (`FLOOR(x / 100) * 100`), what constants make of one (`FLOOR(x / .5) * .5`),
and a column with a declared domain. NaN, infinities and what the new type does not hold are NULL as a key.

Example:
    >>> before_after(whole_keys, "SELECT FLOOR(cost / 100) * 100 AS bin, COUNT(*) FROM visits GROUP BY bin")
    aggregate COUNT(*) by bin  →  project bin, count
    └─ scan visits                └─ aggregate COUNT(*) by bin
                                     └─ scan visits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from dpsql.core.analysis.derive import derive_once
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal
from dpsql.core.ir.nodes import Aggregate, Item, Node, Project
from dpsql.core.ir.types import BIGINT, Kind, decimal
from dpsql.core.ir.walk import transform, unused_numbers
from dpsql.core.values.domains import ENUMERABLE
from dpsql.core.values.value import Scalar, Value
from dpsql.planner.rewrites.rewrite_context import RewriteContext

_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
_KEEP_WHOLE = frozenset({"add", "sub", "mul", "neg"})
_KEEP_APART = frozenset({*_KEEP_WHOLE, "div"})
_LISTED = decimal(18, 6)
"""What a column with a declared domain becomes: what is not on the list stays off it."""


def whole_keys(root: Node, ctx: RewriteContext) -> Node:
    """Give the keys of releases that are typed DOUBLE a type of which equal values are the same ones."""
    numbers = unused_numbers(root)

    def change(node: Aggregate) -> Node:
        doubles = [k for k in node.keys if k.expr.type.kind is Kind.DOUBLE]
        if not doubles or node.inner or not ctx.private(node.input):
            return node
        known = derive_once(node.input, ctx.analysis).fact.key_env
        found = {k: key for k in doubles if (key := _key(k.expr, known)) is not None}
        return _with_keys(node, found, numbers) if found else node

    return transform(root, Aggregate, change)


@dataclass(frozen=True)
class _Key:
    """What is grouped by, and what is shown of it."""

    expr: Cast
    shown: Callable[[Column], Expr]


def _with_keys(node: Aggregate, found: Mapping[Item, _Key], numbers: Iterator[int]) -> Node:
    columns = {k: Column(next(numbers), k.column.name, key.expr.type, k.column.span) for k, key in found.items()}
    keys = tuple(Item(columns[k], found[k].expr) if k in found else k for k in node.keys)
    items = [Item(k.column, found[k].shown(columns[k]) if k in found else k.column) for k in node.keys]
    items += [Item(c.column, c.column) for c in node.calls]
    return Project(replace(node, keys=keys), tuple(items), node.span)


def _key(e: Expr, known: Mapping[int, Value]) -> _Key | None:
    if _is_whole(e):
        return _Key(Cast(e, BIGINT, e.span), lambda column: Cast(column, e.type))
    listed = known[e.uid].domain if isinstance(e, Column) else None
    if listed is not None and listed.size <= ENUMERABLE and all(map(_fits, listed.values)):
        return _Key(Cast(e, _LISTED, e.span), lambda column: Cast(column, e.type))
    if not isinstance(e, Call) or e.function not in _KEEP_APART:
        return None
    (at, *others) = [i for i, arg in enumerate(e.args) if not _is_moderate(arg)] or [0]
    meant = e.function == "div" and all(a.type.kind is Kind.INTEGER for a in e.args)  # to be whole, very likely
    below = None if others or meant else _key(e.args[at], known)
    if below is None:
        return None
    return _Key(below.expr, lambda c: replace(e, args=(*e.args[:at], below.shown(c), *e.args[at + 1 :])))


def _is_moderate(e: Expr) -> bool:
    """A constant that keeps different numbers apart when it is added to them, or when they are multiplied by it."""
    match e:
        case Literal(value=value):
            return isinstance(value, int | float | Decimal) and 1e-6 <= abs(float(value)) <= 1e6
        case Cast(arg=arg) | Call(function="neg", args=(arg,)):
            return _is_moderate(arg)
        case _:
            return False


def _fits(value: Scalar) -> bool:
    return isinstance(value, int | float | Decimal) and abs(float(value)) < 1e9 and round(value, 6) == value


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
