"""A third database of DuckDB's, in memory: what a policy says of itself, for clients that ask for a schema.

It is locked like the others, holds no data at all, and has little memory and one second for each question.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, Final

import duckdb
from duckdb.func import FunctionNullHandling, PythonUDFType

from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.engines.duckdb.locked.connections import lock_down, start
from dpsql.engines.policy_catalogue import CatalogueFunction, CatalogueRelation, DoesNotFit, TooMuch
from dpsql.engines.resources import EngineResources

SECONDS: Final = 1.0
MEMORY: Final = "256MB"
MOST_VALUES: Final = 500_000
"""Values of an answer: columns times rows."""
MOST_CHARACTERS: Final = 10_000_000
"""Of the texts of an answer."""
_NO_COLUMN: Final = re.compile(r'(?:Referenced column|a column named) "([^"]*)"')


class DuckDBCatalogue:
    """Relations and functions, and SELECTs over them. Made at once; one question at a time, from any thread."""

    def __init__(self, relations: Sequence[CatalogueRelation], functions: Sequence[CatalogueFunction]) -> None:
        self._lock = threading.Lock()
        self._connection = start(EngineResources(memory=MEMORY, threads=1))
        run = self._connection.execute
        run("BEGIN")
        for relation in relations:
            fields = ", ".join(f"{quoted(name)} {type_}" for name, type_ in relation.columns.items())
            run(f"CREATE TABLE {quoted(relation.name)} ({fields})")
            if relation.rows:
                marks = ", ".join("?" for _ in relation.columns)
                self._connection.executemany(
                    f"INSERT INTO {quoted(relation.name)} VALUES ({marks})", [list(row) for row in relation.rows]
                )
        run("COMMIT")
        for f in functions:
            self._connection.create_function(
                f.name, f.call, list(f.arguments), f.result,
                type=PythonUDFType.NATIVE, null_handling=FunctionNullHandling.SPECIAL,
            )  # fmt: skip
        lock_down(self._connection, ())

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Raises TooMuch, DoesNotFit."""
        rows: list[tuple[Any, ...]]
        with self._lock:
            late = threading.Timer(SECONDS, self._connection.interrupt)
            late.start()
            try:
                result = self._connection.execute(sql)
                most = MOST_VALUES // max(len(result.description or ()), 1)
                rows = result.fetchmany(most + 1)
            except (duckdb.BinderException, duckdb.ConversionException) as error:
                named = _NO_COLUMN.search(str(error))
                raise DoesNotFit(named[1] if named else "") from None
            except duckdb.Error:
                raise TooMuch from None
            finally:
                late.cancel()
                late.join()
            if len(rows) > most or sum(len(v) for row in rows for v in row if isinstance(v, str)) > MOST_CHARACTERS:
                raise TooMuch
            return rows

    def close(self) -> None:
        """Forget everything. Closing twice is allowed."""
        self._connection.close()
