"""A database of made-up rows: in memory, locked like the real ones, and read by the same engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.core.engine import RawTable, T, guarded
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.printing.computed import with_columns
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.diagnostics.note import Note
from dpsql.engines.duckdb import DIALECT
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.locked.connections import open_scratch

Row = tuple[str, ...]
"""One row as SQL literals."""

_CHUNK = 1000


class SyntheticEngine:
    """Tables by name, filled and emptied at will; everything is fetched by a `DuckDBEngine` over them."""

    dialect = DIALECT

    def __init__(self) -> None:
        self._connection = open_scratch()
        self._engine = DuckDBEngine.wrap(self._connection)
        self._names: dict[str, str] = {}
        self.computed: dict[str, str] = {}

    def create(self, name: str, columns: Sequence[tuple[str, str]]) -> None:
        """An empty table. columns: name and SQL type. Raises EngineError."""
        stored = f"t{len(self._names)}"  # policy names may hold dots
        fields = ", ".join(f"{quoted(column)} {type_}" for column, type_ in columns)
        self._run(f"CREATE TABLE {quoted(stored)} ({fields})")
        self._names[name] = stored

    def has(self, name: str) -> bool:
        """Whether there is such a table."""
        return name in self._names

    def fill(self, name: str, rows: Sequence[Row]) -> None:
        """The table holds these rows from now on, and no others. Raises EngineError."""
        table = quoted(self._names[name])
        self._run(f"DELETE FROM {table}")
        for start in range(0, len(rows), _CHUNK):
            values = ", ".join(f"({', '.join(row)})" for row in rows[start : start + _CHUNK])
            self._run(f"INSERT INTO {table} VALUES {values}")

    def _run(self, sql: str) -> None:
        guarded(lambda: self._connection.execute(sql), self.interrupt)

    @property
    def version(self) -> str:
        """DuckDB's version."""
        return self._engine.version

    @property
    def notes(self) -> tuple[Note, ...]:
        """None."""
        return ()

    def fetch(self, sql: str) -> RawTable:
        """As `Engine.fetch`."""
        return self._engine.fetch(sql)

    def describe(self) -> Catalogue:
        """As `Engine.describe`."""
        return self._engine.describe()

    def table_sql(self, name: str) -> str:
        """As `Engine.table_sql`."""
        return with_columns(self._engine.table_sql(self._names[name]), self.computed.get(name.casefold()))

    def in_snapshot(self, action: Callable[[], T]) -> T:
        """As `Engine.in_snapshot`."""
        return self._engine.in_snapshot(action)

    def sibling(self) -> SyntheticEngine:
        """Itself: an audit does one thing after the other."""
        return self

    def interrupt(self) -> None:
        """As `Engine.interrupt`."""
        self._engine.interrupt()

    def close(self) -> None:
        """Forget everything."""
        self._engine.close()
        self._connection.close()
