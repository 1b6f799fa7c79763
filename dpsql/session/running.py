"""Running a plan: look stored answers up, reserve what the rest costs, measure it, store it, and only then show it.

*Claim.* Whatever is killed and whenever: no noisy number is shown that is not charged, and the same question asked
twice at one time is charged once. *Why.* Reserve, draw, store, show, in this order; the ledger's entry names the
answers before their noise is drawn, and a stored answer that no entry names is never served. Whoever has something to
pay holds the names of the releases until it is stored, and looks again after he got them. *When it would be false.* If
the store were asked for an answer under a name that stands for another question (compiler/address.py). *Tested by*
tests/unit/session/test_answers.py, tests/e2e/test_answers.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from dpsql.answers.store import AnswerStore
from dpsql.budget.ledger import Caps, Entry, Ledger, Receipt
from dpsql.compiler import Plan
from dpsql.compiler.address import Grounds
from dpsql.compiler.notes import notes_of
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.engine.base import Engine
from dpsql.engine.scratch import Scratch
from dpsql.loss import NO_LOSS, PrivacyLoss, largest
from dpsql.measure.backends import EXACT, Backend, BackendName, backend
from dpsql.policy.models import Policy
from dpsql.release.given import given_notes
from dpsql.release.inlined import as_query
from dpsql.release.noisy import Given, NoisyRelease, measure_release, wanted
from dpsql.release.post import post_process
from dpsql.release.result import Release
from dpsql.release.reuse import Reuse, look_up, names_of, released_rows, to_store
from dpsql.session.facts import FactStore

Ids = Mapping[tuple[int, int], str]
"""(release, component) → the id of the noise that will be drawn for it."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who pays: one analyst's account in one ledger, and the answers stored beside it.

    order: whose order decides what is kept where not all is (compiler/address.py).
    charging: told the id of an entry before it is reserved.
    """

    policy: Policy
    analyst: str
    ledger: Ledger
    store: AnswerStore
    order: str
    charging: Callable[[str], object] | None = None

    def grounds(self, plan: Plan) -> Grounds:
        """What the plan's numbers stand on."""
        return Grounds(plan, self.policy.data_version, self.order)

    def look_up(self, plan: Plan, grounds: Grounds, *, own: bool = False, preview: bool = False) -> Reuse:
        """What can be answered from stored answers; `own`: only from those that the analyst has already.

        preview: for a price that is told without a charge.
        """
        held = self.ledger.received(self.analyst)
        paid = self.ledger.received
        found = look_up(plan, grounds, self.store, held, lambda: held if own else paid(), preview=preview)
        if not found.new:
            return found
        # He may have bought it himself since the first look, in another process: then he does not receive it.
        held = self.ledger.received(self.analyst)
        return replace(found, new=tuple(a for a in found.new if a.id not in held))

    def price(self, plan: Plan) -> PrivacyLoss:
        """The most that a run would charge this account now, the largest over all units.

        Less may be charged where a release that reads answers which the analyst has not yet is stored as well.
        """
        entry = self.entry(plan, self.look_up(plan, self.grounds(plan), preview=True), {})
        return NO_LOSS if entry is None else _in_account(entry)

    def entry(self, plan: Plan, reuse: Reuse, ids: Ids) -> Entry | None:
        """The request to charge a run; None if there is nothing to charge."""
        # Not what the plan says it costs, but what its mechanisms say: a plan is a value that anybody can edit.
        charges = reuse.charges(plan, self.policy)
        got = reuse.received(plan, self.policy)
        if not charges and not got:
            return None  # public data only, numbers that are public by definition, or answers he has
        answers = (*ids.values(), *(a.id for a in reuse.new))
        return Entry(
            uuid.uuid4().hex, self.analyst, charges, plan.hash, plan.policy_hash, plan.source.text, got, answers
        )

    def may_use(self, plan: Plan, reuse: Reuse, told: Reuse) -> bool:
        """Whether a run may be given `reuse`, which depends on numbers that the account has not yet, too, and not only
        `told`, which does not.

        Only if `told` would be admitted, so that a refusal tells nothing about those numbers; and only if that is no
        dearer for the account than `told`, whose price is what `price` says.
        """
        announced, entry = self.entry(plan, told, {}), self.entry(plan, reuse, {})
        if announced is None or entry is None:
            return entry is None
        caps = self.policy.caps_for(None if self.analyst == "*" else self.analyst)
        for unit in announced.units:
            own, charge = announced.in_account(unit), announced.charges.get(unit, NO_LOSS)
            limits = (
                (own, caps.per_query),
                (self.ledger.spent(unit, self.analyst) + own, caps.analyst.get(unit)),
                (self.ledger.spent(unit) + charge, caps.total.get(unit)),
            )
            if not all(cap is None or loss.within(cap) for loss, cap in limits):
                return False
        return all(entry.in_account(unit).within(announced.in_account(unit)) for unit in entry.units)

    def reserve(self, plan: Plan, reuse: Reuse, ids: Ids) -> Receipt | None:
        """Charge a run durably. Raises BudgetExceeded, CannotOpen."""
        entry = self.entry(plan, reuse, ids)
        if entry is None:
            return None
        caps = self.policy.caps_for(None if self.analyst == "*" else self.analyst)
        if self.charging is not None:
            self.charging(entry.id)
        try:
            return self.ledger.reserve(entry, Caps(caps.total, caps.analyst, caps.per_query))
        except BudgetExceeded as refusal:
            larger = ("allow a larger max_error, or give in its place what fits:",) if plan.max_error else ()
            refusal.diagnostics = tuple(
                replace(d, help=(*larger, *d.help)).at(plan.source) for d in refusal.diagnostics
            )
            raise


def _in_account(entry: Entry) -> PrivacyLoss:
    return largest(entry.in_account(unit) for unit in entry.units)


@dataclass(frozen=True, slots=True)
class Runner:
    """Where plans are run. noise: who draws it."""

    engine: Engine
    facts: FactStore
    scratch: Scratch
    noise: BackendName

    def free(self, plan: Plan) -> Release:
        """Run a plan that needs no noise."""
        return self._execute(plan, Reuse.nothing(plan))

    def run(self, plan: Plan, account: Account, fresh: bool) -> Release:
        """Run a plan on an account. fresh: pay for new noise, whatever is stored.

        Raises Rejected (DP409, DP905), BudgetExceeded, CannotOpen (nothing ran), EngineError.
        """
        grounds = account.grounds(plan)
        if fresh:
            return self._execute(plan, Reuse.nothing(plan), account, grounds)
        reuse = account.look_up(plan, grounds)
        if reuse.complete(plan) and not reuse.new:
            return self._execute(plan, reuse, account, grounds)
        private = [at for at, r in enumerate(plan.releases) if wanted(r.measured, Given())]
        names = {grounds.ground(at).name for at in private}
        return account.store.alone(names, lambda: self._reuse(plan, account, grounds))

    def _reuse(self, plan: Plan, account: Account, grounds: Grounds) -> Release:
        # Whoever held the names before may have stored what we need.
        reuse = account.look_up(plan, grounds)
        told = account.look_up(plan, grounds, preview=True) if reuse.new else reuse
        if told != reuse and not account.may_use(plan, reuse, told):
            reuse = told
        try:
            return self._execute(plan, reuse, account, grounds)
        except BudgetExceeded:
            # Somebody else's answers may be better, and cost this account more, than what was asked for.
            own = account.look_up(plan, grounds, own=True)
            if own == reuse:
                raise
            return self._execute(plan, own, account, grounds)

    def _execute(
        self, plan: Plan, reuse: Reuse, account: Account | None = None, grounds: Grounds | None = None
    ) -> Release:
        ids = {
            (at, i): name
            for at, (release, given) in enumerate(zip(plan.releases, reuse.given, strict=True))
            for i, name in names_of(release.measured, given, uuid.uuid4().hex).items()
        }
        # Asked for before anything is charged, and only where noise is to be drawn: stored answers need nobody.
        drawing = EXACT if reuse.complete(plan) else backend(self.noise)
        return self.engine.in_snapshot(lambda: self._release(plan, reuse, ids, drawing, account, grounds))

    def _release(
        self, plan: Plan, reuse: Reuse, ids: Ids, drawing: Backend, account: Account | None, grounds: Grounds | None
    ) -> Release:
        noisy: list[NoisyRelease] = []
        notes: list[str] = []
        self.facts.check_again(plan)
        receipt = None if account is None else account.reserve(plan, reuse, ids)
        salt = 0 if receipt is None or account is None else account.ledger.salt
        for planned, given in zip(plan.releases, reuse.given, strict=True):
            read = [n for n in noisy if any(s.reads(n.planned.label) for s in planned.statements)]
            earlier = {n.planned.label: as_query(n) for n in read}
            noisy.append(measure_release(planned, self.engine, receipt, salt, earlier, given, drawing))
            if account is not None and grounds is not None and wanted(planned.measured, given):
                notes += _stored(noisy, given, ids, account.store, grounds)
        rows = post_process(plan, noisy, self.engine, self.scratch)
        spent = NO_LOSS if receipt is None else _in_account(receipt.entry)
        served = () if account is None else given_notes(plan, reuse, reuse.received(plan, account.policy))
        expected = notes_of([r.measured for r in plan.releases])
        made = notes_of([n.planned.measured for n in noisy])
        return Release(
            tuple(c.name for c in plan.columns),
            tuple(c.type for c in plan.columns),
            spent,
            # Stored numbers were made by other mechanisms than planned: a threshold that is told is the one that was.
            (*served, *dict.fromkeys(notes), *made, *(n for n in plan.notes if n not in expected), *self.engine.notes),
            plan,
            tuple(noisy),
            rows,
        )


def _stored(noisy: list[NoisyRelease], given: Given, ids: Ids, store: AnswerStore, grounds: Grounds) -> list[str]:
    """Store what was measured last; a note if that fails: the answer is paid for, so it is shown all the same."""
    place = len(noisy) - 1
    ground = grounds.ground(place, {at: released_rows(noisy[at]) for at in grounds.reads(place)})
    own = {i: name for (at, i), name in ids.items() if at == place}
    answers = to_store(noisy[place], given, ground, own, datetime.now(UTC))
    try:
        store.add(answers)
    except Exception:  # whatever it is, keeping back what was paid for helps nobody
        return ["the answer could not be stored: asking again costs again"]
    return []


_BESIDE: WeakKeyDictionary[Ledger, AnswerStore] = WeakKeyDictionary()


def answers_beside(ledger: Ledger) -> AnswerStore:
    """The stored answers that belong to a ledger: in a file beside its file, or in memory as long as it lives."""
    from dpsql.answers.memory import MemoryAnswers
    from dpsql.answers.sqlite import SqliteAnswers
    from dpsql.budget.sqlite import SqliteLedger

    if isinstance(ledger, SqliteLedger):
        return SqliteAnswers(ledger.path.with_name(ledger.path.name + ".answers"))
    try:
        return _BESIDE.setdefault(ledger, MemoryAnswers())
    except TypeError:  # a ledger of the caller's own that cannot be remembered: its answers last as long as the session
        return MemoryAnswers()
