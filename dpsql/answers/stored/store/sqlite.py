"""Stored answers in a file beside the ledger, safe for many processes and threads.

*Claim.* What `add` returned from is found by every later `find`, whatever is killed in between; a power cut may take
the additions of the last moments, the newest first; half an addition is never found, and no cut damages the file.
*Why.* One transaction in SQLite's log (WAL), which every process reads. Nothing waits for the disk: SQLite flushes the
log before it moves any of it into the file, and the file before the log begins anew (`synchronous=NORMAL`); of a log
that was cut short it reads as far as its checksums hold. What is lost is paid for again, and that is all: an answer is
served only if the ledger names it, and the ledger's entry is on the disk before the noise is drawn. *When it would be
false.* If the disk acknowledges writes that it does not make; if other code of the process opens and closes the file
(core/ledger/sqlite_connections.py). *Tested by* tests/answers/stored/test_store_contract.py,
tests/deep/core/ledger/test_power_cuts.py, tests/deep/fuzz/answers.py.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from dpsql.answers.stored.store.locks import alone
from dpsql.answers.stored.store.refusals import DAMAGED, DISK, unusable
from dpsql.answers.stored.store.store import Result
from dpsql.answers.stored.store.stored_rows import BEHIND_ALL, COLUMNS, MARKS, answer_of, row_of, row_of_mark
from dpsql.answers.stored.store.stored_text import plain
from dpsql.core.ledger.files.plain_files import NOFOLLOW, located, oddity
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.ledger.sqlite_connections import (
    BUSY,
    FORKED,
    FORKED_HELP,
    CountedConnection,
    FileId,
    Forked,
    counted,
    file_id,
    in_transaction,
    patiently,
)

APPLICATION_ID = 0x64707361
"""`dpsa`, in SQLite's file header."""
FORMAT = 2
"""Version of the stored form; a file with another one is refused."""

_TABLE = (
    "CREATE TABLE answers (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, address TEXT NOT NULL, "
    "numbers TEXT NOT NULL, mechanism TEXT NOT NULL, parameter TEXT NOT NULL, losses TEXT NOT NULL, "
    "conversion TEXT NOT NULL, made_at TEXT NOT NULL, shown TEXT NOT NULL, hash TEXT NOT NULL)"
)
_INDEX = "CREATE INDEX answers_address ON answers (address)"
_AT_ONCE = 500
"""Addresses in one statement; SQLite's limit may be as low as 999."""


class SqliteAnswers:
    """The AnswerStore contract over one file, which is made by the first `add`.

    One connection serves all calls, one after the other; a call that ends otherwise than well leaves none behind.
    """

    _kept: tuple[CountedConnection, int, tuple[FileId, ...]] | None = None
    """The connection, the process that has opened it, and which file and log it had then."""

    def __init__(self, path: Path, *, timeout: float = 10.0, patience: float = 600.0) -> None:
        """path: of the file; names are held in a directory beside it.

        timeout: seconds to wait for another process's transaction. patience: for one that is running the same query.
        Raises CannotOpen (DP407): it is a link, or no file, and what is paid for could not be kept.
        """
        self.path = located(path)
        self._timeout = timeout
        self._patience = patience
        self._names = [str(self.path), f"{self.path}-wal"]
        self._lock = threading.RLock()
        self._marked = set[str]()
        self._check_plain()

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[StoredAnswer]]:
        """Address → every answer stored for it, oldest first."""
        wanted = sorted(set(addresses))
        if not wanted or not self.path.exists():
            return {}
        return self._on_connection(lambda connection: self._found(connection, wanted))

    def _found(self, connection: sqlite3.Connection, wanted: Sequence[str]) -> dict[str, list[StoredAnswer]]:
        found: dict[str, list[StoredAnswer]] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            query = f"SELECT {COLUMNS} FROM answers WHERE address IN ({marks}) ORDER BY number"
            for row in connection.execute(query, part).fetchall():  # nothing stays half read
                answer = answer_of(row, self.path)
                found.setdefault(answer.address, []).append(answer)
        return found

    def add(self, answers: Iterable[StoredAnswer]) -> None:
        """Store all of them or none, so that every process finds them; what a power cut takes is paid for again."""
        rows = [row_of(a) for a in answers]
        if rows:
            self._on_connection(lambda c: in_transaction(c, self._timeout, lambda: _insert(c, rows)))

    def mark(self, name: str) -> bool:
        """See `AnswerStore.mark`: asked of the file once for each connection."""
        return self._on_connection(lambda connection: self._mark(connection, name))

    def _mark(self, connection: sqlite3.Connection, name: str) -> bool:
        if name in self._marked:
            return False
        row, there = row_of_mark(name), "SELECT 1 FROM answers WHERE id = ?"
        is_new = in_transaction(
            connection,
            self._timeout,
            lambda: connection.execute(there, row[:1]).fetchone() is None and _insert(connection, [row]),
        )
        self._marked.add(name)
        return is_new

    def before(self, name: str, *, or_all: bool = False) -> Mapping[str, datetime]:
        """See `AnswerStore.before`."""
        if not self.path.exists():
            return {}
        return self._on_connection(lambda connection: _before(connection, name, BEHIND_ALL if or_all else 0))

    def alone(self, names: Collection[str], action: Callable[[], Result]) -> Result:
        """See `AnswerStore.alone`."""
        return alone(self.path.with_name(self.path.name + ".running"), names, self._patience, action)

    def close(self) -> None:
        """Let go of the file; SQLite flushes what was stored. Whoever asks again opens it again."""
        with self._lock:
            kept, self._kept = self._kept, None
            if kept is not None and kept[1] == os.getpid():
                kept[0].close()

    def __del__(self) -> None:
        if self._kept is not None:
            self.close()

    def _on_connection(self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        """Act on a connection to the file, which is made if it is not there.

        A function, not a context manager: a Ctrl-C at the end of its `with` would leave the file locked.
        """
        self._check_plain()
        with self._lock, self._translated():
            connection, well = self._connection(), False
            try:
                result = action(connection)
                well = True
                return result
            finally:
                if not well:
                    self.close()

    def _connection(self) -> sqlite3.Connection:
        """The one that is kept, unless its file was removed or replaced meanwhile."""
        if self._kept is not None and self._kept[1] != os.getpid():
            raise unusable(self.path, FORKED, FORKED_HELP)
        if self._kept is None or self._kept[2] != self._files():
            self.close()
            self._marked.clear()
            try:
                connection = counted(self.path, self._make, self._opened)
            except Forked:
                raise unusable(self.path, FORKED, FORKED_HELP) from None
            # At once: what comes in between must find it, to close it.
            self._kept = connection, os.getpid(), ()
            try:
                self._check(connection)
                self._kept = connection, os.getpid(), self._files()
            except BaseException:
                self.close()
                raise
        return self._kept[0]

    def _files(self) -> tuple[FileId, ...]:
        return tuple(file_id(name) for name in self._names)

    def _make(self) -> None:
        """Make the file if it is not there, or SQLite would let others read it."""
        try:
            if not (os.path.isfile(self.path) and os.access(self.path, os.R_OK | os.W_OK)):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o600))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a file name"
            raise unusable(self.path, f"it cannot be opened for writing ({reason})", DISK) from None

    def _opened(self) -> CountedConnection:
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False, factory=CountedConnection
        )
        for setting in ("synchronous=NORMAL", "fullfsync=ON", "checkpoint_fullfsync=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn SQLite's errors into DP407."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in BUSY:
                reason = f"another process has kept it locked for {self._timeout:g} s"
                raise unusable(self.path, reason, "wait for the other process, or end it, and try again") from None
            repair = DISK if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY) else DAMAGED
            raise unusable(self.path, f"it cannot be used ({plain(error)})", repair) from None

    def _check_plain(self) -> None:
        what = oddity(self.path)
        if what is not None:
            raise unusable(self.path, what, "custodian: put the file itself in its place; its folders may be links")

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make an empty file a store; refuse one that is something else; keep a log from now on."""
        if not self._is(connection):
            in_transaction(connection, self._timeout, lambda: self._found_store(connection))
        # Not within a transaction. An older dpsql goes on in a file with a log as well.
        (mode,) = patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchone(), self._timeout)
        if mode != "wal":  # no shared memory here: a journal, which is waited for
            connection.execute("PRAGMA synchronous=FULL")
        connection.execute("SELECT 1 FROM answers LIMIT 1").fetchall()  # the log is made by whoever reads first

    def _found_store(self, connection: sqlite3.Connection) -> None:
        # Another process may have done it meanwhile.
        if self._is(connection):
            return
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise unusable(self.path, "this is not a file of stored answers, or of another version", DAMAGED)
        connection.execute(_TABLE)
        connection.execute(_INDEX)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={FORMAT}")

    def _is(self, connection: sqlite3.Connection) -> bool:
        pragmas = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if tuple(pragmas) != (APPLICATION_ID, FORMAT):
            return False
        # A trigger could undo what is added.
        if set(connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")) != {(_TABLE,), (_INDEX,)}:
            raise unusable(self.path, "its tables were changed", DAMAGED)
        return True


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[str, ...]]) -> Literal[True]:
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO answers ({COLUMNS}) VALUES ({marks})", rows)
    return True


def _before(connection: sqlite3.Connection, name: str, without: int) -> dict[str, datetime]:
    rows = connection.execute(
        "SELECT id, made_at FROM answers WHERE number < COALESCE((SELECT number FROM answers WHERE id = ?), ?) "
        "AND substr(id, 1, ?) <> ? ORDER BY number",
        (MARKS + name, without, len(MARKS), MARKS),
    )
    return {found: datetime.fromisoformat(made_at) for found, made_at in rows.fetchall()}
