"""PostgreSQL: every question in a read-only transaction of one snapshot, on a connection of our own.

*Claim.* All that is fetched in one snapshot is of one moment, of relations that are what they were when the policy was
checked. *Why.* The tables are locked against changes of their schema before the snapshot is taken, which the first
SELECT does (under REPEATABLE READ nothing later is seen); in it every setting is read back and the schema compared.
Without the lock, a table that is rewritten or emptied meanwhile would be found empty: such changes are not part of
snapshots. *When it would be false.* If a row came from outside of the database: foreign tables are refused, and
views by what they rest on (view_contents.py). *Tested by*
tests/engines_elsewhere/postgres/test_engine_contract.py, test_snapshots.py.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg import Connection, errors

from dpsql.core.engine import RawTable, T, cannot_open, guarded
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.server_address import Server
from dpsql.core.printing.computed import with_columns
from dpsql.core.stopping import Stop
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.postgres import DIALECT
from dpsql.engines.postgres.asking_again import CAN_MAKE, WITHOUT, make, read_again
from dpsql.engines.postgres.connecting import begin, connect, dispose, is_alive, settle, version_of
from dpsql.engines.postgres.reading import read
from dpsql.engines.postgres.relations import Relation, Schema, Wanted, load
from dpsql.engines.postgres.settings import TESTED
from dpsql.engines.progress import watched

_CANCEL: Final = 5.0
"""Seconds to wait for the server to hear that a query is to end."""


class PostgresEngine:
    """A server that holds the tables of one policy.

    One connection, one lock: fetches of several threads run one after the other, and a transaction holds the lock until
    it ends. `interrupt` needs no lock. A connection that is cut is made anew for the next snapshot, never within one.
    """

    dialect = DIALECT

    def __init__(self, server: Server, wanted: Sequence[Wanted] | None, progress: bool = False) -> None:
        """Use `open`. wanted: the tables of the policy; None: all that may be read."""
        self.told: tuple[Note, ...] = ()
        self.computed: dict[str, str] = {}
        self._server, self._wanted, self._progress = server, wanted, progress
        self._schema: Schema | None = None
        self._version, self._notes = "", tuple[Note, ...]()
        self._sibling: PostgresEngine | None = None
        self._lock, self._making = threading.RLock(), threading.Lock()
        self._stop = Stop()
        self._depth, self._begun, self._closing = 0, False, False
        self._held: list[Connection[Any]] = []
        self._functions, self._made = dict[str, str](), set[str]()
        self._dispose = weakref.finalize(self, dispose, self._held)

    @classmethod
    def open(cls, server: Server, wanted: Sequence[Wanted] | None = None, *, progress: bool = False) -> PostgresEngine:
        """Connect, and look whether all is as dpsql relies on.

        progress: whether to show the custodian that a long query still runs; the server does not say how far it is.
        Raises CannotOpen (DP006, DP004).
        """
        engine = cls(server, wanted, progress)
        try:
            engine.in_snapshot(lambda: None)
            return engine
        except EngineError:
            problem = cannot_open(f"the server {server} cannot be read", f"try  psql '{server}'")
        except BaseException:
            engine.close()
            raise
        engine.close()
        raise problem

    @property
    def version(self) -> str:
        """The server's version, as `16.2`."""
        return self._version

    @property
    def notes(self) -> tuple[Note, ...]:
        """What whoever opened it tells, and what about the server is not as it should be."""
        return (*self.told, *self._notes)

    def fetch(self, sql: str) -> RawTable:
        """Run one SELECT, exactly; see `Engine.fetch`."""
        return self.in_snapshot(lambda: self._fetch(sql))

    def at_hand(self, functions: Sequence[tuple[str, str]]) -> None:
        """Make these before the next snapshot; see `AsksAgain.at_hand`."""
        self._functions.update(functions)

    def fetch_again(self, sql: str, again: str, functions: Sequence[str]) -> RawTable:
        """Run one SELECT, and another one in the same snapshot where it fails; see `AsksAgain.fetch_again`."""
        return self.in_snapshot(lambda: self._fetch(sql, again if self._made.issuperset(functions) else ""))

    def _fetch(self, sql: str, again: str = "") -> RawTable:
        self._stop.clear()
        if self._closing:
            self._stop.set()
        with watched(lambda: -1.0) if self._progress else contextlib.nullcontext() as look:
            return guarded(lambda: self._read(sql, again), self.interrupt, look, self._stop)

    def _read(self, sql: str, again: str) -> RawTable:
        if not again:
            return read(self._connection, sql, self._stop)
        return read_again(self._connection, sql, again, self._stop)

    def describe(self) -> Catalogue:
        """The schema of what `table_sql` finds, without values or sizes; see `Engine.describe`."""
        with contextlib.suppress(EngineError):
            return self.in_snapshot(self._known).catalogue
        raise cannot_open("the schema of the data cannot be read", "is the server still there?")

    def table_sql(self, name: str) -> str:
        """The relation of a table of the policy; its columns are called as the policy does."""
        with self._lock:
            if self._closing:
                guarded(self._refuse)
            found: Relation | None = self._known().find(name)
            if found is None:
                raise cannot_open(
                    f"the data has no table or view `{name}`",
                    "correct the table's name in the policy, or say where it is:  source: schema.table",
                    code="DP004",
                )
            return with_columns(found.sql, self.computed.get(name.casefold()))

    def _known(self) -> Schema:
        if self._schema is None:  # of a sibling that has not run anything
            self.in_snapshot(lambda: None)
        assert self._schema is not None
        return self._schema

    def in_snapshot(self, action: Callable[[], T]) -> T:
        """In a read-only transaction of one snapshot; it ends in a rollback, which for reads is a commit.

        Raises EngineError if it cannot be begun; CannotOpen (DP006) if the server has changed since it was opened.
        """
        with self._lock:
            if self._depth == 0:
                self._roll_back()  # a Ctrl-C may have come just before the last one's
                self._begun = True
            self._depth += 1
            try:
                if self._depth == 1:
                    self._begin()
                return action()
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._roll_back()

    def _begin(self) -> None:
        problem = guarded(self._prepare, self.interrupt)
        if problem is not None:
            raise problem

    def _prepare(self) -> CannotOpen | None:
        """Begin, lock, set and compare. What is wrong is returned: whatever is raised loses its words."""
        if self._closing:
            self._refuse()
        try:
            if not self._held or not is_alive(self._held[0]):
                dispose(self._held)
                self._held.append(connect(self._server))
                self._made.clear()
            wanted, self._functions = self._functions, {}
            make(self._connection, self._made, wanted)
            major, self._version = version_of(self._connection)
            begin(self._connection)
            if self._schema is not None and self._wanted is not None and not self._locked(self._schema):
                return cannot_open("a table of the policy is gone, or may no longer be read", "open the data again")
            problem = settle(self._connection)
            if problem is not None:
                return problem
            if self._schema is not None and self._wanted is not None and self._schema.unchanged(self._rows):
                return None
            found = load(self._rows, self._wanted)
            if self._schema is not None and found.essence != self._schema.essence:
                return cannot_open("the tables' schema has changed since the data was opened", "open it again")
            self._schema, self._notes = found, self._noted(major, found)
        except CannotOpen as problem:
            return problem
        return None

    def _locked(self, schema: Schema) -> bool:
        """Keep the tables as they are. False: one is not there, or not ours to read."""
        try:
            if schema.locks:
                self._connection.execute(schema.locks, binary=True)
        except (errors.UndefinedTable, errors.InvalidSchemaName, errors.InsufficientPrivilege):
            return False
        return True

    def _noted(self, major: int, found: Schema) -> tuple[Note, ...]:
        notes = [] if major in TESTED else [Note(f"dpsql is not tested with PostgreSQL {major}", Rank.SOURCE)]
        if self._wanted is not None and found.writable:
            may = "the role that reads the server may also write its tables; one that may only read is enough"
            notes.append(Note(may, Rank.SOURCE))
        if self._wanted is not None and not self._rows(CAN_MAKE)[0][0]:
            notes.append(WITHOUT)
        return tuple(notes)

    def _roll_back(self) -> None:
        if self._begun:
            if self._held and is_alive(self._held[0]):
                with contextlib.suppress(EngineError):
                    guarded(lambda: self._connection.execute("ROLLBACK"), lambda: None)
            self._begun = False

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(sql, values or None, binary=True).fetchall()
        return found

    @property
    def _connection(self) -> Connection[Any]:
        return self._held[0]

    def _refuse(self) -> None:
        raise ValueError("closed")

    def sibling(self) -> PostgresEngine:
        """The same tables over a second connection, made when it is first used; see `Engine.sibling`."""
        with self._making:  # a lock of its own: whoever plans does not wait for a query that runs
            if self._sibling is None:
                self._sibling = type(self)(self._server, self._wanted, self._progress)
                self._sibling._schema, self._sibling._version = self._schema, self._version
                self._sibling._notes, self._sibling.told = self._notes, self.told
                self._sibling.computed = self.computed
                self._sibling._closing = self._closing
            return self._sibling

    def interrupt(self) -> None:
        """Stop the running query; a no-op if there is none or the engine is closed."""
        self._stop.set()
        with contextlib.suppress(Exception):
            self._held[0].cancel_safe(timeout=_CANCEL)

    def close(self) -> None:
        """Stop what runs, and close the connection."""
        if self._sibling is not None:
            self._sibling.close()
        self._closing = True  # also for a query that is about to begin
        self.interrupt()
        with self._lock:
            self._dispose()
