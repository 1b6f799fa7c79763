"""One analyst's account: its limits, and charging it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from weakref import WeakKeyDictionary

from dpsql.answers.stored.address import Addresses
from dpsql.answers.stored.ledger_summaries import Summary
from dpsql.answers.stored.older_answers import told_once
from dpsql.answers.stored.store.store import AnswerStore
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.periods import Span, beside, canonical
from dpsql.core.ir.walk import walk
from dpsql.core.ledger.failures import LOOK, too_many
from dpsql.core.ledger.ledger import Caps, Ceiling, Entry, FailureCap, Ledger
from dpsql.core.ledger.losses.fixed_budgets import in_force
from dpsql.core.ledger.losses.regions import ALWAYS, Days, LossSpan, dearest, inside
from dpsql.core.ledger.privacy_filter import require_fits
from dpsql.core.ledger.underway import Underway
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, remaining
from dpsql.core.release.charge import Charged, ChargeRequest, Price, charge, charge_reserved
from dpsql.core.release.noisy import GivenAnswers, wanted
from dpsql.diagnostics.errors import BudgetExceeded, reject
from dpsql.diagnostics.note import Note, Rank
from dpsql.planner.plan import Plan


@dataclass(frozen=True)
class AnalystAccount:
    """One analyst's account in one ledger, and the answers stored beside it.

    order: whose order decides what is kept where not all is (address.py). charging: told the id of an entry before it
    is reserved. ceilings: of its login, by their names. leaving: called when all that reads private rows
    is done, and before anything of that can be seen by others: it may wait. drawing: called between the charge and the
    first draw, where several are charged before any draws: it may wait.
    summaries: those that a plan could be answered from, and what to say of others; None: none is asked for.
    named: whether somebody said who asks; too many failures refuse his private queries, and are told others. head: the
    file beside which runs are marked (core/ledger/underway.py); None: they are not. data: what the data are now, as
    their engine identifies them; empty: nobody can tell. narrowed: plans a question of some days of growing tables
    alone.
    """

    policy: Policy
    analyst: str
    ledger: Ledger
    store: AnswerStore
    order: str
    charging: Callable[[str], object] | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    leaving: Callable[[], object] | None = None
    drawing: Callable[[], object] | None = None
    summaries: Callable[[Plan, AnalystAccount], tuple[Sequence[Summary], Sequence[Note]]] | None = None
    named: bool = False
    head: Path | None = None
    data: str = ""
    narrowed: Callable[[Plan, Mapping[str, tuple[Span, ...]]], Plan] | None = None
    _addresses: dict[str, Addresses] = field(default_factory=dict, repr=False)

    @cached_property
    def caps(self) -> Caps:
        """The limits in force."""
        caps = self.policy.caps_for(None if self.analyst == "*" else self.analyst)
        failures = self._failure_cap if self.named else None
        return Caps(caps.total, caps.analyst, caps.per_query, self.ceilings, failures, caps.by_period)

    @property
    def _failure_cap(self) -> FailureCap:
        own = self.policy.failures
        return FailureCap(own.most, own.in_total, dt.datetime.now(dt.UTC) - own.per)

    def failures_told(self) -> tuple[Note, ...]:
        """What to tell whoever is not refused for failures, though there are too many."""
        why = None if self.named else too_many(self._failure_cap, self.analyst, self.ledger.failures())
        if why is None:
            return ()
        return (Note(f"{why}: with a name, and at a server, private queries are refused; {LOOK}", Rank.DANGER),)

    def older_answers_told(self) -> tuple[Note, ...]:
        """What to tell of the answers that he has of an older dpsql, once."""
        return told_once(self.store, self.analyst, lambda: self.ledger.received(self.analyst))

    def addresses(self, plan: Plan) -> Addresses:
        """Under what the plan's numbers are stored; kept for the plan that was asked for last."""
        known = self._addresses.get("last")
        if known is None or known.plan is not plan:
            known = self._addresses["last"] = Addresses(plan, self.policy, self.order)
        return known

    def names(self, plan: Plan) -> set[str]:
        """The names that a run holds until its numbers are stored. Another run that needs one of them waits, so that
        nobody pays twice for the same groups of the same rows.
        """
        first = plan.first
        own = (at for at, r in enumerate(first.releases) if wanted(r.measured, GivenAnswers()))
        return {self.addresses(first).of(at).name for at in own}

    def left(self, unit: str, days: Days = ALWAYS) -> list[PrivacyLoss]:
        """The most that one query of this account may cost a unit in each of these periods: its limits per query, and
        what is left to it.
        """
        found = [c.left_of(unit, lambda: self.ledger.charged(unit, self.analyst)) for c in self.ceilings.values()]
        found += [] if self.caps.per_query is None else [self.caps.per_query]
        own = in_force(self.caps, self.analyst, self.ledger.fixed()).analyst
        if unit in own:
            found.append(remaining(own[unit], self.ledger.spent(unit, self.analyst, days)))
        return found

    def admits(self, price: Price) -> bool:
        """Whether every limit has room for a price, as things are now."""
        try:
            self._require_fits(price, Entry("-", self.analyst, {}, "", ""))
        except BudgetExceeded:
            return False
        return True

    def _require_fits(self, price: Price, entry: Entry) -> None:
        require_fits(price.charging(entry), self.caps, self.ledger)

    def require_room(self, plan: Plan, price: Price) -> None:
        """Raises BudgetExceeded, as charging this price now would; nothing is reserved."""
        request = self._request(plan)
        try:
            self._require_fits(price, Entry("-", self.analyst, {}, request.plan_hash, request.policy_hash))
        except BudgetExceeded as refusal:
            raise self._said_of(refusal, plan) from None

    def underway(self) -> Underway:
        """For one run."""
        return Underway(self.ledger, self.analyst, self.head)

    def charge(
        self, plan: Plan, given: tuple[GivenAnswers, ...], begin: Callable[[str], object] | None = None
    ) -> Charged:
        """Charge a run of a plan durably for all that is not given; what follows searches is reserved.

        begin: told the id of the entry before it is reserved, and before `charging` is.
        Raises BudgetExceeded, CannotOpen; Rejected DP401: nobody said what it may cost, and it is not held any more.
        """
        if plan.bid.unpriced and not self._is_held(plan, given):
            raise reject("DP401", "no epsilon was given, and no summary answers this", help=["run(epsilon=0.5)"])
        try:
            return charge(self.ledger, self._request(plan, begin), plan.first.releases, given, plan.later)
        except BudgetExceeded as refusal:
            raise self._said_of(refusal, plan) from None

    def _is_held(self, plan: Plan, given: tuple[GivenAnswers, ...]) -> bool:
        drawn = any(wanted(r.measured, own) for r, own in zip(plan.first.releases, given, strict=True))
        return not drawn and {a.id for own in given for a in own.every} <= self.ledger.received(self.analyst)

    def _said_of(self, refusal: BudgetExceeded, plan: Plan) -> BudgetExceeded:
        larger = ("allow a larger max_error, or give in its place what fits",) if plan.bid.max_error else ()
        more = (*larger, *self._days_that_fit(plan))
        refusal.diagnostics = tuple(replace(d, help=(*more, *d.help)).at(plan.source) for d in refusal.diagnostics)
        return refusal

    def _days_that_fit(self, plan: Plan) -> Iterator[str]:
        """The condition under which the query would read periods only that have enough left, if there are such."""
        caps = in_force(self.caps, self.analyst, self.ledger.fixed())
        for unit, tables in self.policy.by_period.items():
            asked, told_by = plan.cost.get(unit, NO_LOSS), {t.name: t.grows.by for t in tables if t.grows is not None}
            scans = (n for r in plan.first.releases for n in walk(r.measured.node) if isinstance(n, Scan))
            days_of = dict.fromkeys(told_by[scan.table] for scan in scans if scan.table in told_by)
            read = canonical(d for r in plan.first.releases for d in r.measured.days(unit) or ())
            kept = [(caps.total.get(unit), None), (caps.analyst.get(unit), self.analyst)]
            limits = [(cap, self.ledger.by_period(unit, who)) for cap, who in kept if cap is not None]
            if asked == NO_LOSS or not all(asked.within(cap) for cap, _ in limits):
                continue
            full = [
                (span.first or dt.date.min, span.last)
                for cap, spent in limits for span in spent if not asked.within(remaining(cap, span.loss))
            ]  # fmt: skip
            fits = [(first, last) for first, last in beside(read, full) if last is not None]
            if fits:
                first, last = max(fits, key=lambda span: (span[1] - span[0], span[1]))
                to = "" if last == read[-1][1] else f" AND {{0}} <= DATE '{last}'"
                where = " AND ".join(f"{{0}} >= DATE '{first}'{to}".format(day) for day in days_of)
                part = (LossSpan(first, last, asked),)
                left = min((remaining(cap, dearest(inside(spent, part))) for cap, spent in limits), key=_size)
                yield f"WHERE {where}: these have {left} left"

    def charge_reserved(self, plan: Plan, charged: Charged) -> Charged:
        """What a charge has reserved, for what a run of this plan draws next. Raises CannotOpen."""
        return charge_reserved(self.ledger, self._request(plan), charged, plan.first.releases, plan.later)

    def _request(self, plan: Plan, begin: Callable[[str], object] | None = None) -> ChargeRequest:
        def charging(entry: str) -> None:
            for told in (begin, self.charging):
                if told is not None:
                    told(entry)

        return ChargeRequest(
            self.analyst, self.policy.privacy.accountant, self.caps, plan.hash, plan.basis.policy_hash,
            plan.source.text, charging, self.data,
        )  # fmt: skip


def _size(loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
    return loss.epsilon or loss.rho, loss.delta


_BESIDE: WeakKeyDictionary[Ledger, AnswerStore] = WeakKeyDictionary()


def answers_beside(ledger: Ledger) -> AnswerStore:
    """The stored answers that belong to a ledger: beside its file, in its database, or in memory while it lives."""
    from dpsql.answers.stored.store.memory import MemoryAnswers
    from dpsql.answers.stored.store.postgres import PostgresAnswers
    from dpsql.answers.stored.store.sqlite import SqliteAnswers
    from dpsql.core.ledger.postgres import PostgresLedger, server_of
    from dpsql.core.ledger.sqlite import SqliteLedger

    if isinstance(ledger, SqliteLedger):
        return SqliteAnswers(ledger.path.with_name(ledger.path.name + ".answers"))
    if isinstance(ledger, PostgresLedger):
        return PostgresAnswers(server_of(ledger))
    try:
        return _BESIDE.setdefault(ledger, MemoryAnswers())
    except TypeError:  # a ledger of the caller's own that cannot be remembered: its answers last as long as the session
        return MemoryAnswers()
