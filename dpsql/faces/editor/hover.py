"""What is under the cursor: a table's unit and limits, a column's type and bounds, an aggregate's noise, a join's rule.

From the text and the policy; where the statement has a plan, from that too, at the ε that the check prices it at.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.core.ir.nodes import Join, Node, Scan, key_sources
from dpsql.core.ir.recipes import Output
from dpsql.core.measures.all_measures import rule
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.documents.parameter_comments import given_in
from dpsql.faces.check.documents.parameter_values import Values
from dpsql.faces.check.report.formats.texts import code_span, markdown
from dpsql.faces.editor import completion_words as words
from dpsql.faces.editor.describe import bounds_text, keys_text, type_text
from dpsql.faces.editor.text_scope import JOIN_WORDS, CursorPlace, QueryColumn, QueryRelation, place_at
from dpsql.frontend.text.lexer import Token, grouped, statement_at, tokens
from dpsql.frontend.text.split import split_text
from dpsql.functions.registry import lookup
from dpsql.planner.costs.expected_error import output_error, scale
from dpsql.planner.explain.components import component_name
from dpsql.planner.explain.multiples import Multiples
from dpsql.planner.explain.nodes import facts_text
from dpsql.planner.plan import Plan
from dpsql.policy.tools.show import promises, whose_rows
from dpsql.service.checks.check import static_plan


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about the text at `span`."""

    span: Span
    text: str


def hover(
    text: str, offset: int, policy: Policy, dialect: str = "duckdb", parameters: Values | None = None
) -> Hover | None:
    """What there is to say about the word at `offset`; None if there is nothing. Never raises.

    parameters: values beside those of the text's comments.
    """
    found = list(tokens(text, dialect))
    at = next((t for t in found if t.start <= offset < t.end), None)
    at = at or next((t for t in found if t.end == offset), None)
    if at is None or not (at.is_name or at.text == "*"):
        return None
    statement, start, end = statement_at(found, at.start + 1, len(text))
    place = place_at(grouped(statement, start, end), at.start + 1, policy)
    plan = _Plan(text[start:end], start, policy, dialect, _values_at(text, at.start, dialect, parameters or {}))
    number = statement.index(at)
    before = statement[number - 1] if number else None
    after = statement[number + 1] if number + 1 < len(statement) else None
    lines = _lines(at, before, after, place, policy, plan)
    return Hover(Span(at.start, at.end), "\n\n".join(lines)) if lines else None


def _values_at(text: str, offset: int, dialect: str, parameters: Values) -> Values:
    """What the statement around a place is checked with."""
    parts = split_text(text, dialect)
    given = given_in(text, parts, dialect, parameters).values
    return next((v for p, v in zip(parts.statements, given, strict=True) if p.start <= offset < p.end), {})


def _lines(
    at: Token, before: Token | None, after: Token | None, place: CursorPlace, policy: Policy, plan: _Plan
) -> list[str]:
    if at.upper in JOIN_WORDS:
        return plan.join(at)
    if at.upper in ("GROUP", "SELECT") or (at.upper == "BY" and before is not None and before.upper == "GROUP"):
        return plan.price(at)
    if after is not None and after.text == "(" and at.kind == "word" and at.upper not in ("IN", "AS", "USING", "ON"):
        return _function(at, plan)
    if at.text == "*":
        return []
    if before is not None and before.text == ".":
        owner = _owner(place, at)
        hits = [] if owner is None else [(owner, f) for f in owner.fields if _same(f.name, at.name)]
        if hits:
            return _column(*hits[0])
    relation = next((r for r in place.scope.relations if r.start == at.start), None)
    if relation is not None and relation.table is not None:
        return [*_table(relation.table), *plan.scan(at)]
    columns = place.scope.named(at.name)
    if columns and at.upper not in words.KEYWORDS:
        return [line for r, f in columns[:3] for line in _column(r, f)]
    relation = place.scope.relation(at.name)
    if relation is not None and relation.table is not None:
        return [*_table(relation.table), *plan.scan(at)]
    named = relation or place.scope.ctes.get(at.name.casefold())
    if named is not None and named.fields:
        return [f"query {markdown(at.name, '**')}: {markdown(', '.join(f.name for f in named.fields))}"]
    table = policy.table(at.name)
    return _table(table) if table is not None and at.upper not in words.KEYWORDS else []


def _owner(place: CursorPlace, at: Token) -> QueryRelation | None:
    """The relation whose name stands in front of the dot before `at`."""
    parts = [p for g in place.groups for p in g.parts if isinstance(p, Token) and p.end <= at.start]
    parts = sorted(parts, key=lambda t: t.start)
    return place.scope.relation(parts[-2].name) if len(parts) > 1 else None


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _table(table: Table) -> list[str]:
    lines = [f"table {markdown(table.name, '**')} — {markdown(whose_rows(table))}"]
    facts = [markdown(fact) for fact in promises(table)]
    return [*lines, "\n".join(f"- {fact}" for fact in facts)] if facts else lines


def _column(relation: QueryRelation, field: QueryColumn) -> list[str]:
    if field.column is None or field.table is None:
        return [f"column {markdown(f'{relation.name}.{field.name}', '**')} — computed by the query"]
    facts = [type_text(field.column), f"from {field.column.made_of}" if field.column.made_of else ""]
    if not field.table.public and (field.column.computed is None or field.column.bounds):
        facts.append(bounds_text(field.column) or ("no bounds" if _is_number(field.column) else ""))
    facts.append(keys_text(field.column))
    name = markdown(f"{field.table.name}.{field.name}", "**")
    lines = [f"column {name} — {markdown(', '.join(f for f in facts if f))}"]
    if any(_same(field.name, c) for key in field.table.keys if len(key.columns) == 1 for c in key.columns):
        lines.append("no two rows have the same one")
    own = field.table.id_column
    if own is not None and own.name == field.name:
        lines.append(f"the privacy unit: {markdown(whose_rows(field.table))}")
    return lines


def _is_number(column: Column) -> bool:
    return column.sql_type is not None and column.sql_type.numeric


def _function(at: Token, plan: _Plan) -> list[str]:
    name = at.text.lower()
    aggregate = words.AGGREGATES.get(name) or words.QUANTILES.get(name) or words.WINDOWS.get(name)
    if aggregate is not None:
        return [f"```\n{aggregate.signature}\n```", aggregate.summary, *plan.aggregate(at)]
    if name == "last_closed":
        return [f"```\n{words.LAST_CLOSED.signature}\n```", words.LAST_CLOSED.summary]
    function = lookup(name)
    if function is None:
        return []
    return [f"```\n{function.signature}\n```", function.summary]


class _Plan:
    """What the plan of the statement says; nothing if it has none."""

    def __init__(self, text: str, start: int, policy: Policy, dialect: str, values: Values) -> None:
        self.start = start
        self.plan: Plan | None = None
        try:
            self.plan = static_plan(Source(text), policy, values, dialect=dialect)
        except Rejected:
            return

    def _at(self, token: Token) -> int:
        return token.start - self.start

    def _nodes(self) -> list[tuple[Node, str]]:
        return [] if self.plan is None else [(t.node, facts_text(t.fact)) for t in self.plan.tree.walk()]

    def scan(self, token: Token) -> list[str]:
        at = self._at(token)
        found = [f for n, f in self._nodes() if isinstance(n, Scan) and n.span and n.span.start <= at < n.span.end]
        return [_code(found[0])] if found and found[0] else []

    def join(self, token: Token) -> list[str]:
        """The join whose place begins nearest behind the keyword, or around it."""
        at = self._at(token)
        joins = [(n.span, f) for n, f in self._nodes() if isinstance(n, Join) and n.span is not None]
        around = [(s.start, f) for s, f in joins if s.start <= at < s.end]
        behind = [(s.start, f) for s, f in joins if s.start >= at]
        found = max(around)[1] if around else min(behind)[1] if behind else ""
        return [f"join — {_code(found)}"] if found else []

    def aggregate(self, token: Token) -> list[str]:
        """Sensitivity, mechanism and expected error of the aggregate that is called here."""
        if self.plan is None:
            return []
        at = self._at(token)
        found: list[tuple[int, int, Output]] = []
        for number, release in enumerate(self.plan.releases):
            for output in release.measured.node.outputs:
                span = output.column.span
                if span is not None and span.start <= at < span.end:
                    found.append((span.end - span.start, number, output))
        if not found:
            return []
        _, number, output = min(found, key=lambda f: f[0])
        measured = self.plan.releases[number].measured
        lines = []
        for i in output.recipe.components:
            m, multiples = measured.measurements[i], Multiples.of(self.plan, number, i)
            shown, error = multiples.text, multiples.error(measured, i)
            rows = f" {m.component.counted}s" if rule(m.component).chosen else ""
            what = "choice" if rows else "noise"
            most = " at most" if multiples.any_bounds else ""
            lines.append(
                f"- {_code(component_name(m.component, measured, multiples.limit is None))}: sensitivity "
                f"{shown(f'{float(m.sensitivity.l1 * m.unit):.6g}')} (l1), {m.mechanism.name} {what} of scale "
                f"{shown(f'{scale(m):.6g}')}{rows}"
                + ("" if error is None else f",{most} ± {shown(f'{error:.4g}')}{rows} at 95 %")
            )
        error = output_error(measured, output.recipe)
        if error is not None and len(lines) > 1 and self.plan.searches is None:
            lines.append(f"- together ± {error:.4g} at 95 %")
        price = f"ρ {float(self.plan.loss.rho):.4g}" if self.plan.loss.rho else f"ε {float(self.plan.loss.epsilon):.4g}"
        return ["\n".join(lines), f"for {price} of the whole query"]

    def price(self, token: Token) -> list[str]:
        """What the statement costs, and where the keys of its groups come from."""
        if self.plan is None:
            return []
        lines = []
        for release in self.plan.releases:
            node = release.measured.node
            sources = key_sources(node)
            keys = markdown(", ".join(k.name for k in node.keys))
            if not keys:
                lines.append("- one row")
            elif sources is None:
                lines.append(f"- groups by {keys}: private keys, shown above a threshold")
            else:
                lines.append(f"- groups by {keys}: keys of " + markdown(" × ".join(s.origin for s in sources)))
        by_period = {unit for release in self.plan.releases for unit in release.measured.growing}
        costs = [
            f"{loss} of each {markdown(unit)}{' of the periods that are read' * (unit in by_period)}"
            for unit, loss in self.plan.cost.items()
            if loss.epsilon or loss.rho
        ]
        growing = {n.table: None for n, _ in self._nodes() if isinstance(n, Scan) and n.periods is not None}
        unknown = [f"- which periods of {markdown(name)} are closed is not known here" for name in growing]
        return ["\n".join([*lines, f"- cost: {', '.join(costs) or 'nothing, only public data'}", *unknown])]


def _code(text: str) -> str:
    return code_span(text, 10_000)
