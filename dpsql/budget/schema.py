"""The ledger file's tables, and how a file is recognised as a ledger of a form this version can read."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from pathlib import Path

from dpsql.budget.accountant import ACCOUNTANTS
from dpsql.budget.chain import FORMAT, Identity
from dpsql.budget.refusals import unusable

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

_STATEMENTS = (
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


def is_empty(connection: sqlite3.Connection) -> bool:
    """True for a file that nobody has put anything into: it may become a ledger."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and _pragma(connection, "application_id") == 0 and _pragma(connection, "user_version") == 0


def create(connection: sqlite3.Connection, identity: Identity) -> None:
    """Make the tables; inside the caller's transaction."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={FORMAT}")
    for statement in _STATEMENTS:
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
    stored = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if form != FORMAT or stored != set(_STATEMENTS):
        raise unusable(path, "its tables or append-only triggers were changed", *RESTORE)


def read_identity(connection: sqlite3.Connection, path: Path) -> Identity:
    """What the ledger says it is for."""
    values = dict(connection.execute("SELECT name, value FROM identity"))
    try:
        if values["accountant"] not in ACCOUNTANTS:
            raise ValueError
        return Identity(values["dataset"], values["accountant"], int(values["salt"]), values["nonce"])
    except (KeyError, ValueError, TypeError):
        raise unusable(path, "its identity was changed", *RESTORE) from None


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
