"""The ledger's file: opening it durably, and SQLite's errors as DP407."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.files.durable_files import writable_or_missing
from dpsql.core.ledger.files.plain_files import NOFOLLOW, located, oddity
from dpsql.core.ledger.refusals import unusable
from dpsql.core.ledger.sqlite_connections import (
    BUSY,
    FORKED,
    FORKED_HELP,
    CountedConnection,
    Forked,
    counted,
    file_id,
)


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
    return _counted(path, lambda: _make_or_inspect(path), lambda: _connected(path, timeout))


def look_at(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that can only read, for a file or a folder that cannot be written: nothing is made beside the file.

    Without a log the file alone holds everything, and SQLite is told not to look for locks. Should a writer come
    meanwhile, the log that he makes is noticed (`SqliteLedger._check_alive`), and the chain shows pages that moved.
    """
    if not os.path.isfile(path):
        raise unusable(path, "there is no such file", _WRITABLE)
    with translated(path, timeout):
        return _counted(path, lambda: None, lambda: _connected_to_look(path, timeout))


def _counted(path: Path, make: Callable[[], None], open: Callable[[], CountedConnection]) -> CountedConnection:
    try:
        return counted(path, make, open)
    except Forked:
        raise unusable(path, FORKED, FORKED_HELP) from None


def _connected_to_look(path: Path, timeout: float) -> CountedConnection:
    alone = "" if os.path.exists(f"{path}-wal") else "&immutable=1"
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=ro{alone}", uri=True, timeout=timeout, isolation_level=None,
        check_same_thread=False, factory=CountedConnection,
    )  # fmt: skip
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    _check_name(connection, path)
    return connection


def writable(path: Path) -> bool:
    """Whether SQLite could write a file and its log."""
    return os.access(path.parent, os.W_OK | os.X_OK) and writable_or_missing(path)


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


def _connected(path: Path, timeout: float) -> CountedConnection:
    with translated(path, timeout):
        # The path is absolute: SQLite would take `:memory:` for something else.
        connection = sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=CountedConnection
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


@contextlib.contextmanager
def translated(path: Path, timeout: float) -> Iterator[None]:
    """Turn SQLite's errors into DP407. Its texts speak of the file, never of the data."""
    try:
        yield
    except UnicodeDecodeError:  # Python cannot read SQLite's own complaint about a damaged file
        raise unusable(path, "the file is damaged", *schema.RESTORE, nothing_ran=False) from None
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in BUSY:
            raise unusable(
                path,
                f"another process has kept it locked for {timeout:g} s",
                "wait for the other process, or end it, and try again",
            ) from None
        if code == sqlite3.SQLITE_NOTADB:
            raise unusable(path, "this is not a ledger", *schema.OTHER_FILE) from None
        repair = schema.RESTORE if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR} else schema.DISK
        raise unusable(path, f"it cannot be used ({error})", *repair, nothing_ran=False) from None
