"""Syntax tree → bound plan. Default deny: each handler names the arguments it reads; anything else is refused.

The analyst's text ends here: whatever is not expressed in our own nodes does not exist for the later stages.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.step_count import take
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Mark, Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.bind.aggregates.quantile_lists import require_only_shown
from dpsql.frontend.bind.clauses.select import CLAUSES, SelectBinder
from dpsql.frontend.bind.clauses.set_operations import CLAUSES as SET_CLAUSES
from dpsql.frontend.bind.clauses.set_operations import combined, ordered
from dpsql.frontend.bind.describe_statements import columns_of, described
from dpsql.frontend.bind.expressions import clock
from dpsql.frontend.bind.expressions.clocks import shown
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.replacements import SPINE
from dpsql.frontend.bind.expressions.syntax_arguments import as_written, checked, column_names
from dpsql.frontend.bind.expressions.unknown_values import Unknowns
from dpsql.frontend.bind.from_clause.from_clause import Cte, Ctes
from dpsql.frontend.bind.from_clause.values import bind_values
from dpsql.frontend.bind.parameters import GivenRelation, Numbering, Parameters
from dpsql.frontend.bind.scope import BoundRelation
from dpsql.frontend.bind.subqueries.outer_query import Outer
from dpsql.frontend.bound import BoundQuery
from dpsql.frontend.parse import Parsed
from dpsql.frontend.text.spans import span_of


def bind(
    parsed: Parsed,
    policy: Policy,
    parameters: Sequence[Any] | Mapping[str, Any] | Unknowns = (),
    asked: dt.datetime | None = None,
    closed: Callable[[str], Closed | None] = lambda table: None,
    relations: Sequence[GivenRelation] = (),
) -> BoundQuery:
    """Resolve every name and type of a query.

    parameters: values for `?`, `$1`, `$name`. asked: what CURRENT_DATE and NOW() mean, in UTC; None: now. closed: what
    is closed of a growing table; None: nobody knows. relations: that are no tables of the policy.
    Raises Rejected (DP013, DP1xx) with spans into the query's text.
    """
    asked_of, source = parsed.describing, parsed.source
    values = Parameters(
        parameters, shown(asked or clock.moment(), policy.zone), dialect=parsed.dialect, zone=policy.zone,
        closed=closed, table=lambda name: policy.called(*name.split(".")), relations=relations,
    )  # fmt: skip
    if asked_of is not None and asked_of.about != "query":
        _require_used(values, asked_of.at)
        return described(asked_of, policy, source)
    binder = _Binder(source, policy, values)
    relation = binder.query(parsed.tree, {})
    _require_used(values, binder.span(parsed.tree))
    if binder.numbering.lists:
        require_only_shown(relation.node)
    found = BoundQuery(relation.node, tuple(e.column for e in relation.entries), source, tuple(values.told))
    return found if asked_of is None else columns_of(found, asked_of)


def _require_used(values: Parameters, at: Span) -> None:
    unused = values.unused()
    if unused:
        raise reject(
            "DP013", f"parameter {', '.join(unused)} is not used by the query", span=at,
            help=["leave the value out, or write a placeholder for it:  ?, $1 or $name"],
        )  # fmt: skip


@dataclass(slots=True)
class _Binder:
    source: Source
    policy: Policy
    parameters: Parameters
    numbering: Numbering = field(default_factory=Numbering)
    read: ByIdentity[exp.Expr, None] = field(default_factory=ByIdentity)
    """The syntax trees that were bound, to find WITH queries that nothing reads."""
    outer: Outer | None = None
    """The query around this one, if this one is a subquery in an expression."""

    def span(self, node: exp.Expr) -> Span:
        return span_of(node, self.source.text)

    # --- queries ---------------------------------------------------------------------------------------------------

    def query(self, tree: exp.Expr, ctes: Ctes) -> BoundRelation:
        self.read[tree] = None
        given = tree.args.get("with_")
        if given is None:
            return self._body(tree, ctes)
        visible = self._with(given, ctes)
        found = self._body(tree, visible)
        for cte in [*visible.values()][::-1]:
            if cte.tree not in self.read:  # what nothing reads must be accepted SQL as well
                self._below()(cte.tree, cte.visible)
        return found

    def _body(self, tree: exp.Expr, ctes: Ctes) -> BoundRelation:
        """A query without its WITH."""
        match tree:
            case exp.Select():
                args = checked(tree, self.source, "with_", *CLAUSES)
                binder = SelectBinder(
                    self.source, self.policy, self.parameters, self.numbering,
                    self._below(), self._within, self.outer,
                )  # fmt: skip
                return binder.bind(tree, args, ctes)
            case exp.SetOperation():
                return self._set_operation(tree, ctes)
            case exp.Subquery():
                args = checked(tree, self.source, "with_", "this", "order", "limit", "offset")
                return ordered(self.query(args["this"], ctes), args, self._plain("ORDER BY"))
            case exp.Values():
                return bind_values(tree, self._plain("VALUES"))
        what = "a join in brackets" if isinstance(tree, exp.Table) else as_written(tree, self.source)
        raise reject(
            "DP101", f"{what} is outside the accepted SQL", span=self.span(tree),
            help=["write it as a subquery:  (SELECT … FROM …) AS t"],
        )  # fmt: skip

    def _set_operation(self, tree: exp.SetOperation, ctes: Ctes) -> BoundRelation:
        args = checked(tree, self.source, "with_", *SET_CLAUSES)
        sides: list[BoundRelation] = []
        together = Together()
        for side in ("this", "expression"):
            with together.attempt():
                sides.append(self._below()(args[side], ctes))
        together.settle()
        left, right = sides
        relation = combined(tree, args, left, right, self._plain("a set operation"))
        return ordered(relation, args, self._plain("ORDER BY"))

    def _plain(self, clause: str) -> ExprBinder:
        return ExprBinder(self.source, (), self.numbering, self.parameters, clause)

    def _below(self) -> Callable[[exp.Expr, Ctes], BoundRelation]:
        """Binds a query in FROM, in WITH or beside UNION: no row of a query around this one can be seen from there."""
        return self.query if self.outer is None else self._within(replace(self.outer, direct=False))

    def _within(self, outer: Outer) -> Callable[[exp.Expr, Ctes], BoundRelation]:
        """Binds queries inside another one, which they may read where `outer` allows it."""
        return replace(self, outer=outer).query

    def _with(self, node: exp.Expr, outer: Ctes) -> Ctes:
        args = checked(node, self.source, "expressions", "recursive")
        if args.get("recursive"):
            own = any(t.name.lower() == c.alias.lower() for c in args["expressions"] for t in c.find_all(exp.Table))
            raise reject(
                "DP101", "WITH RECURSIVE is not supported", span=self.span(node),
                help=["leave RECURSIVE out: no query can read its own rows", *([SPINE] if own else [])],
                mark=Mark.RECURSIVE,
            )  # fmt: skip
        visible, names = dict(outer), Counter(c.alias.lower() for c in args["expressions"])
        for cte in args["expressions"]:
            take(1 + len(visible))
            parts = checked(cte, self.source, "this", "alias", "materialized")
            alias = checked(parts["alias"], self.source, "this", "columns")
            name = alias["this"].name
            if self.policy.table(name) is not None:
                raise reject(
                    "DP107", f"the name {name} belongs to a table of the policy", span=self.span(alias["this"]),
                    help=["give the WITH query another name"],
                )  # fmt: skip
            if names[name.lower()] > 1:
                raise reject(
                    "DP101", f"two WITH queries are called {name}", span=self.span(alias["this"]),
                    help=["give one of them another name"],
                )  # fmt: skip
            columns = column_names(alias.get("columns", []), self.source)
            visible = {**visible, name.lower(): Cte(parts["this"], columns, visible)}
        return visible
