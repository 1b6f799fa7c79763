"""DuckDB: opened read-only and locked, or a connection of the user's left as it is.

The order of opening is the one that works: an empty in-memory database → the policy's file attached read-only → a view
for every source, over literal absolute paths → only those files stay readable → everything else off → locked. What is
locked cannot be unlocked. It is the second line of defence: the first is that only SQL printed by dpsql runs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from dpsql.core.engine import RawTable, T, cannot_open, guarded
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.source import SourceCall
from dpsql.core.printing.computed import with_columns
from dpsql.core.stopping import Stop
from dpsql.diagnostics.errors import EngineError
from dpsql.diagnostics.note import Note
from dpsql.diagnostics.words import with_article
from dpsql.engines.duckdb import DIALECT
from dpsql.engines.duckdb.copies.copies import attach as attach_copies
from dpsql.engines.duckdb.copies.copies import finish as finish_copies
from dpsql.engines.duckdb.copies.copies import place as place_of_copy
from dpsql.engines.duckdb.copies.copies import show as show_copies
from dpsql.engines.duckdb.files.frames import CTRL_C, copy_frame
from dpsql.engines.duckdb.files.parquet import folded
from dpsql.engines.duckdb.files.same_data import LookedAt
from dpsql.engines.duckdb.files.sources import expand_source
from dpsql.engines.duckdb.locked import agreed
from dpsql.engines.duckdb.locked.connections import (
    ATTACHED,
    attach,
    create_view,
    dispose,
    find_names,
    lock_down,
    own_cursor,
    set_bar,
    set_each,
    start,
)
from dpsql.engines.duckdb.locked.lockdown import UNLOCKED
from dpsql.engines.duckdb.locked.spill import SpillFolder, spill_folder
from dpsql.engines.duckdb.locked.versions import require_version, untested
from dpsql.engines.duckdb.read_as import Made, probe
from dpsql.engines.duckdb.reading import read
from dpsql.engines.duckdb.relations import Relation, catalogue_of, find, relations_of
from dpsql.engines.duckdb.views.stored_views import overlooks, reads_files, source_of, unreadable
from dpsql.engines.duckdb.views.views import reads_of
from dpsql.engines.open import Copies, GivenFrame
from dpsql.engines.progress import watched
from dpsql.engines.resources import EngineResources


class DuckDBEngine:
    """DuckDB holding the tables of one policy.

    One connection, one lock: fetches of several threads run one after the other, and a transaction holds the lock
    until it ends. `interrupt` needs no lock. Its `sibling` has a connection and a lock of its own.
    """

    dialect = DIALECT

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        home: str,
        spill: SpillFolder | None,
        progress: bool = False,
        *,
        second: duckdb.DuckDBPyConnection | None = None,
        locked: bool | None = None,
        made: Mapping[str, tuple[Made, ...]] | None = None,
        agreed: bool = False,
    ) -> None:
        """Use `open` or `wrap`. home: the catalogue of unqualified tables. spill: a folder to remove on close.

        made: table → the columns that the policy makes of the data's.
        second: the connection of the `sibling`. locked: whether nothing can be set any more; else if there is `spill`.
        agreed: whether other optimizers have to be turned off before each statement; see locked/agreed.py.
        """
        self.told: tuple[Note, ...] = ()
        self._looked_at: LookedAt | None = None
        self._connection, self._home, self._progress = connection, home, progress
        self._locked, self._agreed = spill is not None if locked is None else locked, agreed
        self.computed: dict[str, str] = {}
        self._made, self._sibling = {folded(table): columns for table, columns in (made or {}).items()}, None
        if second is not None:
            self._sibling = type(self)(second, home, None, progress, locked=self._locked, made=made, agreed=agreed)
            self._sibling.computed = self.computed
        self._lock = threading.RLock()
        self._stop = Stop()  # what `interrupt` cannot reach in DuckDB looks at it between its steps
        self._depth, self._begun, self._closing = 0, False, False
        self._registered: dict[str, bool] = {}  # name → whether it is a query of DuckDB's
        self._relations: tuple[Relation, ...] | None = None
        self._readable: set[Relation] = set()
        self._dispose = weakref.finalize(self, dispose, connection, spill)

    @classmethod
    def open(
        cls,
        database: Path | None,
        sources: Mapping[str, str | SourceCall],
        directory: Path,
        *,
        frames: Mapping[str, GivenFrame] | None = None,
        threads: int | None = None,
        memory_limit: str | None = None,
        progress: bool = False,
        made: Mapping[str, tuple[Made, ...]] | None = None,
        copies: Copies | None = None,
    ) -> DuckDBEngine:
        """Open a database file and source files read-only, and lock the connection to them.

        database: a DuckDB file, relative to `directory`; None if all tables have sources.
        sources: table name → one reader call, whose paths and patterns are relative to `directory`.
        frames: table name → its rows, which are copied.
        threads, memory_limit: passed to DuckDB, e.g. 4 and `8GB`; its defaults otherwise. What does not fit into memory
            goes to a private temporary folder that is removed on close.
        progress: whether to show the custodian how far a long query is; see engines/progress.py.
        made: table → the columns that the policy makes of the data's.
        copies: prepared tables, which are read in place of those of the same name.
        Raises: CannotOpen (DP006); Rejected (DP903) for limits that make no sense.
        """
        limits = EngineResources(threads, memory_limit)
        directory = Path(os.path.abspath(directory))
        calls = {table: expand_source(table, source, directory) for table, source in sources.items()}
        spill = spill_folder()
        connection: duckdb.DuckDBPyConnection | None = None
        problem: BaseException
        try:
            paths = [] if database is None else [os.path.abspath(directory / database.expanduser())]
            paths += [] if copies is None else [str(copies.place)]
            every = [path for call in calls.values() for path in call.paths]
            looked_at = None if frames else LookedAt.of([p for own in paths for p in (own, f"{own}.wal")], every)
            connection = start(limits, spill.path)
            set_bar(connection, progress)
            if database is not None:
                attach(connection, database, directory)
            if copies is not None:
                attach_copies(connection, Path(copies.place), copies.writing)
                if not copies.writing:
                    show_copies(connection, copies)
            for table, call in calls.items():
                create_view(connection, table, call, sources[table])
            for table, frame in (frames or {}).items():
                copy_frame(connection, table, frame)
            second = connection.cursor()
            set_each(second, progress)
            if database is not None:
                find_names(connection, second)
            lock_down(connection, tuple(every), progress)
            opened = cls(connection, ATTACHED, spill, progress, second=second, made=made)
            opened._looked_at = looked_at
            return opened
        except duckdb.Error:
            problem = cannot_open("DuckDB cannot be started with these settings", "check threads and memory_limit")
        except RuntimeError as error:
            problem = KeyboardInterrupt() if str(error) == CTRL_C else error
        except BaseException as error:
            problem = error
        dispose(connection, spill)
        raise problem from None

    @classmethod
    def wrap(
        cls,
        connection: duckdb.DuckDBPyConnection,
        *,
        progress: bool = False,
        made: Mapping[str, tuple[Made, ...]] | None = None,
        optimizers: str | None = None,
    ) -> DuckDBEngine:
        """Use a connection that the user opened: a cursor of it, with nothing locked and nothing set but for itself.

        Of the optimizers, only those of `locked/optimizers.py` may work while a statement of ours runs. DuckDB has one
        setting for all that use the database, so this is agreed upon.

        optimizers: "ours": others may be turned off meanwhile; None: it is refused unless they are off already.

        progress, made: as in `open`. Without progress, DuckDB's own bar, which notebooks have, is off for our cursor.
        Temporary tables and frames of the connection are not visible to its cursors; `register` frames instead.
        Raises: CannotOpen (DP006) if it is closed, is no DuckDB connection, redefines a built-in function, or has other
            optimizers on.
        """
        if not isinstance(connection, duckdb.DuckDBPyConnection):
            raise cannot_open(
                f"a DuckDB connection was expected, got {type(connection).__name__}",
                "pass what duckdb.connect(…) returned, or the path of a policy",
            )
        require_version()
        with contextlib.suppress(EngineError):
            own = guarded(lambda: own_cursor(connection, progress), lambda: None)
            free = own.restricted or optimizers == "ours"
            if own.collation in ("", "binary") and not own.shadowed and free:
                second = guarded(lambda: own_cursor(connection, progress), lambda: None).cursor
                engine = cls(own.cursor, own.home, None, progress, second=second, made=made, agreed=not own.restricted)
                with contextlib.suppress(EngineError):
                    engine.in_snapshot(lambda: None)  # whether they can be turned off
                    return engine
                engine.close()
                raise cannot_open(
                    "the DuckDB connection is locked with optimizers on that rewrite what queries compute",
                    "lock it later, or let dpsql open its file:  dpsql.connect('policy.yaml')  with  database:  there",
                )
            own.cursor.close()
            if not free:
                raise cannot_open(
                    "the DuckDB connection has optimizers on that rewrite what queries compute: a failure could tell",
                    "let dpsql open its file:  dpsql.connect('policy.yaml')  with  database:  in the policy",
                    "or agree that they are off, also for your own queries, while one of dpsql's runs:  "
                    "dpsql.connect(connection, policy=…, optimizers='ours')",
                )
            if not own.shadowed:
                raise cannot_open(
                    "the DuckDB connection has a default collation, which merges values that differ",
                    "RESET default_collation: group keys and joins compare text byte by byte",
                )
            raise cannot_open(
                f"the DuckDB connection redefines built-in functions: {', '.join(own.shadowed)}",
                "drop or rename these macros and functions: dpsql relies on what the built-in ones do",
            )
        raise cannot_open("the DuckDB connection is closed or cannot be used", "open it again and pass it anew")

    @property
    def version(self) -> str:
        """DuckDB's version."""
        return str(duckdb.__version__)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What whoever opened it tells; that nobody tested this DuckDB, that the connection is not locked, if so."""
        return (*self.told, *untested(), *(() if self._locked else (UNLOCKED,)))

    @property
    def data_identity(self) -> str:
        """See `TellsItsData`: of files that are opened here, and not of frames or of a connection of somebody else."""
        return "" if self._looked_at is None else self._looked_at.identity

    def fetch(self, sql: str) -> RawTable:
        """Run one SELECT, exactly, in a read-only transaction (a SELECT may hold a CTE that writes)."""
        return self.in_snapshot(lambda: self._fetch(sql))

    def _fetch(self, sql: str) -> RawTable:
        self._stop.clear()
        if self._closing:
            self._stop.set()
        with watched(self._connection.query_progress) if self._progress else contextlib.nullcontext() as look:
            return guarded(lambda: self._read(sql), self.interrupt, look, self._stop)

    def _read(self, sql: str) -> RawTable:
        return read(self._connection, sql, self._stop)

    def register(self, name: str, frame: object) -> None:
        """Give a DataFrame, an Arrow table or a relation a table name; only on a connection passed in by the user.

        Raises: CannotOpen (DP006).
        """
        help = "register pandas, polars or Arrow tables on an engine made from your own connection"
        if self._locked:
            raise cannot_open(f"`{name}` cannot be registered: the connection is locked", help)
        said = ""
        with self._lock:
            try:
                self._connection.register(name, frame)
                self._relations = None
                self._registered[name] = isinstance(frame, duckdb.DuckDBPyRelation)
                if self._sibling is not None:
                    self._sibling.register(name, frame)
                return
            except Exception as error:
                said = str(error)
        if said == CTRL_C:
            raise KeyboardInterrupt
        kind = with_article(type(frame).__name__)
        raise cannot_open(f"`{name}` cannot be registered: DuckDB cannot read {kind}", help)

    def describe(self) -> Catalogue:
        """The schema of what `table_sql` finds, without values or sizes; see `Engine.describe`."""
        with self._lock, contextlib.suppress(EngineError):
            found = guarded(lambda: catalogue_of(self._rows, self._load(), self._home), self.interrupt)
            for relation in self._load() if self._made else ():
                self._can_make(relation)
            return found
        raise cannot_open(
            "the schema of the data cannot be read", "check that the data is open and its files are whole"
        )

    def _can_make(self, relation: Relation) -> None:
        """Refuse columns that cannot be made of this data, whatever its rows are."""
        for made in relation.made:
            one, done = replace(relation, made=(made,), casts=()), False
            with contextlib.suppress(EngineError):
                guarded(lambda: self._rows(probe(made)), self.interrupt)  # noqa: B023  # run at once
                guarded(lambda: self._rows(f"SELECT * FROM {one.sql} LIMIT 0"), self.interrupt)  # noqa: B023
                done = True
            if not done:
                raise cannot_open(
                    f"tables.{relation.name}.columns.{made.name}: its `from` cannot be computed from the data",
                    f"check that there is a column `{made.of.column}`, of a type that has what is asked of it",
                    code="DP004",
                )

    def table_sql(self, name: str) -> str:
        """`name` is a table or view of the main schema, or `schema.table`, in any case; sources come first."""
        with self._lock:
            relation = find(self._known(), name, self._home)
            if relation is None and not self._locked:
                self._relations = None  # the user may have made the table a moment ago
                relation = find(self._known(), name, self._home)
            if relation is None:
                raise cannot_open(
                    f"the data has no table or view `{name}`",
                    "correct the table's name in the policy, or give the table a  source:",
                    code="DP004",
                )
            self._check(name, relation)
            return with_columns(relation.sql, self.computed.get(name.casefold()))

    def in_snapshot(self, action: Callable[[], T]) -> T:
        """In a read-only transaction; it ends in a rollback, which for reads is a commit."""
        with self._lock:
            if self._depth == 0:
                self._roll_back()  # a Ctrl-C may have come just before the last one's
                self._begun = True
            self._depth += 1
            try:
                if self._depth == 1:
                    self._settle(self._begin)
                return action()
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._roll_back()

    def _roll_back(self) -> None:
        if self._begun:
            with contextlib.suppress(EngineError):
                self._settle(lambda: self._connection.execute("ROLLBACK"))
            if self._agreed:
                self._settle(lambda: agreed.end(self))
            self._begun = False

    def _begin(self) -> None:
        if self._agreed:
            agreed.begin(self, self._connection)
        self._connection.execute("BEGIN TRANSACTION READ ONLY")

    def _settle(self, action: Callable[[], object]) -> None:
        """Do what takes no time to its end; a Ctrl-C meanwhile is raised after it, and not lost in it."""
        guarded(action, lambda: None)

    def copy(self, table: str, select: str, owner: str, together: bool) -> str:
        """See `Writer.copy`. All copies are in one file, of which its readers know."""
        sql = f"CREATE TABLE {place_of_copy(table)} AS {select} ORDER BY {DIALECT.identifier(owner)}"
        bar = watched(self._connection.query_progress) if self._progress else contextlib.nullcontext()
        with self._lock, bar as look:
            guarded(lambda: self._connection.execute(sql), self.interrupt, look)
        return ""

    def copied(self, table: str) -> str:
        """See `Writer.copied`."""
        return place_of_copy(table)

    def finish(self, manifest: str) -> None:
        """Write down what was prepared, and let go of its file. Raises EngineError."""
        with self._lock:
            guarded(lambda: finish_copies(self._connection, manifest), self.interrupt)

    def sibling(self) -> DuckDBEngine:
        """The same data, equally set and locked, over a second connection; see `Engine.sibling`."""
        return self if self._sibling is None else self._sibling

    def interrupt(self) -> None:
        """Stop the running query; a no-op if there is none or the engine is closed."""
        self._stop.set()
        with contextlib.suppress(Exception):
            self._connection.interrupt()

    def close(self) -> None:
        """Stop what runs, close the connection (or our cursor of the user's) and remove the temporary folder."""
        if self._sibling is not None:
            self._sibling.close()
        self._closing = True  # also for a query that is about to begin
        self.interrupt()
        with self._lock:
            agreed.end(self)
            self._dispose()

    def _known(self) -> tuple[Relation, ...]:
        """The relations, asked for once."""
        return self._relations if self._relations is not None else guarded(self._load, self.interrupt)

    def _load(self) -> tuple[Relation, ...]:
        if self._relations is None:
            first, names = ("memory", None) if self._locked else ("temp", self._registered)
            self._relations = relations_of(self._rows, self._home, first, names, self._made)
        return self._relations

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        alone = self._agreed and self._depth == 0
        if alone:
            agreed.begin(self, self._connection)
        try:
            return self._connection.execute(sql).fetchall()
        finally:
            if alone:
                agreed.end(self)

    def _check(self, name: str, relation: Relation) -> None:
        """Refuse merged values, overlooked values, and views of what the lock took away."""
        if relation.collated:
            raise cannot_open(
                f"table `{name}` has, or is a view that may have, a column with a collation",
                "store the table without COLLATE: group keys and joins compare text byte by byte",
            )
        if relation.credulous:
            if self._locked and (closed := reads_files(name, self._reads(relation), self._source_of(relation))):
                raise closed
            raise overlooks(name, self._source_of(relation), self._locked)
        if relation.view and relation not in self._readable:
            with contextlib.suppress(EngineError):
                guarded(lambda: self._rows(f"SELECT * FROM {relation.sql} LIMIT 0"), self.interrupt)
                self._readable.add(relation)
            if relation not in self._readable:
                raise unreadable(name, self._reads(relation), self._rows)

    def _reads(self, relation: Relation) -> tuple[str, ...]:
        return reads_of(self._rows, [r.place for r in self._load()])[relation.place]

    def _source_of(self, relation: Relation) -> str | None:
        return source_of(relation.text, self._reads(relation))
