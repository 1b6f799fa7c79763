"""The ledger for many gateways: a database of PostgreSQL, append-only, hash-chained.

*Claim.* What a receipt was given for stays charged, whatever is killed or cut off and whenever; no two gateways can
together exceed a cap; an older or altered copy of the database is refused by every gateway that has seen more. *Why.*
One row is locked `FOR UPDATE` by whoever charges; under this lock the totals are brought up to date from the chain
itself, the charge is checked in exact arithmetic, and one statement adds the entry and moves the row to it. What is
committed is durable (postgres_server.py). Where the answer to COMMIT is lost, the entry's id is looked up before
anything runs, under the same lock: it waits for the transaction that was lost to end. Then this gateway's head follows
(head.py), and only then the receipt is handed out. *When it would be false.* If the server's disk acknowledges writes
that it does not make; if somebody replaces both the database and the heads of all gateways; if a gateway accepts
(`accept_head`) a database that has lost entries. *Tested by* tests/engines_elsewhere/postgres/ledger/.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self, TypeVar

from dpsql.core.ledger import postgres_chain as chain
from dpsql.core.ledger import postgres_schema as schema
from dpsql.core.ledger.acceptance import acceptance
from dpsql.core.ledger.hash_chain import BrokenChain, Identity, Point, Row
from dpsql.core.ledger.head import Head
from dpsql.core.ledger.ledger import Account, Caps, Entry, Failure, Receipt
from dpsql.core.ledger.postgres_server import Server, Session, Unknown, refuse_the_datas
from dpsql.core.ledger.privacy_filter import Book, same_request, settle
from dpsql.core.ledger.refusals import after_commit, kept_back, perhaps_charged, unnamed_units, unusable
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen

_Result = TypeVar("_Result")
_PAUSE: Final = 0.1
"""Seconds between two attempts to reach a server that went away."""

_NEW_GATEWAY = (
    "custodian, on a gateway that is new or was moved: see that it has the entries that the others have "
    "(dpsql budget POLICY --history), and accept it here:  dpsql budget POLICY --accept-head",
    "on any other: restore the newest copy of the database, and the head file",
)
_OLDER = (
    "custodian: restore the newest copy of the database",
    "if later entries are lost, accept it as it stands on every gateway, forgetting what was spent since:  "
    "dpsql budget POLICY --accept-head",
)


class PostgresLedger:
    """The Ledger contract over one database. Make it with `open`; one object may serve several threads."""

    def __init__(self, server: Server, head: Head, owner: Identity, units: UnitNames | None = None) -> None:
        """For `open`, `look` and `accept_head` only: of a database that is known to be a ledger."""
        self.path = server.url
        self._server, self._head, self._identity, self._units = server, head, owner, units
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._open = True
        self._start_over()

    @classmethod
    def open(
        cls,
        url: str,
        head_path: str | Path,
        dataset: str,
        accountant: str,
        *,
        units: UnitNames | None = None,
        data: str | None = None,
        timeout: float = 10.0,
    ) -> Self:
        """Open the ledger in a database, or make it; verify its whole chain and that it has lost nothing.

        head_path: where this gateway remembers the last hash that it has seen. dataset: the policy's name; a database
        serves one. accountant: `pure_dp`, `approx_dp` or `zcdp`. units: the policy's, and what they were called.
        data: the URL of the database that holds the data; it is refused as the ledger's. timeout: see `Server`.
        Raises CannotOpen (DP407); ValueError for an unknown accountant.
        """
        Book(accountant)
        head = Head(Path(head_path), timeout)
        server = Server(url, timeout)
        head.check_writable()
        try:
            if data is not None:
                refuse_the_datas(server, data)
            schema.found(server, Identity.new(dataset, accountant), head)
            ledger = cls._checked(server, head, dataset, accountant, units)
            head.advance(ledger._tip.sequence, lambda: ledger._tip)
            head.finish()
        except BaseException:
            server.close()
            raise
        return ledger

    @classmethod
    def look(
        cls,
        url: str,
        head_path: str | Path,
        dataset: str,
        accountant: str,
        *,
        units: UnitNames | None = None,
        timeout: float = 10.0,
    ) -> Self | None:
        """Open a ledger to see what is spent: nothing is made or changed, here or there. None if there is none.

        Raises CannotOpen (DP407).
        """
        head = Head(Path(head_path), timeout)
        server = Server(url, timeout)
        try:
            known = head.read()
            if server.read(schema.is_founded) or (known is not None and known.sequence):
                return cls._checked(server, head, dataset, accountant, units)
        except BaseException:
            server.close()
            raise
        server.close()
        return None

    @classmethod
    def _checked(cls, server: Server, head: Head, dataset: str, accountant: str, units: UnitNames | None) -> Self:
        server.read(lambda session: schema.check(session, server.url))
        ledger = cls(server, head, server.read(lambda session: schema.read_identity(session, server.url)), units)
        schema.check_owner(server.url, ledger._identity, dataset, accountant)
        ledger._reading(lambda session: (ledger._check_head(session), ledger._check_units()))
        return ledger

    # The contract ---------------------------------------------------------------------------------------------------

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`: once this returns, the charge survives whatever happens to gateways and server.

        Raises BudgetExceeded, CannotOpen (DP407); ValueError: another accountant's terms, an id used otherwise.
        """
        settled = settle(entry, self._book.accountant)
        self._head.check_writable()
        with self._lock:
            self._check_alive()
            self._refuse_what_never_fits(settled, caps)
            try:
                receipt = self._server.transaction(lambda session: self._charge(session, settled, caps))
            except Unknown:
                receipt = self._looked_up(settled)
        try:
            self._head.advance(receipt.sequence, lambda: Point(receipt.sequence, receipt.hash))
        except CannotOpen as failure:
            raise after_commit(failure) from None
        return receipt

    def finish(self) -> None:
        """See `Ledger.finish`: an older copy is recognised from now on, after a power cut, too."""
        try:
            self._head.finish()
        except CannotOpen as failure:
            raise kept_back(failure) from None

    def spent(self, unit: str, analyst: str | None = None) -> PrivacyLoss:
        """Total loss of a unit, or what one analyst's account holds, other gateways' charges included."""
        return self._reading(lambda _: self._book.spent(unit, analyst))

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds, through other gateways too; of all accounts for None."""
        return self._reading(lambda _: self._book.received(analyst))

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        return self._reading(lambda _: self._book.accounts())

    def history(self, after: Receipt | None = None) -> Sequence[Receipt]:
        """All entries, or those behind one of this ledger, oldest first."""
        last = self._identity.origin if after is None else Point(after.sequence, after.hash)
        return self._reading(lambda session: self._receipts(session, last))

    def definitions(self) -> Sequence[Entry]:
        """The entries that define something, of other gateways too, oldest first."""
        return self._reading(lambda _: self._book.definitions())

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, oldest first."""
        return self._reading(lambda _: self._book.failures())

    @property
    def salt(self) -> int:
        """Secret 62-bit number made once per ledger; fixes truncation order."""
        return self._identity.salt

    def verify(self) -> int:
        """Check the tables and the whole chain again, from the first entry; returns the number of entries.

        Raises CannotOpen (DP407) naming the first entry that is missing or was changed.
        """

        def verified(session: Session) -> int:
            schema.check(session, self.path)
            self._start_over()
            self._catch_up(session)
            self._check_head(session)
            return self._tip.sequence

        return self._reading(verified)

    def close(self) -> None:
        """Let go of the server. Closing twice is harmless."""
        with self._lock:
            self._open = False
            self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Charging -------------------------------------------------------------------------------------------------------

    def _charge(self, session: Session, settled: Entry, caps: Caps) -> Receipt:
        self._take_turn(session)
        self._check_head(session)
        if (receipt := self._found_or_fits(session, settled, caps)) is not None:
            return receipt
        row = Row.after(self._tip, settled, datetime.now(UTC).isoformat())
        if chain.add(session, row):
            return row.receipt()
        if (receipt := self._find(session, settled)) is None:
            raise unusable(self.path, "an entry could not be added", *schema.RESTORE)
        return receipt

    def _refuse_what_never_fits(self, settled: Entry, caps: Caps) -> None:
        """What does not fit into what is known here, and not now, need not wait for its turn."""
        try:
            self._book.check(settled, caps)
        except BudgetExceeded:
            self._reading(lambda session: self._found_or_fits(session, settled, caps))

    def _found_or_fits(self, session: Session, settled: Entry, caps: Caps) -> Receipt | None:
        """What was charged for this id before, where the entry does not fit any more; None if it fits."""
        self._check_units()
        try:
            self._book.check(settled, caps)
        except BudgetExceeded:
            if (receipt := self._find(session, settled)) is None:
                raise
            return receipt
        return None

    def _take_turn(self, session: Session) -> None:
        chain.take_turn(session, self.path)
        self._catch_up(session)

    def _looked_up(self, settled: Entry) -> Receipt:
        """What a commit came to whose answer was lost. Raises CannotOpen (DP407): to nothing, or nobody can tell."""

        def found(session: Session) -> Receipt | None:
            self._take_turn(session)
            self._check_head(session)
            return self._find(session, settled)

        deadline = time.monotonic() + self._server.timeout
        while True:
            try:
                receipt = self._server.transaction(found)
                break
            except (CannotOpen, Unknown):
                if time.monotonic() > deadline:
                    raise perhaps_charged(self.path) from None
            time.sleep(_PAUSE)
        if receipt is None:
            raise unusable(self.path, "the connection was lost, and the charge was not made", "ask again")
        return receipt

    def _find(self, session: Session, settled: Entry) -> Receipt | None:
        """What was charged for this id before. ValueError if it was for something else."""
        if (row := chain.find(session, settled.id)) is None:
            return None
        before = Point(row.sequence - 1, self._hash_at(session, row.sequence - 1) or "")
        return same_request(self._verified(row, before), settled)

    # The chain ------------------------------------------------------------------------------------------------------

    def _start_over(self) -> None:
        # Both or neither, whenever Ctrl-C comes: an empty book at a late tip would have forgotten what was spent.
        self._book, self._tip = Book(self._identity.accountant, self._units), self._identity.origin
        self._agreed: Point | None = None  # the last head that is a point of this chain

    def _catch_up(self, session: Session) -> None:
        """Verify and count what was appended since the last look, and that the last look still holds."""
        try:
            for row in chain.following(session, self.path, self._tip):
                self._book.add(self._verified(row, self._tip).entry)
                self._tip = row.point
        except BaseException:
            self._start_over()  # Ctrl-C: an entry may be half counted
            raise

    def _verified(self, row: Row, last: Point) -> Receipt:
        try:
            return row.follows(last)
        except BrokenChain as broken:
            raise unusable(self.path, str(broken), *schema.RESTORE) from None

    def _receipts(self, session: Session, last: Point) -> list[Receipt]:
        receipts = []
        for row in chain.following(session, self.path, last):
            receipts.append(self._verified(row, last))
            last = row.point
        return receipts

    # The head -------------------------------------------------------------------------------------------------------

    def _check_head(self, session: Session) -> None:
        """Refuse a ledger that is behind this gateway's head, or of another chain. The caller has caught up before."""
        if (known := self._head.read()) is None:
            if self._tip.sequence and self._head.read() is None:
                raise self._lost("this gateway has not seen it before: its head is missing", *_NEW_GATEWAY)
            return
        if known in (self._agreed, self._tip) or known.sequence == self._tip.sequence == 0:
            return
        if known.sequence > self._tip.sequence:
            self._catch_up(session)
        if known.sequence > self._tip.sequence:
            what = f"it ends at entry {self._tip.sequence}, but had {known.sequence}: this is an older copy"
            raise self._lost(what, *_OLDER)
        if known.hash != self._hash_at(session, known.sequence):
            what = f"entry {known.sequence} is not the one that was written: this is another ledger"
            raise self._lost(what, *_OLDER)
        self._agreed = known

    def _accept(self, session: Session) -> None:
        """Add the entry that says that the ledger was accepted, unless this gateway's head agrees with it."""
        self._take_turn(session)
        if (entry := acceptance(self._head, self._tip, lambda number: self._hash_at(session, number))) is not None:
            chain.add(session, Row.after(self._tip, entry, datetime.now(UTC).isoformat()))

    def _hash_at(self, session: Session, sequence: int) -> str | None:
        return self._identity.origin.hash if sequence == 0 else chain.hash_at(session, sequence)

    def _lost(self, what: str, *help: str) -> CannotOpen:
        return unusable(self.path, f"{what} (head: {self._head.path})", *help)

    # Access ---------------------------------------------------------------------------------------------------------

    def _check_units(self) -> None:
        if self._book.unnamed:
            raise unnamed_units(self.path, self._book.unnamed)

    def _check_alive(self) -> None:
        if not self._open:
            raise unusable(self.path, "it is closed", "connect again")
        if os.getpid() != self._process:
            raise unusable(self.path, "it was opened by another process", "connect again in every process")

    def _reading(self, action: Callable[[Session], _Result]) -> _Result:
        def caught_up(session: Session) -> _Result:
            self._catch_up(session)
            return action(session)

        with self._lock:
            self._check_alive()
            return self._server.read(caught_up)


def server_of(ledger: PostgresLedger) -> Server:
    """The database that a ledger is in, for what is kept beside it."""
    return ledger._server


def accept_head(url: str, head_path: str | Path, *, timeout: float = 10.0) -> None:
    """Custodian only: declare the database, as it now stands, to be the true ledger for this gateway.

    For a gateway that is new, and the repair after a restored backup when nothing better can be restored; an entry says
    so. The chain is verified first; if there is no ledger, the head is removed. Raises CannotOpen (DP407).
    """
    head, server = Head(Path(head_path), timeout), Server(url, timeout)
    try:
        if not server.read(schema.is_founded):
            head.forget()
            return
        server.read(lambda session: schema.check(session, url))
        ledger = PostgresLedger(server, head, server.read(lambda session: schema.read_identity(session, url)))
        server.transaction(ledger._accept)
        head.put(ledger._reading(lambda _: ledger._tip))
    finally:
        server.close()


def is_founded(url: str, timeout: float = 10.0) -> bool:
    """Whether there is a ledger in a database. Raises CannotOpen (DP407)."""
    server = Server(url, timeout)
    try:
        return server.read(schema.is_founded)
    finally:
        server.close()
