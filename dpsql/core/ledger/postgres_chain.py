"""The chain of entries in PostgreSQL: read on from a point, added to, and looked up in.

*Claim.* `following` gives every entry behind a point, or raises: none is left out at the end, where no hash would miss
it. *Why.* One statement, so one snapshot, gives the entries and the row that says where they end; this row is moved by
the statement that adds an entry. Whoever reads checks the hashes in between. *When it would be false.* If somebody who
may write the row says that the chain ends earlier: this gateway's head (head.py) knows better. *Tested by*
tests/engines_elsewhere/postgres/ledger/test_edited_database.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dpsql.core.ledger.hash_chain import Point, Row
from dpsql.core.ledger.postgres_schema import RESTORE
from dpsql.core.ledger.postgres_server import SETTINGS, Session, agrees
from dpsql.core.ledger.refusals import unusable

_COLUMNS: Final = (
    "sequence, id, analyst, charges, plan_hash, policy_hash, statement, reserved_at, hash, received, answers"
)
_AT_ONCE: Final = 5000
"""Entries that are read at one time."""

_LOCK = f"SELECT {SETTINGS} FROM dpsql.head FOR UPDATE"
_FOLLOWING = (
    "SELECT h.last_sequence, h.last_hash, e.* FROM dpsql.head AS h LEFT JOIN "
    f"(SELECT {_COLUMNS} FROM dpsql.entries WHERE sequence >= %s ORDER BY sequence LIMIT %s) AS e ON true "
    "ORDER BY e.sequence"
)
_ADD = (
    f"WITH added AS (INSERT INTO dpsql.entries ({_COLUMNS}) VALUES ({', '.join(['%s'] * 11)}) "
    "ON CONFLICT (id) DO NOTHING RETURNING sequence, hash) "
    "UPDATE dpsql.head SET last_sequence = added.sequence, last_hash = added.hash FROM added"
)


def take_turn(session: Session, url: str) -> None:
    """Wait until nobody else charges, nor is committing; until the end of the transaction nobody else does.

    What follows sees all that was committed. Raises CannotOpen (DP407).
    """
    turn = session.rows(_LOCK)
    if len(turn) != 1:
        raise unusable(url, "there is no ledger in this database any more", *RESTORE)
    agrees(url, *turn[0])


def following(session: Session, url: str, last: Point) -> Iterator[Row]:
    """The entries behind a point of the chain, which has to be there. Raises CannotOpen (DP407)."""
    while True:
        found = session.rows(_FOLLOWING, (last.sequence, _AT_ONCE))
        rows = [_read(columns) for _, _, *columns in found if columns[0] is not None]
        if last.sequence and (not rows or rows[0].point != last):
            raise unusable(url, f"entry {last.sequence} was removed or replaced", *RESTORE)
        yield from rows[1:] if last.sequence else rows
        last = rows[-1].point if rows else last
        if len(rows) < _AT_ONCE:
            break
    if not found or Point(*found[0][:2]) != last:
        raise unusable(url, f"it ends at entry {last.sequence}, and says that it ends elsewhere", *RESTORE)


def add(session: Session, row: Row) -> bool:
    """Add an entry, and move the row that says where the chain ends; False if its id is there already."""
    values = [escaped(value) if isinstance(value, str) else value for value in row.columns]
    return session.change(_ADD, values) == 1


def find(session: Session, entry_id: str) -> Row | None:
    """The entry of an id."""
    found = session.rows(f"SELECT {_COLUMNS} FROM dpsql.entries WHERE id = %s", (escaped(entry_id),))
    return _read(found[0]) if found else None


def hash_at(session: Session, sequence: int) -> str | None:
    """The hash of an entry; None if there is none."""
    found = session.rows("SELECT hash FROM dpsql.entries WHERE sequence = %s", (sequence,))
    return str(found[0][0]) if found else None


# PostgreSQL stores no NUL in a text: it is written \0, and a backslash \\.


def escaped(text: str) -> str:
    """A text as it is stored."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\0])", lambda found: "\0" if found[1] == "0" else "\\", text)


def _read(columns: Sequence[object]) -> Row:
    return Row(*(_unescaped(value) if isinstance(value, str) else value for value in columns))  # type: ignore[arg-type]
