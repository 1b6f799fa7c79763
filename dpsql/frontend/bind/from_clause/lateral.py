"""LATERAL: a query of FROM that reads the row before it, written as a join with the rows of all of them.

    FROM people p CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM calls c WHERE c.pid = p.pid) AS x
    FROM people p LEFT JOIN (SELECT pid, COUNT(*) AS n FROM calls GROUP BY pid) AS x ON x.pid = p.pid  -- n or 0

It reads the row in its WHERE. A query that has one row for each, as this one, keeps rows that find no partner, and
counts 0 for them. Any other is the right side of the join, with its groups, windows and LIMIT for each value that
the row is compared with. A SELECT list may read the row, too, where no row is kept without a partner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.core.ir.conditions import conjunction, conjuncts
from dpsql.core.ir.expressions import Column, Expr, Literal, columns_of
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Sort,
    Values,
    output_columns,
)
from dpsql.core.ir.types import BIGINT
from dpsql.core.ir.walk import expressions, walk
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions.expressions import ExprBinder, condition
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.from_clause.joins import WrittenJoin, join_on
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn
from dpsql.frontend.bind.subqueries.correlated import exposed, grouped_by_ties
from dpsql.frontend.bind.subqueries.outer_query import Outer
from dpsql.frontend.text.spans import span_of


def lateral(item: exp.Expr) -> exp.Lateral | None:
    """The LATERAL query that a FROM item is; None if it is something else."""
    return item if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery) else None


def require_query(item: exp.Lateral, source: Source) -> None:
    """Refuse what is no LATERAL (SELECT …). Raises Rejected DP101, DP118."""
    if item.args.get("cross_apply") is not None:
        outer = "LEFT JOIN LATERAL (SELECT …) AS x ON TRUE"
        raise reject(
            "DP118", "APPLY is not supported", span=span_of(item, source.text),
            help=[f"write  {'CROSS JOIN LATERAL (SELECT …) AS x' if item.args['cross_apply'] else outer}"],
        )  # fmt: skip
    checked(item, source, "this", "alias")
    if isinstance(item.this.this, exp.Values):
        raise reject(
            "DP118", "VALUES in LATERAL is not supported", span=span_of(item, source.text),
            help=["write one row as  LATERAL (SELECT t.x AS v) AS l,  and constants without LATERAL"],
        )  # fmt: skip


def require_kind(join: WrittenJoin) -> None:
    """Refuse the joins that have no row before them to be read, or that need no columns. Raises Rejected DP118."""
    if join.kind not in (JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT) or join.mirrored:
        raise reject(
            "DP118", f"{join.name} LATERAL is not supported", span=join.span,
            label="it reads the row before it, so that row comes first",
            help=["use CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON TRUE", "or ask with EXISTS in WHERE"],
        )  # fmt: skip
    if join.natural or join.using is not None:
        raise reject(
            "DP118", "LATERAL takes its condition behind ON", span=join.span,
            help=["write  ON a.x = b.x  in place of USING or NATURAL, or compare in the WHERE of the subquery"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tied:
    """A LATERAL query and the rows before it. binder: sees the columns that it is given."""

    kind: JoinKind
    left: BoundRelation
    right: BoundRelation
    outer: Outer
    on: exp.Expr | None
    span: Span
    binder: Callable[[tuple[VisibleColumn, ...]], ExprBinder]

    def joined(self) -> BoundRelation:
        """The joined rows, and what names mean in them. Raises Rejected."""
        node = self.right.node
        if not self._reads(node):
            return self._one_row(node) if self.outer.terms and _always_one(node) else self._rows()
        if isinstance(node, Project) and self.kind is not JoinKind.LEFT:
            return self._computed(node)
        raise _elsewhere(
            next((e.span for e in expressions(node) if columns_of(e) & self.outer.columns), None) or self.span
        )

    # --- which rows ------------------------------------------------------------------------------------------------

    def _rows(self) -> BoundRelation:
        """A join with the rows of the query, those of any row before it."""
        right, terms = exposed(self.right.node, self.outer, self.span, self.binder(()))
        self._require_closed(right)
        entries = self.left.entries + self.right.entries
        kind = JoinKind.INNER if self.kind is JoinKind.CROSS else self.kind
        return BoundRelation(join_on(kind, self.left.node, right, [*terms, *self._on(entries)], self.span), entries)

    def _computed(self, node: Project) -> BoundRelation:
        """The same with a SELECT list that reads the row: it is computed beside the joined rows."""
        if isinstance(node.input, Values) and not node.input.columns:  # SELECT without FROM: of the row alone
            predicate = conjunction(self.outer.terms)
            rows = self.left.node if predicate is None else Filter(self.left.node, predicate, self.span)
            return self._listed(rows, node.items)
        below = replace(self, right=BoundRelation(node.input, ()), on=None).joined()
        return self._listed(below.node, node.items)

    def _one_row(self, node: Node) -> BoundRelation:
        """One row for each, whether it has a partner or not: what an aggregate of no rows is, of a count 0."""
        assert isinstance(node, Project)
        below = node.input
        while isinstance(below, Sort):
            below = below.input
        assert isinstance(below, Aggregate)
        binder = self.binder(())
        grouped, pairs = grouped_by_ties(below, self.outer, binder)
        self._require_closed(grouped)
        if self.kind is JoinKind.LEFT and self.on is not None and not _true(self.on):
            raise reject(
                "DP118", "this LEFT JOIN LATERAL has one row for each row before it, and a condition on it",
                span=self.binder(()).span(self.on),
                help=["write  ON TRUE,  and the condition into the WHERE of the subquery or into CASE"],
            )  # fmt: skip
        counts = {c.column.uid for c in below.calls if c.function == "count"}

        def counted(e: Expr) -> Expr:
            if isinstance(e, Column) and e.uid in counts:
                return binder.call("coalesce", (e, Literal(0, BIGINT, e.span)), e.span or self.span)
            return e

        items = tuple(replace(i, expr=transform_expr(i.expr, counted)) for i in node.items)
        return self._listed(Join(JoinKind.LEFT, self.left.node, grouped, pairs, None, self.span), items)

    def _listed(self, node: Node, items: tuple[Item, ...]) -> BoundRelation:
        """Joined rows with what the query selects beside the columns of the row."""
        numbering = self.binder(()).numbering
        kept = [Item(numbering.column(c.name, c.type), replace(c, span=None)) for c in output_columns(self.left.node)]
        place = {i.expr.uid: i.column for i in kept if isinstance(i.expr, Column)}
        entries = tuple(replace(e, column=place[e.column.uid]) for e in self.left.entries) + self.right.entries
        project: Node = Project(node, (*kept, *items), self.span)
        predicate = conjunction(self._on(entries))
        return BoundRelation(project if predicate is None else Filter(project, predicate, self.span), entries)

    # --- conditions ------------------------------------------------------------------------------------------------

    def _on(self, entries: tuple[VisibleColumn, ...]) -> list[Expr]:
        if self.on is None:
            return []
        terms = conjuncts(condition(self.binder(entries), self.on))
        return [t for t in terms if not (isinstance(t, Literal) and t.value is True)]

    def _reads(self, node: Node) -> bool:
        """Whether the query reads the row in its SELECT list."""
        return isinstance(node, Project) and any(columns_of(i.expr) & self.outer.columns for i in node.items)

    def _first_read(self, node: Node) -> Span | None:
        """Where an expression of the node reads the row; None if none does."""
        reading = (e for e in expressions(node) if columns_of(e) & self.outer.columns)
        return next((e.span or self.span for e in reading), None)

    def _require_closed(self, right: Node) -> None:
        for node in walk(right):
            at = self._first_read(node)
            if at is not None:
                raise _elsewhere(at)


def _always_one(node: Node) -> bool:
    """Whether it is an aggregate of all of its rows."""
    below = node.input if isinstance(node, Project) else node
    while isinstance(below, Sort):
        below = below.input
    return isinstance(node, Project) and isinstance(below, Aggregate) and not below.keys


def _true(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Boolean) and bool(node.this)


def _elsewhere(span: Span | None) -> Rejected:
    return reject(
        "DP111", "a column of the row before is read where a join cannot give it", span=span,
        label="LATERAL reads it in its WHERE, or in the SELECT list of rows that are not grouped",
        help=["compare with it in the WHERE of the subquery, and compute with it in the query around"],
    )  # fmt: skip
