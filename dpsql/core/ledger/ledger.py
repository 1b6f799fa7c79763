"""The ledger's contract: reserve durably, then act; never refund once the engine has started."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, remaining


@dataclass(frozen=True, slots=True)
class Entry:
    """A request to charge one query.

    id: unique per run; reserving the same id twice charges once and returns the same receipt.
    analyst: the account (`*` is the shared one).
    charges: privacy unit → loss of new noise; one query charges every unit whose data it touches. Counts in the total,
    in the analyst's account and against the limit per query.
    plan_hash, policy_hash: what was run, for the history. `statement`: the analyst's own text, for the history.
    received: privacy unit → what stored answers that this analyst gets for the first time add to that. Counts in the
    analyst's account and against the limit per query, never in the total: their noise has been paid for there.
    answers: ids of the stored answers that the analyst holds through this entry, new or received. An id stands for one
    draw of noise and is never given to another.
    """

    id: str
    analyst: str
    charges: Mapping[str, PrivacyLoss]
    plan_hash: str
    policy_hash: str
    statement: str = ""
    received: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    answers: tuple[str, ...] = ()

    def in_account(self, unit: str) -> PrivacyLoss:
        """What this entry adds to its analyst's account of a unit: new noise and received answers."""
        return self.charges.get(unit, NO_LOSS) + self.received.get(unit, NO_LOSS)

    def called(self, names: UnitNames) -> Entry:
        """The same entry in the present names of its units; what was charged for several that are one now is added."""
        if not names.former:
            return self
        charges, received = (_called(losses, names) for losses in (self.charges, self.received))
        return replace(self, charges=charges, received=received)

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit with a charge or a received loss."""
        return tuple(dict.fromkeys((*self.charges, *self.received)))

    @property
    def defines(self) -> bool:
        """Whether it charges nobody and only says what a summary is made of, or that it is forgotten."""
        return not self.units and self.statement.startswith(DEFINITIONS)

    @property
    def accepts(self) -> bool:
        """Whether it charges nobody and only says that a custodian has accepted the ledger as it stood."""
        return not self.units and self.statement.startswith(ACCEPTANCE)

    @property
    def fails(self) -> bool:
        """Whether it charges nobody and only says that a run has failed (failures.py)."""
        return not self.units and self.statement.startswith(FAILED)

    @property
    def looks(self) -> bool:
        """Whether it charges nobody and only says that a custodian has looked at the failures before it."""
        return not self.units and self.statement.startswith(LOOKED_AT)


ACCEPTANCE = "ACCEPT LEDGER "
"""How the statement of an entry begins that `acceptance.py` makes. No query begins so."""
FAILED, LOOKED_AT = "STATEMENT FAILED ", "FAILURES LOOKED AT "
"""How the statements of entries begin that `failures.py` makes. No query begins so."""
DEFINITIONS = ("CREATE DP SUMMARY ", "DROP DP SUMMARY ")
"""How statements begin that are no queries, and are kept in a ledger for what they say. No query begins so."""


def _called(losses: Mapping[str, PrivacyLoss], names: UnitNames) -> dict[str, PrivacyLoss]:
    found: dict[str, PrivacyLoss] = {}
    for unit, loss in losses.items():
        found[names.present(unit)] = found.get(names.present(unit), NO_LOSS) + loss
    return found


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a login may still spend of each unit, besides the budgets of the policy.

    left: as it was when somebody looked. before: privacy unit → what its account had spent then; what that spends from
    then on counts. None: the ceiling of one query, whatever was spent.

    *Claim.* However many statements are asked at one time, their charges together stay within `left`. *Why.* Each is
    checked against what the account has spent by then, in the transaction that adds its own charge. *When it would be
    false.* If `left` and `before` were read of two states of the ledger. *Tested by* tests/server/test_ceilings.py.
    """

    left: PrivacyLoss
    before: Mapping[str, PrivacyLoss] | None = None

    def left_of(self, unit: str, spent: Callable[[], PrivacyLoss]) -> PrivacyLoss:
        """What one more charge may cost a unit now. spent: by the account, of the unit."""
        if self.before is None:
            return self.left
        return remaining(self.left + self.before.get(unit, NO_LOSS), spent())


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that was charged and failed. at: None if nobody can tell. entry: that charged it. how: see failures.py."""

    account: str
    at: dt.datetime | None
    entry: str
    how: str


@dataclass(frozen=True, slots=True)
class FailureCap:
    """How many failures since then stop what pays for new noise: of the account, and of all accounts together."""

    most: int
    in_total: int
    since: dt.datetime


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits in force for one entry: per unit in total, per unit for this analyst, and per query and unit.

    The total limits `charges`; the others limit `charges` and `received` together. A missing unit (or None) means
    "no limit declared". ceilings: of the login that asks, by their names. failures: None where they stop nobody.
    """

    total: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    analyst: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    per_query: PrivacyLoss | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    failures: FailureCap | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that an entry is durably charged. Only a ledger makes one; `release.run` demands it.

    sequence: 1 for a ledger's first entry; this is the order of entries. hash: of the chain up to this entry.
    reserved_at: ISO 8601 in UTC, by the clock of the machine that charged. For reading only: clocks go back, and
    nothing is ever decided by this.
    """

    entry: Entry
    sequence: int
    hash: str
    reserved_at: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """What has been spent: of one unit in total (analyst None) or by one analyst, whose received answers count."""

    unit: str
    analyst: str | None
    spent: PrivacyLoss


class Ledger(Protocol):
    """Append-only. Implementations: sqlite (durable), postgres (durable, for many machines), memory."""

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """Charge atomically and durably, or raise BudgetExceeded (DP403 to DP405, DP413, DP416)."""
        ...

    def finish(self) -> None:
        """Wait for what the charges so far have begun and need not be waited for while the data is read.

        Called before an answer is shown. Raises CannotOpen (DP407): the charge stays, and the answer is kept back.
        """
        ...

    def spent(self, unit: str, analyst: str | None = None) -> PrivacyLoss:
        """Total loss of a unit, or what one analyst's account holds (received answers included)."""
        ...

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds, bought or received; of all accounts for None."""
        ...

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        ...

    def history(self, after: Receipt | None = None) -> Sequence[Receipt]:
        """All entries, or those behind one of this ledger, oldest first."""
        ...

    def definitions(self) -> Sequence[Entry]:
        """The entries that define something (`Entry.defines`), oldest first."""
        ...

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, oldest first."""
        ...

    @property
    def salt(self) -> int:
        """Secret 62-bit number made once per ledger; fixes truncation order."""
        ...

    def close(self) -> None:
        """Release the file, or the server."""
        ...
