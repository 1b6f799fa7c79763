"""What a login may still spend: its ceilings for one query, for the last hour and the last day.

*Claim.* In any day (hour) an account is charged at most its login's ceiling, as far as the clocks of the machines that
charge are true. *Why.* What was charged in it is read from the ledger before a statement, with all that the account had
spent by then; what it spends from then on counts in the transaction that charges (`Ceiling` of core/ledger/ledger.py),
whoever charges it. *When it would be false.* If a clock goes back. Budgets do not rest on clocks. *Tested by*
tests/faces/server/test_ceilings.py.
"""

from __future__ import annotations

import datetime as dt
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple, NoReturn, TypeVar

from dpsql.core.ledger.ledger import Ceiling, Entry, Receipt
from dpsql.core.policy.units import Accountant
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, exact_epsilon, largest, remaining
from dpsql.diagnostics.errors import CannotOpen, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.faces.server.statements import Ceilings
from dpsql.service.accounts.spending_story import SpendingStory
from dpsql.service.service import Service

T = TypeVar("T")

_SPANS: Final = {"per_hour": dt.timedelta(hours=1), "per_day": dt.timedelta(days=1)}
_LAST: Final = dt.datetime.max.replace(tzinfo=dt.UTC)
_AT_ONCE: Final = 5_000
"""Entries that are read at one time."""


Losses = Mapping[str, PrivacyLoss]
"""Unit → what it was charged."""


class AccountCharge(NamedTuple):
    """One entry of an account. at: None if nobody can tell when it was."""

    at: dt.datetime | None
    losses: Losses


class AccountSpending:
    """What each account has spent, and when, with the ledger's story: it is read once, and from then on what is new."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()
        self._start_over()

    def _start_over(self) -> None:
        self._last: Receipt | None = None
        self._charges: dict[str, list[AccountCharge]] = {}
        self._equal: dict[tuple[tuple[str, PrivacyLoss], ...], dict[str, PrivacyLoss]] = {}
        """Of charges that cost the same, one stands for all."""
        self._story = SpendingStory(self.service.policy.unit_names)

    def of(self, account: str) -> tuple[list[AccountCharge], Losses]:
        """All charges of an account until now, in the order of time, and their sum, whatever periods they read.

        Raises CannotOpen (DP407).
        """
        own = self.service.policy.account(account)
        with self._lock:
            self._read_on()
            return list(self._charges.get(own, ())), self._story.charged(own)

    def read(self) -> None:
        """All that is there. Raises CannotOpen (DP407)."""
        self.told(lambda _: None)

    def told(self, tell: Callable[[SpendingStory], T]) -> T:
        """What of the ledger's story is asked for; nobody adds to it meanwhile. Raises CannotOpen (DP407)."""
        with self._lock:
            self._read_on()
            return tell(self._story)

    def _read_on(self) -> None:
        names = self.service.policy.unit_names
        try:
            while True:
                found = self.service.ledger.history(self._last, _AT_ONCE)
                for receipt in found:
                    self._add(receipt, receipt.entry.called(names))
                if len(found) < _AT_ONCE:
                    return
        except CannotOpen:  # of a ledger that a custodian puts back, the last entry may never be there again
            self._start_over()
            raise

    def _add(self, receipt: Receipt, entry: Entry) -> None:
        self._last = receipt
        self._story.add(receipt)
        if not entry.units:
            return
        losses = {unit: entry.in_account(unit) for unit in entry.units}
        losses = self._equal.setdefault(tuple(losses.items()), losses)
        own = self._charges.setdefault(entry.analyst, [])
        insort(own, AccountCharge(_moment(receipt.reserved_at), losses), key=_order)


def ceilings_now(
    spending: AccountSpending, account: str, ceilings: Ceilings, now: dt.datetime
) -> Mapping[str, Ceiling]:
    """A login's ceilings by their names, as the ledger limits a charge by them. Raises CannotOpen (DP407)."""
    accountant = accountant_of(spending)
    given = {name: getattr(ceilings, name) for name in ("per_query", *_SPANS)}
    caps = {name: _cap(amount, accountant) for name, amount in given.items() if amount is not None}
    if not any(name in _SPANS for name in caps):
        return {name: Ceiling(cap) for name, cap in caps.items()}
    charges, before = spending.of(account)
    found: dict[str, Ceiling] = {}
    for name, cap in caps.items():
        if name in _SPANS:
            spent = largest(spent_since(charges, now - _SPANS[name]).values())
            found[name] = Ceiling(remaining(cap, PrivacyLoss(spent.epsilon, Fraction(0), spent.rho)), before)
        else:
            found[name] = Ceiling(cap)
    return found


def require_asked(
    spending: AccountSpending, account: str, ceilings: Ceilings, loss: PrivacyLoss, now: dt.datetime
) -> None:
    """Raises Rejected DP413: a statement of this price asks for too little, or is one too many in an hour.

    What several workers charge at the same time is not in each other's count.
    """
    if ceilings.least_epsilon is not None and not _cap(ceilings.least_epsilon, accountant_of(spending)).within(
        replace(loss, delta=Fraction(1))
    ):
        _refuse(f"a statement that is charged has at least ε {ceilings.least_epsilon} here, and this one has {loss}")
    if ceilings.statements is not None:
        charges, _ = spending.of(account)
        count = len(_since(charges, now - _SPANS["per_hour"]))
        if count >= ceilings.statements:
            _refuse(f"{count:,} statements were charged in the last hour, and no more than {ceilings.statements:,} may")


def accountant_of(spending: AccountSpending) -> Accountant:
    """What the ledger's amounts are of."""
    return spending.service.policy.privacy.accountant


def _refuse(message: str) -> NoReturn:
    how = "custodian: see  ceilings:  in users.yaml"
    raise reject("DP413", message, help=[how], notes=[NOTHING_RAN])


def spent_since(charges: Sequence[AccountCharge], since: dt.datetime) -> Losses:
    """What was charged from then on. Entries without a time count."""
    found: dict[str, PrivacyLoss] = {}
    for charge in _since(charges, since):
        for unit, loss in charge.losses.items():
            found[unit] = found.get(unit, NO_LOSS) + loss
    return found


def _since(charges: Sequence[AccountCharge], since: dt.datetime) -> Sequence[AccountCharge]:
    return charges[bisect_left(charges, since, key=_order) :]


def _order(charge: AccountCharge) -> dt.datetime:
    return charge.at or _LAST


def _moment(reserved_at: str) -> dt.datetime | None:
    try:
        at = dt.datetime.fromisoformat(reserved_at)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)


def _cap(amount: str, accountant: Accountant) -> PrivacyLoss:
    """An ε in the ledger's terms: under zCDP ρ = ε²/2, as the ε of a query is read. δ has no ceiling."""
    epsilon = exact_epsilon(amount)
    if accountant == "zcdp":
        return PrivacyLoss(delta=Fraction(1), rho=epsilon * epsilon / 2)
    return PrivacyLoss(epsilon, Fraction(1))
