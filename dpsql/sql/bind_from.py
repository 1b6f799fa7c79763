"""The FROM clause: tables, WITH queries, derived tables and joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.plan.expr import Expr
from dpsql.plan.logic import conjunction, conjuncts, equality_between
from dpsql.plan.nodes import Equality, Join, JoinKind, Node, Values, output_columns
from dpsql.policy.models import Policy
from dpsql.sql.bind_expr import ExprBinder, condition
from dpsql.sql.checked import checked, column_names
from dpsql.sql.parameters import Numbering, Parameters
from dpsql.sql.scope import Entry, Relation, find, has
from dpsql.sql.spans import span_of
from dpsql.sql.tables import scan

MAX_COLUMNS = 10_000
"""Most columns a plan may number: bounds the work that nested CTEs can ask for."""


@dataclass(frozen=True, slots=True)
class Cte:
    """A WITH query: bound afresh at each use, because a table used twice counts twice."""

    tree: exp.Expr
    columns: tuple[str, ...]
    visible: Mapping[str, Cte]


Ctes = Mapping[str, Cte]


@dataclass(slots=True)
class FromBinder:
    """Binds FROM items. `query` binds a nested query."""

    source: Source
    policy: Policy
    parameters: Parameters
    numbering: Numbering
    query: Callable[[exp.Expr, Ctes], Relation]

    def span(self, node: exp.Expr) -> Span:
        """Where a node stands in the text."""
        return span_of(node, self.source.text)

    def bind(self, args: Mapping[str, Any], ctes: Ctes) -> Relation:
        if "from_" not in args:
            return Relation(Values((), ((),)), ())
        relation = self._table(checked(args["from_"], self.source, "this")["this"], ctes)
        for join in args.get("joins", []):
            relation = self._join(relation, join, ctes)
        if len(output_columns(relation.node)) > MAX_COLUMNS:
            raise reject(
                "DP101", "the query is too large", span=self.span(args["from_"]),
                help=["read fewer tables, or use each WITH query less often"],
            )  # fmt: skip
        return relation

    def _binder(self, entries: tuple[Entry, ...], clause: str) -> ExprBinder:
        return ExprBinder(self.source, entries, self.numbering, self.parameters, clause)

    def _table(self, node: exp.Expr, ctes: Ctes) -> Relation:
        alias = node.args.get("alias")
        names = {} if alias is None else checked(alias, self.source, "this", "columns")
        at = self.span(node if alias is None else alias)
        if isinstance(node, exp.Subquery):
            checked(node, self.source, "this", "alias")
            relation, default = self.query(node.this, ctes), ""
        elif isinstance(node, exp.Table):
            args = checked(node, self.source, "this", "alias", "db", "catalog", "joins")
            if not isinstance(args["this"], exp.Identifier):
                raise reject(
                    "DP101", "table functions are not supported", span=self.span(node),
                    help=["read a table that the policy lists"],
                )  # fmt: skip
            default = node.name
            relation = self._named(node, ctes)
            for nested in args.get("joins", []):
                relation = self._join(relation, nested, ctes)
        else:
            raise reject(
                "DP101", f"{type(node).__name__.upper()} cannot be read from", span=self.span(node),
                help=["read a table that the policy lists, a WITH query or a subquery"],
            )  # fmt: skip
        relation = relation.renamed(names["this"].name if "this" in names else default)
        if names.get("columns"):
            relation = self._relabelled(relation, column_names(names["columns"], self.source), at)
        return relation

    def _named(self, node: exp.Table, ctes: Ctes) -> Relation:
        cte = None if node.args.get("db") else ctes.get(node.name.lower())
        if cte is None:
            parts = [p.name for p in (node.args.get("catalog"), node.args.get("db"), node.this) if p is not None]
            return scan(parts, self.policy, self.numbering, self.span(node))
        relation = self.query(cte.tree, cte.visible)
        return self._relabelled(relation, cte.columns, self.span(node)) if cte.columns else relation

    def _relabelled(self, relation: Relation, names: tuple[str, ...], at: Span) -> Relation:
        if len(names) > len(relation.entries):
            raise reject(
                "DP101", f"{len(names)} column names for {len(relation.entries)} columns", span=at,
                help=["give at most one name for each column"],
            )  # fmt: skip
        renamed = [replace(e, name=n) for e, n in zip(relation.entries, names, strict=False)]
        return replace(relation, entries=(*renamed, *relation.entries[len(names) :]))

    def _join(self, left: Relation, node: exp.Join, ctes: Ctes) -> Relation:
        args = checked(node, self.source, "this", "on", "using", "kind", "method", "side")
        kind, side = str(args.get("kind") or "").upper(), str(args.get("side") or "").upper()
        if side or kind not in ("", "INNER", "CROSS"):
            raise reject(
                "DP118", f"{side or kind} JOIN is not supported yet", span=self.span(node),
                help=["use an inner join, with a public table or on the privacy unit"],
            )  # fmt: skip
        method = str(args.get("method") or "").upper()
        if method not in ("", "NATURAL"):
            raise reject(
                "DP118", f"{method} JOIN is not supported", span=self.span(node),
                help=["use JOIN … ON, USING or NATURAL"],
            )  # fmt: skip
        if (method or kind == "CROSS") and ("on" in args or "using" in args):
            raise reject(
                "DP116", f"a {method or kind} JOIN takes no condition", span=self.span(args.get("on", node)),
                help=["use JOIN … ON or JOIN … USING"],
            )  # fmt: skip
        right = self._table(args["this"], ctes)
        taken = {e.relation.lower() for e in left.entries if e.relation}
        clash = next((e.relation for e in right.entries if e.relation.lower() in taken), None)
        if clash is not None:
            raise reject(
                "DP104", f"two tables are called {clash}", span=self.span(args["this"]),
                help=[f"give one of them an alias:  … AS {clash}2"],
            )  # fmt: skip
        if method or "using" in args:
            return self._join_using(left, right, node, args.get("using"))
        entries = left.entries + right.entries
        if "on" not in args:
            return Relation(Join(JoinKind.CROSS, left.node, right.node, span=self.span(node)), entries)
        predicate = condition(self._binder(entries, "ON"), args["on"])
        joined = join_on(left.node, right.node, conjuncts(predicate), self.span(node))
        return Relation(joined, entries)

    def _join_using(self, left: Relation, right: Relation, node: exp.Join, using: list[exp.Expr] | None) -> Relation:
        if using is None:
            names = [(n, self.span(node)) for n in left.names() if has(right.entries, n)]
            if not names:
                raise reject(
                    "DP116", "NATURAL JOIN finds no common column", span=self.span(node),
                    help=["say how the tables belong together:  JOIN … ON a.x = b.y"],
                )  # fmt: skip
        else:
            names = [(u.name, self.span(u)) for u in using]
        pairs, hidden = [], set()
        binder = self._binder((), "USING")
        for name, at in names:
            pair = find(left.entries, name, None, at), find(right.entries, name, None, at)
            binder.call("eq", pair, at)  # the two types must be comparable
            pairs.append(Equality(*pair))
            hidden.add(pair[1].uid)
        merged = tuple(replace(e, merged=True) if e.column.uid in hidden else e for e in right.entries)
        joined = Join(JoinKind.INNER, left.node, right.node, tuple(pairs), span=self.span(node))
        return Relation(joined, left.entries + merged)


def join_on(left: Node, right: Node, terms: list[Expr], span: Span | None) -> Join:
    """An inner join: plain equalities between the two sides apart, all other terms together as residual."""
    lefts, rights = (frozenset(c.uid for c in output_columns(n)) for n in (left, right))
    pairs = [(t, equality_between(t, lefts, rights)) for t in terms]
    equalities = tuple(Equality(*pair) for _, pair in pairs if pair is not None)
    return Join(JoinKind.INNER, left, right, equalities, conjunction(t for t, pair in pairs if pair is None), span)
