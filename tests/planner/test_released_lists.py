# ruff: noqa: E501
"""Groups that a released list leaves out are not shown, and the others have their right numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.planner.rewrites import rules
from dpsql.planner.rewrites.keys.leave_out_unlisted import leave_out_unlisted

POLICY = """
version: 1
name: shop
tables:
  orders:
    source: read_parquet('{orders}')
    unit: {{of: customer, column: customer}}
    max_rows_per_unit: 3
    columns:
      customer: {{type: bigint, nullable: false}}
      status: {{type: varchar, domain: [done, open, lost, back]}}
      shop: {{type: integer, domain: [1, 2, 3]}}
      day: {{type: date, bounds: [2024-01-01, 2024-02-29]}}
budgets: {{total: {{epsilon: 1e12, delta: 0.1}}}}
"""
ROWS = (
    "SELECT i // 3 AS customer, CASE WHEN i % 6 = 0 THEN 'open' WHEN i % 10 = 1 THEN 'lost' WHEN i % 7 <> 3 THEN 'done' END"
    " AS status, CAST(1 + i % 2 AS INTEGER) AS shop, DATE '2024-01-01' + CAST(i % 60 AS INTEGER) AS day FROM range(3000) AS t(i)"
)
TOP = "SELECT status AS s, COUNT(*) AS c FROM orders GROUP BY 1 ORDER BY c DESC LIMIT 2"
LARGE = "SELECT status AS s FROM orders GROUP BY 1 HAVING COUNT(*) > 400"
LISTED = {
    "a series limit": f"SELECT status, month(day) AS m, COUNT(*) FROM orders JOIN ({TOP}) AS q ON status = q.s GROUP BY 1, 2",
    "by the list's column": f"SELECT q.s, COUNT(*) FROM orders JOIN ({TOP}) AS q ON q.s = status GROUP BY 1",
    "with another column of the list": f"SELECT q.s, q.c > 1000 AS big, COUNT(*) FROM orders JOIN ({TOP}) AS q ON q.s = status GROUP BY 1, 2",
    "in": f"SELECT status, COUNT(*) FROM orders WHERE status IN ({LARGE}) GROUP BY 1",
    "not in": f"SELECT status, COUNT(*) FROM orders WHERE status NOT IN ({LARGE} AND status IS NOT NULL) GROUP BY 1",
    "exists": f"SELECT status, COUNT(*) FROM orders AS o WHERE EXISTS (SELECT 1 FROM ({LARGE}) AS q WHERE q.s = o.status) GROUP BY 1",
    "not exists": f"SELECT status, COUNT(*) FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM ({LARGE}) AS q WHERE q.s = o.status) GROUP BY 1",
    "one value": f"SELECT status, COUNT(*) FROM orders WHERE status = (SELECT MAX(s) FROM ({LARGE})) GROUP BY 1",
    "two keys": "SELECT status, shop, COUNT(*) FROM orders WHERE (status, shop) IN (SELECT status, shop FROM orders GROUP BY 1, 2"
    " HAVING COUNT(*) > 400) GROUP BY 1, 2",
    "a wider type": "SELECT shop, COUNT(*) FROM orders JOIN (SELECT CAST(shop AS BIGINT) AS s FROM orders GROUP BY 1 HAVING COUNT(*) > 9) AS q"
    " ON shop = q.s GROUP BY 1",
    "a computed key": "SELECT month(day) AS m, COUNT(*) FROM orders JOIN (SELECT month(day) AS m FROM orders GROUP BY 1"
    " ORDER BY COUNT(*) DESC LIMIT 1) AS q ON month(day) = q.m GROUP BY 1",
    "a CTE": f"WITH top AS ({TOP}) SELECT status, COUNT(*) FROM (SELECT * FROM orders JOIN top ON status = s) GROUP BY status",
    "rollup": f"SELECT status, COUNT(*) FROM orders JOIN ({TOP}) AS q ON status = q.s GROUP BY ROLLUP (status)",
    "a list that is no condition": f"SELECT status, COUNT(*) FROM orders LEFT JOIN ({TOP}) AS q ON status = q.s GROUP BY 1",
    "not of a key": f"SELECT shop, COUNT(*) FROM orders WHERE status IN ({LARGE}) GROUP BY 1",
}  # fmt: skip
HELD = {"a list that is no condition", "not of a key"}
"""No list tells which of their groups have rows."""


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Connection, duckdb.DuckDBPyConnection]]:
    folder: Path = tmp_path_factory.mktemp("lists")
    plain = duckdb.connect()
    plain.execute(f"CREATE TABLE orders AS {ROWS}")
    plain.execute(f"COPY orders TO '{folder / 'orders.parquet'}'")
    (folder / "shop.yaml").write_text(POLICY.format(orders=folder / "orders.parquet"), encoding="utf-8")
    with dpsql.connect(folder / "shop.yaml", ledger=":memory:") as con:
        yield con, plain
    plain.close()


def shown(con: Connection, sql: str) -> list[tuple[object, ...]]:
    return sorted(con.sql(sql).run(epsilon=10**6, fresh=True).fetchall(), key=repr)


@pytest.mark.parametrize("name", LISTED)
def test_the_groups_are_those_of_the_engine(name: str, orders: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    con, plain = orders
    exact = sorted(plain.sql(LISTED[name]).fetchall(), key=repr)
    assert [row for row in shown(con, LISTED[name]) if row[-1] != 0] == exact
    on_a_list = {row[0] for row in exact} | ({"back", None} if name.startswith("not ") else {None})
    assert name in HELD or {row[0] for row in shown(con, LISTED[name])} <= on_a_list


@pytest.mark.parametrize("name", [name for name in LISTED if name not in HELD])
def test_without_the_rewrite_other_groups_are_shown(
    name: str, orders: tuple[Connection, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    con, plain = orders
    monkeypatch.setattr(rules, "RULES", tuple(pair for pair in rules.RULES if pair[0] is not leave_out_unlisted))
    sql = LISTED[name] + " -- twin"
    assert len(shown(con, sql)) > len(plain.sql(sql).fetchall())


def test_the_list_is_measured_once(orders: tuple[Connection, duckdb.DuckDBPyConnection]) -> None:
    plan = orders[0].sql(LISTED["a series limit"]).plan(epsilon=1)
    assert len(plan.releases) == 2
