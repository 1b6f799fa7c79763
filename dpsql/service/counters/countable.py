"""What a counter measures, as its statement and a policy say; no data is asked.

Nothing that is found here is believed: the core derives the bounds of each tick anew (core/release/counting.py).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from dpsql.core.ir.expressions import Column, Expr, LiteralValue
from dpsql.core.ir.nodes import Project, Release
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.recipes import Recipe, Terms
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.ledger.counters import Frozen
from dpsql.core.ledger.released import Key
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared
from dpsql.core.release.counting import AskedCounter, NotCounted, counted_by, frozen, groups_of
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.counted_query import CountedQuery, counted_query
from dpsql.frontend.text.counter_statements import CreateCounter
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.privacy_settings import settled

MOST_CELLS = 10_000_000
"""Groups times periods that a tick adds up."""
_TEN_YEARS = 3_650


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of `dpsql.<counter>`: a key, by its place among the release's, or a sum of components."""

    name: str
    type: SqlType
    key: int | None
    terms: Terms = ()

    def value(self, numbers: Sequence[int]) -> LiteralValue:
        """Of the components' whole numbers."""
        found = sum((numbers[i] * worth for i, worth in self.terms), Fraction(0))
        match self.type.kind:
            case Kind.INTEGER:
                return round(found)
            case Kind.DECIMAL:
                return Decimal(round(found * 10**self.type.scale)).scaleb(-self.type.scale)
        return float(found)


@dataclass(frozen=True, slots=True)
class CounterDesign:
    """fixed: what COUNTER says. plan: of the first period. day: which group key its day is. groups: all but the day."""

    fixed: Frozen
    query: CountedQuery
    plan: Plan
    settings: QuerySettings
    columns: tuple[ShownColumn, ...]
    day: int
    groups: tuple[Key, ...]

    def same_as(self, own: Frozen) -> bool:
        """Whether what COUNTER has fixed is what would be measured now."""
        return replace(own, name=self.fixed.name) == self.fixed


Planned = Callable[[CountedQuery, QuerySettings, dt.date, dt.date], Plan]
"""The plan of a query over the periods of these days."""


RestsOn = Callable[[Plan, Sequence[ShownColumn], Sequence[Key]], str]
"""A hash of what a counter's exact integers rest on."""


def require_countable(statement: CreateCounter, policy: Policy, sql: str) -> None:
    """As far as text and policy say. Raises Rejected."""
    public = PublicFacts()

    def compiled(query: CountedQuery, settings: QuerySettings, first: dt.date, last: dt.date) -> Plan:
        known = replace(public, periods={query.table: Closed(last)})
        try:
            return compile_query(Source(query.of(first, last)), as_prepared(policy), known, settings)
        except Rejected as refusal:
            raise shown_in(refusal, query.sql) from None

    asked = dict(statement.amounts)
    if not asked.keys() & {"epsilon", "rho"}:
        asked["rho"] = "1"  # who runs it says how much, or is refused then
    if policy.privacy.accountant == "approx_dp" and "delta" not in asked:
        asked["delta"] = str(policy.defaults.delta or "1e-9")
    statement = replace(statement, amounts=tuple(asked.items()))
    try:
        designed(policy, statement, compiled, lambda plan, columns, groups: "")
    except Rejected as refusal:
        if public.missing:  # lists of keys that the data have: who has them says more
            return
        at = sql.find(statement.query)
        told = [d.within(Source(sql), at) if d.span is not None and at >= 0 else d for d in refusal.diagnostics]
        refusal.diagnostics = tuple(told)
        raise


def designed(policy: Policy, statement: CreateCounter, planned: Planned, rests_on: RestsOn) -> CounterDesign:
    """Raises Rejected."""
    if policy.privacy.accountant == "pure_dp":
        raise reject(
            "DP903", "a counter needs Gaussian noise, and the policy's accountant is pure_dp, which counts ε alone",
            help=["custodian: privacy.accountant: zcdp  or  approx_dp, with a delta in the budget (a new ledger)"],
            notes=[NOTHING_RAN],
        )  # fmt: skip

    def day_of(names: Sequence[str]) -> tuple[str, str] | None:
        table = policy.called(*names)
        return None if table is None or table.grows is None else (table.name, table.grows.by)

    query = counted_query(statement.query, day_of)
    grows = policy.tables[query.table].grows
    assert grows is not None
    if grows.begins(statement.first) != statement.first or statement.first < grows.first:
        first = max(grows.first, grows.begins(statement.first))
        raise reject(
            "DP903", f"{statement.first} begins no {grows.every} of {query.table}, which begins with {grows.first}",
            help=[f"FROM DATE '{first}'"], notes=[NOTHING_RAN],
        )  # fmt: skip
    amounts = {name: text.strip("'") for name, text in statement.amounts}
    settings = settled(
        {"epsilon": amounts.get("epsilon"), "rho": amounts.get("rho"), "delta": amounts.get("delta")},
        QuerySettings(family="gaussian", search=False),
    )
    plan = planned(query, settings, statement.first, grows.ends(statement.first))
    try:
        if len(plan.releases) != 1 or len(plan.stages) > 2:
            raise NotCounted("it is one SELECT of keys, counts and sums")
        measured = plan.releases[0].measured
        _, day = counted_by(measured, policy)
        columns = _columns(plan)
        groups = tuple(groups_of(measured, day))
        fixed = frozen(
            plan.releases[0], policy,
            AskedCounter(
                statement.name, statement.query, statement.first, rests_on(plan, columns, groups),
                statement.amounts,
            ),
        )  # fmt: skip
    except NotCounted as why:
        raise reject(
            "DP903", f"this cannot be counted: {why}", source=Source(statement.query), notes=[NOTHING_RAN]
        ) from None
    if len(groups) * min(fixed.length, _TEN_YEARS) > MOST_CELLS:
        raise reject("DP903", f"a counter of {len(groups):,} groups is too large", help=["group by less"])
    return CounterDesign(fixed, query, plan, settings, columns, day, groups)


def shown_in(refusal: Rejected, sql: str) -> Rejected:
    """A refusal of what a statement stands for, shown in its own query where that has the words."""
    found = []
    for each in refusal.diagnostics:
        word = "" if each.source is None or each.span is None else each.source.text[each.span.start : each.span.end]
        at = sql.find(word) if word else -1
        span = None if at < 0 or each.span is None else replace(each.span, start=at, end=at + len(word))
        found.append(each if each.source is None else replace(each, source=Source(sql), span=span, fix=None))
    refusal.diagnostics = tuple(found)
    return refusal


def _columns(plan: Plan) -> tuple[ShownColumn, ...]:
    node, made = plan.tree.node, dict[int, Expr]()
    while isinstance(node, Project):
        made |= {item.column.uid: item.expr for item in node.items}
        node = node.input
    if not isinstance(node, Release):
        raise NotCounted("it is one SELECT of keys, counts and sums")
    keys = {column.uid: at for at, column in enumerate(node.keys)}
    outputs = {output.column.uid: output for output in node.outputs}
    found = []
    for column in plan.columns:
        expr: Expr | None = column
        while isinstance(expr, Column) and expr.uid in made:
            expr = made[expr.uid]
        uid = expr.uid if isinstance(expr, Column) else None
        if uid in keys:
            found.append(ShownColumn(column.name, column.type, keys[uid]))
        elif uid in outputs:
            recipe = outputs[uid].recipe
            found.append(ShownColumn(column.name, column.type, None, _terms(recipe, node)))
        else:
            raise NotCounted(f"column {column.name} is not a key, a count or a sum by itself")
    found = [*dict.fromkeys(found)]  # the day may be selected, too: it is shown once
    if len({c.name.casefold() for c in found}) < len(found):
        raise NotCounted("two of its columns have one name:  COUNT(*) AS n")
    if {c.key for c in found} >= set(keys.values()) and any(c.key is None for c in found):
        return tuple(found)
    raise NotCounted("it selects its keys, and a count or a sum")


def _terms(recipe: Recipe, node: Release) -> Terms:
    terms = recipe.terms(node.components)
    if terms is None:
        raise NotCounted("it counts rows, and adds values:  COUNT(*), COUNT(x), SUM(x)")
    return terms
