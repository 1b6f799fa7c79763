"""The ledger's contract: reserve durably, then act; never refund once the engine has started."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from dpsql.core.ledger.losses.regions import ALWAYS, Days, Region, dearest, everywhere, summed
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, compose, remaining
from dpsql.core.value_classes import replace, value

if TYPE_CHECKING:
    from dpsql.core.ledger.counters import CounterState


class EntryKind(StrEnum):
    """What an entry is for. Few charge anybody (`CHARGING`); the rest says something, and is kept for what it says."""

    CHARGE = "charge"
    """A query: what it costs, what it receives, what noise it names."""
    DEFINITION = "definition"
    """What a summary is made of, or that it is forgotten."""
    ACCEPTANCE = "acceptance"
    """A custodian has accepted the ledger as it stood (chain/acceptance.py)."""
    BUDGET = "budget"
    """A custodian has added to a budget (losses/fixed_budgets.py)."""
    FAILURE = "failure"
    """A run has failed (failures.py)."""
    LOOK = "look"
    """A custodian has looked at the failures before it."""
    CLOSE = "close"
    """A custodian has closed the periods of a growing table up to a day (closings.py)."""
    REOPEN = "reopen"
    """He has opened some of them again: what was stored of them is another answer from then on."""
    COUNTER = "counter"
    """A counter is made, and all its ticks are charged (counters.py)."""
    TICK = "tick"
    """A tick of one will be drawn; what is drawn again is charged."""
    TICKED = "ticked"
    """Its numbers are stored, and are given."""
    DROP = "drop"
    """A counter has no tick any more."""


CHARGING: Final = frozenset({EntryKind.CHARGE, EntryKind.COUNTER, EntryKind.TICK})
"""Kinds that may charge somebody."""


@value(frozen=True, slots=True)
class Entry:
    """A request to charge one query, or something that is kept beside charges (`kind`).

    id: unique per run; reserving the same id twice charges once and returns the same receipt.
    analyst: the account (`*` is the shared one).
    charges: privacy unit → loss of new noise; one query charges every unit whose data it touches. Counts in the total,
    in the analyst's account and against the limit per query.
    plan_hash, policy_hash: what was run, for the history. `statement`: the analyst's own text, for the history.
    received: privacy unit → what stored answers that this analyst gets for the first time add to that. Counts in the
    analyst's account and against the limit per query, never in the total: their noise has been paid for there.
    answers: ids of the stored answers that the analyst holds through this entry, new or received. An id stands for one
    draw of noise and is never given to another.
    regions, received_regions: privacy unit → what each period loses of `charges`, of `received`, which say the dearest
    then. A unit without a region loses its charge in every period, past and future.
    """

    id: str
    analyst: str
    charges: Mapping[str, PrivacyLoss]
    plan_hash: str
    policy_hash: str
    statement: str = ""
    received: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    kind: EntryKind = EntryKind.CHARGE
    regions: Mapping[str, Region] = field(default_factory=dict)
    received_regions: Mapping[str, Region] = field(default_factory=dict)

    def charged(self, unit: str) -> Region:
        """What each period of a unit loses by new noise."""
        return self.regions.get(unit) or everywhere(self.charges.get(unit, NO_LOSS))

    def account(self, unit: str) -> Region:
        """What this entry adds to each period of its analyst's account: new noise and received answers."""
        own = self.charged(unit)
        if unit not in self.received:
            return own
        return summed([own, self.received_regions.get(unit) or everywhere(self.received[unit])])

    def in_account(self, unit: str) -> PrivacyLoss:
        """What it adds to the period of its analyst's account to which it adds most, part by part."""
        if unit in self.regions or unit in self.received_regions:
            return dearest(self.account(unit))
        own, received = self.charges.get(unit, NO_LOSS), self.received.get(unit)
        return own if received is None else own + received

    def called(self, names: UnitNames) -> Entry:
        """The same entry in the present names of its units; what was charged for several that are one now is added."""
        if not names.former or names.former.keys().isdisjoint(self.units):
            return self
        charges, regions = _called(self.charges, self.regions, names)
        received, received_regions = _called(self.received, self.received_regions, names)
        return replace(self, charges=charges, regions=regions, received=received, received_regions=received_regions)

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit with a charge or a received loss."""
        return tuple(dict.fromkeys((*self.charges, *self.received)) if self.received else self.charges)


def require_dearest(entry: Entry) -> None:
    """Raises ValueError unless each loss that is said by period is the dearest of its periods, part by part."""
    for losses, own in ((entry.charges, entry.regions), (entry.received, entry.received_regions)):
        for unit, region in own.items():
            said, found = losses.get(unit), dearest(region)
            if said is not found and said != found:
                raise ValueError(f"the charge of unit {unit!r} is not what its dearest period loses")


_Losses = Mapping[str, PrivacyLoss]
_Regions = Mapping[str, Region]


def _called(losses: _Losses, regions: _Regions, names: UnitNames) -> tuple[_Losses, _Regions]:
    parts: dict[str, list[str]] = {}
    for unit in losses:
        parts.setdefault(names.present(unit), []).append(unit)
    own = {
        now: summed([regions.get(unit) or everywhere(losses[unit]) for unit in then])
        for now, then in parts.items()
        if not regions.keys().isdisjoint(then)
    }
    found = {now: compose(losses[unit] for unit in then) for now, then in parts.items()}
    return found | {unit: dearest(region) for unit, region in own.items()}, own


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a login may still spend of each unit, besides the budgets of the policy.

    left: as it was when somebody looked. before: privacy unit → what its account had been charged then; what it is
    charged from then on counts. None: the ceiling of one query, whatever was charged. Of each entry its dearest period
    counts, on both sides (`Ledger.charged`): hours and days of asking are not periods of rows.

    *Claim.* However many statements are asked at one time, their charges together stay within `left`. *Why.* Each is
    checked against what the account has spent by then, in the transaction that adds its own charge. *When it would be
    false.* If `left` and `before` were read of two states of the ledger. *Tested by*
    tests/faces/server/test_ceilings.py.
    """

    left: PrivacyLoss
    before: Mapping[str, PrivacyLoss] | None = None

    def left_of(self, unit: str, charged: Callable[[], PrivacyLoss]) -> PrivacyLoss:
        """What one more charge may cost a unit now. charged: to the account, of the unit, entry by entry."""
        if self.before is None:
            return self.left
        return remaining(self.left + self.before.get(unit, NO_LOSS), charged())


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
    by_period: units of which each period has these limits by itself; for their words alone.
    """

    total: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    analyst: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    per_query: PrivacyLoss | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    failures: FailureCap | None = None
    by_period: frozenset[str] = frozenset()


Cap = tuple[str, str | None]
"""Which budget: of a unit, of one analyst's account, or (None) in total."""


@value(frozen=True, slots=True)
class Receipt:
    """Proof that an entry is durably charged. Only a ledger makes one; `release.run` demands it.

    sequence: 1 for a ledger's first entry; this is the order of entries. hash: of the chain up to this entry.
    reserved_at: ISO 8601 in UTC, by the clock of the machine that charged. For reading only: clocks go back, and
    nothing is ever decided by this. fixed: budgets that hold from this entry on (losses/fixed_budgets.py), added by the
    ledger.
    """

    entry: Entry
    sequence: int
    hash: str
    reserved_at: str = ""
    fixed: Mapping[Cap, PrivacyLoss] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Account:
    """What has been spent: of one unit in total (analyst None) or by one analyst, whose received answers count.

    spent: in the dearest period, part by part.
    """

    unit: str
    analyst: str | None
    spent: PrivacyLoss


class Ledger(Protocol):
    """Append-only. Implementations: sqlite (durable), postgres (durable, for many machines), memory."""

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """Charge atomically and durably, or raise BudgetExceeded (DP403 to DP405, DP413, DP416)."""
        ...

    def fix(self, entry: Entry, fixing: Callable[[Mapping[Cap, PrivacyLoss]], Mapping[Cap, PrivacyLoss]]) -> Receipt:
        """Add an entry of kind `budget`. fixing: of what is fixed by then it makes what holds from this entry on.

        It is called while nobody else adds. Raises CannotOpen (DP407), and what `fixing` raises.
        """
        ...

    def fixed(self) -> Mapping[Cap, PrivacyLoss]:
        """The budgets that are fixed (losses/fixed_budgets.py), in the present names of units."""
        ...

    def finish(self) -> None:
        """Wait for what the charges so far have begun and need not be waited for while the data is read.

        Called before an answer is shown. Raises CannotOpen (DP407): the charge stays, and the answer is kept back.
        """
        ...

    def spent(self, unit: str, analyst: str | None = None, days: Days = ALWAYS) -> PrivacyLoss:
        """Total loss of a unit, or what one analyst's account holds (received answers included).

        In the dearest of the periods that have any of these days, part by part.
        """
        ...

    def by_period(self, unit: str, analyst: str | None = None) -> Region:
        """What each period of a unit has lost, in total or by what an account holds."""
        ...

    def charged(self, unit: str, analyst: str) -> PrivacyLoss:
        """What the entries of an account have cost a unit, each in its dearest period: what ceilings count."""
        ...

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds, bought or received; of all accounts for None."""
        ...

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        ...

    def history(self, after: Receipt | None = None, most: int | None = None) -> Sequence[Receipt]:
        """All entries, or those behind one of this ledger, oldest first; no more than `most`."""
        ...

    def find(self, ids: Collection[str]) -> Sequence[Receipt]:
        """The entries of these ids, oldest first; of none that is not there."""
        ...

    def definitions(self) -> Sequence[Entry]:
        """The entries that define something, oldest first."""
        ...

    def closings(self) -> Sequence[Entry]:
        """The entries that close periods, or open them again, oldest first."""
        ...

    def counters(self) -> Sequence[CounterState]:
        """The counters of this ledger, oldest first."""
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
