"""What is done to a connection: ours gets its data and is locked; a cursor of the user's is set up for us alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from dpsql.core.engine import cannot_open, guarded
from dpsql.core.policy.source import SourceCall
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.duckdb.files.parquet import source_sql
from dpsql.engines.duckdb.files.unreadable_files import refusal, unusable
from dpsql.engines.duckdb.locked.lockdown import CLOSING, COUNTING, EACH, NO_BAR, OWN, SHADOWED, start_config
from dpsql.engines.duckdb.locked.optimizers import holds, restricted
from dpsql.engines.duckdb.locked.spill import SpillFolder
from dpsql.engines.duckdb.locked.versions import require_version
from dpsql.engines.duckdb.views.stored_views import looks_up
from dpsql.engines.resources import EngineResources

Connection = duckdb.DuckDBPyConnection
ATTACHED: Final = "data"


def start(limits: EngineResources | None = None, spill: str = "") -> Connection:
    """An empty DuckDB in memory. spill: where it may put what does not fit. Raises CannotOpen (DP006), duckdb.Error."""
    require_version()
    return restricted(start_config(limits or EngineResources(), spill))


def attach(connection: Connection, database: Path, directory: Path) -> None:
    """A database file, read-only, as the catalogue `ATTACHED`. Raises CannotOpen (DP006)."""
    path = os.path.abspath(directory / database.expanduser())
    problem = unusable(path)
    if problem is None:
        said = ""
        try:
            connection.execute(f"ATTACH '{path.replace(chr(39), chr(39) * 2)}' AS {ATTACHED} (READ_ONLY, TYPE duckdb)")
            return
        except duckdb.Error as error:
            said = str(error)
        problem = refusal(said, duckdb.__version__)
    what, help = problem
    raise cannot_open(f"database `{database}` {what}", help, f"the file is {path}")


def find_names(*connections: Connection) -> None:
    """Let stored views of the attached database find its tables, on each of these connections."""
    setting = looks_up(lambda sql: connections[0].execute(sql).fetchall(), ATTACHED)
    if setting is not None:
        for connection in connections:
            connection.execute(setting)


def create_view(connection: Connection, table: str, call: SourceCall, written: str | SourceCall) -> None:
    """A view for a table's source. written: the source as the policy has it. Raises CannotOpen (DP006)."""
    # DuckDB's own text may quote lines of a file, so none of it is shown.
    with contextlib.suppress(duckdb.Error):
        connection.execute(f"CREATE VIEW memory.main.{quoted(table)} AS {source_sql(call)}")
        return
    raise cannot_open(
        f"the source of table `{table}` cannot be read: {written}",
        "check that the files are what the reader expects, whole, and of one schema, and that the options are right",
    )


def set_bar(connection: Connection, progress: bool) -> None:
    """The first thing that a connection is told: to draw no bar. DuckDB has one on wherever Python runs no file."""
    try:
        for statement in COUNTING if progress else NO_BAR:
            connection.execute(statement)
    except duckdb.InvalidInputException:
        # In a notebook without ipywidgets DuckDB has no bar, and lets nobody change anything about it.
        if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
            raise


def set_each(connection: Connection, progress: bool) -> None:
    """What each connection to a database of ours is told for itself, before nothing can be set any more."""
    set_bar(connection, progress)
    for statement in EACH:
        connection.execute(statement)


def lock_down(connection: Connection, files: tuple[str, ...], progress: bool = False) -> None:
    """Leave these files readable, everything else off, and nothing to be set any more."""
    set_each(connection, progress)
    connection.execute("SET allowed_paths = ?", [list(dict.fromkeys(files))])
    for statement in CLOSING:
        connection.execute(statement)


@dataclass(frozen=True, slots=True)
class OwnCursor:
    """A cursor of the user's connection, set up for us.

    home: its catalogue. shadowed: built-in functions that somebody has redefined. restricted: whether no
    optimizer works that is not on our list.
    """

    cursor: Connection
    home: str
    shadowed: tuple[str, ...]
    collation: str
    restricted: bool


def own_cursor(connection: Connection, progress: bool) -> OwnCursor:
    """One more cursor, with nothing set but for itself."""
    cursor = connection.cursor()

    def look(sql: str) -> list[tuple[Any, ...]]:
        return cursor.execute(sql).fetchall()

    for statement in (*OWN, *(COUNTING if progress else NO_BAR)):
        with contextlib.suppress(duckdb.Error):  # refused on a connection that the user has locked
            cursor.execute(statement)
    return OwnCursor(
        cursor,
        home=look("SELECT current_database()")[0][0],
        shadowed=tuple(name for (name,) in look(SHADOWED)),
        collation=look("SELECT current_setting('default_collation')")[0][0],
        restricted=holds(cursor),
    )


def open_scratch() -> Connection:
    """An empty in-memory DuckDB, locked, for values that are public already."""
    connection = start()
    lock_down(connection, ())
    return connection


def build_database(path: Path, script: str) -> None:
    """Make a new database file with a script of ours (never with anybody's input): the demo's data.

    Raises: CannotOpen (DP006) if the file cannot be made.
    """
    with contextlib.closing(start()) as connection, contextlib.suppress(duckdb.Error, EngineError):
        connection.execute(f"ATTACH '{str(path).replace(chr(39), chr(39) * 2)}' AS made (TYPE duckdb)")
        connection.execute("USE made")
        guarded(lambda: connection.execute(script), connection.interrupt)
        return
    raise cannot_open(f"the database `{path}` cannot be made", "check that the folder can be written and has space")


def dispose(connection: Connection | None, spill: SpillFolder | None) -> None:
    """Close a connection and remove its temporary folder."""
    if connection is not None:
        with contextlib.suppress(Exception):
            connection.close()
    if spill is not None:
        spill.remove()
