"""A connection that runs printed texts, and nothing besides: for tests of the dialect alone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import psycopg

from dpsql.core.engine import RawTable
from dpsql.core.printing.dialect import Dialect
from tests.engines_elsewhere.postgres.servers import Server

SETTINGS = "SET search_path = pg_catalog; SET TimeZone = 'UTC'; SET extra_float_digits = 1; SET DateStyle = 'ISO, MDY'"


class Bare:
    """Runs SELECTs. Whole numbers without a precision become integers."""

    def __init__(self, server: Server, dialect: Dialect, database: str = "postgres") -> None:
        self.dialect = dialect
        self.connection = psycopg.connect(server.address(database, "postgres"), autocommit=True)
        self.connection.execute(SETTINGS)

    def fetch(self, sql: str) -> RawTable:
        """All rows of one SELECT."""
        cursor = self.connection.execute(sql, binary=True)
        assert cursor.description is not None
        rows = cursor.fetchall()
        columns = [
            [_whole(row[i]) if c.precision is None else row[i] for row in rows]
            for i, c in enumerate(cursor.description)
        ]
        return RawTable(tuple(c.name for c in cursor.description), tuple(columns))

    def close(self) -> None:
        """End it."""
        self.connection.close()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else value
