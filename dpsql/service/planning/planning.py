"""From a query and its settings to its plan, with one policy and its public facts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpsql.core.ir.periods import Span
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.expressions.clock import may_ask, moment
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.checks.check import NOMINAL_DELTA, to_look
from dpsql.service.planning import kept_plans
from dpsql.service.planning.kept_plans import EngineNames, Plans
from dpsql.service.planning.public_facts import FactStore


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """One SELECT as it was written, its parameters and its dialect, and when it was asked (UTC)."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    dialect: str = "duckdb"
    asked: dt.datetime = field(default_factory=moment)


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes plans, one at a time, whatever runs meanwhile. kept: those that were asked for last."""

    policy: Policy
    facts: FactStore
    kept: Plans = field(default_factory=Plans)

    def plan(self, question: WrittenQuery, settings: QuerySettings) -> Plan:
        """The plan of a run. Raises Rejected."""
        source, settings = Source(question.sql), replace(settings, dialect=question.dialect)
        if settings.asked is None and may_ask(question.sql):
            settings = replace(settings, asked=question.asked)

        with self.facts.lock:
            engine, policy, parameters = self.facts.engine, self.policy, question.parameters
            self.facts.look_at_periods()
            asked, names = kept_plans.question(source.text, settings, parameters), EngineNames(engine.table_sql)
            plan = self.kept.find(asked, self.facts.changes, policy, names)
            if plan is None:
                for known in self.facts.rounds():
                    with known as public:
                        plan = compile_query(source, policy, public, settings, parameters, names, engine.dialect)
                assert plan is not None
                self.kept.keep(asked, self.facts.changes, policy, names, plan)
            return plan

    def narrowed(self, plan: Plan, days: Mapping[str, tuple[Span, ...]]) -> Plan:
        """A plan of the same question that reads these days of growing tables alone. Raises Rejected."""
        settings = replace(plan.written.settings, only=days)
        return self.plan(WrittenQuery(plan.source.text, plan.written.parameters, settings.dialect), settings)

    def preview(self, question: WrittenQuery, settings: QuerySettings) -> Plan:
        """As `plan`, but where no ε or δ is known anywhere a nominal one is used, so that EXPLAIN always shows.

        A nominal δ only where private keys need one: elsewhere it would show noise that a run without δ does not draw.
        """
        settings = to_look(settings, self.policy)
        try:
            return self.plan(question, settings)
        except Rejected as refusal:
            if settings.delta is not None or all(d.code != "DP402" for d in refusal.diagnostics):
                raise
        return self.plan(question, replace(settings, delta=NOMINAL_DELTA))
