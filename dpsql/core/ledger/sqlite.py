"""The durable ledger: one SQLite file, append-only, hash-chained, safe for many processes and threads.

*Claim.* What a receipt was given for stays charged, whatever is killed and whenever; no two processes can together
exceed a cap; an older or altered copy of the file is refused. *Why.* `BEGIN IMMEDIATE` admits one writer, and inside it
`ChainedLedger` decides and adds. After COMMIT the log is flushed to the disk, then the head is written (chain/head.py),
and only then the receipt is handed out; one flush and one head serve all who wait (group commit). The head's own flush
goes on while the data is read, and `finish` waits for it before anything is shown. Others may see a charge before it is
durable: they count it, and their own receipt waits for a flush that covers both, for the log is written in order. *When
it would be false.* If the disk acknowledges writes it does not make; if someone replaces both the ledger and its head;
on a network file system, where WAL does not work; if other code of the process opens and closes the file
(sqlite_connections.py). *Tested by* tests/core/ledger/test_ledger_contract.py, tests/core/ledger/.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.chain.hash_chain import COLUMNS, Identity, LedgerRow, Point
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.chained import ChainedLedger, Entries, Result
from dpsql.core.ledger.files.durable_files import flush_file
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.privacy_filter import Book
from dpsql.core.ledger.refusals import ACCEPTANCE_HELP, unusable
from dpsql.core.ledger.sqlite_connections import FileId, file_id, in_transaction
from dpsql.core.ledger.sqlite_file import connect, look_at, place_of, translated, writable
from dpsql.core.policy.units import UnitNames


class StoredEntries:
    """`Entries` of a file."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def following(self, last: Point) -> Iterator[LedgerRow]:
        """The rows behind a point of the chain."""
        query = f"SELECT {COLUMNS} FROM entries WHERE sequence >= ? ORDER BY sequence"
        rows = map(LedgerRow._make, self._connection.execute(query, (last.sequence,)))
        if last.sequence:
            first = next(rows, None)
            if first is None or first.point != last:
                raise unusable(self._path, f"entry {last.sequence} was removed or replaced", *schema.RESTORE)
        return rows

    def find(self, entry_id: str) -> LedgerRow | None:
        """The row of an id."""
        columns = self._connection.execute(f"SELECT {COLUMNS} FROM entries WHERE id = ?", (entry_id,)).fetchone()
        return None if columns is None else LedgerRow._make(columns)

    def hash_at(self, sequence: int) -> str | None:
        """The hash of an entry; None if there is none."""
        found = self._connection.execute("SELECT hash FROM entries WHERE sequence = ?", (sequence,)).fetchone()
        return None if found is None else str(found[0])

    def add(self, row: LedgerRow) -> bool:
        """Add a row; False if its id is there already."""
        if self.find(row.id) is not None:
            return False
        self._connection.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)
        return True

    def check(self) -> None:
        """Raise CannotOpen (DP407) for a damaged file, or other tables."""
        problems = [text for (text,) in self._connection.execute("PRAGMA integrity_check") if text != "ok"]
        if problems:
            raise unusable(self._path, f"the file is damaged ({problems[0]})", *schema.RESTORE)
        schema.check(self._connection, self._path)


class SqliteLedger(ChainedLedger):
    """The Ledger contract over one file. Make it with `open`; one object may serve several threads of one process."""

    _RESTORE = schema.RESTORE
    _UNSEEN = ("the file that remembers its last entry is missing", *ACCEPTANCE_HELP)
    _OLDER = ACCEPTANCE_HELP
    _ANOTHER = "a new file"
    _FORKED = "connect again in every process (SQLite may not be forked)"

    def __init__(
        self, path: Path, head: Head, connection: sqlite3.Connection, timeout: float, units: UnitNames | None = None
    ) -> None:
        """For `open` and `accept_head` only: takes over an open connection whose file is known to be a ledger."""
        super().__init__(path, head, schema.read_identity(connection, path), units)
        self.path = path
        self._connection, self._entries = connection, StoredEntries(connection, path)
        self._timeout = timeout
        self._log = Path(f"{path}-wal")
        self._names = [f"{path}{end}" for end in ("", "-wal")]
        self._files = self._files_now()

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
        The time to open grows with the number of entries, about 20 µs each (benchmarks/ledger.py).
        """
        Book(accountant)
        where, head = place_of(path), Head(Path(head_path), timeout)
        head.check_writable()
        connection = connect(where, timeout)
        try:
            with translated(where, timeout):
                schema.make_if_empty(connection, where, head, Identity.new(dataset, accountant), timeout)
                ledger = cls(where, head, connection, timeout, units)._checked(dataset, accountant)
                head.advance(ledger._tip.sequence, lambda: ledger._durable(ledger._tip))
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

        Nothing is made or changed then, so a ledger of an older format is refused, and so is every `reserve`.
        Raises CannotOpen (DP407).
        """
        where, head = place_of(path), Head(Path(head_path), timeout)
        if writable(where) and (writable(head.path) or not head.path.parent.exists()):
            return cls.open(path, head_path, dataset, accountant, units=units, timeout=timeout)
        connection = look_at(where, timeout)
        try:
            with translated(where, timeout):
                if schema.older(connection) is not None:
                    raise unusable(
                        where,
                        "an older dpsql wrote it, and it cannot be brought up to date here: it is not writable",
                        "custodian: look at it once where it can be written",
                    )
                schema.check(connection, where)
                return cls(where, head, connection, timeout, units)._checked(dataset, accountant)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Release the file. Closing twice is harmless."""
        with self._lock:
            self._open = False
            self._connection.close()

    def _reading(self, action: Callable[[Entries], Result]) -> Result:
        with self._lock, translated(self.path, self._timeout):
            self._check_alive()
            self._catch_up(self._entries)
            return action(self._entries)

    def _turn(self, action: Callable[[Entries], Result]) -> Result:
        with self._lock, translated(self.path, self._timeout):
            self._check_alive()
            return in_transaction(self._connection, self._timeout, lambda: action(self._entries))

    def _refuse_what_never_fits(self, settled: Entry, caps: Caps) -> None:
        # To read on takes less than a refusal's turn would.
        self._reading(lambda entries: self._found_or_fits(entries, settled, caps))

    def _durable(self, at_least: Point) -> Point:
        tip = self._reading(lambda _: self._tip)
        try:
            # What a checkpoint has moved from the log to the file meanwhile, SQLite has flushed there; and the folder's
            # name of a new log, when it wrote the first entry.
            flush_file(self._log)
        except OSError as error:
            reason = f"it cannot be written to the disk ({error.strerror})"
            raise unusable(self.path, reason, *schema.DISK, nothing_ran=False) from None
        return tip

    def _check_alive(self) -> None:
        super()._check_alive()
        if self._files_now() != self._files:  # the log that is flushed is the one that SQLite writes to
            raise unusable(self.path, "the file was replaced or removed while in use", *schema.RESTORE)

    def _files_now(self) -> tuple[FileId, ...]:
        return tuple(file_id(name) for name in self._names)


def accept_head(path: str | Path, head_path: str | Path, *, timeout: float = 10.0) -> None:
    """Custodian only: declare the ledger file, as it now stands, to be the true one.

    The repair after a lost head, a restored backup or a deleted ledger, when nothing better can be restored. Whatever
    was spent after the copy was made is forgotten; an entry says so (chain/acceptance.py). The chain is verified first;
    if there is no ledger, or an empty file, the head is removed. Raises CannotOpen (DP407).
    """
    where, head = place_of(path), Head(Path(head_path), timeout)
    if not where.exists():
        head.forget()
        if not where.exists():  # else somebody has made it meanwhile, and may have charged
            return
    connection = connect(where, timeout)
    try:
        with translated(where, timeout):
            if in_transaction(connection, timeout, lambda: schema.forget_if_empty(connection, head)):
                return
            schema.check_and_upgrade(connection, where, timeout)
            head.put(SqliteLedger(where, head, connection, timeout)._accepted())
    finally:
        connection.close()
