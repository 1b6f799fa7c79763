"""Apache Spark over Connect: every question in a session of our own, about files that stay as they were.

*Claim.* All that is fetched in one snapshot is of the files that there were when it began. *Why.* See files.py; the
settings that a statement's meaning rests on are read back as the snapshot begins, and after each statement.
*When it would be false.* See files.py and settings.py.
*Tested by* tests/engines_elsewhere/spark/test_engine_contract.py, test_snapshots.py, test_settings.py.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from dpsql.core.engine import RawTable, T, cannot_open, guarded
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.server_address import Server
from dpsql.core.printing.computed import with_columns
from dpsql.core.stopping import Stop
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.diagnostics.note import Note, Rank
from dpsql.engines.progress import watched
from dpsql.engines.spark import DIALECT
from dpsql.engines.spark.connecting import connect, dispose, is_tested, settled, tried
from dpsql.engines.spark.reading import read
from dpsql.engines.spark.relations import Pinned, Relation, Schema, Wanted, load, pin, unchanged

TAG: Final = "dpsql"
"""What this session runs, on the cluster."""
UNLOCKED: Final = Note(
    "what dpsql may read of the cluster is for its catalogue to say: nothing else keeps other tables away", Rank.SOURCE
)


class SparkEngine:
    """A cluster that holds the tables of one policy.

    One session, one lock: fetches of several threads run one after the other, and a snapshot holds the lock until it
    ends. `interrupt` needs no lock. A session that is lost is made anew for the next snapshot, never within one.
    """

    dialect = DIALECT

    def __init__(self, server: Server, wanted: Sequence[Wanted] | None, progress: bool = False) -> None:
        """Use `open`. wanted: the tables of the policy; None: all that may be read."""
        self.told: tuple[Note, ...] = ()
        self._server, self._wanted, self._progress = server, wanted, progress
        self._schema: Schema | None = None
        self._pinned: Pinned | None = None
        self._version = ""
        self._sibling: SparkEngine | None = None
        self._lock, self._making = threading.RLock(), threading.Lock()
        self._stop = Stop()
        self._depth, self._closing = 0, False
        self.computed: dict[str, str] = {}
        self._held: list[Any] = []
        self._dispose = weakref.finalize(self, dispose, self._held)

    @classmethod
    def open(cls, server: Server, wanted: Sequence[Wanted] | None = None, *, progress: bool = False) -> Self:
        """Connect, and look whether all is as dpsql relies on.

        progress: whether to show the custodian that a long query still runs. Raises CannotOpen (DP006, DP004).
        """
        engine = cls(server, wanted, progress)
        try:
            engine.in_snapshot(lambda: None)
            return engine
        except EngineError:
            problem = cannot_open(f"the cluster {server} cannot be read", "is it running, with Spark Connect?")
        except BaseException:
            engine.close()
            raise
        engine.close()
        raise problem

    @property
    def version(self) -> str:
        """The cluster's version, as `4.3.0`."""
        return self._version

    @property
    def notes(self) -> tuple[Note, ...]:
        """What whoever opened it tells, and what about the cluster is not as it should be."""
        untested = Note(f"dpsql is not tested with Spark {self._version}", Rank.SOURCE)
        return (*self.told, UNLOCKED, *(() if is_tested(self._version) else (untested,)))

    def fetch(self, sql: str) -> RawTable:
        """Run one SELECT, exactly; see `Engine.fetch`."""
        return self.in_snapshot(lambda: self._fetch(sql))

    def _fetch(self, sql: str) -> RawTable:
        return self._watched(lambda: self._read(sql))

    def _watched(self, action: Callable[[], T]) -> T:
        """Something that takes time: it can be stopped, and a custodian sees that it runs."""
        self._stop.clear()
        if self._closing:
            self._stop.set()
        with watched(lambda: -1.0) if self._progress else contextlib.nullcontext() as look:
            return guarded(action, self.interrupt, look, self._stop)

    def _read(self, sql: str) -> RawTable:
        """The rows, of files and under settings that are still what they were."""
        assert self._schema is not None and self._pinned is not None
        self._session.addTag(TAG)  # of this thread, which `guarded` has made
        found = read(self._session, sql, self._stop)
        read_from = [r.view for r in self._schema.relations if r.view in sql]
        if self._stop.is_set() or not unchanged(self._session, self._pinned, read_from):
            raise ValueError("the files have changed")
        if settled(self._session) is not None:
            raise ValueError("the settings have changed")
        return found

    def describe(self) -> Catalogue:
        """The schema of what `table_sql` finds, without values or sizes; see `Engine.describe`."""
        with contextlib.suppress(EngineError):
            return self.in_snapshot(lambda: self._known().catalogue(self._files))
        raise cannot_open("the schema of the data cannot be read", "is the cluster still there?")

    @property
    def _files(self) -> Pinned:
        """What tables are made of, to tell which share rows; where there is no policy nobody asks."""
        return Pinned() if self._pinned is None or self._wanted is None else self._pinned

    def table_sql(self, name: str) -> str:
        """The relation of a table of the policy; its columns are called as the policy does."""
        with self._lock:
            if self._closing:
                guarded(self._refuse)
            found: Relation | None = self._known().find(name)
            if found is None:
                raise cannot_open(
                    f"the data has no table `{name}`",
                    "correct the table's name in the policy, or say where it is:  source: catalogue.schema.table",
                    code="DP004",
                )
            return with_columns(found.sql, self.computed.get(name.casefold()))

    def _known(self) -> Schema:
        if self._schema is None:  # of a sibling that has not run anything
            self.in_snapshot(lambda: None)
        assert self._schema is not None
        return self._schema

    def in_snapshot(self, action: Callable[[], T]) -> T:
        """With the files as they are when it begins.

        Raises EngineError if it cannot be begun; CannotOpen (DP006) if the cluster has changed since it was opened.
        """
        with self._lock:
            self._depth += 1
            try:
                if self._depth == 1:
                    problem = guarded(self._prepare, self.interrupt)
                    if problem is not None:
                        raise problem
                return action()
            finally:
                self._depth -= 1

    def _prepare(self) -> CannotOpen | None:
        """Connect, compare and pin. What is wrong is returned: whatever is raised loses its words."""
        if self._closing:
            self._refuse()
        try:
            problem = self._settled()
            if problem is not None:
                return problem
            self._session.addTag(TAG)
            if self._schema is None:
                self._schema = load(self._session, self._wanted)
            self._pinned = pin(self._session, self._schema, self._pinned)
        except CannotOpen as problem:
            return problem
        return None

    def _settled(self) -> CannotOpen | None:
        """Our settings are read back; a session that is lost, or that there is none of, is made anew."""
        if self._held:
            with contextlib.suppress(Exception):
                return settled(self._session)
            dispose(self._held, release=False)
        self._pinned = None
        session, self._version = connect(self._server)
        self._held.append(session)
        return settled(session) or tried(session)

    def _refuse(self) -> None:
        raise ValueError("closed")

    @property
    def _session(self) -> Any:
        return self._held[0]

    def sibling(self) -> SparkEngine:
        """The same tables in a second session, made when it is first used; see `Engine.sibling`."""
        with self._making:  # a lock of its own: whoever plans does not wait for a query that runs
            if self._sibling is None:
                self._sibling = type(self)(self._server, self._wanted, self._progress)
                self._sibling._schema, self._sibling._version = self._schema, self._version
                self._sibling.told, self._sibling._closing = self.told, self._closing
                self._sibling.computed = self.computed
            return self._sibling

    def interrupt(self) -> None:
        """Stop the running query; a no-op if there is none or the engine is closed."""
        self._stop.set()
        with contextlib.suppress(Exception):
            self._held[0].interruptTag(TAG)

    def close(self) -> None:
        """Stop what runs, and end the session."""
        if self._sibling is not None:
            self._sibling.close()
        self._closing = True  # also for a query that is about to begin
        self.interrupt()
        with self._lock:
            self._dispose()
