"""Stored answers in the database of a ledger for many gateways: durable before they are shown.

*Claim.* What `add` returned from is found by every later `find` of every gateway; half an addition is never found. Of
all who ask for a name, one holds it; when its connection ends, however it ends, the next one does. *Why.* One
transaction, whose commit is durable (core/ledger/postgres_server.py). A name is an advisory lock of a transaction that
is open as long as the name is held, and ends with its connection. Names are taken in the order of their locks, so that
nobody waits for somebody who waits for him. *When it would be false.* Where the connection is lost while its run goes
on: the same query asked by somebody else is then paid for twice, which is what it cost; each of them has an entry of
its own, and no number is shown without one. *Tested by* tests/engines_elsewhere/postgres/ledger/.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from dpsql.answers.stored.store.refusals import kept_waiting, unusable
from dpsql.answers.stored.store.store import Result
from dpsql.answers.stored.store.stored_rows import BEHIND_ALL, COLUMNS, MARKS, answer_of, row_of, row_of_mark
from dpsql.core.ledger.postgres_server import LedgerConnection, LedgerServer, StillLocked, UnknownOutcome
from dpsql.core.ledger.released import StoredAnswer

_FIND = f"SELECT {COLUMNS} FROM dpsql.answers WHERE address = ANY(%s) ORDER BY number"
_ADD = f"INSERT INTO dpsql.answers ({COLUMNS}) VALUES ({', '.join(['%s'] * 10)})"

_BEFORE = (
    "SELECT id, made_at FROM dpsql.answers WHERE number < "
    "COALESCE((SELECT number FROM dpsql.answers WHERE id = %s), %s) AND NOT starts_with(id, %s) ORDER BY number"
)


class PostgresAnswers:
    """The AnswerStore contract over the tables of a ledger."""

    def __init__(self, server: LedgerServer, *, patience: float = 600.0) -> None:
        """server: the ledger's, which closes it. patience: seconds to wait for one that is running the same query."""
        self._server = server
        self._patience = patience
        self._marked = set[str]()

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[StoredAnswer]]:
        """Address → every answer stored for it, oldest first."""
        wanted = sorted(set(addresses))
        found: dict[str, list[StoredAnswer]] = {}
        for row in self._server.read(lambda session: session.rows(_FIND, (wanted,))) if wanted else ():
            answer = answer_of(row, self._server.url)
            found.setdefault(answer.address, []).append(answer)
        return found

    def add(self, answers: Iterable[StoredAnswer]) -> None:
        """Store all of them, durably, or none."""
        rows = [row_of(a) for a in answers]
        if rows:
            try:
                self._server.transaction(lambda session: session.change_all(_ADD, rows))
            except UnknownOutcome:
                what = "the connection was lost, and nobody can tell whether the answers were stored"
                raise unusable(
                    self._server.url, what, "ask again: what was stored is given", nothing_ran=False
                ) from None

    def mark(self, name: str) -> bool:
        """See `AnswerStore.mark`: asked once of each object."""
        if name in self._marked:
            return False
        row = row_of_mark(name)
        written = self._server.transaction(lambda session: session.change(f"{_ADD} ON CONFLICT (id) DO NOTHING", row))
        self._marked.add(name)
        return written > 0

    def before(self, name: str, *, or_all: bool = False) -> Mapping[str, datetime]:
        """See `AnswerStore.before`."""
        asked = (MARKS + name, BEHIND_ALL if or_all else 0, MARKS)
        rows = self._server.read(lambda session: session.rows(_BEFORE, asked))
        return {found: datetime.fromisoformat(made_at) for found, made_at in rows}

    def close(self) -> None:
        """Nothing of its own: the ledger closes what both use."""

    def alone(self, names: Collection[str], action: Callable[[], Result]) -> Result:
        """See `AnswerStore.alone`."""
        if not names:
            return action()
        locks, deadline = sorted(map(_lock_of, set(names))), time.monotonic() + self._patience

        def held(session: LedgerConnection) -> None:
            session.rows("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
            for lock in locks:
                left = max(1, int(1000 * (deadline - time.monotonic())))
                session.rows("SELECT set_config('lock_timeout', %s, true)", (str(left),))
                try:
                    session.rows("SELECT pg_advisory_xact_lock(%s)", (lock,))
                except StillLocked:
                    raise kept_waiting(self._server.url, self._patience) from None

        return self._server.holding(held, action)


def _lock_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"dpsql answers {name}".encode()).digest()[:8], "big", signed=True)
