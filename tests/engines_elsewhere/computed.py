"""A shop whose policy computes columns, and what is asked of them: for every engine that computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpsql
from dpsql.core.release.noisy import exact_totals

POLICY = """
version: 1
name: shop
{database}
tables:
  orders:
    unit: {{column: who}}
    max_rows_per_unit: 3
    columns:
      buyer: {{type: varchar}}
      paid: {{type: varchar}}
      price: {{type: integer, bounds: [0, 1000]}}
      off: {{type: double, bounds: [0, 1]}}
      day: {{type: date, bounds: [2024-01-01, 2024-12-31]}}
      seen: {{type: timestamptz}}
      late: {{from: "seen >= TIMESTAMPTZ '2024-02-29 23:30:00+01'", type: boolean}}
      who: {{from: "trim(buyer)", type: varchar}}
      euros: {{from: "price / 100", type: double}}
      net: {{from: "price * (1 - off)", type: double, bounds: [0, 300]}}
      third: {{from: "price // 3", type: smallint, bounds: [0, 99]}}
      month: {{from: "date_trunc('month', day)", type: date}}
      kind: {{from: "CASE WHEN price > 500 THEN 'much' ELSE 'little' END", type: varchar}}
      yes: {{from: "upper(paid) = 'YES'", type: boolean}}
      number: {{from: "CASE WHEN paid >= 'a' THEN length(paid) END", type: tinyint, bounds: [0, 9]}}
  places:
    public: true
    columns: {{name: {{type: varchar}}, code: {{from: "upper(name)", type: varchar}}}}
budgets: {{total: {{epsilon: 1e12, delta: 0.001}}}}
"""
DATA = """
CREATE TABLE orders (buyer varchar, paid varchar, price integer, off double precision, day date, seen timestamptz);
INSERT INTO orders (buyer, paid, price, off, day) VALUES
  ('1', 'yes', 120, 0.5, '2024-02-29'), (' 1', 'no', 999, 0.25, '2024-03-01'), ('1 ', NULL, -5, 0, '2024-12-31'),
  ('01', '7', 2147483647, 'nan', '2025-01-01'), ('2', 'Yes', NULL, 'inf', NULL), ('2', 'z', 30, '-inf', '1999-01-01'),
  ('x', 'YES', 30, 0.1, '2024-01-01'), (NULL, 'yes', 30, 0.1, '2024-01-01'), ('', '2', 30, NULL, '2024-01-01'),
  ('99999999999999999999', '3', 30, 0.1, '2024-01-01'), ('3', '9', -2147483648, 1e300, '2024-06-30');
UPDATE orders SET seen = '2024-02-29 22:30:00+00' WHERE price > 0;
CREATE TABLE places (name varchar);
INSERT INTO places VALUES ('much'), ('Little'), (NULL);
"""
QUERIES = {
    "SELECT SUM(euros), COUNT(*) FROM orders": "SELECT SUM(price / 100), COUNT(*) FROM orders",
    "SELECT SUM(net) FROM orders": "",
    "SELECT SUM(third), AVG(number) FROM orders": "",
    "SELECT month, COUNT(*) FROM orders GROUP BY month":
        "SELECT date_trunc('month', day)::DATE AS m, COUNT(*) FROM orders GROUP BY m",
    "SELECT kind, SUM(euros) FROM orders WHERE yes IS NOT TRUE GROUP BY kind":
        "SELECT CASE WHEN price > 500 THEN 'much' ELSE 'little' END AS k, SUM(price / 100) FROM orders "
        "WHERE (upper(paid) = 'YES') IS NOT TRUE GROUP BY k",
    "SELECT COUNT(DISTINCT who) FROM orders": "",
    "SELECT late, COUNT(*) FROM orders WHERE seen < '2024-03-01 00:00+00' GROUP BY late": "",
    "SELECT number, COUNT(*) FROM orders GROUP BY number": "",
    "SELECT code, COUNT(*) FROM orders JOIN places ON upper(kind) = code GROUP BY code": "",
}  # fmt: skip


def totals(policy: Path, sql: str) -> list[Any]:
    with dpsql.connect(policy, ledger=":memory:", epsilon=1, delta=1e-9) as con:
        return [exact_totals(r, con.service.engine, 7) for r in con.sql(sql).plan().releases]
