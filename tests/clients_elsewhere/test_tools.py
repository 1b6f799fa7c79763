"""What each tool does at a server: connects, lists tables, filters, refreshes for nothing, shows ±. A page says it.

And what drivers of Node send: lists, dates, parameters without types; answers are compared with those of the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.clients_elsewhere.clients import (
    CLIENTS,
    IN_TOOLS,
    NODEJS,
    OF_R,
    Address,
    Client,
    asked_by_node,
    asked_by_r,
    asked_of_tools,
    is_here,
    missing,
)
from tests.deep.faces.server.test_serve import serving
from tests.support.served import PASSWORD, people
from tests.support.served_shop import FINE
from tests.support.small_shop import Shop

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "connect-a-tool.md"
POLICY = """
version: 1
name: shop
database: shop.duckdb
ledger: shop.ledger.sqlite
units: {customer: {}}
tables:
  orders:
    unit: {column: customer}
    max_rows_per_unit: 5
    columns:
      customer: {type: bigint, nullable: false}
      city: {type: varchar, domain: [Bonn, Lyon, Oslo], nullable: false}
      amount: {type: double, bounds: [0, 100]}
      items: {type: integer, bounds: [0, 9]}
      day: {type: date, bounds: [2024-01-01, 2024-03-31]}
      placed: {type: timestamp, bounds: [2024-01-01 00:00:00, 2024-03-31 23:59:59]}
      seen: {type: timestamptz, bounds: ["2024-01-01 00:00:00Z", "2024-03-31 23:59:59Z"]}
  cities:
    public: true
    primary_key: [city]
    columns: {city: {type: varchar, nullable: false}, land: {type: varchar}}
budgets: {total: {epsilon: 1e12}}
"""
DATA = """
SET TimeZone = 'UTC';
CREATE TABLE orders AS SELECT i % 300 AS customer, ['Bonn', 'Lyon', 'Oslo'][i % 3 + 1] AS city,
    (i * 37 % 1000) / 10.0 AS amount, CAST(i % 10 AS INTEGER) AS items,
    DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS day,
    TIMESTAMP '2024-01-01' + to_hours(i) AS placed, TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_hours(i) AS seen
    FROM range(1500) AS t(i);
CREATE TABLE cities AS SELECT * FROM (VALUES ('Bonn', 'DE'), ('Lyon', 'FR'), ('Oslo', 'NO')) AS t(city, land);
"""
LISTED = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"
FILTERED = (
    "SELECT COUNT(*) AS n FROM orders WHERE city IN ('Bonn', 'Oslo')"
    " AND day >= TO_DATE('2024-01-10', 'YYYY-MM-DD') AND amount < 50"
)
SPENT = "SELECT epsilon_spent FROM dpsql.budget"
WITH_ENDS = "/* dpsql: intervals=on */ SELECT COUNT(*) AS n FROM orders WHERE amount < 70"
HABITS = ("connects", "lists", "filters", "refreshes", "shows ±")


@dataclass(frozen=True)
class At:
    """A server, and what its data is."""

    port: int
    data: Path

    def address(self, name: str) -> Address:
        return Address(self.port, name, PASSWORD, "shop")

    def exact(self, sql: str) -> list[tuple[str, ...]]:
        plain = re.sub(r"TO_DATE\(('[^']*'), 'YYYY-MM-DD'\)", r"DATE \1", sql)
        with duckdb.connect(str(self.data), read_only=True) as own:
            return [tuple(map(str, row)) for row in own.sql(plain).fetchall()]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    folder = tmp_path_factory.mktemp("tools")
    own, data = Shop(folder), folder / "data.duckdb"
    own.policy.write_text(f"{POLICY}serve: {FINE}, workers: 1}}\n", encoding="utf-8")
    for file in (data, folder / "shop.duckdb"):
        with duckdb.connect(str(file)) as connection:
            connection.execute(DATA)
    secret = people().secret_of("ana")
    names = (*(client.name for client in CLIENTS), "ana")
    users = [f"  {name}: {{secret: '{secret}', defaults: {{epsilon: 100000}}}}" for name in names]
    own.policy.with_name("users.yaml").write_text("\n".join(["users:", *users, ""]))
    with serving(own) as (_, port):
        yield At(port, data)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_what_a_tool_does_is_what_the_page_says(client: Client, at: At, tmp_path: Path) -> None:
    if not is_here(client):
        pytest.xfail(f"{client.package or client.module} is not on this machine")
    asked = ["SELECT 1", LISTED, FILTERED, SPENT, FILTERED, SPENT, WITH_ENDS]
    one, listed, filtered, spent, again, then, ends = client.talk(at.address(client.name), asked, tmp_path)
    does = {
        "connects": [row[0] for row in one.rows] == ["1"],
        "lists": ("orders",) in [tuple(row) for row in listed.rows],
        "filters": [tuple(row) for row in filtered.rows] == at.exact(FILTERED),
        "refreshes": again.rows == filtered.rows and then.rows == spent.rows and bool(spent.rows),
        "shows ±": len(ends.rows) == 1 and len(ends.rows[0]) == 3,
    }
    said = said_of(client.name)
    assert does["connects"] if said is None else [name for name, found in does.items() if found] == said, does


def said_of(tool: str) -> list[str] | None:
    """What the page's table says that a tool does; None of one that it says nothing of."""
    row = re.search(rf"^\| {re.escape(tool)} \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return (
        None
        if row is None
        else [habit for habit, cell in zip(HABITS, row[1].split("|"), strict=True) if cell.strip() == "yes"]
    )


DAY = {"date": "2024-02-01"}
OF_NODE: list[tuple[str, list[Any], str]] = [
    ("city = ANY($1)", [["Bonn", "Oslo"]], "city IN ('Bonn', 'Oslo')"),
    ("city IN ($1,$2)", ["Bonn", "Oslo"], "city IN ('Bonn', 'Oslo')"),
    ("items = ANY($1::int[])", [[1, 2]], "items IN (1, 2)"),
    ("items > $1", [5], "items > 5"),
    ("amount > $1", [2.5], "amount > 2.5"),
    ("day = $1", [DAY], "day = DATE '2024-02-01'"),
    ("day >= $1 AND day < $2", [DAY, {"date": "2024-03-01"}], "day >= DATE '2024-02-01' AND day < DATE '2024-03-01'"),
    ("day BETWEEN $1 AND $2", ["2024-01-05", "2024-01-31"], "day BETWEEN DATE '2024-01-05' AND DATE '2024-01-31'"),
    ("placed >= $1", [DAY], "placed >= TIMESTAMP '2024-02-01'"),
    ("seen >= $1::timestamptz", [DAY], "placed >= TIMESTAMP '2024-02-01'"),
]


@pytest.mark.parametrize("client", ["pg", "postgres", "knex", "sequelize"])
def test_what_drivers_of_node_send(client: str, at: At) -> None:
    if missing(NODEJS):
        pytest.xfail("Node is not on this machine")
    asked = [(f"SELECT COUNT(*) AS n FROM orders WHERE {sql}", values) for sql, values, _ in OF_NODE]
    days = "SELECT COUNT(*) AS n FROM generate_series($1::date, $2::date, INTERVAL '1 day') AS t(day)"
    found = asked_by_node(client, at.address("ana"), [*asked, (days, ["2024-01-01", "2024-01-31"])])
    for (sql, _, exact), seen in zip(OF_NODE, found, strict=False):
        assert not seen.refused and [*seen.rows] == at.exact(f"SELECT COUNT(*) FROM orders WHERE {exact}"), (sql, seen)
    assert [*found[-1].rows] == [("31",)]


COUNTED = "SELECT COUNT(*) FROM orders"
BY = "SELECT {} AS k, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1"
IN_VERBS = {
    "tables": "VALUES ('cities'), ('orders')",
    "count": COUNTED,
    "filters": f"{COUNTED} WHERE city IN ('Bonn', 'Oslo') AND amount < 50 AND day >= DATE '2024-01-10'",
    "groups": "SELECT city, COUNT(*), CAST(SUM(items) AS INTEGER) FROM orders GROUP BY city ORDER BY city",
    "means": "SELECT city, ROUND(AVG(amount), 1) FROM orders GROUP BY city ORDER BY city",
    "months": BY.format("strftime(day, '%Y-%m')"),
    "truncated": BY.format("CAST(date_trunc('month', day) AS DATE)"),
    "cases": BY.format("CASE WHEN amount > 50 THEN 'big' ELSE 'small' END"),
    "join": "SELECT land, COUNT(*) FROM orders JOIN cities USING (city) GROUP BY land ORDER BY land",
    "top": "SELECT 2",
    "public": "SELECT city, land FROM cities ORDER BY city",
}
"""What people write in ibis and dplyr, in SQL."""
OF_DPLYR = ("tables", "filters", "groups", "truncated", "cases", "join", "public")


def test_what_is_written_with_ibis(at: At) -> None:
    if missing(IN_TOOLS):
        pytest.xfail("there is no environment of tools")
    found = {name: [tuple(row) for row in rows] for name, rows in asked_of_tools("verbs", at.address("ana")).items()}
    assert float(found.pop("median")[0][0]) in (4.0, 4.5, 5.0)
    assert found == {name: at.exact(sql) for name, sql in IN_VERBS.items()}


def test_what_is_written_with_dplyr(at: At) -> None:
    if missing(OF_R):
        pytest.xfail("R is not on this machine")
    found = asked_by_r(at.address("ana"), "verbs")
    assert [seen.refused for seen in found] == [""] * len(OF_DPLYR)
    assert {name: [*seen.rows] for name, seen in zip(OF_DPLYR, found, strict=True)} == {
        name: at.exact(IN_VERBS[name]) for name in OF_DPLYR
    }


def test_tests_of_dbt_pass_and_cost_nothing(at: At, tmp_path: Path) -> None:
    """What a policy promises fails by no chance: not_null of `nullable: false`, accepted_values of a domain, unique."""
    if missing(IN_TOOLS):
        pytest.xfail("there is no environment of tools")
    asked = asked_of_tools("dbt", at.address("dbt"), [SPENT])[0].get("rows")
    ended = asked_of_tools("tests", at.address("dbt"))
    assert set(ended.values()) == {"pass"} and len(ended) == 4
    assert asked_of_tools("dbt", at.address("dbt"), [SPENT])[0].get("rows") == asked
