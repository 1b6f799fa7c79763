"""The tables every benchmark query reads: `people` and `orders`, made by DuckDB from row numbers alone.

Orders per person are skewed (Pareto with shape 1.3, cut at 200, about five on average) and lie in no order, as rows do
that arrived over time. The same scale always gives the same rows on one version of DuckDB.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

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


def make(folder: Path, people: int = PEOPLE) -> Path:
    """The database file of that many people, made in `folder` unless it is there."""
    path = folder / f"people-{people}-duckdb-{duckdb.__version__}.duckdb"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with duckdb.connect(str(draft)) as connection:
        connection.execute(_PEOPLE, {"people": people})
        connection.execute(_ORDERS)
        connection.execute("CHECKPOINT")
    draft.replace(path)
    return path
