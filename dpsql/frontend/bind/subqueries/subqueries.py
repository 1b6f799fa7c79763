"""Subqueries in expressions: each becomes a join around the rows of the clause that it stands in.

A condition (IN, EXISTS, = ANY) keeps or drops rows: a SEMI or ANTI join; one that is a value looks rows up
(`membership.py`). A scalar subquery adds a column and neither multiplies nor drops rows: it has one row by
construction, or one per key of its correlated equalities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpsql.core.ir.conditions import conjunction, conjuncts, equality_between
from dpsql.core.ir.expressions import Column, Expr, Literal, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Equality,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Sort,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, BOOLEAN
from dpsql.core.ir.walk import expressions, walk
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.bind.expressions.expressions import ExprBinder, condition
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.from_clause.from_clause import Ctes
from dpsql.frontend.bind.scope import BoundRelation
from dpsql.frontend.bind.subqueries.correlated import existence, exposed, grouped_by_ties, refused, rows_of
from dpsql.frontend.bind.subqueries.membership import distinct, is_asked, may_be_null, not_tied
from dpsql.frontend.bind.subqueries.outer_query import Outer
from dpsql.frontend.bind.subqueries.row_facts import never_null, one_row
from dpsql.frontend.text.spans import query_span

Query = Callable[[exp.Expr, Ctes], BoundRelation]
Place = Callable[[Expr], Expr]

_ANY: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
}


@dataclass(frozen=True, slots=True)
class Match:
    """`subjects op ANY (query)`, negated or not; EXISTS has no subjects."""

    query: exp.Expr
    subjects: tuple[exp.Expr, ...]
    op: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Attached:
    """A join that is to be put around the rows of a clause; `equalities` and `residual` read those rows on the left."""

    kind: JoinKind
    right: Node
    equalities: tuple[Equality, ...]
    residual: Expr | None
    span: Span
    scalar: bool = False

    def around(self, node: Node, place: Place) -> Join:
        """The join. `place` says where the left rows hold what an expression over the tables means."""
        pairs = tuple(replace(e, left=place(e.left)) for e in self.equalities)
        residual = None if self.residual is None else place(self.residual)
        return Join(self.kind, node, self.right, pairs, residual, self.span, self.scalar)


@dataclass(slots=True)
class Subqueries:
    """Collects the subqueries over one set of rows: those of FROM, or those above the aggregate.

    relation: what names mean in the clause; the rows before this collector's joins, for what can be NULL there.
    outer: the query around this one, if this one is a subquery itself. within: binds a query inside another.
    """

    policy: Policy
    relation: BoundRelation
    ctes: Ctes
    outer: Outer | None
    within: Callable[[Outer], Query]
    columns: set[int] = field(default_factory=set)
    """Numbers of all columns that the collected joins add or compare with."""
    _scalars: list[Attached] = field(default_factory=list)
    _matches: list[Attached] = field(default_factory=list)
    _known: dict[exp.Expr, Expr] = field(default_factory=dict)

    # --- what the clauses call -------------------------------------------------------------------------------------

    def scalar(self, node: exp.Subquery, binder: ExprBinder) -> Expr:
        """The value of a scalar subquery as an expression over the rows after `around`. Raises Rejected."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._scalar(node, binder)
        return replace(known, span=query_span(node, binder.source.text))

    def membership(self, node: exp.Expr, binder: ExprBinder) -> Expr | None:
        """IN, EXISTS or = ANY over a subquery as a value over the rows after `around`; None if it is anything else.

        Raises Rejected.
        """
        if isinstance(node, (exp.Paren, exp.Not)) or (match := match_of(node, binder)) is None:
            return None
        at = query_span(match.query, binder.source.text)
        known = self._known.get(node)
        if known is None:
            semi = self._matched(match, binder, None, exact=not is_asked(node))
            if semi.residual is not None or not semi.equalities:
                raise not_tied(at)
            right = distinct(semi.right, semi.equalities, binder.numbering, at)
            pairs = tuple(Equality(p.left, k.column) for p, k in zip(semi.equalities, right.keys, strict=True))
            self.columns |= {k.column.uid for k in right.keys}
            self._scalars.append(Attached(JoinKind.LEFT, right, pairs, None, at))
            known = self._known[node] = binder.call("is_not_null", (right.keys[0].column,), at)
        return replace(known, span=at)

    def condition(self, binder: ExprBinder, node: exp.Expr) -> Expr | None:
        """The terms of WHERE or HAVING that are no subqueries; those that are wait for `around`. Raises Rejected."""
        inner = checked(node, binder.source, "this")["this"]
        terms = [(term, match_of(term, binder)) for term in _terms(inner)]
        if all(match is None for _, match in terms):
            return self._without_outer(condition(binder, node))
        together, plain = Together(), []
        for term, match in terms:
            if match is None:
                with together.attempt():
                    plain.append(condition(binder, term))
        predicate = conjunction(plain)
        for _, match in terms:
            if match is not None:
                with together.attempt():
                    self._matches.append(self._matched(match, binder, predicate))
        together.settle()
        return None if predicate is None else self._without_outer(predicate)

    def around(
        self, node: Node, predicate: Expr | None = None, span: Span | None = None, place: Place = lambda e: e
    ) -> Node:
        """The rows that satisfy the predicate and all collected conditions, with all collected values beside them."""
        placed = None if predicate is None else place(predicate)
        added = {c.uid for s in self._scalars for c in output_columns(s.right)}
        early, late = placed, None
        if placed is not None and columns_of(placed) & added:
            terms = conjuncts(placed)
            early = conjunction(t for t in terms if not columns_of(t) & added)
            late = conjunction(t for t in terms if columns_of(t) & added)
        if early is not None:
            node = Filter(node, early, span)
        for scalar in self._scalars:
            node = scalar.around(node, place)
        if late is not None:
            node = Filter(node, late, span)
        for match in self._matches:
            node = match.around(node, place)
        self._scalars, self._matches = [], []
        return node

    def require_ungrouped(self, keys: tuple[Item, ...]) -> None:
        """Refuse group keys that read a subquery: its value joins the groups, not the rows. Raises Rejected DP111."""
        for key in keys:
            if columns_of(key.expr) & self.columns:
                raise refused(
                    "GROUP BY cannot contain a subquery", key.expr.span or key.column.span or Span(0, 1),
                    help="name the columns to group by; compute the value in a derived table to group by it",
                )  # fmt: skip

    # --- conditions ------------------------------------------------------------------------------------------------

    def _matched(self, match: Match, binder: ExprBinder, predicate: Expr | None, exact: bool = False) -> Attached:
        """exact: its value is shown or negated, so that it must not be NULL."""
        at = query_span(match.query, binder.source.text)
        relation, outer = self._bound(match.query, exists=not match.subjects)
        node = relation.node
        if not match.subjects:
            node = existence(node, outer)
        if match.subjects and len(relation.entries) != len(match.subjects):
            raise reject(
                "DP106", f"the subquery has {_counted(len(relation.entries), 'column')} where "
                f"{_counted(len(match.subjects), 'value')} {'is' if len(match.subjects) == 1 else 'are'} compared",
                span=at, help=["select one column for each value that is compared"],
            )  # fmt: skip
        left = self.relation.node if predicate is None else Filter(self.relation.node, predicate)
        terms: list[Expr] = []
        for subject, entry in zip(match.subjects, relation.entries, strict=True) if match.subjects else ():
            bound = binder.bind(subject)
            compared = binder.call(match.op, (bound, entry.column), bound.span or at)
            sure = never_null(bound, left, self.policy) and never_null(entry.column, node, self.policy)
            if exact and not sure:
                raise may_be_null(binder.source.text[(bound.span or at).start : (bound.span or at).end], at)
            if match.negated and not sure:
                compared = binder.call("coalesce", (compared, Literal(True, BOOLEAN, at)), at)
            terms.append(compared)
        lifted, correlated = exposed(node, outer, at, binder)
        pairs, rest = self._paired([*correlated, *terms], lifted)
        own = frozenset(c.uid for c in output_columns(lifted))
        only = conjunction(t for t in rest if columns_of(t) and columns_of(t) <= own)
        residual = conjunction(t for t in rest if not (columns_of(t) and columns_of(t) <= own))
        right = lifted if only is None else Filter(lifted, only, at)
        kind = JoinKind.ANTI if match.negated else JoinKind.SEMI
        return self._closed(Attached(kind, right, pairs, residual, at), outer)

    def _paired(self, terms: list[Expr], right: Node) -> tuple[tuple[Equality, ...], list[Expr]]:
        """Plain equalities between the two sides, and all other terms."""
        rights = frozenset(c.uid for c in output_columns(right))
        found = [(t, equality_between(t, columns_of(t) - rights, rights)) for t in terms]
        pairs = tuple(Equality(*pair) for _, pair in found if pair is not None)
        return pairs, [t for t, pair in found if pair is None]

    # --- scalars ---------------------------------------------------------------------------------------------------

    def _scalar(self, node: exp.Subquery, binder: ExprBinder) -> Expr:
        at = query_span(node, binder.source.text)
        relation, outer = self._bound(node)
        if len(relation.entries) != 1:
            raise refused(
                f"a subquery in an expression has one column, not {len(relation.entries)}", at,
                help="select one value:  (SELECT MAX(x) FROM …)",
            )  # fmt: skip
        if outer.terms:
            return self._decorrelated(relation, outer, at, binder)
        if not one_row(relation.node):
            raise refused(
                "a subquery in an expression must have exactly one row", at, rows_of(relation.node),
                "compute one value from all rows:  (SELECT MAX(x) FROM …),  without GROUP BY, HAVING and LIMIT",
            )  # fmt: skip
        self._scalars.append(self._closed(Attached(JoinKind.CROSS, relation.node, (), None, at, True), outer))
        return relation.entries[0].column

    def _decorrelated(self, relation: BoundRelation, outer: Outer, at: Span, binder: ExprBinder) -> Expr:
        """One aggregate per value of the inner sides of the correlated equalities, joined on them.

        A row that finds no partner has NULL, which is what an aggregate over no rows gives, except COUNT: 0.
        """
        node = relation.node
        item = node.items[0].expr if isinstance(node, Project) else None
        below = node.input if isinstance(node, Project) else node
        beside: list[Attached] = []
        while isinstance(below, Sort) or (isinstance(below, Join) and below.scalar and below.kind is JoinKind.CROSS):
            if isinstance(below, Join):
                beside.append(Attached(below.kind, below.right, (), None, below.span or at, True))
            below = below.input if isinstance(below, Sort) else below.left
        if item is None or not isinstance(below, Aggregate) or below.keys:
            raise refused(
                "a subquery that reads the outer query must compute one aggregate", at, rows_of(node),
                "for example  (SELECT MAX(x) FROM … WHERE inner.a = outer.a),  without GROUP BY, HAVING and LIMIT",
            )  # fmt: skip
        grouped, pairs = grouped_by_ties(below, outer, binder)
        attached = Attached(JoinKind.LEFT, grouped, pairs, None, at, True)
        self._scalars += [*beside[::-1], self._closed(attached, outer)]
        counts = {c.column.uid for c in below.calls if c.function == "count"}

        def counted(e: Expr) -> Expr:
            if isinstance(e, Column) and e.uid in counts:
                return binder.call("coalesce", (e, Literal(0, BIGINT, at)), at)
            return e

        return transform_expr(item, counted)

    # --- both ------------------------------------------------------------------------------------------------------

    def _bound(self, tree: exp.Expr, exists: bool = False) -> tuple[BoundRelation, Outer]:
        outer = Outer(self.relation.entries, self.outer, exists=exists)
        return self.within(outer)(tree, self.ctes), outer

    def _without_outer(self, predicate: Expr) -> Expr | None:
        """The predicate without its correlated terms, which go to the query around this one."""
        outer = self.outer
        if outer is None or not columns_of(predicate) & outer.columns:
            return predicate
        terms = conjuncts(predicate)
        outer.terms += [t for t in terms if columns_of(t) & outer.columns]
        return conjunction(t for t in terms if not columns_of(t) & outer.columns)

    def _closed(self, attached: Attached, outer: Outer) -> Attached:
        """Checks that the right side reads nothing of the left one, and remembers its columns."""
        for node in walk(attached.right):
            for e in expressions(node):
                if columns_of(e) & outer.columns:
                    raise refused(
                        "a column of the outer query is used inside the subquery", e.span or attached.span,
                        "it can stand in a comparison of the subquery's WHERE only",
                        "write the condition as a term of that WHERE, joined by AND, or join the tables",
                    )  # fmt: skip
        for e in (*(p.left for p in attached.equalities), *([attached.residual] if attached.residual else [])):
            if self.outer is not None and columns_of(e) & self.outer.columns:
                raise refused(
                    "a value of the outer query cannot be looked up in a subquery of a subquery",
                    e.span or attached.span, help="write this condition into the outer query",
                )  # fmt: skip
        self.columns |= {c.uid for c in output_columns(attached.right)}
        return attached


# --- syntax --------------------------------------------------------------------------------------------------------


def _terms(node: exp.Expr) -> Iterator[exp.Expr]:
    """The terms of a top-level AND, as written."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.And):
        yield from _terms(inner.this)
        yield from _terms(inner.expression)
    else:
        yield node


def match_of(node: exp.Expr, binder: ExprBinder) -> Match | None:
    """A term that is IN, EXISTS or = ANY over a subquery, or NOT of one; None if it is anything else."""
    negated = False
    while isinstance(node, (exp.Paren, exp.Not)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        return Match(checked(node, binder.source, "this")["this"], (), "eq", negated)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        args = checked(node, binder.source, "this", "query")
        return Match(args["query"], _row(args["this"]), "eq", negated)
    other = node.args.get("expression")
    if type(node) in _ANY and isinstance(other, exp.Any) and isinstance(other.this, exp.Query):
        args = checked(node, binder.source, "this", "expression")
        subjects, op = _row(args["this"]), _ANY[type(node)]
        if len(subjects) > 1 and op != "eq":
            raise refused(
                "rows can be compared with = ANY only", query_span(other.this, binder.source.text),
                help="compare one value, or use  (a, b) IN (SELECT …)",
            )  # fmt: skip
        return Match(other.this, subjects, op, negated)
    return None


def _row(node: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
