"""Stored answers in a file beside the ledger: durable before they are shown, safe for many processes and threads.

*Claim.* What `add` returned from is found by every later `find`, whatever is killed in between; half an addition is
never found. *Why.* One transaction; SQLite's rollback journal with `synchronous=FULL` makes the commit durable. A
connection is opened for each call, so none is shared with a thread or carried over a fork. *When it would be false.*
If the disk acknowledges writes that it does not make. An answer is served only if the ledger names it as paid for, and
what is lost is paid for again. A row holds a hash of its own, so that a damaged answer is refused, never shown, nor
counted for less than it cost; the hash has no key, and keeps nobody from writing. *Tested by*
tests/answers/test_store_contract.py, tests/deep/fuzz/answers.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from dpsql.answers.store.locks import alone
from dpsql.answers.store.refusals import DAMAGED, DISK, unusable
from dpsql.answers.store.store import Result
from dpsql.answers.store.text import (
    plain,
    read_fraction,
    read_integers,
    read_losses,
    read_shown,
    write_integers,
    write_shown,
)
from dpsql.core.ledger.paid import write_losses
from dpsql.core.ledger.plain_files import NOFOLLOW, located, oddity
from dpsql.core.ledger.released import Answer

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
_COLUMNS = "id, address, numbers, mechanism, parameter, losses, conversion, made_at, shown, hash"
_making = threading.Lock()
_AT_ONCE = 500
"""Addresses in one statement; SQLite's limit may be as low as 999."""


class SqliteAnswers:
    """The AnswerStore contract over one file, which is made by the first `add`."""

    def __init__(self, path: Path, *, timeout: float = 10.0, patience: float = 600.0) -> None:
        """path: of the file; names are held in a directory beside it.

        timeout: seconds to wait for another process's transaction. patience: for one that is running the same query.
        Raises CannotOpen (DP407): it is a link, or no file, and what is paid for could not be kept.
        """
        self.path = located(path)
        self._timeout = timeout
        self._patience = patience
        self._check_plain()

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[Answer]]:
        """Address → every answer stored for it, oldest first."""
        wanted = sorted(set(addresses))
        if not wanted or not self.path.exists():
            return {}
        return self._connected(lambda connection: self._found(connection, wanted))

    def _found(self, connection: sqlite3.Connection, wanted: Sequence[str]) -> dict[str, list[Answer]]:
        found: dict[str, list[Answer]] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            query = f"SELECT {_COLUMNS} FROM answers WHERE address IN ({marks}) ORDER BY number"
            for row in connection.execute(query, part):
                answer = self._read(row)
                found.setdefault(answer.address, []).append(answer)
        return found

    def add(self, answers: Iterable[Answer]) -> None:
        """Store all of them, durably, or none."""
        rows = [_row(a) for a in answers]
        if rows:
            self._connected(lambda connection: _insert(connection, rows))

    def alone(self, names: Collection[str], action: Callable[[], Result]) -> Result:
        """See `AnswerStore.alone`."""
        return alone(self.path.with_name(self.path.name + ".running"), names, self._patience, action)

    def _read(self, row: tuple[str, ...]) -> Answer:
        name, address, numbers, mechanism, parameter, losses, conversion, made_at, shown, stored = row
        try:
            if stored != hash_of(row[:-1]):
                raise ValueError
            return Answer(
                name, address, read_integers(numbers), mechanism, read_fraction(parameter), read_losses(losses),
                read_fraction(conversion), datetime.fromisoformat(made_at), read_shown(shown),
            )  # fmt: skip
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
            raise unusable(self.path, f"the answer {str(name)[:40]!r} is damaged", DAMAGED) from None

    def _connected(self, action: Callable[[sqlite3.Connection], Result]) -> Result:
        """Act on a connection to the file, made if it is not there; rolled back and closed at the end.

        A function, not a context manager: a Ctrl-C at the end of its `with` would leave the file locked.
        """
        self._check_plain()
        try:
            with _making:
                # Made here, because SQLite would let others read it. Never opened here once it is there: closing it
                # would drop the locks of another thread's transaction.
                if not (os.path.isfile(self.path) and os.access(self.path, os.R_OK | os.W_OK)):
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o600))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a file name"
            raise unusable(self.path, f"it cannot be opened for writing ({reason})", DISK) from None
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=self._timeout, isolation_level=None)
            for setting in ("synchronous=FULL", "fullfsync=ON", "trusted_schema=OFF"):
                connection.execute(f"PRAGMA {setting}")
            self._check(connection)
            return action(connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                reason = f"another process has kept it locked for {self._timeout:g} s"
                raise unusable(self.path, reason, "wait for the other process, or end it, and try again") from None
            repair = DISK if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY) else DAMAGED
            raise unusable(self.path, f"it cannot be used ({plain(error)})", repair) from None
        finally:
            if connection is not None:
                connection.close()

    def _check_plain(self) -> None:
        what = oddity(self.path)
        if what is not None:
            raise unusable(self.path, what, "custodian: put the file itself in its place; its folders may be links")

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make an empty file a store; refuse one that is something else."""
        if self._is(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made it meanwhile.
        if not self._is(connection):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise unusable(self.path, "this is not a file of stored answers, or of another version", DAMAGED)
            connection.execute(_TABLE)
            connection.execute(_INDEX)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("COMMIT")

    def _is(self, connection: sqlite3.Connection) -> bool:
        pragmas = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if tuple(pragmas) != (APPLICATION_ID, FORMAT):
            return False
        # A trigger could undo what is added.
        if set(connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")) != {(_TABLE,), (_INDEX,)}:
            raise unusable(self.path, "its tables were changed", DAMAGED)
        return True


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[str, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO answers ({_COLUMNS}) VALUES ({marks})", rows)
    connection.execute("COMMIT")


def _row(a: Answer) -> tuple[str, ...]:
    row = (
        a.id,
        a.address,
        write_integers(a.values),
        a.mechanism,
        str(a.parameter),
        write_losses(dict(a.losses)),
        str(a.conversion),
        a.made_at.isoformat(),
        write_shown(a.shown),
    )
    return (*row, hash_of(row))


def hash_of(row: Sequence[str]) -> str:
    """The hash of a row: of its other columns, in their order. TypeError for one that is not text."""
    return hashlib.sha256(json.dumps(list(row)).encode("ascii")).hexdigest()
