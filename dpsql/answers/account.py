"""Who pays for a run: what an account is given of what is stored, what it is charged, and what it may be charged.

*Claim.* What is printed as the price of a run is what the run charges, unless something was bought or spent in between;
by default it is at most the price of what was asked. Neither a price nor a refusal depends on a number that the account
has not got. *Why.* Price and run make one choice (choosing.py), with one ceiling. A run may go further than its
price, to numbers above releases that it receives itself, only if the price would have been admitted, and the account is
charged exactly that. *When it would be false.* If another process bought or spent between the two looks; the ledger
then decides by what holds when it charges. *Tested by* tests/deep/answers/test_ceiling.py,
tests/answers/test_ceiling.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from weakref import WeakKeyDictionary

from dpsql.answers.address import Grounds
from dpsql.answers.choosing import look_up
from dpsql.answers.notes import given_notes
from dpsql.answers.reuse import Reuse
from dpsql.answers.store.store import AnswerStore
from dpsql.core.ledger.ledger import Caps, Entry, Ledger, Receipt
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, remaining
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.plan import Charge, Plan

Ids = Mapping[tuple[int, int], str]
"""(release, component) → the id of the noise that will be drawn for it."""


@dataclass(frozen=True, slots=True)
class Account:
    """One analyst's account in one ledger, and the answers stored beside it.

    order: whose order decides what is kept where not all is (address.py).
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

    def look_up(self, plan: Plan, grounds: Grounds, *, preview: bool = False, dearer: bool | None = None) -> Reuse:
        """What a run is given of what is stored.

        preview: for a price that is told without a charge. dearer: in place of what the plan says.
        """
        dearer = plan.allow_dearer if dearer is None else dearer
        while True:
            held, fits = self.ledger.received(self.analyst), self._ceiling(plan, dearer)
            paid = self.ledger.received
            found = look_up(plan, grounds, self.store, held, paid, fits, dearer=dearer, preview=preview)
            # He may have bought something since, in another process: he does not receive that, he has it.
            if (found.complete(plan) and not found.new) or self.ledger.received(self.analyst) == held:
                return found

    def charge(self, plan: Plan) -> Charge:
        """What a run would charge this account now."""
        told = self.look_up(plan, self.grounds(plan), preview=True)
        notes = given_notes(plan, told, told.received(plan, self.policy))
        return Charge(told.in_account(plan, self.policy), notes)

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

        Only if `told` would be admitted, so that a refusal tells nothing about those numbers; and only if the account
        is charged the same for both, which is what `charge` says, and the total no more.
        """
        announced, entry = self.entry(plan, told, {}), self.entry(plan, reuse, {})
        if announced is None or entry is None:
            return announced is entry
        return (
            self._admits(announced)
            and all(entry.in_account(u) == announced.in_account(u) for u in (*entry.units, *announced.units))
            and all(loss.within(announced.charges.get(unit, NO_LOSS)) for unit, loss in entry.charges.items())
        )

    def name_dearer(self, refusal: BudgetExceeded, plan: Plan, grounds: Grounds) -> None:
        """If new noise does not fit into the total, and stored answers that cost this account more than was asked
        would do, the refusal says so.
        """
        if plan.allow_dearer or all(d.code != "DP403" for d in refusal.diagnostics):
            return
        entry = self.entry(plan, self.look_up(plan, grounds, preview=True, dearer=True), {})
        if entry is None or not self._admits(entry):
            return
        way = "run(allow_dearer=True)  or  --allow-dearer"
        help = f"stored answers would do, for {in_account(entry)} of this account:  {way}"
        refusal.diagnostics = tuple(
            replace(d, help=(help, *d.help)) if d.code == "DP403" else d for d in refusal.diagnostics
        )

    def reserve(self, plan: Plan, reuse: Reuse, ids: Ids) -> Receipt | None:
        """Charge a run durably. Raises BudgetExceeded, CannotOpen."""
        entry = self.entry(plan, reuse, ids)
        if entry is None:
            return None
        if self.charging is not None:
            self.charging(entry.id)
        try:
            return self.ledger.reserve(entry, self._caps)
        except BudgetExceeded as refusal:
            larger = ("allow a larger max_error, or give in its place what fits:",) if plan.max_error else ()
            refusal.diagnostics = tuple(
                replace(d, help=(*larger, *d.help)).at(plan.source) for d in refusal.diagnostics
            )
            raise

    # --- limits ----------------------------------------------------------------------------------------------------

    @property
    def _caps(self) -> Caps:
        caps = self.policy.caps_for(None if self.analyst == "*" else self.analyst)
        return Caps(caps.total, caps.analyst, caps.per_query)

    def _ceiling(self, plan: Plan, dearer: bool) -> Callable[[Reuse], bool]:
        """Whether all that the account is charged for a run is within what was asked, unless it allows dearer answers,
        and within its own limits.
        """

        @cache
        def asked() -> Mapping[str, PrivacyLoss]:
            return Reuse.nothing(plan).charges(plan, self.policy)

        @cache
        def left(unit: str) -> list[PrivacyLoss]:
            return self._left(unit)

        def fits(reuse: Reuse) -> bool:
            charged = reuse.in_account(plan, self.policy).items()
            if not dearer and not all(loss.within(asked().get(unit, NO_LOSS)) for unit, loss in charged):
                return False
            return all(loss.within(limit) for unit, loss in charged for limit in left(unit))

        return fits

    def _left(self, unit: str) -> list[PrivacyLoss]:
        """The most that one query of this account may cost a unit: what is left to the account, its limit per query."""
        caps, found = self._caps, []
        if caps.per_query is not None:
            found.append(caps.per_query)
        if unit in caps.analyst:
            found.append(remaining(caps.analyst[unit], self.ledger.spent(unit, self.analyst)))
        return found

    def _admits(self, entry: Entry) -> bool:
        """Whether every limit has room for a charge, as things are now."""
        total = self._caps.total
        return all(
            all(entry.in_account(unit).within(limit) for limit in self._left(unit))
            and (
                unit not in entry.charges
                or unit not in total
                or entry.charges[unit].within(remaining(total[unit], self.ledger.spent(unit)))
            )
            for unit in entry.units
        )


def in_account(entry: Entry) -> PrivacyLoss:
    """What an entry costs its account, the largest over all units."""
    return largest(entry.in_account(unit) for unit in entry.units)


_BESIDE: WeakKeyDictionary[Ledger, AnswerStore] = WeakKeyDictionary()


def answers_beside(ledger: Ledger) -> AnswerStore:
    """The stored answers that belong to a ledger: in a file beside its file, or in memory as long as it lives."""
    from dpsql.answers.store.memory import MemoryAnswers
    from dpsql.answers.store.sqlite import SqliteAnswers
    from dpsql.core.ledger.sqlite import SqliteLedger

    if isinstance(ledger, SqliteLedger):
        return SqliteAnswers(ledger.path.with_name(ledger.path.name + ".answers"))
    try:
        return _BESIDE.setdefault(ledger, MemoryAnswers())
    except TypeError:  # a ledger of the caller's own that cannot be remembered: its answers last as long as the session
        return MemoryAnswers()
