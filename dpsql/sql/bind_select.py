"""One SELECT: its clauses in the order of their meaning, from FROM to LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.plan.expr import Expr, Literal, columns_of, transform
from dpsql.plan.nodes import Aggregate, Item, Limit, Node, Project, Sort, SortKey
from dpsql.policy.models import Policy
from dpsql.sql.aggregates import AggregateCollector
from dpsql.sql.bind_expr import ExprBinder
from dpsql.sql.bind_from import Ctes, FromBinder
from dpsql.sql.bind_groups import Above, ordinal, unless_column
from dpsql.sql.bind_groups import keys as keys_of
from dpsql.sql.bind_subquery import Subqueries
from dpsql.sql.checked import checked
from dpsql.sql.outer import Outer
from dpsql.sql.parameters import Numbering, Parameters
from dpsql.sql.scope import Entry, Relation
from dpsql.sql.spans import span_of

CLAUSES = (
    "expressions",
    "distinct",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
)
"""What sqlglot calls the accepted clauses of a SELECT."""


@dataclass(slots=True)
class SelectBinder:
    """Binds one SELECT. `query` binds a nested query of FROM, `within` one in an expression of the query given.

    outer: the query around this one, if this one is a subquery in an expression.
    """

    source: Source
    policy: Policy
    parameters: Parameters
    numbering: Numbering
    query: Callable[[exp.Expr, Ctes], Relation]
    within: Callable[[Outer], Callable[[exp.Expr, Ctes], Relation]]
    outer: Outer | None = None

    def span(self, node: exp.Expr) -> Span:
        """Where a node stands in the text."""
        return span_of(node, self.source.text)

    def bind(self, tree: exp.Select, args: Mapping[str, Any], ctes: Ctes) -> Relation:
        """The bound query. Raises Rejected."""
        if "expressions" not in args:
            raise reject(
                "DP101", "the query selects no columns", span=self.span(tree), help=["as in  SELECT COUNT(*) FROM …"]
            )
        if self.outer is not None:
            self.outer.limited = "limit" in args or "offset" in args
        tables = FromBinder(self.source, self.policy, self.parameters, self.numbering, self.query, self.outer)
        source = tables.bind(args, ctes)
        rows, above = (Subqueries(self.policy, source, ctes, self.outer, self.within) for _ in range(2))
        if "where" in args:
            binder = self._binder(source.entries, "WHERE")
            binder.subquery = rows.scalar
            predicate = rows.condition(binder, args["where"])
            source = replace(source, node=rows.around(source.node, predicate, self.span(args["where"])))
        return self._project(tree, args, source, rows, above)

    def _binder(self, entries: tuple[Entry, ...], clause: str) -> ExprBinder:
        return ExprBinder(self.source, entries, self.numbering, self.parameters, clause, outer=self.outer)

    def _project(
        self, tree: exp.Select, args: Mapping[str, Any], source: Relation, rows: Subqueries, above: Subqueries
    ) -> Relation:
        """What follows WHERE. Scalar subqueries in arguments of aggregates join the `rows`, others what is `above`."""
        items = self._star_expanded(args["expressions"], source)
        collector = AggregateCollector(self.numbering, rows.scalar)
        binder = self._binder(source.entries, "SELECT")
        binder.aggregate, binder.subquery = collector, above.scalar
        named = self._items(items, binder, source)
        aliases = {n.lower(): e for n, e in reversed(named)}
        having = None
        if "having" in args:
            binder.clause, binder.aliases = "HAVING", unless_column(aliases, source.entries)
            having = above.condition(binder, args["having"])
        distinct = "distinct" in args
        if distinct:
            checked(args["distinct"], self.source)  # DISTINCT ON is refused here
        orders = self._orders(args.get("order"), binder, named, aliases)
        node = rows.around(source.node)
        if "group" in args or "having" in args or collector.calls:
            if self.outer is not None:
                self.outer.grouped = True
            keys = keys_of(args.get("group"), named, aliases, self._binder(source.entries, "GROUP BY"), collector)
            node = Aggregate(node, keys, tuple(collector.calls), self.span(tree) if not collector.calls else None)
            above.require_ungrouped(keys)
            place = Above(keys, collector, above.columns)
            named = [(n, place(e)) for n, e in named]
            orders = [replace(o, expr=place(o.expr)) for o in orders]
            node = above.around(node, having, self.span(args.get("having", tree)), place)
        else:
            node = above.around(node)
        outputs = tuple(Item(self.numbering.column(n, e.type, e.span), e) for n, e in named)
        if distinct:
            node = Project(node, outputs)
            keys = tuple(
                Item(self.numbering.column(i.column.name, i.column.type, i.column.span), i.column) for i in outputs
            )
            node = Aggregate(node, keys, (), self.span(tree))
            orders = [self._over_distinct(o, outputs, keys) for o in orders]
            node = self._limited(self._sorted(node, orders, args), args)
            return Relation(node, tuple(Entry("", k.column.name, k.column) for k in keys))
        node = Project(self._limited(self._sorted(node, orders, args), args), outputs)
        return Relation(node, tuple(Entry("", i.column.name, i.column) for i in outputs))

    def _items(
        self, items: list[tuple[str, exp.Expr | Expr]], binder: ExprBinder, source: Relation
    ) -> list[tuple[str, Expr]]:
        """SELECT items in order; a later one may use an earlier one's alias, unless a column has that name."""
        named: list[tuple[str, Expr]] = []
        for name, node in items:
            binder.aliases = unless_column({n.lower(): e for n, e in named}, source.entries)
            named.append((name, binder.bind(node) if isinstance(node, exp.Expr) else node))
        return named

    def _star_expanded(self, nodes: list[exp.Expr], source: Relation) -> list[tuple[str, exp.Expr | Expr]]:
        found: list[tuple[str, exp.Expr | Expr]] = []
        for node in nodes:
            star = node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else node
            if isinstance(star, exp.Star):
                checked(star, self.source)
                relation = node.args["table"].name if star is not node else None
                chosen = [e for e in source.entries if _in_star(e, relation)]
                if not chosen:
                    known = ", ".join(dict.fromkeys(e.relation for e in source.entries if e.relation))
                    raise reject(
                        "DP102", f"no table is called {relation} here", span=self.span(node),
                        help=[f"this query reads: {known or 'no table'}"],
                    )  # fmt: skip
                found += [(e.name, replace(e.column, span=self.span(node))) for e in chosen]
            elif isinstance(node, exp.Alias):
                parts = checked(node, self.source, "this", "alias")
                found.append((parts["alias"].name, parts["this"]))
            else:
                found.append((_name_of(node, source), node))
        return found

    def _orders(
        self, order: exp.Expr | None, binder: ExprBinder, named: list[tuple[str, Expr]], aliases: Mapping[str, Expr]
    ) -> list[SortKey]:
        if order is None:
            return []
        binder.clause, binder.aliases = "ORDER BY", aliases
        found: list[SortKey] = []
        for node in checked(order, self.source, "expressions")["expressions"]:
            args = checked(node, self.source, "this", "desc", "nulls_first")
            down, first = bool(args.get("desc")), bool(args.get("nulls_first"))
            inner = args["this"]
            if isinstance(inner, exp.Var) and inner.name.upper() == "ALL" and len(order.expressions) == 1:
                found += [SortKey(e, down, first) for _, e in named]
            else:
                found.append(SortKey(ordinal(inner, named, binder) or binder.bind(inner), down, first))
        return [k for k in found if not isinstance(k.expr, Literal)]

    def _over_distinct(self, key: SortKey, outputs: tuple[Item, ...], keys: tuple[Item, ...]) -> SortKey:
        swap = {item.expr: k.column for item, k in zip(outputs, keys, strict=True)}
        found = transform(key.expr, lambda e: swap.get(e, e))
        if not columns_of(found) <= {k.column.uid for k in keys}:
            raise reject(
                "DP109", "with DISTINCT, ORDER BY can only use selected columns", span=key.expr.span,
                help=["select the column as well"],
            )  # fmt: skip
        return replace(key, expr=found)

    def _sorted(self, node: Node, orders: list[SortKey], args: Mapping[str, Any]) -> Node:
        return Sort(node, tuple(orders), self.span(args["order"])) if orders else node

    def _limited(self, node: Node, args: Mapping[str, Any]) -> Node:
        if "limit" not in args and "offset" not in args:
            return node
        count, offset = args.get("limit"), args.get("offset")
        at = self.span(next(clause for clause in (count, offset) if clause is not None))
        return Limit(node, self._amount(count), self._amount(offset) or 0, at)

    def _amount(self, node: exp.Expr | None) -> int | None:
        if node is None:
            return None
        bound = self._binder((), "LIMIT").bind(checked(node, self.source, "expression")["expression"])
        value = bound.value if isinstance(bound, Literal) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
            raise reject(
                "DP115", "LIMIT and OFFSET take a whole number", span=self.span(node), help=["for example  LIMIT 10"]
            )
        return value


def _in_star(entry: Entry, relation: str | None) -> bool:
    return not entry.merged if relation is None else entry.relation.lower() == relation.lower()


def _name_of(node: exp.Expr, source: Relation) -> str:
    """A column is called as its table spells it; anything else by its text."""
    if isinstance(node, exp.Column):
        return next((e.name for e in source.entries if e.name.lower() == node.name.lower()), node.name)
    return node.sql("duckdb", comments=False).lower()[:60]
