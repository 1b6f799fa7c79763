"""The ledger file's tables: made in an empty file, recognised, and brought up to date where they are older."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from pathlib import Path

from dpsql.core.ledger.accountant import ACCOUNTANTS
from dpsql.core.ledger.chain.hash_chain import ADDED, FORMAT, Identity
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.refusals import ACCEPTANCE_HELP, unusable
from dpsql.core.ledger.sqlite_connections import in_transaction, patiently

MAGIC = b"SQLite format 3\0"
"""How every SQLite file begins."""

APPLICATION_ID = 0x6470736C
"""`dpsl`, in SQLite's file header: tells a ledger from any other SQLite file."""

RESTORE = (
    "custodian: restore the newest intact ledger (with its -wal file); do not edit the file, and never start a new one "
    "for the same data without counting what was spent",
)
DISK = ("check the disk's free space and the permissions of the file and its directory",)
OTHER_FILE = ("name another file: `ledger:` in the policy, or --ledger; this file was not touched",)

_APPEND_ONLY = "SELECT RAISE(ABORT, 'a ledger is append-only'); END"

_FORMAT_1 = (
    "CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, analyst TEXT NOT NULL, "
    "charges TEXT NOT NULL, plan_hash TEXT NOT NULL, policy_hash TEXT NOT NULL, statement TEXT NOT NULL, "
    "reserved_at TEXT NOT NULL, hash TEXT NOT NULL)",
    # REPLACE deletes without firing a delete trigger, hence the conditions on INSERT.
    "CREATE TRIGGER entries_insert BEFORE INSERT ON entries WHEN EXISTS (SELECT 1 FROM entries WHERE id = NEW.id) "
    f"OR NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM entries) BEGIN {_APPEND_ONLY}",
    f"CREATE TRIGGER entries_update BEFORE UPDATE ON entries BEGIN {_APPEND_ONLY}",
    f"CREATE TRIGGER entries_delete BEFORE DELETE ON entries BEGIN {_APPEND_ONLY}",
    "CREATE TRIGGER identity_insert BEFORE INSERT ON identity WHEN EXISTS (SELECT 1 FROM identity WHERE "
    f"name = NEW.name) BEGIN {_APPEND_ONLY}",
    f"CREATE TRIGGER identity_update BEFORE UPDATE ON identity BEGIN {_APPEND_ONLY}",
    f"CREATE TRIGGER identity_delete BEFORE DELETE ON identity BEGIN {_APPEND_ONLY}",
)


def _columns(form: int) -> list[str]:
    """What an older format's table of entries lacks, as SQLite is told."""
    return [f"{name} TEXT NOT NULL DEFAULT '{empty}'" for name, empty in ADDED[form]]


def _of(form: int) -> tuple[str, ...]:
    """What makes the tables of a format, written as SQLite writes them after ALTER TABLE: a new file and one that was
    brought up to date are the same."""
    added = [column for column in _columns(1) if form == FORMAT or column not in _columns(form)]
    return tuple(
        ", ".join((sql.removesuffix(")"), *added)) + ")" if sql.startswith("CREATE TABLE entries") else sql
        for sql in _FORMAT_1
    )


_STATEMENTS = {form: _of(form) for form in (*ADDED, FORMAT)}


def is_empty(connection: sqlite3.Connection) -> bool:
    """True for a file that nobody has put anything into: it may become a ledger."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and _pragma(connection, "application_id") == 0 and _pragma(connection, "user_version") == 0


def create(connection: sqlite3.Connection, identity: Identity) -> None:
    """Make the tables; inside the caller's transaction."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={FORMAT}")
    for statement in _STATEMENTS[FORMAT]:
        connection.execute(statement)
    values = [(name, str(value)) for name, value in asdict(identity).items()]
    connection.executemany("INSERT INTO identity (name, value) VALUES (?, ?)", values)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise CannotOpen (DP407) unless this is a ledger of this format, tables and triggers as they were made."""
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise unusable(path, "this is not a ledger", *OTHER_FILE)
    form = _pragma(connection, "user_version")
    if form > FORMAT:
        raise unusable(
            path, f"a newer dpsql wrote it (format {form}; this version reads {FORMAT})", "upgrade dpsql to use it"
        )
    if form != FORMAT or _stored(connection) != set(_STATEMENTS[FORMAT]):
        raise unusable(path, "its tables or append-only triggers were changed", *RESTORE)


def older(connection: sqlite3.Connection) -> int | None:
    """The format of an intact ledger that `upgrade` can bring up to date; None of any other."""
    form = _pragma(connection, "user_version")
    ours = _pragma(connection, "application_id") == APPLICATION_ID and form in ADDED
    return form if ours and _stored(connection) == set(_STATEMENTS[form]) else None


def upgrade(connection: sqlite3.Connection, form: int) -> None:
    """Bring an older ledger up to this format, inside the caller's transaction: no entry and no hash changes."""
    for column in _columns(form):
        connection.execute(f"ALTER TABLE entries ADD COLUMN {column}")
    connection.execute(f"PRAGMA user_version={FORMAT}")


def _stored(connection: sqlite3.Connection) -> set[str]:
    return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


def read_identity(connection: sqlite3.Connection, path: Path) -> Identity:
    """What the ledger says it is for."""
    values = dict(connection.execute("SELECT name, value FROM identity"))
    try:
        if values["accountant"] not in ACCOUNTANTS or not all(isinstance(text, str) for text in values.values()):
            raise ValueError  # a text whose kind was changed to bytes reads the same and is none
        return Identity(values["dataset"], values["accountant"], int(values["salt"]), values["nonce"])
    except (KeyError, ValueError, TypeError):
        raise unusable(path, "its identity was changed", *RESTORE) from None


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


# The first thing that happens to a file -----------------------------------------------------------------------------


def make_if_empty(connection: sqlite3.Connection, path: Path, head: Head, identity: Identity, timeout: float) -> None:
    """Make a ledger of this identity in an empty file, unless its head remembers that it had entries; check any other.

    Raises CannotOpen (DP407).
    """
    if not patiently(lambda: is_empty(connection), timeout):
        check_and_upgrade(connection, path, timeout)
        return
    patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchall(), timeout)
    in_transaction(connection, timeout, lambda: _make(connection, path, head, identity))
    check(connection, path)


def _make(connection: sqlite3.Connection, path: Path, head: Head, identity: Identity) -> None:
    # Another process may have made it meanwhile; its head is written after its commit, so the order matters.
    if is_empty(connection):
        known = head.read()
        if known is not None and known.sequence:
            raise unusable(
                path, f"it is missing or empty, but had {known.sequence} entries (head: {head.path})", *ACCEPTANCE_HELP
            )
        create(connection, identity)


def forget_if_empty(connection: sqlite3.Connection, head: Head) -> bool:
    """Whether a ledger is empty, and its head forgotten. In a transaction: nobody can give it entries meanwhile."""
    if not is_empty(connection):
        return False
    head.forget()
    return True


def check_and_upgrade(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Raise CannotOpen (DP407) unless this is a ledger; bring one of an older format up to date."""
    if patiently(lambda: older(connection), timeout) is not None:
        in_transaction(connection, timeout, lambda: _upgrade(connection, path))
    check(connection, path)


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    # Another process may have done it meanwhile. Checked before the commit: nothing unreadable is kept.
    form = older(connection)
    if form is not None:
        upgrade(connection, form)
    check(connection, path)
