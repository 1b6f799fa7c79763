"""The ledger for many gateways: a database of PostgreSQL, append-only, hash-chained.

*Claim.* What a receipt was given for stays charged, whatever is killed or cut off and whenever; no two gateways can
together exceed a cap; an older or altered copy of the database is refused by every gateway that has seen more. *Why.*
One row is locked `FOR UPDATE` by whoever charges; under this lock `ChainedLedger` decides, and one statement adds the
entry and moves the row to it. What is committed is durable (postgres_server.py). Where the answer to COMMIT is lost,
the entry's id is looked up before anything runs, under the same lock: it waits for the transaction that was lost to
end. Then this gateway's head follows (chain/head.py), and only then the receipt is handed out. *When it would be
false.* If the server's disk acknowledges writes that it does not make; if somebody replaces both the database and the
heads of all gateways; if a gateway accepts (`accept_head`) a database that has lost entries. *Tested by*
tests/engines_elsewhere/postgres/ledger/.

*Claim.* `following` gives every entry behind a point, or raises: none is left out at the end, where no hash would miss
it. *Why.* One statement, so one snapshot, gives the entries and the row that says where they end; this row is moved by
the statement that adds an entry. Whoever reads checks the hashes in between. *When it would be false.* If somebody who
may write the row says that the chain ends earlier: this gateway's head (chain/head.py) knows better. *Tested by*
tests/engines_elsewhere/postgres/ledger/test_edited_database.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from dpsql.core.ledger import postgres_schema as schema
from dpsql.core.ledger.chain.hash_chain import COLUMNS, Identity, LedgerRow, Point
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.chained import ChainedLedger, Entries, Result
from dpsql.core.ledger.ledger import Entry, Receipt
from dpsql.core.ledger.postgres_server import (
    SETTINGS,
    LedgerConnection,
    LedgerServer,
    UnknownOutcome,
    agrees,
    refuse_the_datas,
)
from dpsql.core.ledger.privacy_filter import Book
from dpsql.core.ledger.refusals import perhaps_charged, unusable
from dpsql.core.policy.units import UnitNames
from dpsql.diagnostics.errors import CannotOpen

_PAUSE: Final = 0.1
"""Seconds between two attempts to reach a server that went away."""
_AT_ONCE: Final = 5000
"""Entries that are read at one time."""

_LOCK = f"SELECT {SETTINGS} FROM dpsql.head FOR UPDATE"
_FOLLOWING = (
    "SELECT h.last_sequence, h.last_hash, e.* FROM dpsql.head AS h LEFT JOIN "
    f"(SELECT {COLUMNS} FROM dpsql.entries WHERE sequence >= %s ORDER BY sequence LIMIT %s) AS e ON true "
    "ORDER BY e.sequence"
)
_ADD = (
    f"WITH added AS (INSERT INTO dpsql.entries ({COLUMNS}) VALUES ({', '.join(['%s'] * len(LedgerRow._fields))}) "
    "ON CONFLICT (id) DO NOTHING RETURNING sequence, hash) "
    "UPDATE dpsql.head SET last_sequence = added.sequence, last_hash = added.hash FROM added"
)

_UNSEEN = (
    "this gateway has not seen it before: its head is missing",
    "custodian, on a gateway that is new or was moved: see that it has the entries that the others have "
    "(dpsql budget POLICY --history), and accept it here:  dpsql budget POLICY --accept-head",
    "on any other: restore the newest copy of the database, and the head file",
)
_OLDER = (
    "custodian: restore the newest copy of the database",
    "if later entries are lost, accept it as it stands on every gateway, forgetting what was spent since:  "
    "dpsql budget POLICY --accept-head",
)


class StoredEntries:
    """`Entries` of a database, over one session."""

    def __init__(self, session: LedgerConnection, url: str) -> None:
        self._session, self._url = session, url

    def take_turn(self) -> None:
        """Wait until nobody else charges, nor is committing; until the end of the transaction nobody else does.

        What follows sees all that was committed. Raises CannotOpen (DP407).
        """
        turn = self._session.rows(_LOCK)
        if len(turn) != 1:
            raise unusable(self._url, "there is no ledger in this database any more", *schema.RESTORE)
        agrees(self._url, *turn[0])

    def following(self, last: Point) -> Iterator[LedgerRow]:
        """The rows behind a point of the chain."""
        while True:
            found = self._session.rows(_FOLLOWING, (last.sequence, _AT_ONCE))
            rows = [_read(columns) for _, _, *columns in found if columns[0] is not None]
            if last.sequence and (not rows or rows[0].point != last):
                raise unusable(self._url, f"entry {last.sequence} was removed or replaced", *schema.RESTORE)
            yield from rows[1:] if last.sequence else rows
            last = rows[-1].point if rows else last
            if len(rows) < _AT_ONCE:
                break
        if not found or Point(*found[0][:2]) != last:
            what = f"it ends at entry {last.sequence}, and says that it ends elsewhere"
            raise unusable(self._url, what, *schema.RESTORE)

    def find(self, entry_id: str) -> LedgerRow | None:
        """The row of an id."""
        found = self._session.rows(f"SELECT {COLUMNS} FROM dpsql.entries WHERE id = %s", (_escaped(entry_id),))
        return _read(found[0]) if found else None

    def hash_at(self, sequence: int) -> str | None:
        """The hash of an entry; None if there is none."""
        found = self._session.rows("SELECT hash FROM dpsql.entries WHERE sequence = %s", (sequence,))
        return str(found[0][0]) if found else None

    def add(self, row: LedgerRow) -> bool:
        """Add a row, and move the row that says where the chain ends; False if its id is there already."""
        values = [_escaped(value) if isinstance(value, str) else value for value in row]
        return self._session.change(_ADD, values) == 1

    def check(self) -> None:
        """Raise CannotOpen (DP407) for other tables."""
        schema.check(self._session, self._url)


# PostgreSQL stores no NUL in a text: it is written \0, and a backslash \\.


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\0])", lambda found: "\0" if found[1] == "0" else "\\", text)


def _read(columns: Sequence[object]) -> LedgerRow:
    return LedgerRow(*(_unescaped(value) if isinstance(value, str) else value for value in columns))  # type: ignore[arg-type]


class PostgresLedger(ChainedLedger):
    """The Ledger contract over one database. Make it with `open`; one object may serve several threads."""

    _RESTORE = schema.RESTORE
    _UNSEEN, _OLDER = _UNSEEN, _OLDER
    _ANOTHER = "a new database"

    def __init__(self, server: LedgerServer, head: Head, owner: Identity, units: UnitNames | None = None) -> None:
        """For `open`, `look` and `accept_head` only: of a database that is known to be a ledger."""
        super().__init__(server.url, head, owner, units)
        self.path = server.url
        self._server = server

    @classmethod
    def open(
        cls,
        url: str,
        head_path: str | Path,
        dataset: str,
        accountant: str,
        *,
        units: UnitNames | None = None,
        data: str | None = None,
        timeout: float = 10.0,
    ) -> Self:
        """Open the ledger in a database, or make it; verify its whole chain and that it has lost nothing.

        head_path: where this gateway remembers the last hash that it has seen. dataset: the policy's name; a database
        serves one. accountant: `pure_dp`, `approx_dp` or `zcdp`. units: the policy's, and what they were called.
        data: the URL of the database that holds the data; it is refused as the ledger's. timeout: see `LedgerServer`.
        Raises CannotOpen (DP407); ValueError for an unknown accountant.
        """
        Book(accountant)
        head = Head(Path(head_path), timeout)
        server = LedgerServer(url, timeout)
        head.check_writable()
        try:
            if data is not None:
                refuse_the_datas(server, data)
            schema.found(server, Identity.new(dataset, accountant), head)
            ledger = cls._of(server, head, units)._checked(dataset, accountant)
            head.advance(ledger._tip.sequence, lambda: ledger._tip)
            head.finish()
        except BaseException:
            server.close()
            raise
        return ledger

    @classmethod
    def look(
        cls,
        url: str,
        head_path: str | Path,
        dataset: str,
        accountant: str,
        *,
        units: UnitNames | None = None,
        timeout: float = 10.0,
    ) -> Self | None:
        """Open a ledger to see what is spent: nothing is made, and of what is there only the format is brought up to
        date. None if there is none.

        Raises CannotOpen (DP407).
        """
        head = Head(Path(head_path), timeout)
        server = LedgerServer(url, timeout)
        try:
            known = head.read()
            if server.read(schema.is_founded) or (known is not None and known.sequence):
                schema.bring_up_to_date(server)
                return cls._of(server, head, units)._checked(dataset, accountant)
        except BaseException:
            server.close()
            raise
        server.close()
        return None

    @classmethod
    def _of(cls, server: LedgerServer, head: Head, units: UnitNames | None = None) -> Self:
        server.read(lambda session: schema.check(session, server.url))
        return cls(server, head, server.read(lambda session: schema.read_identity(session, server.url)), units)

    def close(self) -> None:
        """Let go of the server. Closing twice is harmless."""
        with self._lock:
            self._open = False
            self._server.close()

    def _added(self, settled: Entry, adding: Callable[[Entries], Receipt]) -> Receipt:
        try:
            return self._turn(adding)
        except UnknownOutcome:
            return self._looked_up(settled)

    def _looked_up(self, settled: Entry) -> Receipt:
        """What a commit came to whose answer was lost. Raises CannotOpen (DP407): to nothing, or nobody can tell."""

        def found(entries: Entries) -> Receipt | None:
            self._catch_up(entries)
            self._check_head(entries)
            return self._find(entries, settled)

        deadline = time.monotonic() + self._server.timeout
        while True:
            try:
                receipt = self._turn(found)
                break
            except (CannotOpen, UnknownOutcome):
                if time.monotonic() > deadline:
                    raise perhaps_charged(self.path) from None
            time.sleep(_PAUSE)
        if receipt is None:
            raise unusable(self.path, "the connection was lost, and the charge was not made", "ask again")
        return receipt

    def _durable(self, at_least: Point) -> Point:
        return at_least  # it was committed

    def _reading(self, action: Callable[[Entries], Result]) -> Result:
        def caught_up(session: LedgerConnection) -> Result:
            entries = StoredEntries(session, self.path)
            self._catch_up(entries)
            return action(entries)

        with self._lock:
            self._check_alive()
            return self._server.read(caught_up)

    def _turn(self, action: Callable[[Entries], Result]) -> Result:
        def taken(session: LedgerConnection) -> Result:
            entries = StoredEntries(session, self.path)
            entries.take_turn()
            return action(entries)

        with self._lock:
            self._check_alive()
            return self._server.transaction(taken)


def server_of(ledger: PostgresLedger) -> LedgerServer:
    """The database that a ledger is in, for what is kept beside it."""
    return ledger._server


def accept_head(url: str, head_path: str | Path, *, timeout: float = 10.0) -> None:
    """Custodian only: declare the database, as it now stands, to be the true ledger for this gateway.

    For a gateway that is new, and the repair after a restored backup when nothing better can be restored; an entry says
    so. The chain is verified first; if there is no ledger, the head is removed. Raises CannotOpen (DP407).
    """
    head, server = Head(Path(head_path), timeout), LedgerServer(url, timeout)
    try:
        if not server.read(schema.is_founded):
            head.forget()
            return
        schema.bring_up_to_date(server)
        head.put(PostgresLedger._of(server, head)._accepted())
    finally:
        server.close()


def is_founded(url: str, timeout: float = 10.0) -> bool:
    """Whether there is a ledger in a database. Raises CannotOpen (DP407)."""
    server = LedgerServer(url, timeout)
    try:
        return server.read(schema.is_founded)
    finally:
        server.close()
