"""Which engine holds a policy's data, and how it is opened. Whoever is above asks here, and names no engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dpsql.core.engine import Engine, cannot_open
from dpsql.core.ir.types import SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.server import ServerError, parse_server
from dpsql.core.policy.source import Option, SourceCall
from dpsql.core.printing.dialect import Dialect
from dpsql.engines import duckdb, postgres, spark


@dataclass(frozen=True, slots=True)
class Frame:
    """A pandas, polars or Arrow table. types: what the policy declares of its columns, as far as it does."""

    value: object
    types: Mapping[str, SqlType]


@dataclass(frozen=True, slots=True)
class Copies:
    """Prepared tables. path: their file. tables: those that are read from it. manifest: what it says of itself.

    ends: table → column → its least and its greatest integer, without which nothing bounds a sum: whoever opens the
    file looks at all rows, and refuses one that has others. With writing the file is made, and nothing is read from it
    by a table's own name.
    """

    path: Path
    tables: tuple[str, ...] = ()
    manifest: str = ""
    writing: bool = False
    ends: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Options:
    """How the data is opened, beyond what the policy says.

    connection: one that the caller has opened himself, in place of what the policy names; None: there is none.
    frames: table of the policy → its rows. threads, memory_limit: how much of the machine the engine may take, e.g. 4
    and `8GB`. progress: whether to show the custodian how far a long query is. copies: prepared tables. notes: what the
    user should know of them.
    """

    connection: object | None = None
    frames: Mapping[str, Frame] = field(default_factory=dict)
    threads: int | None = None
    memory_limit: str | None = None
    progress: bool = False
    copies: Copies | None = None
    notes: tuple[str, ...] = ()


class Writer(Engine, Protocol):
    """A database whose prepared tables are being made."""

    def write(self, sql: str) -> None:
        """Run one statement of ours. Raises EngineError."""
        ...

    def finish(self, manifest: str) -> None:
        """Write down what was prepared, and let go of the file. Raises EngineError."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engine: its dialect, and what opens it; that imports its client."""

    dialect: Dialect
    open: Callable[[Policy, Options], Engine]


def _duckdb(policy: Policy, options: Options) -> Engine:
    from dpsql.engines.duckdb.opening import open_policy

    return open_policy(policy, options)


def _postgres(policy: Policy, options: Options) -> Engine:
    _require_psycopg()
    from dpsql.engines.postgres.opening import open_policy

    return open_policy(policy, options)


def _spark(policy: Policy, options: Options) -> Engine:
    _require_pyspark()
    from dpsql.engines.spark.opening import open_policy

    return open_policy(policy, options)


KINDS: Mapping[str, Kind] = {
    "duckdb": Kind(duckdb.DIALECT, _duckdb),
    "postgres": Kind(postgres.DIALECT, _postgres),
    "spark": Kind(spark.DIALECT, _spark),
}


def kind_of(policy: Policy) -> Kind:
    """The kind of engine that a policy's data needs: databases of DuckDB, files and frames are read by DuckDB."""
    return KINDS["duckdb" if policy.server is None else policy.server.kind]


def dialect_of(policy: Policy) -> Dialect:
    """What queries under a policy are printed in. Opens nothing, and imports no client."""
    return kind_of(policy).dialect


def open_engine(policy: Policy, options: Options) -> Engine:
    """A policy's data, locked where it is ours to lock. The caller closes it.

    Raises CannotOpen (DP006); Rejected (DP903) for options that make no sense.
    """
    return kind_of(policy).open(policy, options)


def open_files(database: Path | None, sources: Mapping[str, SourceCall], directory: Path) -> Engine:
    """Data that has no policy yet: a database file, and files by the names of their tables; paths as in a policy.

    Raises CannotOpen (DP006).
    """
    from dpsql.engines.duckdb.engine import DuckDBEngine

    return DuckDBEngine.open(database, sources, directory)


def open_server(address: str) -> Engine:
    """A server that has no policy yet, with all tables that may be read. The caller closes it.

    Raises CannotOpen (DP006).
    """
    try:
        server = parse_server(address)
    except ServerError as error:
        raise cannot_open(f"the server's address {error}", error.help) from None
    if server.kind == "spark":
        _require_pyspark()
        from dpsql.engines.spark.engine import SparkEngine

        return SparkEngine.open(server)
    _require_psycopg()
    from dpsql.engines.postgres.engine import PostgresEngine

    return PostgresEngine.open(server)


def _require_psycopg() -> None:
    try:
        importlib.import_module("psycopg")
        return
    except ImportError:
        pass
    raise cannot_open("PostgreSQL is read by psycopg, which is not installed", "pip install 'dpsql[postgres]'")


def _require_pyspark() -> None:
    try:
        importlib.import_module("dpsql.engines.spark.connecting")
        return
    except ImportError:
        pass
    raise cannot_open("Spark is read by pyspark-client, which is not installed", "pip install 'dpsql[spark]'")


def open_writer(policy: Policy, options: Options) -> Writer:
    """A policy's data as it is, and a new file for prepared tables. The caller closes it. Raises as `open_engine`."""
    from dpsql.engines.duckdb.opening import open_policy

    return open_policy(policy, options)


def replacing(path: Path) -> AbstractContextManager[Path]:
    """A place for a new file of prepared tables, which takes that of `path` when the body ends well."""
    from dpsql.engines.duckdb import copies

    return copies.replacing(path)


def read_manifest(path: Path) -> str | None:
    """What a file of prepared tables says of itself; None if there is none, or if it is not whole."""
    from dpsql.engines.duckdb import copies

    return copies.read_manifest(path)


def engine_version(policy: Policy) -> str:
    """The version of the engine that a policy's data would be opened with."""
    from dpsql.engines.duckdb.engine import DuckDBEngine

    return DuckDBEngine.installed()


def place_of_copy(table: str) -> str:
    """Where the copy of a table stands, as the engine writes it."""
    from dpsql.engines.duckdb import copies

    return copies.place(table)


def files_of(policy: Policy) -> tuple[str, ...]:
    """The files that a policy's data lies in: its database, and those of its sources, patterns expanded.

    Raises CannotOpen (DP006).
    """
    from dpsql.engines.duckdb.sources import expand_source

    found = [] if policy.database_path is None else [str(policy.database_path)]
    for table in policy.tables.values():
        if table.source is not None:
            found += expand_source(table.name, table.source, policy.directory).paths
    return tuple(dict.fromkeys(found))


def frame_types(frame: object) -> dict[str, SqlType | None]:
    """The columns of a pandas, polars or Arrow table and their types; None for a type that policies do not have.

    Nothing where there is no reading it.
    """
    from dpsql.engines.duckdb import frames

    return frames.types_of(frame)


def csv_options(path: str) -> tuple[tuple[str, Option], ...]:
    """Options of `read_csv` that say how this file is written, guessed from its first rows; none if nobody can tell."""
    from dpsql.engines.duckdb import csv_form

    return csv_form.csv_options(path)


def make_database(path: Path, script: str) -> None:
    """A new database file, by a script of ours in DuckDB's SQL (never with anybody's input): the demo's data.

    Raises CannotOpen (DP006) if the file cannot be made.
    """
    from dpsql.engines.duckdb.connections import build_database

    build_database(path, script)
