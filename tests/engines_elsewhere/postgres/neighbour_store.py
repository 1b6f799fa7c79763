"""A PostgreSQL that shows one database of a world at a time, as the Store of tests.support.random_databases does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import psycopg

from dpsql.core.engine import RawTable, T
from dpsql.core.ir.types import parse_type
from dpsql.core.printing.dialects.postgres_casts import type_name
from dpsql.engines.postgres.asking_again import OF_VALUES
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.random_databases import Store, Table, World


class PostgresStore(Store):
    """What fails by a row's value is asked again, as the engine does."""

    dialect = POSTGRES  # type: ignore[assignment]

    def __init__(self, server: Server, database: str) -> None:
        self.bare = Bare(server, POSTGRES, database)
        self.bare.connection.execute("SET search_path = public")
        self.db = 0
        self.asked_again = 0
        self._tables: dict[str, Table] = {}
        self._made = set[str]()
        self._functions: dict[str, str] = {}

    def load(self, world: World) -> None:
        for table in world.tables:
            self.bare.connection.execute(f'DROP TABLE IF EXISTS "{table.name}"'.encode())
            for statement in table.create():
                self.bare.connection.execute(_in_postgres(statement).encode())
        self._tables = {t.name: t for t in world.tables}

    def fetch(self, sql: str) -> RawTable:
        found = self.bare.fetch(sql.replace("$db", str(self.db)))
        return RawTable(found.names, tuple(list(column) for column in found.columns))

    def at_hand(self, functions: Sequence[tuple[str, str]]) -> None:
        self._functions.update(functions)

    def fetch_again(self, sql: str, again: str, functions: Sequence[str]) -> RawTable:
        try:
            return self.fetch(sql)
        except psycopg.Error as error:
            if (error.sqlstate or "")[:2] not in OF_VALUES:
                raise
        self.asked_again += 1
        for name in set(functions) - self._made:
            self.bare.connection.execute(self._functions[name].encode())
            self._made.add(name)
        return self.fetch(again)

    def in_snapshot(self, action: Callable[[], T]) -> T:
        return action()

    def close(self) -> None:
        self.bare.close()


def _in_postgres(statement: str) -> str:
    """CREATE TABLE or INSERT of a world's table."""
    plain = statement.replace("CREATE OR REPLACE TABLE", "CREATE TABLE")
    if plain.startswith("CREATE TABLE"):
        head, _, listed = plain.partition(" (")
        columns = re.sub(r'("(?:[^"]|"")*") ([A-Z]+(?:\(\d+,\d+\))?)', lambda m: f"{m[1]} {_named(m[2])}", listed)
        return f"{head} ({columns.replace('dbs BIGINT', 'dbs bigint')}"
    return re.sub(r" AS ([A-Z]+(?:\(\d+,\d+\))?)\)", lambda m: f" AS {_named(m[1])})", plain)


def _named(type_: str) -> str:
    found = parse_type(type_)
    assert found is not None
    return type_name(found)
