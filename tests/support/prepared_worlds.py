"""Small shops, made at random, whose tables are prepared, and what is wrong with their copies.

Ids that are NULL, orders that nobody has, lines of no order, rows that are equal in everything, and values that are
equal and do not look so (0.0 and -0.0).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import copied, prepared_tables
from dpsql.core.printing.dialect import Dialect
from dpsql.service.preparing import copy_sql
from tests.support.planning import policy

_SHOP = """
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
"""
SHOP = policy(_SHOP)


def carrying(shop: str) -> Policy:
    """The policy of a shop whose copies carry what their rows belong to."""
    known = {"orders": "[people]", "lines": "[orders, people]", "parts": "[lines, orders, people]"}
    for table, carried in known.items():
        shop = re.sub(rf"(?s)(\n{table}:.*?prepared: true)", rf"\1\n  carries: {carried}", shop, count=1)
    return policy(shop)


CARRYING = carrying(
    _SHOP.replace("id: {type: double}", "id: {type: bigint}").replace("buyer: {type: double}", "buyer: {type: bigint}")
)

COLUMNS = {
    "people": "id DOUBLE, age INTEGER", "orders": "nr BIGINT, buyer DOUBLE, price DOUBLE",
    "lines": "line BIGINT, nr BIGINT, qty DOUBLE", "parts": "line BIGINT, part DOUBLE",
}  # fmt: skip
WHOLE_IDS = {**COLUMNS, "people": "id BIGINT, age INTEGER", "orders": "nr BIGINT, buyer BIGINT, price DOUBLE"}
"""For floating-point ids are joined by nobody."""
OWNER = {"people": "id", "orders": "buyer", "lines": "buyer of orders", "parts": "buyer of orders"}
MOST = {"people": 1, "orders": 2, "lines": 3, "parts": 2}
PEOPLE = 3
Rows = dict[str, list[tuple[Any, ...]]]
Copies = dict[str, Counter[tuple[str, ...]]]
"""Table → the rows of its copy as text, the owner first."""
ZEROS = [0.0, -0.0, 1.0]


def world(rng: random.Random, people: int = PEOPLE) -> Rows:
    """A small shop, its rows in any order: they stand in the file as they came."""
    ids = [float(i) for i in range(people)]
    times = people // PEOPLE
    persons = [(i, rng.randrange(3)) for i in ids]
    orders = [(nr, rng.choice([*ids, -0.0, None]), rng.choice(ZEROS)) for nr in range(times * rng.randrange(9))]
    lines = [(n, rng.choice([*range(10 * times), None]), rng.choice(ZEROS)) for n in range(times * rng.randrange(16))]
    parts = [(rng.choice([*range(18 * times), None]), rng.choice(ZEROS)) for _ in range(times * rng.randrange(20))]
    found: Rows = {"people": persons, "orders": orders, "lines": lines, "parts": parts}
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


def copying(of: Policy, dialect: Dialect, place: Callable[[str], str], salt: int) -> Iterator[tuple[str, str]]:
    """Each table and the SELECT of its copy, which is to be read where `place` says."""
    now, done = of, set[str]()

    def where(name: str) -> str:
        return place(name) if name in done else name

    for table in prepared_tables(of):
        yield table.name, copy_sql.copy_sql(table, now, dialect, where, salt)
        now = copy_sql.staged(now, table, copied(table, of.tables))
        done.add(table.name)


def broken(prepared: Callable[[Rows], Copies], rows: Rows, people: Sequence[float] = (0.0, 1.0, 2.0)) -> str:
    """What is wrong with the copies of a database and of its neighbours without these people; empty if nothing is."""
    whole = prepared(rows)
    for table, kept in whole.items():
        per_owner = Counter[str]()
        for row, n in kept.items():
            per_owner[str(float(row[0]) + 0.0)] += n
        if any(n > MOST[table] for n in per_owner.values()):
            return f"{table}: an owner has more rows than the limit"
    for person in people:
        other = prepared(without(rows, person))
        for table, kept in whole.items():
            changed = (kept - other[table]) + (other[table] - kept)
            if any(float(row[0]) != person for row in changed):
                return f"{table}: rows of others differ where {person} is gone"
    return ""


CHANGES: tuple[Callable[[str], str], ...] = (
    lambda sql: re.sub(r"PARTITION BY t\d\.c\d+ ORDER BY", "ORDER BY", sql),  # one limit for all
    lambda sql: re.sub(r"(?<=OVER \(PARTITION BY )t\d\.\S+(?=\) AS)", "1", sql),  # rows of all are counted
    lambda sql: sql.replace("<= 2", "<= 3"),  # one row more
    lambda sql: sql.replace("IS NOT NULL", "IS NOT DISTINCT FROM NULL OR TRUE"),  # rows of nobody
)
"""What breaks a copy."""
