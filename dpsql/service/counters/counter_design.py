"""What a counter measures, found of its statement, the policy and the engine: the same at its making and at every tick.

Its query is planned for one period, as any other query is; a tick's is that of all periods up to one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dpsql.answers.stored.address import Addresses, digest
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ledger.released import Key
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.text.counted_query import CountedQuery
from dpsql.frontend.text.counter_statements import CreateCounter
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.counters.countable import CounterDesign, ShownColumn, designed, shown_in

if TYPE_CHECKING:
    from dpsql.service.service import Service


def design(service: Service, statement: CreateCounter) -> CounterDesign:
    """Raises Rejected: it is none, or its ledger counts ε alone."""
    policy, engine = service.policy, service.engine

    def rests_on(plan: Plan, columns: Sequence[ShownColumn], groups: Sequence[Key]) -> str:
        base = Addresses(plan, policy, f"{engine.dialect.name} {engine.version}").of(0, {})
        addresses = [base.address(c) for c in plan.releases[0].measured.node.components]
        shown = [(c.name, str(c.type), c.key, [(i, str(w)) for i, w in c.terms]) for c in columns]
        return fingerprint(tuple(addresses), repr(shown), digest(list(groups)))

    return designed(policy, statement, partial(planned, service), rests_on)


def planned(service: Service, query: CountedQuery, settings: QuerySettings, first: dt.date, last: dt.date) -> Plan:
    """The query of the periods of these days, as if no later one were closed. Raises Rejected."""
    facts, engine = service.facts, service.engine

    def compiled(public: PublicFacts) -> Plan:
        known = replace(public, periods={**public.periods, query.table: Closed(last)})
        source = Source(query.of(first, last))
        return compile_query(source, service.policy, known, settings, (), engine.table_sql, engine.dialect)

    with facts.lock:
        try:
            return facts.compile(compiled)
        except Rejected as refusal:
            raise shown_in(refusal, query.sql) from None
