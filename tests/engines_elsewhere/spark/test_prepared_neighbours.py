"""Neighbouring databases are prepared on Spark, and their copies compared with each other and with DuckDB's."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from dpsql.core.ir.types import BIGINT, DOUBLE, INTEGER
from dpsql.core.policy.prepared import TOTAL
from dpsql.core.printing.dialect import Dialect
from dpsql.service.preparing import copy_sql
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.bare import Bare
from tests.engines_elsewhere.spark.same_rows import PORTABLE, connection
from tests.support.prepared_worlds import CHANGES, COLUMNS, OWNER, SHOP, Copies, Rows, broken, copying, world

PEOPLE = 9
TYPES = {"DOUBLE": DOUBLE, "BIGINT": BIGINT, "INTEGER": INTEGER}


def columns_of(table: str) -> list[tuple[str, str]]:
    return [(name, type_) for name, _, type_ in (c.partition(" ") for c in COLUMNS[table].split(", "))]


def made(table: str, rows: Rows) -> str:
    """A table's rows as a query on Spark."""
    columns = columns_of(table)
    given = rows[table] or [(None,) * len(columns)]
    cells = [
        ", ".join(SPARK.cast(SPARK.constant(v, TYPES[t]), TYPES[t]) for v, (_, t) in zip(row, columns, strict=True))
        for row in given
    ]
    names = [name for name, _ in columns]
    return f"SELECT * FROM {SPARK.values(cells, names, 'v')}{'' if rows[table] else ' WHERE FALSE'}"


def listed(d: Dialect, table: str) -> str:
    """The rows of a copy, the owner first, as numbers."""
    total = [TOTAL.name] if table != "people" else []
    items = [d.identifier(name) for name in (OWNER[table], *(name for name, _ in columns_of(table)), *total)]
    numbers = [d.cast(item, DOUBLE) for item in [*items, *["NULL"] * (5 - len(items))]]
    named = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(numbers))
    return f"SELECT '{table}' AS t, {named} FROM copy_{table}"


def as_copies(rows: list[tuple[object, ...]]) -> Copies:
    found: Copies = {table: Counter() for table in OWNER}
    for table, *cells in rows:
        found[str(table)][tuple(map(str, cells))] += 1
    return found


def in_duckdb(rows: Rows, salt: int) -> Copies:
    """By the hash that Spark has."""
    with connection() as con:
        for table, columns in COLUMNS.items():
            con.execute(f"CREATE TABLE {table} ({columns})")
            if rows[table]:
                con.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[table][0]))})", rows[table])
        for table, sql in copying(SHOP, PORTABLE, lambda name: f"copy_{name}", salt):
            con.execute(f"CREATE TABLE copy_{table} AS {sql}")
        return as_copies(con.execute(" UNION ALL ".join(listed(PORTABLE, t) for t in OWNER)).fetchall())


def on_spark(engine: Bare, rows: Rows, salt: int) -> Copies:
    for table in COLUMNS:
        engine.session.sql(made(table, rows)).createOrReplaceTempView(table)
    for table, sql in copying(SHOP, SPARK, lambda name: f"copy_{name}", salt):
        engine.session.sql(sql).createOrReplaceTempView(f"copy_{table}")
    return as_copies(list(engine.fetch(" UNION ALL ".join(listed(SPARK, t) for t in OWNER)).rows()))


def test_copies_of_neighbours_differ_in_the_rows_of_the_unit_and_are_duckdbs(server: str) -> None:
    engine, rng = Bare(server, SPARK), random.Random(0)
    rows, salt = world(rng, PEOPLE), rng.randrange(2**62)

    def prepared(rows: Rows) -> Copies:
        found = on_spark(engine, rows, salt)
        assert found == in_duckdb(rows, salt)
        return found

    first = prepared(rows)
    assert all(len(rows[t]) > found.total() > 1 for t, found in first.items() if t != "people")
    assert not broken(prepared, rows, (0.0, 3.0, 8.0))
    for each in rows.values():
        each.reverse()
    assert prepared(rows) == first  # the order in which rows stand decides nothing
    engine.close()


@pytest.mark.long_on_spark
@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_that_is_made_otherwise_is_noticed(
    server: str, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]
) -> None:
    right, rng, engine = copy_sql.copy_sql, random.Random(0), Bare(server, SPARK)
    monkeypatch.setattr(copy_sql, "copy_sql", lambda *given: change(right(*given)))

    rows, salt = world(rng, PEOPLE), rng.randrange(2**62)

    def noticed() -> bool:
        try:
            return bool(broken(lambda rows: on_spark(engine, rows, salt), rows, (0.0, 3.0, 8.0)))
        except ValueError:  # an owner that is NULL
            return True

    assert noticed()
    engine.close()
