"""Servers on several hosts over data and a ledger in PostgreSQL: one budget, one ceiling, each other's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.faces.server.statements import Refused
from tests.engines_elsewhere.postgres.ledger.conftest import Cluster, Database
from tests.support.served_shop import FINE, Served, login, served, with_serve
from tests.support.small_shop import POLICY, Shop

pytestmark = pytest.mark.processes

DATA = """
CREATE TABLE orders AS SELECT (i % 300)::bigint AS customer, (ARRAY['Bonn', 'Lyon', 'Oslo'])[i % 3 + 1] AS city,
  ((i * 37 % 1000) / 10.0)::double precision AS amount, 'n' || i AS note FROM generate_series(0, 1999) AS t(i);
CREATE TABLE cities AS SELECT * FROM (VALUES ('Bonn', 'DE'), ('Lyon', 'FR'), ('Oslo', 'NO')) AS v(city, country);
CREATE TABLE forever AS SELECT 1::bigint AS i;
"""
FIRST = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city ORDER BY city"
SECOND = "SELECT COUNT(*) AS n FROM orders WHERE amount < 50"


def host(folder: Path, name: str, data: str, ledger: str) -> Shop:
    """A gateway's folder: the shop's policy, with its own head."""
    place = folder / name
    place.mkdir()
    text = POLICY.replace("EPSILON", "100").replace("database: shop.duckdb", f"database: '{data}'")
    text = text.replace("ledger: shop.ledger.sqlite", f"ledger: '{ledger}'")
    (place / "shop.yaml").write_text(text)
    return with_serve(Shop(place), f"{FINE}}}")


def test_two_hosts_have_one_budget_and_one_ceiling(cluster: Cluster, database: Database, tmp_path: Path) -> None:
    name = cluster.server.new_database(DATA)
    hosts = [host(tmp_path, own, cluster.server.address(name), database.url) for own in ("one", "two")]
    ana = login("ana", per_day="0.15")
    with served(hosts[0]) as first, served(hosts[1]) as second:
        answer = first.ask(FIRST, login=ana)
        assert [row[0] for row in answer.rows] == ["Bonn", "Lyon", "Oslo"] and answer.spent == "ε 0.1"
        again = second.ask(FIRST, login=ana)
        assert (list(again.rows), again.spent) == (list(answer.rows), "")
        for server in (second, first):
            refused_by_the_ceiling(server)
        assert second.ask("SELECT epsilon_spent FROM dpsql.budget", login=ana).rows == [(0.1,)]
    head = hosts[0].folder / "state" / "head.json"
    with PostgresLedger.open(database.url, head, "shop", "approx_dp", timeout=300) as ledger:
        assert [receipt.entry.analyst for receipt in ledger.history() if receipt.entry.units] == ["ana"]


def refused_by_the_ceiling(server: Served) -> None:
    with pytest.raises(Refused) as refusal:
        server.ask(SECOND, login=login("ana", per_day="0.15"))
    assert [d.code for d in refusal.value.diagnostics] == ["DP413"]
