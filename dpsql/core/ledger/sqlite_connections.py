"""Connections of this process to SQLite's files: which of them are open, and taking turns with other processes.

Closing any descriptor of a file drops every POSIX lock that the process has on it, SQLite's own included: another
process would then take itself for the last user, and delete the -wal file under a connection that still writes to it.
So a file that a connection of this process holds is never opened here a second time but by SQLite. A forked child
inherits SQLite's belief that the file is locked, but not the lock; it is refused the file for the same reason.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from dpsql.core.ledger.chain.head import PAUSE

_Result = TypeVar("_Result")

BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""What SQLite says of a file that others keep locked."""

FORKED: Final = "it was open when this process was forked, and SQLite cannot be shared that way"
FORKED_HELP: Final = (
    "close the connection before forking, or start processes afresh (multiprocessing: spawn, forkserver)"
)

FileId = tuple[int, int] | None
"""Device and number of a file; None if there is none."""

_open: dict[tuple[FileId, int], int] = {}
"""(file, process) → connections that this process has made, or inherited, and not closed."""
_opening = threading.RLock()


def _forget_the_parents_threads() -> None:
    global _opening
    _opening = threading.RLock()  # one of them may have held it, and does not live in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parents_threads)


class Forked(Exception):
    """The file was open when this process was forked."""


class CountedConnection(sqlite3.Connection):
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


def counted(path: Path, make: Callable[[], object], connect: Callable[[], CountedConnection]) -> CountedConnection:
    """What `connect` opens, counted. make: is called before, if nothing has the file open here: it may open and close
    it. Raises Forked.
    """
    with _opening:
        mine = (file_id(path), os.getpid())
        if any(file == mine[0] and process != mine[1] for file, process in _open):
            raise Forked
        if mine not in _open:
            make()
        connection = connect()
        connection.counted = (file_id(path), os.getpid())
        _open[connection.counted] = _open.get(connection.counted, 0) + 1
        return connection


def file_id(path: Path | str) -> FileId:
    """Which file has this name; a link is a file of its own."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


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
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in BUSY or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)
