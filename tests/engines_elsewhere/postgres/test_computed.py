"""Columns that the policy computes are computed by PostgreSQL: the same exact numbers as DuckDB's, and as a query's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.release.noisy import exact_totals
from tests.engines_elsewhere.postgres.servers import Server

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


def both(tmp_path: Path, server: Server, database: Callable[[str], str]) -> tuple[Path, Path]:
    here, there = tmp_path / "here.yaml", tmp_path / "there.yaml"
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute(DATA)
    here.write_text(POLICY.format(database="database: shop.duckdb"))
    there.write_text(POLICY.format(database=f"database: {server.address(database(DATA))}"))
    return here, there


def test_both_engines_compute_the_same(tmp_path: Path, server: Server, database: Callable[[str], str]) -> None:
    here, there = both(tmp_path, server, database)
    for sql, written in QUERIES.items():
        found = totals(there, sql)
        assert found == totals(here, sql), sql
        assert not written or found == totals(there, written), sql


def test_what_is_promised_of_it_is_verified(tmp_path: Path, server: Server, database: Callable[[str], str]) -> None:
    for path in both(tmp_path, server, database):
        path.write_text(
            path.read_text().replace(
                '"trim(buyer)", type: varchar', "\"nullif(trim(buyer), '')\", type: varchar, nullable: false"
            )
        )
        found = {c.where: c for c in dpsql.verify_policy(path).checks}
        assert found["tables.orders.columns.who.nullable"].measured == 2


def test_what_the_server_cannot_compute_is_refused_by_name(one_server: Server, tmp_path: Path) -> None:
    text = POLICY.format(database=f"database: {one_server.address('nowhere')}")
    for new, code in {"CAST(CAST(name AS integer) AS varchar)": "DP105", "name ->> 'a'": "DP003"}.items():
        (tmp_path / "shop.yaml").write_text(text.replace("upper(name)", new))
        with pytest.raises(dpsql.CannotOpen) as caught:
            dpsql.connect(tmp_path / "shop.yaml")
        (found,) = caught.value.diagnostics
        assert found.code == code and found.source is not None and found.span is not None
        assert found.message.startswith("tables.places.columns.code.from: ") and "make a view" in found.help[-1]
