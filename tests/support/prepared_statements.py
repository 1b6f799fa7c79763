"""Statements over prepared copies of small shops: those of a shop and of the shops in which one person has no rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpsql.core.engine import RawTable
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import copied, prepared_tables
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore
from dpsql.service.preparing.copy_sql import staged, stored_forms
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.neighbour_oracle import random_limits
from tests.support.planning import policy
from tests.support.prepared_worlds import WHOLE_IDS, Rows, carrying, copying, without, world
from tests.support.random_databases import Store
from tests.support.whole_statements import Attacked, compared, reads_no_other

_SHOP = """
people:
  unit: {column: id}
  primary_key: [id]
  prepared: true
  columns: {id: {type: bigint}, age: {type: integer, bounds: [0, 1], domain: [0, 1]}}
orders:
  unit: {column: buyer}
  max_rows_per_unit: 2
  unique: [[nr]]
  prepared: true
  columns: {nr: {type: bigint}, buyer: {type: bigint}, price: {type: double, bounds: [-1, 0.75]}}
lines:
  unit: {path: [{column: nr, references: orders(nr)}]}
  max_rows_per_unit: 3
  unique: [[line]]
  prepared: true
  columns: {line: {type: bigint}, nr: {type: bigint}, qty: {type: double, bounds: [0, 1]}}
parts:
  unit: {path: [{column: line, references: lines(line)}]}
  max_rows_per_unit: 2
  prepared: true
  columns: {line: {type: bigint}, part: {type: double, bounds: [-2, 2]}}
"""
SHOP, CARRYING = policy(_SHOP), carrying(_SHOP)
STATEMENTS = (
    "SELECT COUNT(*), SUM(price), AVG(price) FROM orders",
    "SELECT COUNT(DISTINCT buyer), COUNT(*) FILTER (WHERE price > 0), COUNT(*) FILTER (WHERE price <= 0) FROM orders",
    "SELECT MEDIAN(price), SUM(DISTINCT price) FROM orders",
    "SELECT age, COUNT(*), SUM(price) FROM orders JOIN people ON buyer = id GROUP BY age",
    "SELECT MODE(age), AVG(age) FROM people",
    "SELECT COUNT(*), SUM(qty), VAR_POP(qty) FROM lines",
    "SELECT COUNT(*), SUM(qty * price) FROM lines JOIN orders ON lines.nr = orders.nr",
    "SELECT qty > 0 AS k, COUNT(*), AVG(part) FROM parts JOIN lines ON parts.line = lines.line GROUP BY 1",
    "SELECT age, COUNT(*), SUM(part) FROM parts JOIN lines ON parts.line = lines.line "
    "JOIN orders ON lines.nr = orders.nr JOIN people ON buyer = id GROUP BY age",
    "SELECT SUM(n), COUNT(*) FROM (SELECT buyer, SUM(price) AS n FROM orders GROUP BY buyer)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT buyer, price FROM orders)",
    "SELECT COUNT(*), COUNT(DISTINCT part) FROM parts WHERE part IS NOT NULL",
    "SELECT COUNT(*), SUM(price), COUNT(DISTINCT id) FROM parts, people, orders, lines WHERE parts.line = lines.line "
    "AND lines.nr = orders.nr AND id = buyer AND part <= qty + age",
    "SELECT age, COUNT(*), SUM(a.price - b.price) FROM people JOIN orders a ON id = a.buyer JOIN orders b "
    "ON id = b.buyer AND a.nr < b.nr GROUP BY age",
    "SELECT COUNT(*), SUM(age) FROM lines a JOIN lines b ON a.nr = b.nr JOIN orders ON b.nr = orders.nr JOIN people "
    "ON id = buyer",
)


class CopyStore(Store):
    """Copies of several databases, each under its number."""

    def __init__(self, of: Policy = SHOP) -> None:
        super().__init__()
        self.of = of

    def hold(self, databases: Sequence[Rows], salt: int) -> Policy:
        """The copies of these databases in place of the last ones; the policy that describes them."""
        units = {name: tuple(stored_forms(table)) for name, table in self.of.tables.items()}
        for db, rows in enumerate(databases):
            for table, columns in WHOLE_IDS.items():
                self.connection.execute(f"CREATE OR REPLACE TABLE {table} ({columns})")
                if rows[table]:
                    holes = ", ".join("?" * len(rows[table][0]))
                    self.connection.executemany(f"INSERT INTO {table} VALUES ({holes})", rows[table])
            for table, sql in copying(self.of, DUCKDB, lambda name, db=db: f"copy_{name}_{db}", salt):  # type: ignore[misc]
                self.connection.execute(f"CREATE OR REPLACE TABLE copy_{table}_{db} AS {sql}")
        now = self.of
        for each in prepared_tables(self.of):
            now = staged(now, each, copied(each, self.of.tables, units[each.name]))
        return now

    def fetch(self, sql: str) -> RawTable:
        """With the copy of the database that is shown."""
        db, self.db = self.db, 0
        try:
            return super().fetch(sql.replace("$db", str(db)))
        finally:
            self.db = db

    def table_sql(self, name: str) -> str:
        return f"copy_{name}_$db"


def attacked_copies(seeds: Iterable[int], of: Policy = SHOP) -> Attacked:
    """Every statement over the copies of each seed's shop. of: the policy by which they are made."""
    found, store = Attacked(), CopyStore(of)
    for seed in seeds:
        rng = random.Random(seed)
        rows = world(rng)
        databases = [rows, *(without(rows, person) for person in (0.0, 1.0, 2.0))]
        described = store.hold(databases, rng.randrange(2**62))
        for sql in STATEMENTS:
            settings = QuerySettings(
                Fraction(1), Fraction(1, 10**6), random_limits(rng), coverage=rng.random() < 0.2, anyway=True
            )
            try:
                plan = FactStore(store).compile(
                    lambda public, sql=sql, settings=settings, of=described: compile_query(  # type: ignore[misc]
                        Source(sql), of, public, settings, (), store.table_sql
                    )
                )
            except Rejected as refusal:
                found.refused[refusal.diagnostics[0].code] += 1
                continue
            found.statements += 1
            texts = [s.sql for r in plan.releases for s in r.statements]
            found.kinds["carried"] += any(f'"{table}.' in text for table in of.tables for text in texts)
            releases = filter(reads_no_other, plan.releases)
            problems = [p for r in releases for p in compared(r, store, len(databases) - 1, found, sql)]
            found.problems += [f"seed {seed}: {sql}\n{p}" for p in problems[:1]]
    store.close()
    return found
