"""The first thing that happens to a ledger's file: made if it is empty, checked, brought up to date if it is older."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dpsql.core.ledger import sqlite_schema as schema
from dpsql.core.ledger.hash_chain import Identity
from dpsql.core.ledger.head import Head
from dpsql.core.ledger.refusals import ACCEPTANCE_HELP, unusable
from dpsql.core.ledger.sqlite_connections import in_transaction, patiently
from dpsql.diagnostics.errors import CannotOpen


def make_if_empty(connection: sqlite3.Connection, path: Path, head: Head, identity: Identity, timeout: float) -> None:
    """Make a ledger of this identity in an empty file, unless its head remembers that it had entries; check any other.

    Raises CannotOpen (DP407).
    """
    if not patiently(lambda: schema.is_empty(connection), timeout):
        check_and_upgrade(connection, path, timeout)
        return
    patiently(lambda: connection.execute("PRAGMA journal_mode=WAL").fetchall(), timeout)
    in_transaction(connection, timeout, lambda: _make(connection, path, head, identity))
    schema.check(connection, path)


def _make(connection: sqlite3.Connection, path: Path, head: Head, identity: Identity) -> None:
    # Another process may have made it meanwhile; its head is written after its commit, so the order matters.
    if schema.is_empty(connection):
        known = head.read()
        if known is not None and known.sequence:
            raise unusable(
                path, f"it is missing or empty, but had {known.sequence} entries (head: {head.path})", *ACCEPTANCE_HELP
            )
        schema.create(connection, identity)


def forget_if_empty(connection: sqlite3.Connection, head: Head) -> bool:
    """Whether a ledger is empty, and its head forgotten. In a transaction: nobody can give it entries meanwhile."""
    if not schema.is_empty(connection):
        return False
    head.forget()
    return True


def another_owner(path: Path, owner: Identity, dataset: str, accountant: str) -> CannotOpen | None:
    """The refusal of a ledger that is another policy's, or counts otherwise; None if it is this one's."""
    if owner.dataset != dataset:
        return unusable(
            path,
            f"it belongs to the policy {owner.dataset!r}, not to {dataset!r}",
            "use the ledger of this policy, or a new file: `ledger:` in the policy, or --ledger",
        )
    if owner.accountant != accountant:
        return unusable(
            path,
            f"it counts in {owner.accountant}, and the policy says {accountant}",
            f"custodian: set  privacy.accountant: {owner.accountant}  or start a new ledger, deciding what the "
            "old one's spending means for it",
        )
    return None


def check_and_upgrade(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Raise CannotOpen (DP407) unless this is a ledger; bring one of an older format up to date."""
    if patiently(lambda: schema.is_older(connection), timeout):
        in_transaction(connection, timeout, lambda: _upgrade(connection, path))
    schema.check(connection, path)


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    # Another process may have done it meanwhile. Checked before the commit: nothing unreadable is kept.
    if schema.is_older(connection):
        schema.upgrade(connection)
    schema.check(connection, path)
