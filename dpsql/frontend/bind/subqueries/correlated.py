"""Subqueries that read the query around them: their plans, made to show what the outer rows are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.core.ir.conditions import equality_between
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, columns_of
from dpsql.core.ir.expressions import walk as walk_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Equality,
    Filter,
    Item,
    Join,
    Limit,
    Node,
    Project,
    SetOperation,
    Sort,
    SortKey,
    Window,
    WindowCall,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, BOOLEAN
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.subqueries.outer_query import Outer


def exposed(node: Node, outer: Outer, at: Span, binder: ExprBinder) -> tuple[Node, list[Expr]]:
    """The correlated terms over the subquery's output, which gets the columns that they read."""
    if not outer.terms:
        return node, []
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
    if not only_equalities and _sees_all_rows(node, outer.rows):
        raise refused(
            "this subquery reads the outer query in a way that cannot be written as a join", at,
            "LIMIT or a window would look at other rows for each outer row",
            "compare with the outer query by equalities alone, leave LIMIT out, or join the tables",
        )  # fmt: skip
    found, columns = _Exposing(outer.rows, binder, at, only_equalities).below(node, tuple(wanted))
    swap = dict(zip(wanted, columns, strict=True))
    return found, [_swapped(t, swap) for t in outer.terms]


def grouped_by_ties(node: Aggregate, outer: Outer, binder: ExprBinder) -> tuple[Aggregate, tuple[Equality, ...]]:
    """An aggregate of all rows for each value that its query's correlated equalities compare, and these equalities."""
    keys: dict[Expr, Item] = {}
    pairs = []
    for term in outer.terms:
        pair = equality_between(term, outer.columns, columns_of(term) - outer.columns)
        if pair is None:
            raise refused(
                "this condition ties an aggregate to the outer query by more than an equality", term.span or Span(0, 1),
                "the aggregate would have to be computed for each outer row",
                "write it as  inner expression = outer expression,  or join the table and group",
            )  # fmt: skip
        left, right = pair
        if right not in keys:
            name = right.name if isinstance(right, Column) else "key"
            keys[right] = Item(binder.numbering.column(name, right.type, right.span), right)
        pairs.append(Equality(left, replace(keys[right].column, span=right.span)))
    return replace(node, keys=tuple(keys.values())), tuple(pairs)


def existence(node: Node, outer: Outer) -> Node:
    """The rows of EXISTS: it looks at no column, and a LIMIT that leaves a row changes nothing."""
    if isinstance(node, Project):
        node = node.input
    if outer.limited and isinstance(node, Limit) and node.count != 0 and node.offset == 0:
        node = node.input
    return node


def _sees_all_rows(node: Node, rows: Node | None) -> bool:
    """True if the query counts or compares its rows after WHERE. rows: what its FROM gives, whose LIMIT is its own."""
    while node is not rows:
        match node:
            case Limit() | Window():
                return True
            case Project(input=child) | Sort(input=child) | Filter(input=child) | Aggregate(input=child, calls=()):
                node = child
            case Join(left=child, scalar=True):
                node = child
            case _:
                return False
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


@dataclass(frozen=True, slots=True)
class _Exposing:
    """Adds values of the rows that a query's WHERE saw to its output columns.

    rows: what its FROM gives. only_equalities: each value is compared with one of the outer row by `=`, so that groups,
    windows and LIMIT for each such value are those for each outer row.
    """

    rows: Node | None
    binder: ExprBinder
    at: Span
    only_equalities: bool

    def below(self, node: Node, exprs: tuple[Expr, ...]) -> tuple[Node, tuple[Expr, ...]]:
        """The query's plan, and the columns that hold the values. Raises Rejected DP111."""
        visible = {c.uid for c in output_columns(node)}
        if all(columns_of(e) <= visible for e in exprs) and not _sees_all_rows(node, self.rows):
            return node, exprs
        why = ""
        match node:
            case _ if node is self.rows:
                why = "it would be computed for each outer row"
            case Limit(input=child) if self.only_equalities:
                order = child.keys if isinstance(child, Sort) else ()
                child, exprs = self.below(child.input if isinstance(child, Sort) else child, exprs)
                return self._first(child, order, exprs, node), exprs
            case Window(input=child, calls=calls) if self.only_equalities:
                child, exprs = self.below(child, exprs)
                own = tuple(replace(c, partition=(*c.partition, *exprs)) for c in calls)
                return replace(node, input=child, calls=own), exprs
            case Sort(input=child):
                return self.below(child, exprs)
            case Filter(input=child):
                child, exprs = self.below(child, exprs)
                return replace(node, input=child), exprs
            case Join(left=child, scalar=True):
                child, exprs = self.below(child, exprs)
                return replace(node, left=child), exprs
            case Project(input=child, items=items):
                child, exprs = self.below(child, exprs)
                new = self._items(exprs)
                return replace(node, input=child, items=(*items, *new)), tuple(i.column for i in new)
            case Aggregate(input=child, keys=keys, calls=calls) if keys and (self.only_equalities or not calls):
                child, exprs = self.below(child, exprs)
                new = self._items(exprs)
                return replace(node, input=child, keys=(*keys, *new)), tuple(i.column for i in new)
            case Aggregate(keys=keys):
                why = "its groups depend on the outer row by more than equalities" if keys else "it always has one row"
            case SetOperation():
                why = "a set operation would be computed for each outer row"
            case _:
                why = "it would be computed for each outer row"
        raise refused(
            "this subquery reads the outer query in a way that cannot be written as a join", self.at, why,
            "compare with the outer query in the WHERE of a plain SELECT … FROM … WHERE",
        )  # fmt: skip

    def _first(self, node: Node, order: tuple[SortKey, ...], exprs: tuple[Expr, ...], cut: Limit) -> Node:
        """LIMIT and OFFSET for the rows that agree on these values."""
        place = self.binder.numbering.column("row_number", BIGINT, cut.span)
        numbered: Node = Window(node, (WindowCall("row_number", (), place, exprs, order, span=cut.span),), cut.span)
        ends = [] if cut.count is None else [("le", cut.offset + cut.count)]
        ends += [("gt", cut.offset)] if cut.offset else []
        for op, end in ends:
            term = Call(op, (place, Literal(end, BIGINT, cut.span)), BOOLEAN, cut.span)
            numbered = Filter(numbered, term, cut.span)
        return numbered

    def _items(self, exprs: tuple[Expr, ...]) -> tuple[Item, ...]:
        numbering = self.binder.numbering
        return tuple(
            Item(numbering.column(e.name if isinstance(e, Column) else "key", e.type, e.span), e) for e in exprs
        )


def rows_of(node: Node) -> str:
    """Why a query may have another number of rows than one."""
    while isinstance(node, (Project, Sort)):
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
