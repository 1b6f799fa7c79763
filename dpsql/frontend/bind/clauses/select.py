"""One SELECT: its clauses in the order of their meaning, from FROM to LIMIT."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from dpsql.core.ir.expressions import Call, Column, Expr, Literal, columns_of, transform
from dpsql.core.ir.nodes import Aggregate, Filter, Item, Node, Project, SortKey, Window, WindowCall, output_columns
from dpsql.core.ir.types import BIGINT, BOOLEAN, NULL
from dpsql.core.policy.policy import Policy
from dpsql.core.value_classes import replace
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.bind.aggregates.aggregates import AggregateCollector
from dpsql.frontend.bind.aggregates.windows import WindowCollector, windows_of
from dpsql.frontend.bind.clauses.group_by import Above, Named, groups_of, ordinal, unless_column
from dpsql.frontend.bind.clauses.grouping_sets import GroupingCalls, Groups, aggregated
from dpsql.frontend.bind.clauses.order_by import is_cut, orders_something, sorted_rows
from dpsql.frontend.bind.clauses.order_by import orders as orders_of
from dpsql.frontend.bind.clauses.stars import star_of, starred
from dpsql.frontend.bind.expressions.expressions import ExprBinder, condition
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.from_clause.from_clause import Ctes, FromBinder
from dpsql.frontend.bind.parameters import Numbering, Parameters
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn, has
from dpsql.frontend.bind.subqueries.outer_query import Outer
from dpsql.frontend.bind.subqueries.subqueries import Subqueries
from dpsql.frontend.text.spans import span_of

CLAUSES = (
    "expressions",
    "distinct",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "windows",
    "qualify",
    "order",
    "limit",
    "offset",
)
"""What sqlglot calls the accepted clauses of a SELECT."""

Place = Callable[[Expr], Expr]


@dataclass(slots=True)
class _Clauses:
    """What follows WHERE, over the rows of FROM: aggregates, windows and GROUPING are columns of their own there."""

    named: Named
    aggregates: AggregateCollector
    windows: WindowCollector
    groupings: GroupingCalls
    groups: Groups = field(default_factory=lambda: Groups((), ()))
    having: Expr | None = None
    qualify: Expr | None = None
    first_of: tuple[Expr, ...] = ()
    """DISTINCT ON: of the rows that agree on these, the first is kept."""
    orders: list[SortKey] = field(default_factory=list)


@dataclass(slots=True)
class SelectBinder:
    """Binds one SELECT. `query` binds a nested query of FROM, `within` one in an expression of the query given.

    outer: the query around this one, if this one is a subquery in an expression.
    """

    source: Source
    policy: Policy
    parameters: Parameters
    numbering: Numbering
    query: Callable[[exp.Expr, Ctes], BoundRelation]
    within: Callable[[Outer], Callable[[exp.Expr, Ctes], BoundRelation]]
    outer: Outer | None = None

    def span(self, node: exp.Expr) -> Span:
        """Where a node stands in the text."""
        return span_of(node, self.source.text)

    def bind(self, tree: exp.Select, args: Mapping[str, Any], ctes: Ctes) -> BoundRelation:
        """The bound query. Raises Rejected."""
        if "expressions" not in args:
            raise reject(
                "DP101", "the query selects no columns", span=self.span(tree), help=["as in  SELECT COUNT(*) FROM …"]
            )
        if self.outer is not None:
            self.outer.limited = is_cut(args)
        tables = FromBinder(
            self.source, self.policy, self.parameters, self.numbering, self.query, self.within, self.outer
        )
        source = tables.bind(args, ctes)
        if self.outer is not None:
            self.outer.rows = source.node
        rows, above = (Subqueries(self.policy, source, ctes, self.outer, self.within) for _ in range(2))
        together = Together()
        if "where" in args:
            binder = self._binder(source.entries, "WHERE")
            binder.subquery, binder.membership = rows.scalar, rows.membership
            with together.attempt():
                predicate = rows.condition(binder, args["where"])
                source = replace(source, node=rows.around(source.node, predicate, self.span(args["where"])))
        return self._project(tree, args, source, rows, above, together)

    def _binder(self, entries: tuple[VisibleColumn, ...], clause: str) -> ExprBinder:
        return ExprBinder(self.source, entries, self.numbering, self.parameters, clause, outer=self.outer)

    def _project(
        self,
        tree: exp.Select,
        args: Mapping[str, Any],
        source: BoundRelation,
        rows: Subqueries,
        above: Subqueries,
        together: Together,
    ) -> BoundRelation:
        """What follows WHERE. Scalar subqueries in arguments of aggregates join the `rows`, others what is `above`."""
        binder = self._binder(source.entries, "SELECT")
        clauses = self._clauses(args, source, binder, rows, above, together)
        node = rows.around(source.node)
        place: Place = _as_it_is
        if "group" in args or "having" in args or clauses.aggregates.calls:
            node, place = self._grouped(node, clauses, above, self.span(tree))
        outputs, orders, calls = self._placed(clauses, place, together)
        first_of = []
        for e in clauses.first_of:
            with together.attempt():
                first_of.append(place(e))
        with together.attempt():
            node = above.around(node, clauses.having, self.span(args.get("having", tree)), place)
        qualify = None
        with together.attempt():
            qualify = None if clauses.qualify is None else place(clauses.qualify)
        together.settle()
        if calls:
            node = Window(node, calls, calls[0].span)
        if qualify is not None:
            node = Filter(node, qualify, self.span(args["qualify"]))
        if first_of:
            node = self._first(node, tuple(first_of), orders, self.span(args["distinct"]))
            if isinstance(tree.parent, (exp.Subquery, exp.CTE)) and not is_cut(args):
                orders = []  # it said which rows are kept: a derived table has no order
        if "distinct" not in args or first_of:
            node = Project(sorted_rows(node, orders, args, binder), outputs)
            return BoundRelation(node, tuple(VisibleColumn("", i.column.name, i.column) for i in outputs))
        keys = tuple(Item(self._fresh(i.column), i.column) for i in outputs)
        node = Aggregate(Project(node, outputs), keys, (), self.span(tree))
        orders = [self._over_distinct(o, outputs, keys) for o in orders]
        node = sorted_rows(node, orders, args, binder)
        return BoundRelation(node, tuple(VisibleColumn("", k.column.name, k.column) for k in keys))

    def _clauses(
        self,
        args: Mapping[str, Any],
        source: BoundRelation,
        binder: ExprBinder,
        rows: Subqueries,
        above: Subqueries,
        together: Together,
    ) -> _Clauses:
        """SELECT first, because the clauses after it may use its aliases. Raises Rejected with all that is wrong."""
        aggregates = AggregateCollector(self.numbering, rows.scalar, rows.membership)
        groupings = GroupingCalls(self.numbering)
        windows = WindowCollector(self.numbering, windows_of(args.get("windows", []), binder))
        binder.aggregate, binder.subquery, binder.window, binder.grouping = aggregates, above.scalar, windows, groupings
        binder.membership = rows.membership
        named, binder.failed = self._items(self._star_expanded(args["expressions"], source), binder, source, together)
        found = _Clauses(named, aggregates, windows, groupings)
        aliases = {n.lower(): e for n, e in reversed(named)}
        binder.aliases = unless_column(aliases, source.entries)
        with together.attempt():
            if "having" in args:
                binder.clause, binder.window, binder.membership = "HAVING", None, above.membership
                found.having = above.condition(binder, args["having"])
                self._no_window(found.having, windows, "HAVING")
        with together.attempt():
            if "qualify" in args:
                binder.clause, binder.window, binder.membership = "QUALIFY", windows, None
                found.qualify = condition(binder, args["qualify"])
        with together.attempt():
            if "distinct" in args:
                on = checked(args["distinct"], self.source, "on").get("on")
                binder.clause, binder.aliases, binder.window = "DISTINCT ON", aliases, None
                if on is not None and not on.expressions:
                    raise reject(
                        "DP010", "syntax error: DISTINCT ON names nothing", span=self.span(args["distinct"]),
                        help=["write the expressions of which each combination is kept once, or DISTINCT alone"],
                    )  # fmt: skip
                listed = [] if on is None else on.expressions
                found.first_of = tuple(ordinal(e, named, binder) or binder.bind(e) for e in listed)
        with together.attempt():
            binder.clause, binder.aliases, binder.window = "ORDER BY", aliases, windows
            found.orders = orders_of(args.get("order"), binder, named)
        with together.attempt():
            windows.require_all_valid(binder)
        with together.attempt():
            keyed = self._binder(source.entries, "GROUP BY")
            keyed.failed, keyed.membership = binder.failed, rows.membership
            found.groups = groups_of(
                args.get("group"), named, aliases, keyed, lambda e: aggregates.reads(e) or windows.reads(e)
            )
        together.settle()
        if found.qualify is not None and not windows.calls:
            raise reject(
                "DP101", "QUALIFY without a window function", span=self.span(args["qualify"]),
                help=["put the condition into WHERE, or into HAVING"],
            )  # fmt: skip
        if groupings.calls and "group" not in args:
            raise reject("DP101", "GROUPING without GROUP BY", span=groupings.calls[0][0].span, help=["leave it out"])
        return found

    def _grouped(self, node: Node, clauses: _Clauses, above: Subqueries, at: Span) -> tuple[Node, Place]:
        """The groups, and where their columns hold what an expression over the rows means."""
        if self.outer is not None:
            self.outer.grouped = True
        groups, calls = clauses.groups, tuple(clauses.aggregates.calls)
        above.require_ungrouped(groups.keys)
        node, constants = aggregated(node, groups, calls, clauses.groupings, self.numbering, at)
        windows = {c.column.uid for c in clauses.windows.calls}
        known = {c.uid for c in output_columns(node)} | above.columns | windows
        return node, Above(groups.keys, known, constants)

    def _first(self, node: Node, keys: tuple[Expr, ...], orders: list[SortKey], at: Span) -> Node:
        """Of the rows that agree on the keys, the first in this order."""
        place = self.numbering.column("row_number", BIGINT, at)
        numbered = Window(node, (WindowCall("row_number", (), place, keys, tuple(orders), span=at),), at)
        return Filter(numbered, Call("eq", (place, Literal(1, BIGINT, at)), BOOLEAN, at), at)

    def _fresh(self, column: Column) -> Column:
        return self.numbering.column(column.name, column.type, column.span)

    def _no_window(self, having: Expr | None, windows: WindowCollector, clause: str) -> None:
        """An alias may bring a window function to where none can stand."""
        if having is not None and windows.reads(having):
            raise reject(
                "DP101", f"a window function cannot stand in {clause}", span=having.span, help=["filter with QUALIFY"]
            )

    def _placed(
        self, clauses: _Clauses, place: Place, together: Together
    ) -> tuple[tuple[Item, ...], list[SortKey], tuple[WindowCall, ...]]:
        """SELECT items, ORDER BY terms and window functions over the rows that the clauses before them leave."""
        outputs, sorts, calls = [], [], []
        for name, e in clauses.named:
            with together.attempt():
                outputs.append(Item(self.numbering.column(name, e.type, e.span), place(e)))
        for key in clauses.orders:
            with together.attempt():
                sorts.append(replace(key, expr=place(key.expr)))
        for call in clauses.windows.calls:
            with together.attempt():
                order = tuple(replace(k, expr=place(k.expr)) for k in call.order)
                args, partition = (tuple(place(e) for e in part) for part in (call.args, call.partition))
                calls.append(replace(call, args=args, partition=partition, order=order))
        return tuple(outputs), [k for k in sorts if orders_something(k)], tuple(calls)

    def _items(
        self, items: list[tuple[str, exp.Expr | Expr]], binder: ExprBinder, source: BoundRelation, together: Together
    ) -> tuple[Named, frozenset[str]]:
        """SELECT items in order, and the names of those that were refused.

        A later one may use an earlier one's alias, unless a column has that name.
        """
        named: Named = []
        aliases: dict[str, Expr] = {}
        binder.aliases = aliases
        for name, node in items:
            bound: Expr | None = None
            with together.attempt():
                bound = binder.bind(node) if isinstance(node, exp.Expr) else node
            if bound is None:
                binder.failed |= {name.lower()}
            named.append((name, Literal(None, NULL) if bound is None else bound))
            if not has(source.entries, name):
                aliases[name.lower()] = named[-1][1]
        return named, binder.failed

    def _star_expanded(self, nodes: list[exp.Expr], source: BoundRelation) -> list[tuple[str, exp.Expr | Expr]]:
        found: list[tuple[str, exp.Expr | Expr]] = []
        for node in nodes:
            if (star := star_of(node)) is not None:
                found += starred(node, star, source, self.source)
            elif isinstance(node, exp.Alias):
                parts = checked(node, self.source, "this", "alias")
                found.append((parts["alias"].name, parts["this"]))
            else:
                found.append((_name_of(node, source), node))
        return found

    def _over_distinct(self, key: SortKey, outputs: tuple[Item, ...], keys: tuple[Item, ...]) -> SortKey:
        swap = {item.expr: k.column for item, k in zip(outputs, keys, strict=True)}
        found = transform(key.expr, lambda e: swap.get(e, e))
        if not columns_of(found) <= {k.column.uid for k in keys}:
            raise reject(
                "DP109", "with DISTINCT, ORDER BY can only use selected columns", span=key.expr.span,
                help=["select the column as well"],
            )  # fmt: skip
        return replace(key, expr=found)


def _as_it_is(expr: Expr) -> Expr:
    """Where nothing is grouped, expressions read the rows of FROM."""
    return expr


_PLAIN: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
}  # fmt: skip
_SIMPLE = re.compile(r"[a-z_][a-z_0-9]*")


@cache
def _quoted() -> frozenset[str]:
    """Words that sqlglot quotes where they are names."""
    return frozenset(sqlglot.Dialect.get_or_raise("duckdb").generator_class.RESERVED_KEYWORDS)


def _plain_call(node: exp.Expr) -> str | None:
    """The text of `SUM(x)`, `COUNT(*)` and the like, which sqlglot takes as long to write as we to bind; else None."""
    name, of = _PLAIN.get(type(node)), node.args.get("this")
    if name is None or any(value for key, value in node.args.items() if key not in ("this", "big_int")):
        return None
    if type(of) is exp.Star and not any(of.args.values()):
        return f"{name}(*)"
    if type(of) is not exp.Column or isinstance(of.this, exp.Star):
        return None
    parts = [of.args[part] for part in ("catalog", "db", "table", "this") if of.args.get(part)]
    names = [part.name.lower() for part in parts]
    simple = not any(part.args.get("quoted") for part in parts) and all(map(_SIMPLE.fullmatch, names))
    return f"{name}({'.'.join(names)})"[:60] if simple and _quoted().isdisjoint(names) else None


def _name_of(node: exp.Expr, source: BoundRelation) -> str:
    """A column is called as its table spells it; anything else by its text."""
    if isinstance(node, exp.Column):
        return next((e.name for e in source.entries if e.name.lower() == node.name.lower()), node.name)
    if (plain := _plain_call(node)) is not None:
        return plain
    ordered = isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode)  # which sqlglot writes otherwise
    return node.sql("presto" if ordered else "duckdb", comments=False).lower()[:60]
