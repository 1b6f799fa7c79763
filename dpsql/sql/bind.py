"""Syntax tree → bound plan. Default deny: each handler names the arguments it reads; anything else is refused.

The analyst's text ends here: whatever is not expressed in our own nodes does not exist for the later stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.plan.stages import Bound
from dpsql.policy.models import Policy
from dpsql.sql.bind_expr import ExprBinder
from dpsql.sql.bind_from import Cte, Ctes
from dpsql.sql.bind_select import CLAUSES, SelectBinder
from dpsql.sql.bind_values import bind_values
from dpsql.sql.checked import checked, column_names
from dpsql.sql.outer import Outer
from dpsql.sql.parameters import Numbering, Parameters
from dpsql.sql.parse import Parsed
from dpsql.sql.scope import Relation
from dpsql.sql.spans import span_of


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
    outer: Outer | None = None
    """The query around this one, if this one is a subquery in an expression."""

    def span(self, node: exp.Expr) -> Span:
        return span_of(node, self.source.text)

    # --- queries ---------------------------------------------------------------------------------------------------
    def query(self, tree: exp.Expr, ctes: Ctes) -> Relation:
        self.read.add(id(tree))
        if isinstance(tree, exp.Subquery):
            return self.query(checked(tree, self.source, "this")["this"], ctes)
        if isinstance(tree, exp.Values):
            return bind_values(tree, ExprBinder(self.source, (), self.numbering, self.parameters, "VALUES"))
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
        args = checked(tree, self.source, "with_", *CLAUSES)
        if "with_" in args:
            ctes = self._with(args["with_"], ctes)
        outer = self.outer
        below = self.query if outer is None else self._within(replace(outer, direct=False))
        binder = SelectBinder(self.source, self.policy, self.parameters, self.numbering, below, self._within, outer)
        found = binder.bind(tree, args, ctes)
        for cte in [*ctes.values()][::-1] if "with_" in args else []:
            if id(cte.tree) not in self.read:  # what nothing reads must be accepted SQL as well
                below(cte.tree, cte.visible)
        return found

    def _within(self, outer: Outer) -> Callable[[exp.Expr, Ctes], Relation]:
        """Binds queries inside another one, which they may read where `outer` allows it."""
        return replace(self, outer=outer).query

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
