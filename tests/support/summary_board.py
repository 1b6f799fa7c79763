"""A made-up board of flights: five columns with public lists, one of which has values outside, and NULL."""

from __future__ import annotations

from pathlib import Path

from tests.support.built_once import build

POLICY = """
version: 1
name: board
data_version: "1"
database: board.duckdb
units: {flight: {}, person: {}}
tables:
  flights:
    unit: {of: flight, rows: 1}
    columns:
      month: {type: bigint, bounds: [1, 4], nullable: false}
      origin: {type: varchar, domain: [EWR, JFK, LGA], nullable: false}
      carrier: {type: varchar, domain: [AA, B6, UA]}
      hour: {type: bigint, bounds: [5, 9]}
      late: {type: boolean}
      fare: {type: 'decimal(4,1)', domain: [1.5, 2.5]}
      dest: {type: varchar}
  visits:
    unit: {of: person, column: id}
    max_rows_per_unit: 3
    columns:
      id: {type: bigint, nullable: false}
      ward: {type: varchar, domain: [a, b, c], nullable: false}
      day: {type: date, bounds: [2025-01-01, 2025-01-09], nullable: false}
  tours:
    unit: {of: person, column: id}
    max_groups_per_unit: 1
    max_rows_per_group: 1
    columns:
      id: {type: bigint, nullable: false}
      ward: {type: varchar, domain: [a, b, c], nullable: false}
  wards:
    public: true
    columns:
      ward: {type: varchar}
budgets:
  total: {epsilon: 1e12, delta: 0.1}
  analysts:
    ana: {epsilon: 1e12, delta: 0.1}
    bob: {epsilon: 1e12, delta: 0.1}
    poor: {epsilon: 0.1, delta: 0.1}
    careful: {epsilon: 10, delta: 0.1, per_query: {max_epsilon: 0.2, max_delta: 0.1}}
ledger: board.sqlite
ledger_head: board.head
"""

TABLES = """
CREATE TABLE flights (month BIGINT NOT NULL, origin VARCHAR NOT NULL, carrier VARCHAR, hour BIGINT, late BOOLEAN,
  fare DECIMAL(4, 1), dest VARCHAR);
CREATE TABLE visits (id BIGINT NOT NULL, ward VARCHAR NOT NULL, day DATE NOT NULL);
CREATE TABLE tours (id BIGINT NOT NULL, ward VARCHAR NOT NULL);
CREATE TABLE wards AS FROM (VALUES ('a'), ('b')) v(ward);
"""

ROWS = """
INSERT INTO flights SELECT 1 + i % 4, ['EWR', 'JFK', 'LGA'][1 + i % 3],
  [NULL, 'AA', 'B6', 'UA', 'ZZ'][1 + i % 5], CASE WHEN i % 11 = 0 THEN NULL ELSE 3 + i % 9 END,
  CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN TRUE ELSE FALSE END, 0.5 + i % 3, 'd' || i % 6 FROM range(700) t(i);
INSERT INTO visits SELECT i % 60, CASE i % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'z' END,
  DATE '2024-12-30' + CAST(i % 14 AS INTEGER) FROM range(200) t(i);
INSERT INTO tours SELECT id, ward FROM visits;
"""

HUGE = 10**9
CREATE = "CREATE DP SUMMARY board ON flights (month, origin, carrier, hour, late) WITH (k = 2, epsilon = 0.5)"

TILES = (
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month",
    "SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, carrier",
    "SELECT carrier, COUNT(*) AS n, COUNT(*) FILTER (WHERE late) AS late FROM flights GROUP BY carrier",
    "SELECT carrier, 1.0 * COUNT(*) FILTER (WHERE hour > 7) / COUNT(*) AS r FROM flights GROUP BY carrier",
    "SELECT COUNT(*) AS n FROM flights WHERE origin = 'JFK' AND hour BETWEEN 6 AND 8",
    "SELECT COUNT(*) AS n FROM flights",
    "SELECT hour, COUNT(*) AS n FROM flights WHERE origin IN ('JFK', 'LGA') GROUP BY hour",
    "SELECT month, COUNT(*) AS n FROM flights WHERE NOT (month = 2 OR month = 3) GROUP BY month",
    "SELECT COUNT(*) AS n FROM flights WHERE carrier IS NULL OR hour IS NULL",
    "SELECT late, COUNT(*) AS n, COUNT(carrier) AS known FROM flights GROUP BY late",
    "SELECT month, COUNT(*) FILTER (WHERE late) - COUNT(*) FILTER (WHERE NOT late) AS d FROM flights GROUP BY month "
    "HAVING COUNT(*) > 10 ORDER BY month DESC LIMIT 3",
    "SELECT month < 3 AS early, SUM(CASE WHEN origin = 'LGA' THEN 1 ELSE 0 END) AS s FROM flights GROUP BY 1",
)  # fmt: skip
"""A dashboard: groups of any subset, ranges, IN, AND, OR, NOT, NULL, ratios and differences."""


def make_board(folder: Path, policy: str = POLICY) -> Path:
    """Make the data and its policy; the policy's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "board.yaml").write_text(policy, encoding="utf-8")
    build(folder / "board.duckdb", TABLES + ROWS)
    return folder / "board.yaml"
