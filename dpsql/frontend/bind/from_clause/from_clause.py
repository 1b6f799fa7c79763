"""The FROM clause: tables, WITH queries, derived tables, VALUES, UNNEST and joins, in brackets or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.nodes import Filter, Item, Join, JoinKind, Node, Project, Values, output_columns
from dpsql.core.ir.types import INTEGER, NULL
from dpsql.core.policy.policy import Policy
from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject, too_large
from dpsql.frontend.bind.expressions.expressions import ExprBinder, condition
from dpsql.frontend.bind.expressions.replacements import SPINE
from dpsql.frontend.bind.expressions.syntax_arguments import as_written, checked, column_names
from dpsql.frontend.bind.from_clause.joins import WrittenJoin, bind_join, is_comma, written
from dpsql.frontend.bind.from_clause.lateral import Tied, lateral, require_kind, require_query
from dpsql.frontend.bind.from_clause.policy_tables import given_relation, scan
from dpsql.frontend.bind.from_clause.series import bind_series
from dpsql.frontend.bind.from_clause.unnest import bind_unnest, listed, selected
from dpsql.frontend.bind.from_clause.values import bind_values
from dpsql.frontend.bind.parameters import Numbering, Parameters
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn, has, place, relations
from dpsql.frontend.bind.subqueries.outer_query import Outer
from dpsql.frontend.text.spans import query_span, span_of

MAX_COLUMNS = 10_000
"""Most columns a plan may number: bounds the work that nested CTEs can ask for."""


@dataclass(frozen=True, slots=True)
class Cte:
    """A WITH query: bound afresh at each use, because a table used twice counts twice."""

    tree: exp.Expr
    columns: tuple[str, ...]
    visible: Mapping[str, Cte]


Ctes = Mapping[str, Cte]


@value(frozen=True, slots=True)
class _Joined:
    """What stands before a join: all rows so far, and the columns that names mean.

    before: of the FROM items before the last comma: seen where the item itself has no such column, as DuckDB does it.
    """

    node: Node
    before: tuple[VisibleColumn, ...]
    entries: tuple[VisibleColumn, ...]


@dataclass(slots=True)
class FromBinder:
    """Binds FROM items. `query` binds a nested query, `within` one that reads the query given.

    outer: the query around this one.
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

    def bind(self, args: Mapping[str, Any], ctes: Ctes) -> BoundRelation:
        """The rows that WHERE sees. Raises Rejected."""
        if "from_" not in args:
            if "joins" in args:
                raise reject(
                    "DP010", "syntax error: JOIN without FROM", span=self.span(args["joins"][0]),
                    help=["look for a missing FROM before this place"],
                )  # fmt: skip
            self.numbering.leaf(self.span(args["expressions"][0]))
            return BoundRelation(Values((), ((),)), ())
        first = checked(args["from_"], self.source, "this")["this"]
        relation = self._selected_list(args, self._items(first, args.get("joins", []), ctes))
        if len(output_columns(relation.node)) > MAX_COLUMNS:
            raise too_large(
                f"the query is too large: its FROM has more than {MAX_COLUMNS:,} columns", self.span(args["from_"]),
                "read fewer tables, or use each WITH query less often",
            )  # fmt: skip
        return relation

    def _binder(self, entries: tuple[VisibleColumn, ...], clause: str) -> ExprBinder:
        return ExprBinder(self.source, entries, self.numbering, self.parameters, clause, outer=self.outer)

    # --- items and commas ------------------------------------------------------------------------------------------

    def _items(self, first: exp.Expr, joins: list[exp.Join], ctes: Ctes) -> BoundRelation:
        """Items between commas; each with the joins that follow it, because JOIN binds tighter than a comma."""
        groups: list[tuple[exp.Expr, list[WrittenJoin]]] = [(first, [])]
        for node in joins:
            if is_comma(node):
                groups.append((checked(node, self.source, "this")["this"], []))
            else:
                groups[-1][1].append(written(node, self.source))
        done: BoundRelation | None = None
        for item, following in groups:
            done = self._group(done, item, following, ctes)
        assert done is not None
        return done

    def _group(
        self, before: BoundRelation | None, item: exp.Expr, joins: list[WrittenJoin], ctes: Ctes
    ) -> BoundRelation:
        """`before, item JOIN … JOIN …`. A × (B ⋈ C) is (A × B) ⋈ C, unless the join keeps rows of C alone."""
        apart = next((j for j in joins if j.keeps_right), None)
        if before is None:
            found = self._first(item, ctes)
            state = _Joined(found.node, (), found.entries)
        elif listed(item) is not None:
            self._require_side_by_side(apart)
            state = self._unnested(item, _Joined(before.node, before.entries, ()))
        elif (query := lateral(item)) is not None:
            self._require_side_by_side(apart)
            state = self._tied(query, None, _Joined(before.node, before.entries, ()), ctes)
        else:
            found = self._table(item, ctes)
            self._require_new_names(before.entries, found, item)
            if apart is not None:
                self._require_own_names(before.entries, joins, apart)
                group = self._joined(_Joined(found.node, (), found.entries), joins, ctes)
                self._require_new_names(before.entries, BoundRelation(group.node, group.entries), item)
                crossed = Join(JoinKind.CROSS, before.node, group.node, span=self.span(item))
                return BoundRelation(crossed, before.entries + group.entries)
            crossed = Join(JoinKind.CROSS, before.node, found.node, span=self.span(item))
            state = _Joined(crossed, before.entries, found.entries)
        state = self._joined(state, joins, ctes)
        return BoundRelation(state.node, state.before + state.entries)

    def _first(self, item: exp.Expr, ctes: Ctes) -> BoundRelation:
        if listed(item) is not None:
            raise reject(
                "DP101", "UNNEST without a table before it", span=self.span(item),
                help=["write  FROM t, UNNEST(t.tags) AS u(tag);  constants as  FROM (VALUES (1), (2)) AS v(x)"],
            )  # fmt: skip
        return self._table(item, ctes)

    def _joined(self, state: _Joined, joins: list[WrittenJoin], ctes: Ctes) -> _Joined:
        for join in joins:
            if listed(join.item) is not None:
                state = self._joined_list(join, state)
                continue
            if (query := lateral(join.item)) is not None:
                state = self._tied(query, join, state, ctes)
                continue
            right = self._table(join.item, ctes)
            self._require_new_names(state.before + state.entries, right, join.item)
            entries = state.entries
            if state.before and join.on is not None and not _covers(entries + right.entries, join.on):
                entries = state.before + entries
            found = bind_join(join, state.node, entries, right, self._binder(entries + right.entries, "ON"))
            inner = found.entries[len(state.before) :] if entries is not state.entries else found.entries
            state = _Joined(found.node, state.before, inner)
        return state

    def _require_new_names(self, entries: tuple[VisibleColumn, ...], right: BoundRelation, item: exp.Expr) -> None:
        taken = {r.lower() for r in relations(entries)}
        clash = next((r for r in relations(right.entries) if r.lower() in taken), None)
        if clash is not None:
            raise reject(
                "DP104", f"two tables are called {clash}", span=self.span(item),
                help=[f"give one of them an alias:  … AS {clash}2"],
            )  # fmt: skip

    def _require_own_names(
        self, before: tuple[VisibleColumn, ...], joins: list[WrittenJoin], apart: WrittenJoin
    ) -> None:
        """Rows that appear without a partner cannot depend on a row before the comma."""
        known = {r.lower() for r in relations(before)}
        for column in (c for j in joins if j.on is not None for c in j.on.find_all(exp.Column)):
            if column.table.lower() in known:
                raise reject(
                    "DP102", f"{column.table} stands before a comma, where this {apart.name} does not reach",
                    span=self.span(column), help=["write CROSS JOIN for the comma, or put the condition into WHERE"],
                )  # fmt: skip

    # --- UNNEST ----------------------------------------------------------------------------------------------------

    def _joined_list(self, join: WrittenJoin, state: _Joined) -> _Joined:
        """`… JOIN UNNEST(list) ON condition`: the elements that satisfy it."""
        if join.kind not in (JoinKind.INNER, JoinKind.CROSS) or join.natural or join.using is not None:
            raise reject(
                "DP118", f"{join.name} with UNNEST is not supported", span=join.span,
                label="rows whose list is empty disappear",
                help=["use CROSS JOIN UNNEST(…), or JOIN UNNEST(…) ON condition"],
            )  # fmt: skip
        found = self._unnested(join.item, state)
        if join.on is None:
            return found
        visible = found.entries if _covers(found.entries, join.on) else found.before + found.entries
        predicate = condition(self._binder(visible, "ON"), join.on)
        always = isinstance(predicate, Literal) and predicate.value is True
        return found if always else replace(found, node=Filter(found.node, predicate, join.span))

    def _unnested(self, item: exp.Expr, state: _Joined) -> _Joined:
        unnest = listed(item)
        assert unnest is not None
        if unnest is not item:
            checked(item, self.source, "this", "alias")
        alias = item.args.get("alias") or unnest.args.get("alias")
        visible = state.entries if _covers(state.entries, unnest) else state.before + state.entries
        node, entry = bind_unnest(unnest, state.node, self._binder(visible, "UNNEST"), self.policy, alias)
        self._require_new_names(state.before + state.entries, BoundRelation(node, (entry,)), item)
        return _Joined(node, state.before, (*state.entries, entry))

    def _selected_list(self, args: Mapping[str, Any], relation: BoundRelation) -> BoundRelation:
        """`SELECT unnest(list)`: the element is a column that only this place of the text means."""
        item = None if "qualify" in args else selected(args.get("expressions", []))
        if item is None:
            return relation
        node, entry = bind_unnest(item, relation.node, self._binder(relation.entries, "UNNEST"), self.policy, None)
        hidden = VisibleColumn("", place(self.span(item)), entry.column, merged=True)
        return BoundRelation(node, (*relation.entries, hidden))

    def _require_side_by_side(self, join: WrittenJoin | None) -> None:
        if join is not None:
            raise reject(
                "DP118", f"{join.name} after UNNEST is not supported", span=join.span,
                help=["join first, and unnest the list last"],
            )  # fmt: skip

    # --- LATERAL ---------------------------------------------------------------------------------------------------

    def _tied(self, item: exp.Lateral, join: WrittenJoin | None, state: _Joined, ctes: Ctes) -> _Joined:
        """`… JOIN LATERAL (SELECT …)`, or behind a comma: a query that reads the rows so far."""
        require_query(item, self.source)
        if join is not None:
            require_kind(join)
        known = state.before + state.entries
        outer = Outer(known, self.outer, lateral=True)
        right = self._aliased(self.within(outer)(item.this, ctes), item, "")
        self._require_new_names(known, right, item)
        kind, on = (JoinKind.CROSS, None) if join is None else (join.kind, join.on)
        at = query_span(item.this, self.source.text)
        tied = Tied(kind, BoundRelation(state.node, known), right, outer, on, at, lambda e: self._binder(e, "ON"))
        found = tied.joined()
        split = len(state.before)
        return _Joined(found.node, found.entries[:split], found.entries[split:])

    # --- tables ----------------------------------------------------------------------------------------------------

    def _table(self, node: exp.Expr, ctes: Ctes) -> BoundRelation:
        default: str | None = ""
        match node:
            case exp.Subquery() if _is_query(node.this):
                args = checked(node, self.source, "this", "alias", "joins")
                relation = self._typed(self.query(node.this, ctes))
            case exp.Subquery():  # a join in brackets: without an alias, its tables stay visible
                args = checked(node, self.source, "this", "alias", "joins")
                relation, default = self._bracket(node.this, ctes), None
            case exp.Values():
                args = checked(node, self.source, "expressions", "alias")
                relation = bind_values(node, self._binder((), "VALUES"))
            case exp.Table(this=exp.Values()):  # how sqlglot has it within brackets
                args = checked(node, self.source, "this", "alias", "joins")
                relation = bind_values(args["this"], self._binder((), "VALUES"))
            case exp.Table(this=exp.GenerateSeries() | exp.ExplodingGenerateSeries()):
                args = checked(node, self.source, "this", "alias", "joins")
                relation = bind_series(args["this"], node.alias, self._binder((), "FROM"))
            case exp.Table():
                args = checked(node, self.source, "this", "alias", "db", "catalog", "joins")
                plain = lambda: self._binder((), "FROM")  # noqa: E731
                given = given_relation(node, self.parameters.relations, plain)
                if given is None and not isinstance(args["this"], exp.Identifier):
                    advice = ["read a table that the policy lists; write constants as  (VALUES (1), (2)) AS v(x)"]
                    counts_up = isinstance(args["this"], (exp.GenerateSeries, exp.GenerateDateArray))
                    raise reject(
                        "DP101", "table functions are not supported", span=self.span(node),
                        help=[SPINE, *advice] if counts_up else advice,
                    )  # fmt: skip
                relation, default = given or self._named(node, ctes), node.name
            case exp.Lateral():
                raise reject(
                    "DP118", "LATERAL without a table before it, or without a query", span=self.span(node),
                    label="a query for each row of the table before it",
                    help=["write  FROM t, LATERAL (SELECT … FROM u WHERE u.x = t.x) AS l"],
                )  # fmt: skip
            case _:
                raise reject(
                    "DP101", f"{as_written(node, self.source)} cannot be read from", span=self.span(node),
                    help=["read a table that the policy lists, a WITH query or a subquery"],
                )  # fmt: skip
        relation = self._aliased(relation, node, default)
        if args.get("joins"):  # `a JOIN b JOIN c ON … ON …`: the inner join belongs to b
            return self._nested(relation, args["joins"], ctes)
        return relation

    def _aliased(self, relation: BoundRelation, node: exp.Expr, default: str | None) -> BoundRelation:
        """The rows under the alias of a FROM item, or under this name; None: as they are called below."""
        alias = node.args.get("alias")
        names = {} if alias is None else checked(alias, self.source, "this", "columns")
        columns = column_names(names["columns"], self.source) if names.get("columns") else ()
        if columns:
            relation = self._relabelled(relation, columns, self.span(node if alias is None else alias))
        chosen = names["this"].name if "this" in names else default
        return relation if chosen is None else relation.renamed(chosen, alias="this" in names)

    def _bracket(self, node: exp.Expr, ctes: Ctes) -> BoundRelation:
        comma = next((j for j in node.args.get("joins") or () if is_comma(j)), None)
        if comma is not None:
            raise reject(
                "DP101", "a comma within brackets of FROM", span=self.span(comma),
                help=["write CROSS JOIN, or leave the brackets out"],
            )  # fmt: skip
        return self._table(node, ctes)

    def _nested(self, relation: BoundRelation, joins: list[exp.Join], ctes: Ctes) -> BoundRelation:
        state = _Joined(relation.node, (), relation.entries)
        state = self._joined(state, [written(j, self.source) for j in joins], ctes)
        return BoundRelation(state.node, state.entries)

    def _named(self, node: exp.Table, ctes: Ctes) -> BoundRelation:
        parts = [p for p in (node.args.get("catalog"), node.args.get("db"), node.this) if p is not None]
        cte = ctes.get(node.name.lower()) if len(parts) == 1 else None
        if cte is None:
            names = [getattr(p, "name", "") for p in parts]  # in `..t` the parser leaves a part out
            ends = [self.span(p) for p in parts if isinstance(p, exp.Expr)]
            return scan(names, self.policy, self.numbering, self.span(node), ends[0].hull(ends[-1]))
        relation = self._typed(self.query(cte.tree, cte.visible))
        return self._relabelled(relation, cte.columns, self.span(node)) if cte.columns else relation

    def _typed(self, relation: BoundRelation) -> BoundRelation:
        """A query's rows as FROM sees them: a column of NULLs alone is an INTEGER there."""
        entries = [e for e in relation.entries if not e.merged]
        if not any(e.column.type == NULL for e in entries):
            return relation
        items = []
        for column in (e.column for e in entries):
            empty = column.type == NULL
            new = self.numbering.column(column.name, INTEGER if empty else column.type, column.span)
            items.append(Item(new, Literal(None, INTEGER, column.span) if empty else column))
        named = tuple(replace(e, column=i.column) for e, i in zip(entries, items, strict=True))
        return BoundRelation(Project(relation.node, tuple(items)), named)

    def _relabelled(self, relation: BoundRelation, names: tuple[str, ...], at: Span) -> BoundRelation:
        entries = tuple(e for e in relation.entries if not e.merged)
        if len(names) > len(entries):
            raise reject(
                "DP101", f"{len(names)} column names for {len(entries)} columns", span=at,
                help=["give at most one name for each column"],
            )  # fmt: skip
        renamed = [replace(e, name=n, also="") for e, n in zip(entries, names, strict=False)]
        return replace(relation, entries=(*renamed, *entries[len(names) :]))


def _is_query(node: exp.Expr) -> bool:
    """Whether brackets hold a query; else a table or a join."""
    while isinstance(node, exp.Subquery) and not node.args.get("alias") and not node.args.get("joins"):
        node = node.this
    return isinstance(node, (exp.Select, exp.SetOperation, exp.Values))


def _covers(entries: tuple[VisibleColumn, ...], node: exp.Expr) -> bool:
    """Whether every name in an expression means one of these columns."""
    return all(
        has(entries, c.name, c.args["table"].name if c.args.get("table") else None) for c in node.find_all(exp.Column)
    )
