"""Syntax tree → bound plan. Default deny: each handler names the arguments it reads; anything else is refused.

The analyst's text ends here: whatever is not expressed in our own nodes does not exist for the later stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.plan.expr import Column, Expr, Literal, columns_of, transform, walk
from dpsql.plan.nodes import (
    Aggregate,
    Filter,
    Item,
    Limit,
    Node,
    Project,
    Sort,
    SortKey,
)
from dpsql.plan.stages import Bound
from dpsql.policy.models import Policy
from dpsql.sql.aggregates import AggregateCollector
from dpsql.sql.bind_expr import ExprBinder, condition
from dpsql.sql.bind_from import Cte, Ctes, FromBinder
from dpsql.sql.checked import checked, column_names
from dpsql.sql.parameters import Numbering, Parameters
from dpsql.sql.parse import Parsed
from dpsql.sql.scope import Entry, Relation, has
from dpsql.sql.spans import span_of

_SELECT_CLAUSES = (
    "with_",
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


def bind(parsed: Parsed, policy: Policy, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Bound:
    """Resolve every name and type of a query.

    parameters: values for `?`, `$1`, `$name`.
    Raises Rejected (DP013, DP1xx) with spans into the query's text.
    """
    binder = _Binder(parsed.source, policy, Parameters(parameters))
    relation = binder.query(parsed.tree, {})
    unused = binder.parameters.unused()
    if unused:
        raise reject(
            "DP013", f"parameter {', '.join(unused)} is not used by the query", span=binder.span(parsed.tree),
            help=["leave the value out, or write a placeholder for it:  ?, $1 or $name"],
        )  # fmt: skip
    return Bound(relation.node, tuple(e.column for e in relation.entries), parsed.source)


@dataclass(slots=True)
class _Binder:
    source: Source
    policy: Policy
    parameters: Parameters
    numbering: Numbering = field(default_factory=Numbering)
    read: set[int] = field(default_factory=set)
    """Identities of the syntax trees that were bound, to find WITH queries that nothing reads."""

    def span(self, node: exp.Expr) -> Span:
        return span_of(node, self.source.text)

    # --- queries ---------------------------------------------------------------------------------------------------

    def query(self, tree: exp.Expr, ctes: Ctes) -> Relation:
        self.read.add(id(tree))
        if isinstance(tree, exp.Subquery):
            return self.query(checked(tree, self.source, "this")["this"], ctes)
        if isinstance(tree, exp.SetOperation):
            raise reject(
                "DP101", f"{type(tree).__name__.upper()} is not supported yet", span=self.span(tree),
                help=["ask one question per query"],
            )  # fmt: skip
        if not isinstance(tree, exp.Select):
            what = "a join in brackets" if isinstance(tree, exp.Table) else type(tree).__name__.upper()
            raise reject(
                "DP101", f"{what} is outside the accepted SQL", span=self.span(tree),
                help=["write it as a subquery:  (SELECT … FROM …) AS t"],
            )  # fmt: skip
        return self.select(tree, ctes)

    def select(self, tree: exp.Select, ctes: Ctes) -> Relation:
        args = checked(tree, self.source, *_SELECT_CLAUSES)
        if "with_" in args:
            ctes = self._with(args["with_"], ctes)
        if "expressions" not in args:
            raise reject(
                "DP101", "the query selects no columns", span=self.span(tree), help=["as in  SELECT COUNT(*) FROM …"]
            )
        source = FromBinder(self.source, self.policy, self.parameters, self.numbering, self.query).bind(args, ctes)
        if "where" in args:
            predicate = condition(self._binder(source.entries, "WHERE"), args["where"])
            source = replace(source, node=Filter(source.node, predicate, self.span(args["where"])))
        found = self._project(tree, args, source)
        for cte in [*ctes.values()][::-1] if "with_" in args else []:
            if id(cte.tree) not in self.read:  # what nothing reads must be accepted SQL as well
                self.query(cte.tree, cte.visible)
        return found

    def _with(self, node: exp.Expr, outer: Ctes) -> Ctes:
        args = checked(node, self.source, "expressions", "recursive")
        if args.get("recursive"):
            raise reject("DP101", "WITH RECURSIVE is not supported", span=self.span(node), help=["leave RECURSIVE out"])
        visible = dict(outer)
        for cte in args["expressions"]:
            parts = checked(cte, self.source, "this", "alias", "materialized")
            alias = checked(parts["alias"], self.source, "this", "columns")
            name = alias["this"].name
            if self.policy.table(name) is not None:
                raise reject(
                    "DP107", f"the name {name} belongs to a table of the policy", span=self.span(alias["this"]),
                    help=["give the WITH query another name"],
                )  # fmt: skip
            if name.lower() in {c.alias.lower() for c in args["expressions"] if c is not cte}:
                raise reject(
                    "DP101", f"two WITH queries are called {name}", span=self.span(alias["this"]),
                    help=["give one of them another name"],
                )  # fmt: skip
            columns = column_names(alias.get("columns", []), self.source)
            visible = {**visible, name.lower(): Cte(parts["this"], columns, dict(visible))}
        return visible

    # --- clauses ---------------------------------------------------------------------------------------------------

    def _binder(self, entries: tuple[Entry, ...], clause: str) -> ExprBinder:
        return ExprBinder(self.source, entries, self.numbering, self.parameters, clause)

    def _project(self, tree: exp.Select, args: Mapping[str, Any], source: Relation) -> Relation:
        items = self._star_expanded(args["expressions"], source)
        collector = AggregateCollector(self.numbering)
        binder = self._binder(source.entries, "SELECT")
        binder.aggregate = collector
        named = self._items(items, binder, source)
        aliases = {n.lower(): e for n, e in reversed(named)}
        having = None
        if "having" in args:
            binder.clause, binder.aliases = "HAVING", _unless_column(aliases, source)
            having = condition(binder, args["having"])
        distinct = "distinct" in args
        if distinct:
            checked(args["distinct"], self.source)  # DISTINCT ON is refused here
        orders = self._orders(args.get("order"), binder, named, aliases)
        node = source.node
        if "group" in args or having is not None or collector.calls:
            keys = self._keys(args.get("group"), named, aliases, source, collector)
            node = Aggregate(node, keys, tuple(collector.calls), self.span(tree) if not collector.calls else None)
            place = _Above(keys, collector, source)
            named = [(n, place(e)) for n, e in named]
            orders = [replace(o, expr=place(o.expr)) for o in orders]
            if having is not None:
                node = Filter(node, place(having), self.span(args["having"]))
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
            binder.aliases = _unless_column({n.lower(): e for n, e in named}, source)
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

    def _keys(
        self,
        group: exp.Expr | None,
        named: list[tuple[str, Expr]],
        aliases: Mapping[str, Expr],
        source: Relation,
        collector: AggregateCollector,
    ) -> tuple[Item, ...]:
        if group is None:
            return ()
        args = checked(group, self.source, "expressions", "all")
        if group.args.get("all") is not None and (args.get("all") is None or "expressions" in args):
            raise reject(
                "DP101", "GROUP BY takes ALL alone, or a list of expressions", span=self.span(group),
                help=["write GROUP BY ALL, or GROUP BY and the expressions"],
            )  # fmt: skip
        if not args:
            raise reject(
                "DP010", "syntax error: GROUP BY names nothing", span=self.span(group),
                help=["write the expressions to group by, or GROUP BY ALL"],
            )  # fmt: skip
        if args.get("all"):
            chosen = [(n, e) for n, e in named if not collector.reads(e)]
            exprs = list(dict.fromkeys(e for _, e in chosen))
        else:
            exprs = []
            binder = self._binder(source.entries, "GROUP BY")
            binder.aliases = _unless_column(aliases, source)
            for node in args.get("expressions", []):
                if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                    what = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
                    raise reject(
                        "DP101", f"{what} is not supported yet", span=self.span(node),
                        help=["ask one query for each set of columns"],
                    )  # fmt: skip
                exprs.append(self._ordinal(node, named) or binder.bind(node))
        keys: dict[Expr, Item] = {}
        for e in exprs:
            if collector.reads(e):
                raise reject(
                    "DP108", "GROUP BY cannot contain an aggregate", span=e.span,
                    help=["group by columns of the tables; filter aggregates in HAVING"],
                )  # fmt: skip
            if not isinstance(e, Literal) and e not in keys:
                name = next((n for n, x in named if x == e), e.name if isinstance(e, Column) else "key")
                keys[e] = Item(self.numbering.column(name, e.type, e.span), e)
        return tuple(keys.values())

    def _ordinal(self, node: exp.Expr, named: list[tuple[str, Expr]]) -> Expr | None:
        if not isinstance(node, exp.Literal) or node.args.get("is_string"):
            return None
        at = str(node.this)
        if not at.isdigit() or not 1 <= int(at) <= len(named):
            raise reject(
                "DP101", f"position {at} is not in the SELECT list", span=self.span(node),
                help=[f"use a position from 1 to {len(named)}, or a name"],
            )  # fmt: skip
        return named[int(at) - 1][1]

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
                found.append(SortKey(self._ordinal(inner, named) or binder.bind(inner), down, first))
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


def _unless_column(aliases: Mapping[str, Expr], source: Relation) -> dict[str, Expr]:
    """Aliases that GROUP BY and HAVING may use: a real column of the same name comes first."""
    return {n: e for n, e in aliases.items() if not has(source.entries, n)}


def _name_of(node: exp.Expr, source: Relation) -> str:
    """A column is called as its table spells it; anything else by its text."""
    if isinstance(node, exp.Column):
        return next((e.name for e in source.entries if e.name.lower() == node.name.lower()), node.name)
    return node.sql("duckdb", comments=False).lower()[:60]


class _Above:
    """Rewrites an expression of SELECT, HAVING or ORDER BY to read the aggregate's output instead of its input."""

    def __init__(self, keys: tuple[Item, ...], collector: AggregateCollector, source: Relation) -> None:
        self.keys = {k.expr: k.column for k in keys}
        self.known = {k.column.uid for k in keys} | {c.column.uid for c in collector.calls}

    def __call__(self, expr: Expr) -> Expr:
        placed = self._replace(expr)
        for e in walk(placed):
            if isinstance(e, Column) and e.uid not in self.known:
                raise reject(
                    "DP109", f"{e.name} is neither grouped nor aggregated", span=e.span or expr.span,
                    help=[f"add {e.name} to GROUP BY, or aggregate it"],
                )  # fmt: skip
        return placed

    def _replace(self, expr: Expr) -> Expr:
        if expr in self.keys:
            return replace(self.keys[expr], span=expr.span)
        from dpsql.plan.expr import Call, Cast

        match expr:
            case Call(args=args):
                return replace(expr, args=tuple(self._replace(a) for a in args))
            case Cast(arg=arg):
                return replace(expr, arg=self._replace(arg))
            case _:
                return expr
