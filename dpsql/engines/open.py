"""Which engine holds a policy's data, and how it is opened. Whoever is above asks here, and names no engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dpsql.core.engine import Engine, cannot_open
from dpsql.core.ir.types import SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.server_address import ServerError, parse_server
from dpsql.core.policy.source import Option, SourceCall
from dpsql.core.printing.dialect import Dialect
from dpsql.diagnostics.note import Note
from dpsql.engines import duckdb, postgres, spark

if TYPE_CHECKING:
    from dpsql.engines.duckdb.files.csv_faults import CsvFault
    from dpsql.engines.duckdb.files.csv_form import MissingWords


@dataclass(frozen=True, slots=True)
class GivenFrame:
    """A pandas, polars or Arrow table. types: what the policy declares of its columns, as far as it does."""

    value: object
    types: Mapping[str, SqlType]


@dataclass(frozen=True, slots=True)
class Copies:
    """Prepared tables. place: their file, or their folder. tables: those that are read from it.

    manifest: what it says of itself. ends: table → column → its least and its greatest integer, without which nothing
    bounds a sum: nobody reads another. looks: table → what its files have to look like, where it has files of its own.
    With writing the file is made, and nothing is read from it by a table's own name.
    """

    place: str
    tables: tuple[str, ...] = ()
    manifest: str = ""
    writing: bool = False
    ends: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    looks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How the data is opened, beyond what the policy says.

    connection: one that the caller has opened himself, in place of what the policy names; None: there is none.
    frames: table of the policy → its rows. threads, memory_limit: how much of the machine the engine may take, e.g. 4
    and `8GB`. progress: whether to show the custodian how far a long query is. copies: prepared tables. notes: what the
    user should know of them. optimizers: "ours": the user agrees that on his connection others than those that dpsql
    trusts are off while a statement of ours runs.
    """

    connection: object | None = None
    frames: Mapping[str, GivenFrame] = field(default_factory=dict)
    threads: int | None = None
    memory_limit: str | None = None
    progress: bool = False
    copies: Copies | None = None
    notes: tuple[Note, ...] = ()
    optimizers: str | None = None


class Writer(Engine, Protocol):
    """A database whose prepared tables are being made."""

    def copy(self, table: str, select: str, owner: str, together: bool) -> str:
        """Write the rows of a SELECT of ours as a table's copy, in the order of this column; what its files look like.

        together: whether the rows of one owner are made at one place. Raises EngineError.
        """
        ...

    def copied(self, table: str) -> str:
        """The relation of a copy that was made, before an alias."""
        ...

    def finish(self, manifest: str) -> None:
        """Write down what was prepared, and let go of it. Raises EngineError."""
        ...


class CopyStore(Protocol):
    """Where a policy's prepared tables are kept, and the data that they are made of. All may raise CannotOpen."""

    @property
    def missing(self) -> str:
        """What is said where there are none."""
        ...

    @property
    def version(self) -> str:
        """Of the engine that the data would be opened with, with its name."""
        ...

    def manifest(self) -> str | None:
        """What the prepared tables say of themselves; None if there are none, or if they are not whole."""
        ...

    def changed(self) -> str:
        """Why what is there is not what was written, in words; empty: it is, or is looked at when it is read."""
        ...

    def looks(self) -> Mapping[str, str]:
        """Part of the data → what it looks like now; empty: that cannot be told."""
        ...

    def place(self, identity: str) -> str:
        """Where the prepared tables of this identity stand."""
        ...

    def writing(self, identity: str, options: OpenOptions) -> AbstractContextManager[Writer]:
        """The data as it is, and a place for new prepared tables, which are read from when the body ends well."""
        ...


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A kind of engine: its dialect, what opens it, and what keeps copies of its tables; these import its client."""

    dialect: Dialect
    open: Callable[[Policy, OpenOptions], Engine]
    copies: Callable[[Policy], AbstractContextManager[CopyStore]] | None = None


def _duckdb(policy: Policy, options: OpenOptions) -> Engine:
    from dpsql.engines.duckdb.opening import open_policy

    return open_policy(policy, options)


def _postgres(policy: Policy, options: OpenOptions) -> Engine:
    _require_psycopg()
    from dpsql.engines.postgres.opening import open_policy

    return open_policy(policy, options)


def _spark(policy: Policy, options: OpenOptions) -> Engine:
    _require_pyspark()
    from dpsql.engines.spark.opening import open_policy

    return open_policy(policy, options)


def _duckdb_copies(policy: Policy) -> AbstractContextManager[CopyStore]:
    from dpsql.engines.duckdb.copies.copy_file import CopyFile

    return nullcontext(CopyFile(policy))


def _spark_copies(policy: Policy) -> AbstractContextManager[CopyStore]:
    _require_pyspark()
    from dpsql.engines.spark.copies import CopyFolders

    return closing(CopyFolders(policy))


KINDS: Mapping[str, EngineKind] = {
    "duckdb": EngineKind(duckdb.DIALECT, _duckdb, _duckdb_copies),
    "postgres": EngineKind(postgres.DIALECT, _postgres),
    "spark": EngineKind(spark.DIALECT, _spark, _spark_copies),
}


def kind_of(policy: Policy) -> EngineKind:
    """The kind of engine that a policy's data needs: databases of DuckDB, files and frames are read by DuckDB."""
    return KINDS["duckdb" if policy.server is None else policy.server.kind]


def dialect_of(policy: Policy) -> Dialect:
    """What queries under a policy are printed in. Opens nothing, and imports no client."""
    return kind_of(policy).dialect


def require_usable(policy: Policy) -> None:
    """That data of DuckDB could be opened with the DuckDB that is installed. Raises CannotOpen (DP006)."""
    if policy.server is None:
        from dpsql.engines.duckdb.locked.versions import require_version

        require_version()


def open_engine(policy: Policy, options: OpenOptions) -> Engine:
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


def copies_of(policy: Policy) -> AbstractContextManager[CopyStore]:
    """Where a policy's prepared tables are kept. Raises CannotOpen (DP006)."""
    found = kind_of(policy).copies
    assert found is not None, "a policy of this kind prepares no tables"
    return found(policy)


def frame_types(frame: object) -> dict[str, SqlType | None]:
    """The columns of a pandas, polars or Arrow table and their types; None for a type that policies do not have.

    Nothing where there is no reading it.
    """
    from dpsql.engines.duckdb.files import frames

    return frames.types_of(frame)


def csv_options(path: str) -> tuple[tuple[str, Option], ...]:
    """Options of `read_csv` that say how this file is written, guessed from its first rows; none if nobody can tell."""
    from dpsql.engines.duckdb.files import csv_form

    return csv_form.csv_options(path)


def missing_words(path: str, options: tuple[tuple[str, Option], ...]) -> MissingWords | None:
    """What a CSV file is to read as no value, where columns are texts only because of words such as NA."""
    from dpsql.engines.duckdb.files import csv_form

    return csv_form.missing_words(path, options)


def csv_fault(policy: Policy, table: str) -> CsvFault | None:
    """The first line that the CSV source of a table cannot read; None if there is none, or it has no such source."""
    from dpsql.engines.duckdb.files.csv_faults import first_fault
    from dpsql.engines.duckdb.files.sources import expand_source

    source = policy.tables[table].source
    if source is None or source.reader != "read_csv":
        return None
    return first_fault(expand_source(table, source, policy.directory))


def make_database(path: Path, script: str) -> None:
    """A new database file, by a script of ours in DuckDB's SQL (never with anybody's input): the demo's data.

    Raises CannotOpen (DP006) if the file cannot be made.
    """
    from dpsql.engines.duckdb.locked.connections import build_database

    build_database(path, script)
