"""The ledger's file: opening it durably, taking turns with other processes, and SQLite's errors as DP407."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.durable_files import writable_or_missing
from dpsql.core.ledger.head import PAUSE
from dpsql.core.ledger.plain_files import NOFOLLOW, located, oddity
from dpsql.core.ledger.refusals import unusable

_Result = TypeVar("_Result")
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


FileId = tuple[int, int] | None
"""Device and number of a file; None if there is none."""

_open: dict[tuple[FileId, int], int] = {}
"""(file, process) → connections that this process has made, or inherited, and not closed.

Closing any descriptor of a file drops every POSIX lock that the process has on it, SQLite's own included: another
process would then take itself for the last user, and delete the -wal file under a connection that still writes to it.
So a file that a connection of this process holds is never opened here a second time but by SQLite. A forked child
inherits SQLite's belief that the file is locked, but not the lock; it is refused the file for the same reason.
"""
_opening = threading.RLock()


def _forget_the_parents_threads() -> None:
    global _opening
    _opening = threading.RLock()  # one of them may have held it, and does not live in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents_threads)


class LedgerConnection(sqlite3.Connection):
    """A connection that is counted in `_open` until it is closed."""

    counted: tuple[FileId, int] | None = None

    def close(self) -> None:
        """Close, and stop counting."""
        with _opening:
            super().close()
            counted, self.counted = self.counted, None
            if counted in _open:
                _open[counted] -= 1
                if not _open[counted]:
                    del _open[counted]

    def __del__(self) -> None:
        if self.counted is not None:
            self.close()


def place_of(path: str | Path) -> Path:
    """Where a ledger lies, links of its folders followed. Raises CannotOpen (DP407): it is no plain file.

    A link would have SQLite keep its log beside another name than the one that is flushed (and a second name a second
    log): whoever opened the file by each would not see what the other charges.
    """
    try:
        where = located(path)
    except ValueError:
        raise unusable(path, "not a file name", _WRITABLE) from None
    what = oddity(where)
    if what is not None:
        raise unusable(where, what, _PLAIN)
    return where


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection with every setting on; makes the file (mode 0600) but writes nothing into it."""
    with _opening:
        mine = (file_id(path), os.getpid())
        if any(file == mine[0] and process != mine[1] for file, process in _open):
            raise unusable(
                path,
                "it was open when this process was forked, and SQLite cannot be shared that way",
                "close the connection before forking, or start processes afresh (multiprocessing: spawn, forkserver)",
            )
        if mine not in _open:
            _make_or_inspect(path)
        connection = _connected(path, timeout)
        connection.counted = (file_id(path), os.getpid())
        _open[connection.counted] = _open.get(connection.counted, 0) + 1
        return connection


def look_at(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that can only read, for a file or a folder that cannot be written: nothing is made beside the file.

    Without a log the file alone holds everything, and SQLite is told not to look for locks. Should a writer come
    meanwhile, the log that he makes is noticed (`SqliteLedger._check_alive`), and the chain shows pages that moved.
    """
    if not os.path.isfile(path):
        raise unusable(path, "there is no such file", _WRITABLE)
    with _opening, translated(path, timeout):
        alone = "" if os.path.exists(f"{path}-wal") else "&immutable=1"
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro{alone}", uri=True, timeout=timeout, isolation_level=None,
            check_same_thread=False, factory=LedgerConnection,
        )  # fmt: skip
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        _check_name(connection, path)
        connection.counted = (file_id(path), os.getpid())
        _open[connection.counted] = _open.get(connection.counted, 0) + 1
        return connection


def writable(path: Path) -> bool:
    """Whether SQLite could write a file and its log."""
    return os.access(path.parent, os.W_OK | os.X_OK) and writable_or_missing(path)


def file_id(path: Path | str) -> FileId:
    """Which file has this name; a link is a file of its own."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _make_or_inspect(path: Path) -> None:
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | NOFOLLOW, 0o600), "rb") as file:
            start = file.read(len(schema.MAGIC))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise unusable(path, f"it cannot be opened for writing ({reason})", _WRITABLE) from None
    if start not in (b"", schema.MAGIC):
        # SQLite itself would take a file of one byte for an empty one and overwrite it.
        raise unusable(path, "this is not a ledger", *schema.OTHER_FILE)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise unusable(path, "its directory is not writable, and SQLite keeps a -wal file there", _WRITABLE)


def _connected(path: Path, timeout: float) -> LedgerConnection:
    with translated(path, timeout):
        # The path is absolute: SQLite would take `:memory:` for something else.
        connection = sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=LedgerConnection
        )
        # NORMAL: SQLite waits for the disk around each checkpoint, and the ledger itself, once for everybody who waits,
        # before a receipt (sqlite.py). fullfsync makes macOS empty the disk's own cache too.
        for setting in ("synchronous=NORMAL", "fullfsync=ON", "checkpoint_fullfsync=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {setting}")
        _check_name(connection, path)
        return connection


def _check_name(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that SQLite knows by another name, and beside that keeps its log: a link came in between."""
    (_, _, name), *_ = connection.execute("PRAGMA database_list")
    if file_id(name) != file_id(path):
        connection.close()
        raise unusable(path, "a symbolic link took its place while it was opened", _PLAIN)


_PLAIN = "name the file itself, by one name only: `ledger:` in the policy, or --ledger; its folders may be links"
_WRITABLE = "name a file in a directory that can be written: `ledger:` in the policy, or --ledger"


def in_transaction(connection: sqlite3.Connection, timeout: float, action: Callable[[], _Result]) -> _Result:
    """Do something while holding the write lock, waited for up to `timeout` seconds; rolled back if it raises.

    A function, not a context manager: a Ctrl-C between a generator's `yield` and the body of its `with` would leave the
    transaction open for as long as somebody keeps the traceback, and a notebook keeps it.
    """
    try:
        try:
            # SQLite's own waiting grows to 100 ms a step, which starves writers; `patiently` waits evenly instead.
            connection.execute("PRAGMA busy_timeout=0")
            patiently(lambda: connection.execute("BEGIN IMMEDIATE"), timeout)
        finally:
            connection.execute(f"PRAGMA busy_timeout={int(timeout * 1000)}")
        result = action()
        connection.execute("COMMIT")
        return result
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def patiently(action: Callable[[], _Result], timeout: float) -> _Result:
    """Repeat an action that finds the file busy."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _BUSY or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


@contextlib.contextmanager
def translated(path: Path, timeout: float) -> Iterator[None]:
    """Turn SQLite's errors into DP407. Its texts speak of the file, never of the data."""
    try:
        yield
    except UnicodeDecodeError:  # Python cannot read SQLite's own complaint about a damaged file
        raise unusable(path, "the file is damaged", *schema.RESTORE, nothing_ran=False) from None
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            raise unusable(
                path,
                f"another process has kept it locked for {timeout:g} s",
                "wait for the other process, or end it, and try again",
            ) from None
        if code == sqlite3.SQLITE_NOTADB:
            raise unusable(path, "this is not a ledger", *schema.OTHER_FILE) from None
        repair = schema.RESTORE if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR} else schema.DISK
        raise unusable(path, f"it cannot be used ({error})", *repair, nothing_ran=False) from None
