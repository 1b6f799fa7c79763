"""Subqueries that read the query around them: their plans, made to show what the outer rows are compared with."""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.ir.conditions import equality_between
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, columns_of
from dpsql.core.ir.expressions import walk as walk_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    Item,
    Join,
    Limit,
    Node,
    Project,
    SetOperation,
    Sort,
    Window,
    output_columns,
)
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions import ExprBinder
from dpsql.frontend.bind.outer_query import Outer


def exposed(node: Node, outer: Outer, at: Span, binder: ExprBinder) -> tuple[Node, list[Expr]]:
    """The correlated terms over the subquery's output, which gets the columns that they read."""
    if not outer.terms:
        return node, []
    if _sees_all_rows(node):
        raise refused(
            "this subquery reads the outer query in a way that cannot be written as a join", at,
            "LIMIT or a window would look at other rows for each outer row", "leave it out, or join the tables",
        )  # fmt: skip
    visible = outer.columns
    alone = next((t for t in outer.terms if columns_of(t) <= visible), None)
    if alone is not None and outer.grouped:
        raise refused(
            "a condition on the outer query alone stands in the WHERE of a grouped subquery", alone.span or at,
            "groups and aggregates would be computed for each outer row", "write it into the outer query",
        )  # fmt: skip
    wanted: dict[Expr, Expr] = {}
    only_equalities = True
    for term in outer.terms:
        pair = equality_between(term, visible, columns_of(term) - visible)
        only_equalities &= pair is not None
        for e in _inner(term, visible) if pair is None else [pair[1]]:
            wanted[e] = e
    found, columns = _expose(node, tuple(wanted), binder, at, only_equalities)
    swap = dict(zip(wanted, columns, strict=True))
    return found, [_swapped(t, swap) for t in outer.terms]


def existence(node: Node, outer: Outer) -> Node:
    """The rows of EXISTS: it looks at no column, and a LIMIT that leaves a row changes nothing."""
    if isinstance(node, Project):
        node = node.input
    if outer.limited and isinstance(node, Limit) and node.count != 0 and node.offset == 0:
        node = node.input
    return node


def _sees_all_rows(node: Node) -> bool:
    """True if the query counts or compares its rows after WHERE. Its tables are below a second projection, or none."""
    projected = False
    while True:
        match node:
            case Limit() | Window():
                return True
            case Project(input=child) if not projected:
                node, projected = child, True
            case Sort(input=child) | Filter(input=child) | Aggregate(input=child, calls=()):
                node = child
            case Join(left=child, scalar=True):
                node = child
            case _:
                return False


def _inner(term: Expr, outer: frozenset[int]) -> list[Expr]:
    """The columns of the subquery that a term reads."""
    return list(dict.fromkeys(e for e in walk_expr(term) if isinstance(e, Column) and e.uid not in outer))


def _swapped(term: Expr, swap: dict[Expr, Expr]) -> Expr:
    """The term over the subquery's output: its largest parts that are exposed are replaced."""
    if term in swap:
        return replace(swap[term], span=term.span)
    match term:
        case Call(args=args):
            return replace(term, args=tuple(_swapped(a, swap) for a in args))
        case Cast(arg=arg):
            return replace(term, arg=_swapped(arg, swap))
        case Column() | Literal():
            return term


def _expose(
    node: Node, exprs: tuple[Expr, ...], binder: ExprBinder, at: Span, only_equalities: bool
) -> tuple[Node, tuple[Expr, ...]]:
    """A query's plan with these values of the rows that its WHERE saw among its output columns."""
    visible = {c.uid for c in output_columns(node)}
    if all(columns_of(e) <= visible for e in exprs):
        return node, exprs
    why = ""
    match node:
        case Sort(input=child):
            return _expose(child, exprs, binder, at, only_equalities)
        case Filter(input=child):
            child, exprs = _expose(child, exprs, binder, at, only_equalities)
            return replace(node, input=child), exprs
        case Join(left=child, scalar=True):
            child, exprs = _expose(child, exprs, binder, at, only_equalities)
            return replace(node, left=child), exprs
        case Project(input=child, items=items):
            child, exprs = _expose(child, exprs, binder, at, only_equalities)
            new = _items(exprs, binder)
            return replace(node, input=child, items=(*items, *new)), tuple(i.column for i in new)
        case Aggregate(input=child, keys=keys, calls=calls) if keys and (only_equalities or not calls):
            child, exprs = _expose(child, exprs, binder, at, only_equalities)
            new = _items(exprs, binder)
            return replace(node, input=child, keys=(*keys, *new)), tuple(i.column for i in new)
        case Aggregate(keys=keys):
            why = "its groups depend on the outer row by more than equalities" if keys else "it always has one row"
        case SetOperation():
            why = "a set operation would be computed for each outer row"
        case _:
            why = "it would be computed for each outer row"
    raise refused(
        "this subquery reads the outer query in a way that cannot be written as a join", at, why,
        "compare with the outer query in the WHERE of a plain SELECT … FROM … WHERE",
    )  # fmt: skip


def _items(exprs: tuple[Expr, ...], binder: ExprBinder) -> tuple[Item, ...]:
    return tuple(
        Item(binder.numbering.column(e.name if isinstance(e, Column) else "key", e.type, e.span), e) for e in exprs
    )


def rows_of(node: Node) -> str:
    """Why a query may have another number of rows than one."""
    while isinstance(node, Project | Sort):
        node = node.input
    match node:
        case Limit():
            return "LIMIT does not say which row, nor that there is one"
        case Filter(input=Aggregate()):
            return "HAVING may drop its row"
        case Aggregate(calls=calls):
            return "one row for each group" if calls else "one row for each distinct value"
        case _:
            return "it may have no row, or several"


def refused(message: str, span: Span, label: str = "", help: str = "") -> Rejected:
    """The refusal of a subquery."""
    return reject("DP111", message, span=span, label=label, help=[help])
