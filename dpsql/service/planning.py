"""From a query and what is asked of it to its plan, with the policy, data and settings of one session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from dpsql.core.engine import Engine
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings import Settings
from dpsql.service.check import NOMINAL_DELTA, NOMINAL_EPSILON
from dpsql.service.kept_plans import Plans
from dpsql.service.public_facts import FactStore
from dpsql.service.settings import Asked


@dataclass(frozen=True, slots=True)
class Question:
    """One SELECT as it was written, its parameters and its dialect."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes the plans of one session. settings: what holds where a query asks for nothing else. plans: those kept.

    alone: held while a plan is made, so that threads may share the session.
    """

    policy: Policy
    engine: Engine
    facts: FactStore
    settings: Settings
    plans: Plans
    alone: AbstractContextManager[object] = field(default_factory=nullcontext)

    def plan(self, question: Question, asked: Asked) -> Plan:
        """The plan of a run. Raises Rejected."""
        return self._compiled(question, asked.settled(self.settings))

    def preview(self, question: Question, asked: Asked) -> Plan:
        """As `plan`, but where no ε or δ is known anywhere a nominal one is used, so that EXPLAIN always shows.

        A nominal δ only where private keys need one: elsewhere it would show noise that a run without δ does not draw.
        """
        settings = asked.settled(self.settings)
        if settings.epsilon is None and settings.rho is None and not settings.max_error:
            settings = replace(settings, epsilon=self.policy.defaults.epsilon or NOMINAL_EPSILON)
        try:
            return self._compiled(question, settings)
        except Rejected as refusal:
            if settings.delta is not None or all(d.code != "DP402" for d in refusal.diagnostics):
                raise
        return self._compiled(question, replace(settings, delta=NOMINAL_DELTA))

    def _compiled(self, question: Question, settings: Settings) -> Plan:
        source, settings = Source(question.sql), replace(settings, dialect=question.dialect)

        def make(tables: Callable[[str], str]) -> Plan:
            return self.facts.compile(
                lambda public: compile_query(source, self.policy, public, settings, question.parameters, tables)
            )

        tables: Callable[[str], str] = self.engine.table_sql
        with self.alone:
            return self.plans.get(self.policy, source.text, settings, question.parameters, self.facts, tables, make)
