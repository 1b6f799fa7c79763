"""The tables that benchmarks read, made by DuckDB from row numbers alone, and sessions over them.

Orders per person are skewed (Pareto with shape 1.3, cut at 200, about five on average) and lie in no order, as rows do
that arrived over time. The same scale always gives the same rows on one version of DuckDB.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

import dpsql

PEOPLE = 1_000_000

_UNIFORM = "(hash({0}, {1}) % 1000003) / 1000003.0"

_PEOPLE = f"""
CREATE TABLE people AS
SELECT id,
       CAST(floor(100 * {_UNIFORM.format("id", 1)}) AS INTEGER) AS age,
       least(200000, 15000 + 8000 / (1 - 0.99 * {_UNIFORM.format("id", 2)}))::DOUBLE AS income,
       ['north', 'south', 'east', 'west'][CAST(hash(id, 3) % 4 AS BIGINT) + 1] AS region
FROM range($people) AS t(id)
"""

_ORDERS = f"""
CREATE TABLE orders AS
SELECT person_id, category, amount
FROM (
    SELECT id AS person_id, i,
           'c' || lpad(CAST(CAST(hash(id, i, 4) % 20 AS BIGINT) AS VARCHAR), 2, '0') AS category,
           round(500 * {_UNIFORM.format("id, i", 5)}, 2)::DOUBLE AS amount
    FROM (SELECT id, range(CAST(least(200, floor(1.56 / (1 - {_UNIFORM.format("id", 6)}) ** (1 / 1.3))) AS BIGINT)) AS r
          FROM people), LATERAL unnest(r) AS u(i)
)
ORDER BY hash(person_id, i, 7)
"""

POLICY_ROWS = """\
version: 1
name: benchmark-rows
tables:
  people:
    unit: {rows: 1}
    columns:
      id:     {type: bigint, nullable: false}
      age:    {type: integer, bounds: [0, 100], nullable: false}
      income: {type: double, bounds: [0, 200000]}
      region: {type: varchar, domain: [north, south, east, west], nullable: false}
budgets:
  total: {epsilon: 1000000, delta: 1e-3}
"""

POLICY_PERSONS = """\
version: 1
name: benchmark-persons
units:
  person: {table: people, key: id}
tables:
  people:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:     {type: bigint, nullable: false}
      age:    {type: integer, bounds: [0, 100], nullable: false}
      income: {type: double, bounds: [0, 200000]}
      region: {type: varchar, domain: [north, south, east, west], nullable: false}
  orders:
    unit: {column: person_id}
    max_rows_per_unit: 10
    max_groups_per_unit: 5
    max_rows_per_group: 5
    foreign_keys: [{columns: [person_id], references: people(id)}]
    columns:
      person_id: {type: bigint, nullable: false}
      category:  {type: varchar, domain: CATEGORIES, nullable: false}
      amount:    {type: double, bounds: [0, 500]}
budgets:
  total: {epsilon: 1000000, delta: 1e-3}
""".replace("CATEGORIES", "[" + ", ".join(f"c{i:02}" for i in range(20)) + "]")


POLICIES = {"rows": POLICY_ROWS, "persons": POLICY_PERSONS}


def make(folder: Path, people: int = PEOPLE, orders: bool = True) -> Path:
    """The database file of that many people, with their orders or without, made in `folder` unless it is there."""
    name = f"people-{people}" if orders else f"people-only-{people}"
    return kept(folder / f"{name}-duckdb-{duckdb.__version__}.duckdb", lambda draft: _write(draft, people, orders))


def parquet(folder: Path, table: str, database: Path) -> Path:
    """A table of a database file as Parquet, made beside the others in `folder` unless it is there."""

    def write(draft: Path) -> None:
        with duckdb.connect(str(database), read_only=True) as connection:
            connection.execute(f"COPY {table} TO '{draft}' (FORMAT parquet)")

    return kept(folder / f"{database.stem}-{table}.parquet", write)


def view(plain: duckdb.DuckDBPyConnection, table: str, file: Path | str) -> None:
    """The Parquet file as a table; and an empty `people`, which the policy of the persons needs beside `orders`."""
    plain.execute(f"CREATE VIEW {table} AS FROM read_parquet('{file}', can_have_nan = true)")
    if table == "orders":
        plain.execute("CREATE TABLE people (id BIGINT, age INTEGER, income DOUBLE, region VARCHAR)")


def _write(draft: Path, people: int, orders: bool) -> None:
    with duckdb.connect(str(draft)) as connection:
        connection.execute(_PEOPLE, {"people": people})
        if orders:
            connection.execute(_ORDERS)
        connection.execute("CHECKPOINT")


def kept(path: Path, write: Callable[[Path], None]) -> Path:
    """The file at `path`, written to a draft first, so that it is whole or absent."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        write(draft)
        draft.replace(path)
    return path


@contextmanager
def session(plain: duckdb.DuckDBPyConnection, policy: str) -> Iterator[dpsql.Connection]:
    """A session over an open connection, with the text of its policy and a new, durable ledger."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "policy.yaml"
        file.write_text(policy + "ledger: ledger.sqlite\nledger_head: head.json\n", encoding="utf-8")
        with dpsql.connect(plain, policy=file, optimizers="ours") as connection:
            yield connection
