"""What the ledgers share that keep a chain to which others add: charging, reading on, the head, acceptance.

*Claim.* A receipt is handed out once its entry is in the chain, was checked there against all that came before, and the
head remembers it; a ledger that lacks what its head remembers is refused, and so is one that holds what only a later
version knows. *Why.* `_charge` runs inside `_turn`, in which nobody else adds: there it reads on to the end of the
chain, each hash checked, compares the head, decides in exact arithmetic, and adds. What was read is counted at once, so
that totals are stored nowhere and nothing can disagree with the chain. *When it would be false.* If two were in `_turn`
at one time, or `Entries.following` left out an entry: each ledger says why not. *Tested by*
tests/core/ledger/test_ledger_contract.py, tests/core/ledger/, tests/engines_elsewhere/postgres/ledger/.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import ClassVar, Protocol, Self, TypeVar

from dpsql.core.ledger.chain.acceptance import acceptance
from dpsql.core.ledger.chain.hash_chain import BrokenChain, Identity, LedgerRow, Point
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.counters import CounterState
from dpsql.core.ledger.ledger import Account, Caps, Entry, Failure, Receipt
from dpsql.core.ledger.losses.fixed_budgets import Fixed
from dpsql.core.ledger.losses.regions import ALWAYS, Days, Region
from dpsql.core.ledger.privacy_filter import Book, same_request, settle
from dpsql.core.ledger.refusals import after_commit, kept_back, unnamed_units, unusable
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen

Result = TypeVar("Result")


class Entries(Protocol):
    """The stored chain, as one look at it or one transaction sees it."""

    def following(self, last: Point) -> Iterator[LedgerRow]:
        """The rows behind a point of the chain. Raises CannotOpen (DP407): it is not there."""
        ...

    def find(self, entry_id: str) -> LedgerRow | None:
        """The row of an id."""
        ...

    def hash_at(self, sequence: int) -> str | None:
        """The hash of an entry; None if there is none."""
        ...

    def add(self, row: LedgerRow) -> bool:
        """Add a row behind the last one; False if its id is there already."""
        ...

    def check(self) -> None:
        """Raise CannotOpen (DP407) unless what holds the rows is as it was made."""
        ...


class BookLedger(ABC):
    """What every ledger answers from its book."""

    _identity: Identity

    @abstractmethod
    def _booked(self, action: Callable[[Book], Result]) -> Result:
        """What the book says, once it knows all entries."""

    def spent(self, unit: str, analyst: str | None = None, days: Days = ALWAYS) -> PrivacyLoss:
        """See `Ledger.spent`; other processes' charges are included."""
        return self._booked(lambda book: book.spent(unit, analyst, days))

    def by_period(self, unit: str, analyst: str | None = None) -> Region:
        """See `Ledger.by_period`."""
        return self._booked(lambda book: book.by_period(unit, analyst))

    def charged(self, unit: str, analyst: str) -> PrivacyLoss:
        """See `Ledger.charged`."""
        return self._booked(lambda book: book.charged(unit, analyst))

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds, through other processes too; of all accounts for None."""
        return self._booked(lambda book: book.received(analyst))

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        return self._booked(lambda book: book.accounts())

    def fixed(self) -> Fixed:
        """The budgets that are fixed (losses/fixed_budgets.py)."""
        return self._booked(lambda book: book.fixed())

    def definitions(self) -> Sequence[Entry]:
        """The entries that define something, of other processes too, oldest first."""
        return self._booked(lambda book: book.definitions())

    def closings(self) -> Sequence[Entry]:
        """The entries that close periods, or open them again, of other processes too, oldest first."""
        return self._booked(lambda book: book.closings())

    def counters(self) -> Sequence[CounterState]:
        """The counters of this ledger (counters.py), as other processes left them, oldest first."""
        return self._booked(lambda book: book.counters.states)

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, oldest first."""
        return self._booked(lambda book: book.failures())

    @property
    def salt(self) -> int:
        """Secret 62-bit number made once per ledger; fixes truncation order."""
        return self._identity.salt


class ChainedLedger(BookLedger):
    """The Ledger contract over `Entries`. One object may serve several threads of one process."""

    _RESTORE: ClassVar[tuple[str, ...]]
    """The repair of a damaged ledger."""
    _UNSEEN: ClassVar[tuple[str, ...]]
    """What is said of one with entries whose head is missing, and the repairs."""
    _OLDER: ClassVar[tuple[str, ...]]
    """The repairs for one that is behind its head."""
    _ANOTHER: ClassVar[str]
    """What another policy's ledger may be instead."""
    _FORKED: ClassVar[str] = "connect again in every process"

    def __init__(self, path: object, head: Head, identity: Identity, units: UnitNames | None) -> None:
        self._place, self._head, self._identity, self._units = path, head, identity, units
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._open = True
        self._start_over()

    # What each of them does in its own way --------------------------------------------------------------------------

    @abstractmethod
    def _reading(self, action: Callable[[Entries], Result]) -> Result:
        """Do something that changes nothing, once what was added is counted. Raises CannotOpen (DP407)."""

    @abstractmethod
    def _turn(self, action: Callable[[Entries], Result]) -> Result:
        """Do something in one transaction while nobody else adds; taken back if it raises."""

    @abstractmethod
    def _durable(self, at_least: Point) -> Point:
        """A point of the chain up to which everything is on the disk, `at_least` or a later one."""

    # The contract ---------------------------------------------------------------------------------------------------

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`: once this returns, the charge survives `kill -9` and power cuts.

        Raises BudgetExceeded (DP403, DP404, DP405) and CannotOpen (DP407); ValueError for an entry in another
        accountant's terms or an id used for something else.
        """
        settled = settle(entry, self._book.accountant)
        self._head.check_writable()
        with self._lock:
            self._check_alive()
            self._refuse_what_never_fits(settled, caps)
            receipt = self._added(settled, lambda entries: self._charge(entries, settled, caps))
        return self._remembered(receipt)

    def fix(self, entry: Entry, fixing: Callable[[Fixed], Fixed]) -> Receipt:
        """See `Ledger.fix`. Raises CannotOpen (DP407), and what `fixing` raises."""
        settled = settle(entry, self._book.accountant)
        self._head.check_writable()

        def fixed(entries: Entries) -> Receipt:
            self._catch_up(entries)
            self._check_head(entries)
            found = self._find(entries, settled)
            return found or self._append(entries, settled, fixing(self._book.fixed()))

        with self._lock:
            self._check_alive()
            receipt = self._added(settled, fixed)
        return self._remembered(receipt)

    def _remembered(self, receipt: Receipt) -> Receipt:
        """The receipt of what is committed, and seen by everybody, once the head remembers it."""
        try:
            self._head.advance(receipt.sequence, lambda: self._durable(Point(receipt.sequence, receipt.hash)))
            self._check_alive()
        except CannotOpen as failure:
            raise after_commit(failure) from None
        return receipt

    def finish(self) -> None:
        """See `Ledger.finish`: an older copy is recognised from now on, after a power cut, too."""
        try:
            self._head.finish()
        except CannotOpen as failure:
            raise kept_back(failure) from None

    def history(self, after: Receipt | None = None, most: int | None = None) -> Sequence[Receipt]:
        """See `Ledger.history`."""
        last = self._identity.origin if after is None else Point(after.sequence, after.hash)
        return self._reading(lambda entries: list(islice(self._verified(entries, last), most)))

    def find(self, ids: Collection[str]) -> Sequence[Receipt]:
        """See `Ledger.find`."""
        found = self._reading(lambda entries: [self._stored(entries, id) for id in ids])
        return sorted((receipt for receipt in found if receipt is not None), key=lambda receipt: receipt.sequence)

    def verify(self) -> int:
        """Check what holds the chain, and the whole chain again, from the first entry; the number of entries.

        Raises CannotOpen (DP407) naming the first entry that is missing or was changed.
        """

        def verified(entries: Entries) -> int:
            entries.check()
            self._start_over()
            self._catch_up(entries)
            self._check_head(entries)
            return self._tip.sequence

        return self._reading(verified)

    @abstractmethod
    def close(self) -> None:
        """Let go of what holds the chain. Closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Charging -------------------------------------------------------------------------------------------------------

    def _added(self, settled: Entry, adding: Callable[[Entries], Receipt]) -> Receipt:
        return self._turn(adding)

    def _charge(self, entries: Entries, settled: Entry, caps: Caps) -> Receipt:
        self._catch_up(entries)
        self._check_head(entries)
        if (receipt := self._found_or_fits(entries, settled, caps)) is not None:
            return receipt
        return self._append(entries, settled, self._book.not_fixed(settled, caps))

    def _append(self, entries: Entries, settled: Entry, fixed: Fixed) -> Receipt:
        row = LedgerRow.after(self._tip, settled, datetime.now(UTC).isoformat(), fixed)
        if entries.add(row):
            return row.receipt()
        if (receipt := self._find(entries, settled)) is None:
            raise unusable(self._place, "an entry could not be added", *self._RESTORE)
        return receipt

    def _refuse_what_never_fits(self, settled: Entry, caps: Caps) -> None:
        """What does not fit now is refused without waiting for its turn; what is known here may be asked first."""
        try:
            self._book.check(settled, caps)
        except BudgetExceeded:
            self._reading(lambda entries: self._found_or_fits(entries, settled, caps))

    def _found_or_fits(self, entries: Entries, settled: Entry, caps: Caps) -> Receipt | None:
        """What was charged for this id before, where the entry does not fit any more; None if it fits."""
        try:
            self._check_units()
            self._book.counters.require(settled)
            self._book.check(settled, caps)
        except (BudgetExceeded, CannotOpen):
            if (receipt := self._find(entries, settled)) is None:
                raise
            return receipt
        return None

    def _find(self, entries: Entries, settled: Entry) -> Receipt | None:
        """What was charged for this id before. ValueError if it was for something else."""
        found = self._stored(entries, settled.id)
        return None if found is None else same_request(found, settled)

    def _stored(self, entries: Entries, id: str) -> Receipt | None:
        row = entries.find(id)
        if row is None:
            return None
        return self._follows(row, Point(row.sequence - 1, self._hash_at(entries, row.sequence - 1) or ""))

    # The chain ------------------------------------------------------------------------------------------------------

    def _start_over(self) -> None:
        # All or nothing, whenever Ctrl-C comes: an empty book at a late tip would have forgotten what was spent.
        self._book, self._tip = Book(self._identity.accountant, self._units), self._identity.origin
        self._agreed: Point | None = None  # the last head that is a point of this chain

    def _booked(self, action: Callable[[Book], Result]) -> Result:
        return self._reading(lambda _: action(self._book))

    def _catch_up(self, entries: Entries) -> None:
        """Verify and count what was appended since the last look, and that the last look still holds."""
        try:
            for receipt in self._verified(entries, self._tip):
                self._book.add(receipt.entry, receipt.fixed)
                self._tip = Point(receipt.sequence, receipt.hash)
        except CannotOpen:
            raise  # what was counted was there: a chain that begins elsewhere is not read anew
        except BaseException:
            self._start_over()  # Ctrl-C: an entry may be half counted
            raise

    def _verified(self, entries: Entries, last: Point) -> Iterator[Receipt]:
        for row in entries.following(last):
            yield self._follows(row, last)
            last = row.point

    def _follows(self, row: LedgerRow, last: Point) -> Receipt:
        try:
            return row.follows(last)
        except BrokenChain as broken:
            raise unusable(self._place, str(broken), *self._RESTORE) from None

    # The head -------------------------------------------------------------------------------------------------------

    def _check_head(self, entries: Entries) -> None:
        """Refuse a ledger that is behind its head, or of another chain. The caller has caught up before."""
        known = self._head.read()
        if known is None:
            if self._tip.sequence and self._head.read() is None:
                what, *help = self._UNSEEN
                raise self._lost(what, *help)
            return
        if known in (self._agreed, self._tip) or known.sequence == self._tip.sequence == 0:
            return
        if known.sequence > self._tip.sequence:
            self._catch_up(entries)
        if known.sequence > self._tip.sequence:
            what = f"it ends at entry {self._tip.sequence}, but had {known.sequence}: this is an older copy"
            raise self._lost(what, *self._OLDER)
        if known.hash != self._hash_at(entries, known.sequence):
            what = f"entry {known.sequence} is not the one that was written: this is another ledger"
            raise self._lost(what, *self._OLDER)
        self._agreed = known

    def _accept(self, entries: Entries) -> None:
        """Add the entry that says that the ledger was accepted, unless its head agrees with it."""
        self._catch_up(entries)
        entry = acceptance(self._head, self._tip, lambda number: self._hash_at(entries, number))
        if entry is not None:
            entries.add(LedgerRow.after(self._tip, entry, datetime.now(UTC).isoformat()))

    def _accepted(self) -> Point:
        """Accept the ledger as it stands; the point that the head is to remember."""
        self._turn(self._accept)
        return self._durable(self._reading(lambda _: self._tip))

    def _hash_at(self, entries: Entries, sequence: int) -> str | None:
        return entries.hash_at(sequence) if sequence else self._identity.origin.hash

    def _lost(self, what: str, *help: str) -> CannotOpen:
        return unusable(self._place, f"{what} (head: {self._head.path})", *help)

    # Access ---------------------------------------------------------------------------------------------------------

    def _checked(self, dataset: str, accountant: str) -> Self:
        """This ledger, once it is known to be the policy's, and to have lost nothing."""
        own = self._identity
        if own.dataset != dataset:
            raise unusable(
                self._place,
                f"it belongs to the policy {own.dataset!r}, not to {dataset!r}",
                f"use the ledger of this policy, or {self._ANOTHER}: `ledger:` in the policy, or --ledger",
            )
        if own.accountant != accountant:
            raise unusable(
                self._place,
                f"it counts in {own.accountant}, and the policy says {accountant}",
                f"custodian: set  privacy.accountant: {own.accountant}  or start a new ledger, deciding what the old "
                "one's spending means for it",
            )
        self._reading(lambda entries: (self._check_head(entries), self._check_units()))
        return self

    def _check_units(self) -> None:
        if self._book.unnamed:
            raise unnamed_units(self._place, self._book.unnamed)

    def _check_alive(self) -> None:
        if not self._open:
            raise unusable(self._place, "it is closed", "connect again")
        if os.getpid() != self._process:
            raise unusable(self._place, "it was opened by another process", self._FORKED)
