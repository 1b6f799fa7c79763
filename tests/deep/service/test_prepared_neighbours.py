"""Neighbouring databases are prepared, and their copies compared: they differ in the rows of the unit that differs.

Ids that are NULL, orders that nobody has, lines of no order, rows that are equal in everything, and values that are
equal and do not look so (0.0 and -0.0).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import copied, prepared_tables
from dpsql.core.printing.dialects.duckdb import DUCKDB
from dpsql.service.preparing import copy_sql
from tests.support.planning import policy

SHOP = policy("""
people: {unit: {column: id}, primary_key: [id], prepared: true, columns: {id: {type: double}, age: {type: integer}}}
orders:
  unit: {column: buyer}
  max_rows_per_unit: 2
  unique: [[nr]]
  prepared: true
  columns: {nr: {type: bigint}, buyer: {type: double}, price: {type: double}}
lines:
  unit: {path: [{column: nr, references: orders(nr)}]}
  max_rows_per_unit: 3
  unique: [[line]]
  prepared: true
  columns: {line: {type: bigint}, nr: {type: bigint}, qty: {type: double}}
parts:
  unit: {path: [{column: line, references: lines(line)}]}
  max_rows_per_unit: 2
  prepared: true
  columns: {line: {type: bigint}, part: {type: double}}
""")
COLUMNS = {
    "people": "id DOUBLE, age INTEGER", "orders": "nr BIGINT, buyer DOUBLE, price DOUBLE",
    "lines": "line BIGINT, nr BIGINT, qty DOUBLE", "parts": "line BIGINT, part DOUBLE",
}  # fmt: skip
OWNER = {"people": "id", "orders": "buyer", "lines": "buyer of orders", "parts": "buyer of orders"}
MOST = {"people": 1, "orders": 2, "lines": 3, "parts": 2}
Rows = dict[str, list[tuple[Any, ...]]]
ZEROS = [0.0, -0.0, 1.0]


def world(rng: random.Random) -> Rows:
    """A small shop, its rows in any order: they stand in the file as they came."""
    people = [(float(i), rng.randrange(3)) for i in range(3)]
    orders = [(nr, rng.choice([0.0, 1.0, 2.0, None]), rng.choice(ZEROS)) for nr in range(rng.randrange(9))]
    lines = [(n, rng.choice([*range(10), None]), rng.choice(ZEROS)) for n in range(rng.randrange(16))]
    parts = [(rng.choice([*range(18), None]), rng.choice(ZEROS)) for _ in range(rng.randrange(20))]
    found: Rows = {"people": people, "orders": orders, "lines": lines, "parts": parts}
    for rows in found.values():
        rng.shuffle(rows)
    return found


def without(rows: Rows, person: float) -> Rows:
    """The neighbour in which one person has no rows."""
    orders = {r[0] for r in rows["orders"] if r[1] == person}
    lines = {r[0] for r in rows["lines"] if r[1] in orders}
    return {
        "people": [r for r in rows["people"] if r[0] != person],
        "orders": [r for r in rows["orders"] if r[0] not in orders],
        "lines": [r for r in rows["lines"] if r[0] not in lines],
        "parts": [r for r in rows["parts"] if r[0] not in lines],
    }


def prepared(rows: Rows, salt: int, of: Policy = SHOP) -> dict[str, Counter[tuple[str, ...]]]:
    """The rows of all copies, as text."""
    with duckdb.connect(":memory:") as connection:
        for table, columns in COLUMNS.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
            if rows[table]:
                holes = ", ".join("?" * len(rows[table][0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({holes})", rows[table])
        now, done = of, set[str]()

        def where(name: str) -> str:
            return f"copy_{name}" if name in done else name

        found = {}
        for table in prepared_tables(of):
            sql = copy_sql.copy_sql(table, now, DUCKDB, where, salt)
            connection.execute(f"CREATE TABLE copy_{table.name} AS {sql}")
            now = copy_sql.staged(now, table, copied(table, of.tables))
            done.add(table.name)
            listed = f'SELECT CAST("{OWNER[table.name]}" AS VARCHAR), COLUMNS(*)::VARCHAR FROM copy_{table.name}'
            found[table.name] = Counter(connection.execute(listed).fetchall())
        return found


def broken(rows: Rows, salt: int) -> str:
    """What is wrong with the copies of a database and of its neighbours; empty if nothing is."""
    whole = prepared(rows, salt)
    for table, kept in whole.items():
        per_owner = Counter[str]()
        for row, n in kept.items():
            per_owner[str(float(row[0]) + 0.0)] += n
        if any(n > MOST[table] for n in per_owner.values()):
            return f"{table}: an owner has more rows than the limit"
    for person in (0.0, 1.0, 2.0):
        other = prepared(without(rows, person), salt)
        for table, kept in whole.items():
            changed = (kept - other[table]) + (other[table] - kept)
            if any(float(row[0]) != person for row in changed):
                return f"{table}: rows of others differ where {person} is gone"
    return ""


def test_copies_of_neighbours_differ_in_the_rows_of_the_unit() -> None:
    rng = random.Random(19)
    for _ in range(25):
        assert not broken(world(rng), rng.randrange(2**62))


def test_the_order_in_which_rows_stand_decides_nothing() -> None:
    rng = random.Random(7)
    for _ in range(10):
        rows, salt = world(rng), rng.randrange(2**62)
        first = prepared(rows, salt)
        for each in rows.values():
            each.reverse()
        assert prepared(rows, salt) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda sql: re.sub(r"PARTITION BY t\d\.c\d+ ORDER BY", "ORDER BY", sql),  # one limit for all
        lambda sql: re.sub(r"(?<=OVER \(PARTITION BY )t\d\.\S+(?=\) AS)", "1", sql),  # rows of all are counted
        lambda sql: sql.replace("<= 2", "<= 3"),  # one row more
        lambda sql: sql.replace("IS NOT NULL", "IS NOT DISTINCT FROM NULL OR TRUE"),  # rows of nobody
    ],
)
def test_a_copy_that_is_made_otherwise_is_noticed(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]
) -> None:
    right, rng = copy_sql.copy_sql, random.Random(19)
    monkeypatch.setattr(copy_sql, "copy_sql", lambda *given: change(right(*given)))

    def noticed() -> bool:
        try:
            return bool(broken(world(rng), rng.randrange(2**62)))
        except (TypeError, ValueError):  # an owner that is NULL
            return True

    assert any(noticed() for _ in range(40))
