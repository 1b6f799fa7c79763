"""The file of prepared tables: a DuckDB database beside the policy, with a table for each, and what was prepared.

It is written under another name and takes its place when it is whole, so that readers see the old one or the new one,
and whoever has the old one open goes on reading it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import duckdb

from dpsql.core.engine import cannot_open
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.copies.seals import broken, log_of, seal, seal_alone
from dpsql.engines.duckdb.files.unreadable_files import unusable
from dpsql.engines.duckdb.locked.connections import start
from dpsql.engines.open import Copies

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows: nobody is kept from preparing at the same time
    fcntl = None  # type: ignore[assignment]

CATALOGUE: Final = "prepared"
CHANGED: Final = "were changed after they were prepared"
_MANIFEST: Final = f'{CATALOGUE}.main."""manifest"""'
"""A name that no table of a policy is written to: it has quotes of its own."""


def place(table: str) -> str:
    """Where the copy of a table stands."""
    return f"{CATALOGUE}.main.{quoted(table)}"


def place_of_view(table: str) -> str:
    """Where queries read the copy of a table."""
    return f'"memory"."main".{quoted(table)}'


def attach(connection: duckdb.DuckDBPyConnection, path: Path, writing: bool) -> None:
    """Attach the file, to be read or made. Raises CannotOpen (DP006), also if it is not what was written."""
    problem = None if writing else unusable(str(path)) or (CHANGED if broken(path) else None)
    if problem is None:
        how = "" if writing else "READ_ONLY, "
        name = str(path).replace("'", "''")
        with contextlib.suppress(duckdb.Error):
            connection.execute(f"ATTACH '{name}' AS {CATALOGUE} ({how}TYPE duckdb)")
            return
    if writing:
        raise cannot_open(
            f"the prepared tables cannot be written: {path}", "check that the folder can be written and has space"
        )
    raise _unreadable(path)


def _unreadable(path: Path) -> CannotOpen:
    return cannot_open(f"the prepared tables cannot be read: {path}", "prepare them again:  dpsql prepare POLICY")


def show(connection: duckdb.DuckDBPyConnection, copies: Copies) -> None:
    """Let these tables be read from their copies.

    Raises CannotOpen (DP006) if they are not those of the manifest, or if an integer lies beyond its ends.
    """
    if manifest_of(connection) != copies.manifest:
        raise cannot_open("the tables were prepared again just now", "open the data again")
    for table, ends in copies.ends.items():
        if not _within(connection, table, ends):
            raise _unreadable(Path(copies.place))
    for table in copies.tables:
        connection.execute(f"CREATE VIEW {place_of_view(table)} AS SELECT * FROM {place(table)}")


def _within(connection: duckdb.DuckDBPyConnection, table: str, ends: Mapping[str, tuple[int, int]]) -> bool:
    """Whether all integers are where queries take them to be. Reads the rows, and no statistics of the file's."""
    for column, (low, high) in ends.items():
        sql = f"SELECT MIN({quoted(column)}), MAX({quoted(column)}) FROM {place(table)}"
        with contextlib.suppress(duckdb.Error):
            ((least, greatest),) = connection.execute(sql).fetchall()
            if least is None or low <= least <= greatest <= high:
                continue
        return False
    return True


def manifest_of(connection: duckdb.DuckDBPyConnection) -> str | None:
    """What the attached file says of itself; None if it is not ours, or not whole."""
    with contextlib.suppress(duckdb.Error):
        ((text,),) = connection.execute(f"SELECT text FROM {_MANIFEST}").fetchall()
        return str(text)
    return None


def read_manifest(path: Path) -> str | None:
    """What a file of prepared tables says of itself; None if there is none, or if it is not whole."""
    if unusable(str(path)) is not None:
        return None
    with contextlib.suppress(duckdb.Error), contextlib.closing(start()) as connection:
        name = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{name}' AS {CATALOGUE} (READ_ONLY, TYPE duckdb)")
        return manifest_of(connection)
    return None


def finish(connection: duckdb.DuckDBPyConnection, manifest: str) -> None:
    """The last thing that is written: what the tables are."""
    text = manifest.replace("'", "''")
    connection.execute(f"CREATE TABLE {_MANIFEST} AS SELECT '{text}' AS text")
    connection.execute(f"CHECKPOINT {CATALOGUE}")
    connection.execute(f"DETACH {CATALOGUE}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place for the new file, which takes that of `path` when the body ends well. Whoever comes second waits.

    It is written in a folder that nobody else may look into. Raises CannotOpen (DP006).
    """
    folder, lock = path.with_name(path.name + ".new"), path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        descriptor = None
    if descriptor is None:
        raise cannot_open(f"the folder of {path} cannot be written", "give this user permission to write there")
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)  # left by one that was killed
        folder.mkdir(mode=0o700)
        new = folder / path.name
        yield new
        os.chmod(new, 0o600)
        with open(new, "rb") as file:
            os.fsync(file.fileno())
        seal(path, new)
        log_of(path).unlink(missing_ok=True)  # of somebody who has changed the old one
        os.replace(new, path)
        seal_alone(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)
