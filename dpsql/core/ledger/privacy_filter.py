"""Running totals, and the one decision a ledger makes: does this charge fit?

*Claim.* A charge that `check` lets pass keeps every total within its cap. *Why.* Totals and caps are exact rationals;
a stored charge is never below the loss it stands for (rounded up to a grid that holds every usual number exactly);
all units of a query are checked before any is charged. *When it would be false.* If another charge came between `check`
and `add`: ledgers call both inside one lock or transaction.
*Proved by* Mech.never_above_cap, Mech.all_answers (for pure ε).
*Tested by* tests/core/ledger/test_ledger_contract.py.

**By period.** *Claim.* Fix neighbours that differ in the rows of one period of a unit. However releases, their losses
and their regions are chosen after seeing all answers before, and however later rows depend on these, what is lost is at
most what the ledger has for this period, so no more than the cap. *Why.* A release that reads no row of the period has
equal integers under both neighbours, and loses nothing; regions and losses are public when they are charged, so the
losses that count for this period are again chosen by what was seen: the filter over Σε, (Σε, Σδ) or (Σρ, Σδ). It holds
for all periods at once, since what is admitted depends on no data. An entry without a region may have read any row,
also one that came later, so it counts in every period. *When it would be false.* If a region left out a period that its
release has read; if a row changed its period, or a unit had rows in several (then the sum of their accounts holds, of ρ
the square of the sum of their roots: one release may read them all); if a price were divided over its periods, or
charged to the period of asking: then three periods lose up to three times the cap (growing tables, enumerated).
*Tested by* tests/core/ledger/test_ledger_contract.py (against a dictionary by day), tests/core/ledger/test_regions.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Protocol

from dpsql.core.ledger.accountant import ACCOUNTANTS, Accountant, in_terms_of
from dpsql.core.ledger.counters import CounterBook
from dpsql.core.ledger.failures import read, require_few
from dpsql.core.ledger.ledger import CHARGING, Account, Cap, Caps, Entry, EntryKind, Failure, Receipt, require_dearest
from dpsql.core.ledger.losses.fixed_budgets import Fixed, in_force, not_fixed
from dpsql.core.ledger.losses.regions import ALWAYS, Days, LossSpan, Region, bounds, everywhere, inside, on_grid, words
from dpsql.core.ledger.losses.sums import LossSums, parts_of, stretches_of
from dpsql.core.ledger.refusals import CapReached, key, over_budget
from dpsql.core.policy.units import DEFAULT_UNIT, UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, remaining


def settle(entry: Entry, accountant: Accountant) -> Entry:
    """The entry as it is stored: charges rounded up to the grid, text that any file can hold.

    Raises ValueError for an entry no caller should make: no id, no account, a unit whose name no file can hold, a
    charge in another accountant's terms, one that is not what its dearest period loses, or one of a kind that charges
    nobody.
    """
    if not entry.id or not entry.analyst:
        raise ValueError("an entry needs an id and an account")
    if entry.kind not in CHARGING and entry.units:
        raise ValueError(f"an entry of kind {entry.kind} that charges somebody")
    if any(_plain(answer) != answer or not answer for answer in entry.answers):
        raise ValueError("the id of a stored answer is not valid text")
    for unit, loss in (*entry.charges.items(), *entry.received.items()):
        if _plain(unit) != unit:
            raise ValueError(f"the name of unit {unit!r} is not valid text")
        if not in_terms_of(accountant, loss):
            raise ValueError(f"the charge of unit {unit!r} ({loss}) is not in terms of {accountant}")
    settled = replace(
        entry,
        analyst=_plain(entry.analyst),
        charges={unit: loss.on_grid() for unit, loss in entry.charges.items()},
        statement=_plain(entry.statement),
        received={unit: loss.on_grid() for unit, loss in entry.received.items()},
        answers=tuple(entry.answers),
        regions={unit: on_grid(region) for unit, region in entry.regions.items()},
        received_regions={unit: on_grid(region) for unit, region in entry.received_regions.items()},
    )
    require_dearest(settled)
    return settled


def _plain(text: str) -> str:
    # Half of a surrogate pair (from a file name or an argument in another encoding) cannot be written to any file.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class SpentSums(Protocol):
    """What has been spent, of whom: a book, or a ledger."""

    def spent(self, unit: str, analyst: str | None = None, days: Days = ALWAYS) -> PrivacyLoss:
        """As `Ledger.spent`."""
        ...

    def charged(self, unit: str, analyst: str) -> PrivacyLoss:
        """As `Ledger.charged`."""
        ...

    def by_period(self, unit: str, analyst: str | None = None) -> Region:
        """As `Ledger.by_period`."""
        ...

    def fixed(self) -> Fixed:
        """As `Ledger.fixed`."""
        ...

    def failures(self) -> Sequence[Failure]:
        """As `Ledger.failures`."""
        ...


class Book:
    """Totals per unit, of all analysts and of each. Not safe for threads: its ledger holds the lock.

    A unit has one account, whatever it was called: entries count for what their units are called now.
    """

    def __init__(self, accountant: str, names: UnitNames | None = None) -> None:
        """names: of the policy's units; None: any name is a unit of its own. ValueError for an unknown accountant."""
        match = [known for known in ACCOUNTANTS if known == accountant]
        if not match:
            raise ValueError(f"accountant must be one of {', '.join(ACCOUNTANTS)}, got {accountant!r}")
        self.accountant: Accountant = match[0]
        self._names = names
        self._sums: dict[Cap, LossSums] = {}
        self._answers: dict[str, set[str]] = {}
        self._definitions: list[Entry] = []
        self._closings: list[Entry] = []
        self._fixed: dict[Cap, PrivacyLoss] = {}
        self._failures: list[Failure] = []
        self.counters = CounterBook(self.accountant, names)
        """What is known of counters, and which entries about them are taken."""

    def spent(self, unit: str, analyst: str | None = None, days: Days = ALWAYS) -> PrivacyLoss:
        """Total loss of a unit, or what one analyst's account holds, in the dearest period of these days."""
        sums = self._sums.get((unit, None if analyst is None else _plain(analyst)))
        return NO_LOSS if sums is None else sums.spent(*bounds(days))

    def by_period(self, unit: str, analyst: str | None = None) -> Region:
        """What each period of a unit has lost, in total or by what an account holds."""
        sums = self._sums.get((unit, None if analyst is None else _plain(analyst)))
        return () if sums is None else sums.by_day()

    def charged(self, unit: str, analyst: str) -> PrivacyLoss:
        """What the entries of an account have cost a unit, each in its dearest period."""
        sums = self._sums.get((unit, _plain(analyst)))
        return NO_LOSS if sums is None else sums.charged

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds; None: that anybody has paid for."""
        if analyst is None:
            return frozenset().union(*self._answers.values())
        return frozenset(self._answers.get(_plain(analyst), ()))

    def definitions(self) -> Sequence[Entry]:
        """Entries that define something, in the order in which they were added."""
        return tuple(self._definitions)

    def closings(self) -> Sequence[Entry]:
        """Entries that close periods, or open them again, in the order in which they were added."""
        return tuple(self._closings)

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, in the order in which it was added."""
        return tuple(self._failures)

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent: units in order, each one's total before its analysts."""
        ordered = sorted(self._sums, key=lambda cap: (cap[0], cap[1] is not None, cap[1] or ""))
        found = [Account(unit, analyst, self.spent(unit, analyst)) for unit, analyst in ordered]
        return [account for account in found if account.spent != NO_LOSS]

    def fixed(self) -> Fixed:
        """The budgets that are fixed. Of units that are one now, the last that was fixed."""
        return dict(self._fixed)

    def not_fixed(self, entry: Entry, caps: Caps) -> dict[Cap, PrivacyLoss]:
        """What a charge fixes, as the first under these limits."""
        return not_fixed(caps, entry.analyst, self._fixed) if entry.units else {}

    def add(self, entry: Entry, fixed: Fixed | None = None) -> None:
        """Count a settled entry. fixed: what it says of budgets."""
        for (unit, analyst), cap in (fixed or {}).items():
            self._fixed[unit if self._names is None else self._names.present(unit), analyst] = cap
        for cap_of, region in self.counters.add(entry):
            self._sums[cap_of].give_back(region)
        entry = entry if self._names is None else entry.called(self._names)
        for unit in entry.units:
            if unit in entry.received or unit not in entry.regions:
                self._add(entry, unit)
            else:
                most = parts_of(entry.charges[unit])
                stretches = stretches_of(entry.regions[unit], most)
                for analyst in (entry.analyst, None):
                    self._sums_of(unit, analyst).add_stretches(stretches, most)
        if entry.answers:
            self._answers.setdefault(entry.analyst, set()).update(entry.answers)
        if entry.kind is EntryKind.CHARGE:
            return
        if entry.kind is EntryKind.DEFINITION:
            self._definitions.append(entry)
        elif entry.kind in (EntryKind.CLOSE, EntryKind.REOPEN):
            self._closings.append(entry)
        elif entry.kind is EntryKind.FAILURE:
            self._failures.append(read(entry))
        elif entry.kind is EntryKind.LOOK:
            self._failures.clear()

    def _add(self, entry: Entry, unit: str) -> None:
        """What counts in every period, or otherwise in the account than in total."""
        own, total = self._sums_of(unit, entry.analyst), parts_of(entry.charges.get(unit, NO_LOSS))
        most = total if unit not in entry.received else parts_of(entry.in_account(unit))
        if unit in entry.regions or unit in entry.received_regions:
            own.add(entry.account(unit), most)
        else:
            own.add_everywhere(most)
        if unit in entry.regions:
            self._sums_of(unit, None).add(entry.regions[unit], total)
        elif unit in entry.charges:
            self._sums_of(unit, None).add_everywhere(total)

    def _sums_of(self, unit: str, analyst: str | None) -> LossSums:
        found = self._sums.get((unit, analyst))
        if found is None:
            found = self._sums[unit, analyst] = LossSums()
        return found

    @property
    def unnamed(self) -> Sequence[str]:
        """Units that have spent, and of which the policy says neither that it has them nor what became of them.

        *Claim.* While there are none, what was spent of a unit counts for it under its present name. *Why.* Its old
        name is in an entry; so it is the present one, or `former_units` says what that is. *When it would be false.* If
        `former_units` says what is not so; if a table was given to another unit that is there as well: entries do not
        name tables. *Tested by* tests/core/ledger/test_units.py.
        """
        if self._names is None:
            return ()
        spent = {unit for unit, analyst in self._sums if self._sums[unit, analyst].charged != NO_LOSS}
        return sorted(spent - self._names.now - self._names.former.keys())

    def check(self, entry: Entry, caps: Caps) -> None:
        """Raise BudgetExceeded with one diagnostic per cap that a settled entry does not fit into."""
        require_fits(entry, caps, self)


def require_fits(entry: Entry, caps: Caps, book: SpentSums) -> None:
    """As `Book.check`: into what is left of each period that it charges."""
    if caps.failures is not None and entry.charges:  # answers that are stored read no private row
        require_few(caps.failures, entry.analyst, book.failures())
    limits: list[CapReached] = []
    fixed = book.fixed()
    caps = in_force(caps, entry.analyst, fixed)
    account = f"budgets.analysts.{key(entry.analyst)}"
    for unit in entry.units:
        own, known = entry.in_account(unit), entry.received.get(unit, NO_LOSS)
        if caps.per_query is not None:
            name = f"limit per query of analyst {entry.analyst!r}{_on(unit)}"
            limits.append(CapReached("DP405", name, f"{account}.per_query", own, caps.per_query, received=known))
        for setting, ceiling in caps.ceilings.items():
            name = f"ceiling {setting} of this login{_on(unit)}"
            left = ceiling.left_of(unit, partial(book.charged, unit, entry.analyst))
            limits.append(CapReached("DP413", name, setting, own, left, received=known))
        if unit in caps.analyst:
            name, cap = f"budget of analyst {entry.analyst!r}{_on(unit)}", caps.analyst[unit]
            for days, asked, spent in _asked(entry.account(unit), cap, unit, entry.analyst, book):
                limits.append(
                    CapReached(
                        "DP404",
                        name + days,
                        account,
                        asked,
                        cap,
                        spent,
                        known,
                        of=entry.analyst if (unit, entry.analyst) in fixed else "",
                    )
                )
        if unit in caps.total and unit in entry.charges:
            each = unit in caps.by_period
            name, cap = f"{'budget of each period' if each else 'total budget'}{_on(unit, 'of')}", caps.total[unit]
            for days, asked, spent in _asked(entry.charged(unit), cap, unit, None, book):
                limits.append(
                    CapReached(
                        "DP403",
                        name + days,
                        "budgets.each_period" if each else "budgets.total",
                        asked,
                        cap,
                        spent,
                        of="total" if (unit, None) in fixed else "",
                    )
                )
    refusal = over_budget(limits)
    if refusal is not None:
        raise refusal


def _asked(
    region: Region, cap: PrivacyLoss, unit: str, analyst: str | None, book: SpentSums
) -> Iterator[tuple[str, PrivacyLoss, PrivacyLoss]]:
    """Which days are asked for what, in words, and what they have spent: once for each loss, and of days that have some
    of a budget left only those that it does not fit.
    """
    for loss in dict.fromkeys(span.loss for span in region):
        asked: Sequence[LossSpan] = [span for span in region if span.loss == loss]
        spent = largest(book.spent(unit, analyst, (span.first, span.last)) for span in asked)
        if region != everywhere(loss) and loss.within(cap) and not loss.within(remaining(cap, spent)):
            found = inside(book.by_period(unit, analyst), tuple(asked))
            asked = [each for each in found if not loss.within(remaining(cap, each.loss))]
        days = asked[0].first, asked[-1].last
        among = " (some of them)" if any(a.bounds[1] != b.bounds[0] for a, b in pairwise(asked)) else ""
        yield ("" if days == ALWAYS else f", {words(days)}{among}"), loss, spent


def _on(unit: str, word: str = "on") -> str:
    """` on unit 'patient'`; nothing where the policy gives its one unit no name."""
    return "" if unit == DEFAULT_UNIT else f" {word} unit {unit!r}"


def same_request(earlier: Receipt, settled: Entry) -> Receipt:
    """The receipt of an entry reserved before, for its second reservation.

    Raises ValueError if the id belongs to another request: a small charge must not pay for a large one.
    """
    if earlier.entry != settled:
        raise ValueError(f"the id {settled.id!r} already belongs to another entry")
    return earlier
