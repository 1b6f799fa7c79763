"""The summaries of a service: what the ledger's definitions stand for under its policy, made once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.answers.stored.address import Addresses
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.ledger_summaries import Definition, StoredMarginal, Summary, complete, definitions
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.note import Note, Rank
from dpsql.frontend.text.summary_statements import CreateSummary
from dpsql.planner.batch.workload import Marginal
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.summaries.design import SummaryDesign, design_of
from dpsql.service.planning.planning import WrittenQuery

if TYPE_CHECKING:
    from dpsql.service.service import Service

_MOST = 16
"""Summaries whose numbers are kept, or of which it is known that they do not hold."""


class SummaryStore:
    """Finds summaries for plans. It spends nothing, and makes no ledger."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[object, ...], Summary | None] = OrderedDict()

    def for_plan(self, plan: Plan, account: AnalystAccount) -> tuple[list[Summary], list[Note]]:
        """Those over a table that a plan reads, and what is to be said of those that do not hold any more.

        Raises CannotOpen (DP407).
        """
        found, notes = list[Summary](), list[Note]()
        known = definitions(account.ledger)
        if not known:
            return found, notes
        read = {node.table for node in walk(plan.tree.node) if isinstance(node, Scan)}
        policy = self._service.policy
        for definition in known.values():
            table = policy.called(*definition.statement.table)
            if table is None or table.name not in read:
                continue
            summary = self.summary(definition, account)
            if summary is not None:
                found.append(summary)
            elif definition.policy_hash == policy.hash:
                gone = f"the stored answers of summary {definition.name} are gone: it is not used"
                notes.append(Note(gone, Rank.SOURCE))
            else:
                other = f"summary {definition.name} was made under another policy or data version: it is not used"
                notes.append(Note(other, Rank.SOURCE))
        return found, notes

    def summary(self, definition: Definition, account: AnalystAccount) -> Summary | None:
        """What a definition stands for; None if its answers are gone, or are not those of this policy and data.

        Whatever else the policy said when it was made: its marginals have addresses, as any stored answer has.
        """
        facts = self._service.facts
        key = definition, facts.changes, account.order
        with self._lock:
            if key in self._made:
                return self._made[key]
        try:
            design = self.design(definition.statement)
            stored = {m: self._stored(design, m, account) for m in design.shares}
            answers = account.store.find([s.address for s in stored.values()])
            made = complete(definition, design, stored, answers)
        except Rejected:
            made = None
        if made is None and definition.policy_hash == self._service.policy.hash:
            return None  # they may come back; those of another policy are looked for once
        with self._lock:  # what was measured of public tables meanwhile is in the key
            made = self._made.setdefault((definition, facts.changes, account.order), made)
            while len(self._made) > _MOST:
                self._made.popitem(last=False)
        return made

    def design(self, statement: CreateSummary) -> SummaryDesign:
        """What a statement measures. Raises Rejected."""
        facts, policy = self._service.facts, self._service.policy
        with facts.lock:
            return facts.compile(lambda public: design_of(statement, policy, public))

    def _stored(self, design: SummaryDesign, marginal: Marginal, account: AnalystAccount) -> StoredMarginal:
        """At any price: that has no part in an address."""
        asked = (
            QuerySettings(rho=Fraction(1), unlisted=True)
            if design.gaussian
            else QuerySettings(Fraction(1), unlisted=True)
        )
        plan = self._service.planner.plan(WrittenQuery(design.sql(marginal)), asked)
        (release,) = plan.releases
        base = Addresses(plan, account.policy, account.order).of(0, {})
        return StoredMarginal(release.measured.node, base.address(release.measured.node.components[0]))
