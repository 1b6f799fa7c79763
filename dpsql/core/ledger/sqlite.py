"""The durable ledger: one SQLite file, append-only, hash-chained, safe for many processes and threads.

*Claim.* What a receipt was given for stays charged, whatever is killed and whenever; no two processes can together
exceed a cap; an older or altered copy of the file is refused. *Why.* `BEGIN IMMEDIATE` admits one writer; inside it the
totals are brought up to date from the chain itself (they are stored nowhere else, so nothing can disagree with it), the
charge is checked in exact arithmetic and inserted. After COMMIT the log is flushed to the disk, then the head is
written (head.py), and only then the receipt is handed out; one flush and one head serve all who wait (group commit).
The head's own flush goes on while the data is read, and `finish` waits for it before anything is shown. Others may see
a charge before it is durable: they count it, and their own receipt waits for a flush that covers both, for the log is
written in order. *When it would be false.* If the disk acknowledges writes it does not make; if someone replaces both
the ledger and its head; on a network file system, where WAL does not work; if other code of the process opens and
closes the file (sqlite_connections.py). *Tested by* tests/core/ledger/test_ledger_contract.py, tests/core/ledger/.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.acceptance import acceptance
from dpsql.core.ledger.durable_files import flush_file
from dpsql.core.ledger.hash_chain import BrokenChain, Identity, Point, Row
from dpsql.core.ledger.head import Head
from dpsql.core.ledger.ledger import Account, Caps, Entry, Failure, Receipt
from dpsql.core.ledger.privacy_filter import Book, same_request, settle
from dpsql.core.ledger.refusals import ACCEPTANCE_HELP, after_commit, kept_back, unnamed_units, unusable
from dpsql.core.ledger.sqlite_connections import FileId, file_id, in_transaction
from dpsql.core.ledger.sqlite_file import connect, look_at, place_of, translated, writable
from dpsql.core.ledger.sqlite_founding import another_owner, check_and_upgrade, forget_if_empty, make_if_empty
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen

_Result = TypeVar("_Result")
_COLUMNS = "sequence, id, analyst, charges, plan_hash, policy_hash, statement, reserved_at, hash, received, answers"


class SqliteLedger:
    """The Ledger contract over one file. Make it with `open`; one object may serve several threads of one process."""

    def __init__(
        self, path: Path, head: Head, connection: sqlite3.Connection, timeout: float, units: UnitNames | None = None
    ) -> None:
        """For `open` and `accept_head` only: takes over an open connection whose file is known to be a ledger."""
        self.path = path
        self._head = head
        self._connection = connection
        self._timeout = timeout
        self._units = units
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._log = Path(f"{path}-wal")
        self._names = [f"{path}{end}" for end in ("", "-wal")]
        self._open = True
        self._identity = schema.read_identity(connection, path)
        self._files = self._files_now()
        self._start_over()

    @classmethod
    def open(
        cls,
        path: str | Path,
        head_path: str | Path,
        dataset: str,
        accountant: str,
        *,
        units: UnitNames | None = None,
        timeout: float = 10.0,
    ) -> Self:
        """Open the ledger at `path`, or make it; verify its whole chain and that it has lost nothing.

        head_path: where the last hash is kept, best on another disk or account.
        dataset: the policy's name; a ledger serves one. accountant: `pure_dp`, `approx_dp` or `zcdp`.
        units: the policy's, and what they were called; None: any name is a unit.
        timeout: seconds to wait for other processes. Raises CannotOpen (DP407); ValueError for an unknown accountant.
        The time to open grows with the number of entries, about 25 µs each (benchmarks/ledger.py).
        """
        Book(accountant)
        where, head = place_of(path), Head(Path(head_path), timeout)
        head.check_writable()
        connection = connect(where, timeout)
        try:
            with translated(where, timeout):
                make_if_empty(connection, where, head, Identity.new(dataset, accountant), timeout)
                ledger = cls(where, head, connection, timeout, units)
                ledger._check_owner(dataset, accountant)
                ledger._catch_up()
                ledger._check_head()
                ledger._check_units()
                head.advance(ledger._tip.sequence, ledger._durable)
                head.finish()
        except BaseException:
            connection.close()
            raise
        return ledger

    @classmethod
    def look(
        cls,
        path: str | Path,
        head_path: str | Path,
        dataset: str,
        accountant: str,
        *,
        units: UnitNames | None = None,
        timeout: float = 10.0,
    ) -> Self:
        """Open a ledger to see what is spent: as `open`, but where ledger or head cannot be written, only to read.

        Nothing is made or changed then, so an older format is refused, and every `reserve`. Raises CannotOpen (DP407).
        """
        where, head = place_of(path), Head(Path(head_path), timeout)
        if writable(where) and (writable(head.path) or not head.path.parent.exists()):
            return cls.open(path, head_path, dataset, accountant, units=units, timeout=timeout)
        connection = look_at(where, timeout)
        try:
            with translated(where, timeout):
                if schema.is_older(connection):
                    raise unusable(
                        where,
                        "an older dpsql wrote it, and it cannot be brought up to date here: it is not writable",
                        "custodian: look at it once where it can be written",
                    )
                schema.check(connection, where)
                ledger = cls(where, head, connection, timeout, units)
                ledger._check_owner(dataset, accountant)
                ledger._catch_up()
                ledger._check_head()
                ledger._check_units()
        except BaseException:
            connection.close()
            raise
        return ledger

    # The contract ---------------------------------------------------------------------------------------------------

    def reserve(self, entry: Entry, caps: Caps) -> Receipt:
        """See `Ledger.reserve`: once this returns, the charge survives `kill -9` and power cuts.

        Raises BudgetExceeded, CannotOpen (DP407); ValueError: another accountant's terms, an id used otherwise.
        """
        settled = settle(entry, self._book.accountant)
        self._head.check_writable()
        # What does not fit now will not in a moment, and such a refusal need not wait for its turn.
        self._reading(lambda: self._found_or_fits(settled, caps))
        receipt = self._writing(lambda: self._charge(settled, caps))
        # Committed, and seen by everybody; not yet on the disk.
        try:
            self._head.advance(receipt.sequence, self._durable)
            self._check_alive()  # the log that was flushed is the one that SQLite wrote to
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
        """Total loss of a unit, or what one analyst's account holds, other processes' charges included."""
        return self._reading(lambda: self._book.spent(unit, analyst))

    def received(self, analyst: str | None = None) -> frozenset[str]:
        """Ids of the stored answers that an account holds, through other processes too; of all accounts for None."""
        return self._reading(lambda: self._book.received(analyst))

    def accounts(self) -> Sequence[Account]:
        """Every account with anything spent."""
        return self._reading(lambda: self._book.accounts())

    def history(self, after: Receipt | None = None) -> Sequence[Receipt]:
        """All entries, or those behind one of this ledger, oldest first."""
        last = self._identity.origin if after is None else Point(after.sequence, after.hash)
        return self._reading(lambda: self._receipts(last))

    def definitions(self) -> Sequence[Entry]:
        """The entries that define something, of other processes too, oldest first."""
        return self._reading(lambda: self._book.definitions())

    def failures(self) -> Sequence[Failure]:
        """What failed since a custodian looked last, oldest first."""
        return self._reading(lambda: self._book.failures())

    @property
    def salt(self) -> int:
        """Secret 62-bit number made once per ledger; fixes truncation order."""
        return self._identity.salt

    def verify(self) -> int:
        """Check the file and the whole chain again, from the first entry; returns the number of entries.

        Raises CannotOpen (DP407) naming the first entry that is missing or was changed.
        """
        return self._reading(self._verify)

    def close(self) -> None:
        """Release the file. Closing twice is harmless."""
        with self._lock:
            self._open = False
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The chain ------------------------------------------------------------------------------------------------------

    def _start_over(self) -> None:
        # Both or neither, whenever Ctrl-C comes: an empty book at a late tip would have forgotten what was spent.
        self._book, self._tip = Book(self._identity.accountant, self._units), self._identity.origin

    def _rows(self, first: int) -> Iterator[Row]:
        query = f"SELECT {_COLUMNS} FROM entries WHERE sequence >= ? ORDER BY sequence"
        return (Row(*columns) for columns in self._connection.execute(query, (first,)))

    def _catch_up(self) -> None:
        """Verify and count what was appended since the last look, and that the last look still holds."""
        rows = self._rows(self._tip.sequence)
        if self._tip.sequence:
            last = next(rows, None)
            if last is None or last.point != self._tip:
                raise unusable(self.path, f"entry {self._tip.sequence} was removed or replaced", *schema.RESTORE)
        try:
            for row in rows:
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

    def _receipts(self, last: Point) -> list[Receipt]:
        receipts = []
        for row in self._rows(last.sequence + 1):
            receipts.append(self._verified(row, last))
            last = row.point
        return receipts

    def _verify(self) -> int:
        problems = [text for (text,) in self._connection.execute("PRAGMA integrity_check") if text != "ok"]
        if problems:
            raise unusable(self.path, f"the file is damaged ({problems[0]})", *schema.RESTORE)
        schema.check(self._connection, self.path)
        self._start_over()
        self._catch_up()
        self._check_head()
        return self._tip.sequence

    def _find(self, entry_id: str) -> Receipt | None:
        query = f"SELECT {_COLUMNS} FROM entries WHERE id = ?"
        columns = self._connection.execute(query, (entry_id,)).fetchone()
        if columns is None:
            return None
        row = Row(*columns)
        return self._verified(row, Point(row.sequence - 1, self._hash_at(row.sequence - 1) or ""))

    def _found_or_fits(self, settled: Entry, caps: Caps) -> Receipt | None:
        """What was charged for this id before; None if nothing was, and the entry fits."""
        receipt = self._find(settled.id)
        if receipt is None:
            self._check_units()
            self._book.check(settled, caps)
        else:
            same_request(receipt, settled)
        return receipt

    def _charge(self, settled: Entry, caps: Caps) -> Receipt:
        self._catch_up()
        self._check_head()
        return self._found_or_fits(settled, caps) or self._append(settled)

    def _append(self, settled: Entry) -> Receipt:
        row = Row.after(self._tip, settled, datetime.now(UTC).isoformat())
        values = row.columns
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES ({marks})", values)
        return row.receipt()

    def _durable(self) -> Point:
        """The newest point, once everything up to it is on the disk."""
        tip = self._reading(lambda: self._tip)
        try:
            # What a checkpoint has moved from the log to the file meanwhile, SQLite has flushed there; and the folder's
            # name of a new log, when it wrote the first entry.
            flush_file(self._log)
        except OSError as error:
            reason = f"it cannot be written to the disk ({error.strerror})"
            raise unusable(self.path, reason, *schema.DISK, nothing_ran=False) from None
        return tip

    # The head -------------------------------------------------------------------------------------------------------

    def _check_head(self) -> None:
        """Refuse a ledger that is behind its head or of another chain. The caller has caught up before."""
        known = self._head.read()
        if known is None:
            if self._tip.sequence and self._head.read() is None:
                raise self._lost("the file that remembers its last entry is missing")
            return
        if known.sequence > self._tip.sequence:
            self._catch_up()
        if known.sequence == 0 and self._tip.sequence == 0:
            return
        if known.sequence > self._tip.sequence:
            raise self._lost(f"it ends at entry {self._tip.sequence}, but had {known.sequence}: this is an older copy")
        if known.hash != self._hash_at(known.sequence):
            raise self._lost(f"entry {known.sequence} is not the one that was written: this is another ledger")

    def _accept(self) -> None:
        """Add the entry that says that the ledger was accepted, unless its head agrees with it."""
        self._catch_up()
        if (entry := acceptance(self._head, self._tip, self._hash_at)) is not None:
            self._append(entry)

    def _hash_at(self, sequence: int) -> str | None:
        if sequence == 0:
            return self._identity.origin.hash
        found = self._connection.execute("SELECT hash FROM entries WHERE sequence = ?", (sequence,)).fetchone()
        return None if found is None else str(found[0])

    def _lost(self, what: str) -> CannotOpen:
        return unusable(self.path, f"{what} (head: {self._head.path})", *ACCEPTANCE_HELP)

    # Access ---------------------------------------------------------------------------------------------------------

    def _check_owner(self, dataset: str, accountant: str) -> None:
        refusal = another_owner(self.path, self._identity, dataset, accountant)
        if refusal is not None:
            raise refusal

    def _check_units(self) -> None:
        if self._book.unnamed:
            raise unnamed_units(self.path, self._book.unnamed)

    def _check_alive(self) -> None:
        if not self._open:
            raise unusable(self.path, "it is closed", "connect again")
        if os.getpid() != self._process:
            raise unusable(
                self.path,
                "it was opened by another process",
                "connect again in every process (SQLite may not be forked)",
            )
        if self._files_now() != self._files:
            raise unusable(self.path, "the file was replaced or removed while in use", *schema.RESTORE)

    def _files_now(self) -> tuple[FileId, ...]:
        return tuple(file_id(name) for name in self._names)

    def _reading(self, action: Callable[[], _Result]) -> _Result:
        with self._lock, translated(self.path, self._timeout):
            self._check_alive()
            self._catch_up()
            return action()

    def _writing(self, action: Callable[[], _Result]) -> _Result:
        with self._lock, translated(self.path, self._timeout):
            self._check_alive()
            return in_transaction(self._connection, self._timeout, action)


def accept_head(path: str | Path, head_path: str | Path, *, timeout: float = 10.0) -> None:
    """Custodian only: declare the ledger file, as it now stands, to be the true one.

    The repair after a lost head, a restored backup or a deleted ledger, when nothing better can be restored. Whatever
    was spent after the copy was made is forgotten; an entry says so (acceptance.py). The chain is verified first; if
    there is no ledger, or an empty file, the head is removed. Raises CannotOpen (DP407).
    """
    where, head = place_of(path), Head(Path(head_path), timeout)
    if not where.exists():
        head.forget()
        if not where.exists():  # else somebody has made it meanwhile, and may have charged
            return
    connection = connect(where, timeout)
    try:
        with translated(where, timeout):
            if in_transaction(connection, timeout, lambda: forget_if_empty(connection, head)):
                return
            check_and_upgrade(connection, where, timeout)
            ledger = SqliteLedger(where, head, connection, timeout)
            ledger._writing(ledger._accept)
            head.put(ledger._durable())
    finally:
        connection.close()
