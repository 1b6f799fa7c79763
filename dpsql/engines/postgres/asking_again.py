"""Asking a statement again after a row made it fail: the temporary functions, and the same snapshot.

*Claim.* Both askings read the same rows, and no failure but that of a row's value leads to the second. *Why.* A
savepoint is set in the transaction of the snapshot, which is REPEATABLE READ, and rolled back to; what was locked and
set before it stays. The functions are made before the transaction starts, for it is READ ONLY. Errors are told by
their codes: `OF_VALUES` are the conditions that the functions catch. *When it would be false.* In another transaction,
whose snapshot is newer: one failing row would decide which rows are counted. *Tested by*
tests/engines_elsewhere/postgres/test_asked_again.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus

from dpsql.core.engine import RawTable
from dpsql.core.stopping import Stop
from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.postgres.reading import read
from dpsql.engines.postgres.settings import SETTLE

OF_VALUES: Final = ("22", "0A", "54")
"""Classes of errors: those of `CAUGHT` in core/printing/dialects/postgres_again.py."""
MOST: Final = 2_000
"""Functions of one session: then all are dropped, and those in use are made anew."""
CAN_MAKE: Final = """SELECT NOT pg_is_in_recovery() AND has_database_privilege(current_database(), 'TEMPORARY')
  AND EXISTS (SELECT FROM pg_language AS l WHERE l.lanname = 'plpgsql' AND has_language_privilege(l.oid, 'USAGE'))"""
WITHOUT: Final = Note(
    "a statement that a row's value makes fail is not asked again: no temporary function can be made here, for want of"
    " the right (GRANT TEMPORARY ON DATABASE) or on a standby",
    Rank.SOURCE,
)


def make(connection: Connection[Any], made: set[str], wanted: Mapping[str, str]) -> None:
    """Make the functions that are missing, outside of any transaction; none of them where one cannot be made.

    made: names of those that the session has; changed.
    """
    if not wanted.keys() - made:
        return
    try:
        if len(made | wanted.keys()) > MOST:
            made.clear()
            connection.execute("DISCARD TEMP")
        missing = wanted.keys() - made
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        connection.execute(SETTLE)
        for name in sorted(missing):
            connection.execute(wanted[name].encode())
        connection.execute("COMMIT")
        made |= missing
    except psycopg.Error:
        if connection.info.transaction_status is not TransactionStatus.IDLE and not connection.closed:
            connection.execute("ROLLBACK")


def read_again(connection: Connection[Any], sql: str, again: str, stop: Stop) -> RawTable:
    """The rows of a SELECT; where a row's value makes it fail, those of `again`. See `read`."""
    connection.execute("SAVEPOINT asked")
    try:
        return read(connection, sql, stop)
    except psycopg.Error as error:
        if (error.sqlstate or "")[:2] not in OF_VALUES:
            raise
    connection.execute("ROLLBACK TO SAVEPOINT asked")
    return read(connection, again, stop)
