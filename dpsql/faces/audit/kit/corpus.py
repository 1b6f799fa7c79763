"""One policy and queries that between them need each rule for how far a person moves a number."""

from __future__ import annotations

from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy

POLICY = """\
version: 1
name: kit
database: kit.duckdb
units: {person: {table: people, key: id}}
tables:
  people:
    unit: {of: person, column: id}
    primary_key: [id]
    columns:
      id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      region: {type: varchar, domain: [north, south], nullable: false}
      town: {type: varchar}
  orders:
    unit: {of: person, column: person_id}
    max_rows_per_unit: 3
    columns:
      person_id: {type: bigint}
      kind: {type: varchar, domain: [a, b, c], nullable: false}
      word: {type: varchar}
      amount: {type: double, bounds: [-10, 50]}
      quantity: {type: integer, bounds: [0, 20]}
  kinds:
    public: true
    max_frequency: [{columns: [kind], rows: 2}]
    columns: {kind: {type: varchar}, label: {type: varchar, domain: [x, y], nullable: false}}
  log:
    unit: {rows: 2}
    columns:
      kind: {type: varchar, domain: [a, b], nullable: false}
      n: {type: integer, bounds: [0, 20], nullable: false}
      x: {type: double, bounds: [-10, 30]}
budgets: {total: {epsilon: 100000, delta: 1e-1}}
"""
QUERIES = {
    "count": "SELECT COUNT(*) AS n FROM people WHERE age >= 65",
    "sum": "SELECT SUM(age) AS s FROM people",
    "sum-below-zero": "SELECT SUM(amount) AS s FROM orders",
    "groups": "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY region",
    "limited-rows": "SELECT COUNT(*) AS n, SUM(quantity) AS s FROM orders",
    "limited-groups": "SELECT kind, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY kind",
    "private-keys": "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
    "private-keys-of-many-rows": "SELECT word, COUNT(*) AS n FROM orders GROUP BY word",
    "distinct": "SELECT COUNT(DISTINCT word) AS n FROM orders",
    "join": "SELECT region, SUM(quantity) AS s FROM people JOIN orders ON id = person_id GROUP BY region",
    "join-outer": "SELECT COUNT(*) AS n FROM people LEFT JOIN orders ON id = person_id",
    "join-public": "SELECT label, COUNT(*) AS n FROM orders JOIN kinds USING (kind) GROUP BY label",
    "union": "SELECT COUNT(*) AS n FROM (SELECT id FROM people UNION ALL SELECT person_id FROM orders) AS u",
    "totals-per-person": "SELECT AVG(n) AS a FROM (SELECT person_id, COUNT(*) AS n FROM orders GROUP BY 1) AS t",
    "union-of-rows": "SELECT COUNT(*) AS n FROM (SELECT n FROM log WHERE n > 3 UNION ALL SELECT n FROM log) AS u",
    "rows": "SELECT kind, COUNT(*) AS n, SUM(x) AS s FROM log GROUP BY kind",
    "slices": "SELECT COUNT(*) FILTER (WHERE n < 5) AS few, COUNT(*) FILTER (WHERE n > 9) AS many FROM log",
    "variance": "SELECT VAR_POP(x) AS v FROM log",
    "computed": "SELECT SUM(CLIP(amount * quantity, 0, 100)) AS s FROM orders",
}


def policy() -> Policy:
    """The corpus's policy."""
    return parse_policy(POLICY, "policy.yaml")
