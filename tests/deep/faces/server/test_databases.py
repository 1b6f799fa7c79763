"""`dpsql serve` with two policies and what is made up of them: databases, ledgers and logins that are kept apart."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deep.faces.server.test_serve import audit, serving, shop_in, told_by
from tests.support.canary import holds
from tests.support.served import PASSWORD, people
from tests.support.small_shop import COUNT, MEANS, POLICY, Shop
from tests.support.wire_client import Client, Reply, rows, shape

pytestmark = pytest.mark.processes

TEXT = "SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY city ORDER BY city"


def two_shops(folder: Path) -> tuple[Shop, Shop]:
    """Two policies with data of their own, and who may ask which."""
    shop, market = shop_in(folder / "one"), shop_in(folder / "two")
    market.policy.write_text(market.policy.read_text().replace("name: shop", "name: market"))
    moments = ", ".join(f"{quarter * 250}ms" for quarter in range(1, 80))
    for found in (shop, market):
        text = found.policy.read_text().replace("workers: 2", "workers: 1")
        found.policy.write_text(text.replace("100ms, 1s, 10s", moments))
    given = {"ana": "[shop, market]", "ben": "[market]", "student": "[shop_made_up]"}
    secret = people().secret_of("ana")
    users = [f"  {n}: {{secret: '{secret}', defaults: {{epsilon: 0.1}}, databases: {d}}}" for n, d in given.items()]
    shop.policy.with_name("users.yaml").write_text("\n".join(["users:", *users, ""]))
    return shop, market


@contextmanager
def entered(port: int, name: str, database: str) -> Iterator[Client]:
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        client = Client(connection)
        client.login(name, PASSWORD, database)
        yield client


def said(replies: list[Reply], kind: str) -> str:
    return " ".join(reply.fields["M"] for reply in replies if reply.kind == kind)


def test_two_policies_and_what_is_made_up_of_them(tmp_path: Path) -> None:
    shop, market = two_shops(tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        health = probe.getsockname()[1]
    with serving(shop, str(market.policy), "--made-up", "beside", "--health", str(health)) as (_, port):
        for database in ("shop", "market"):
            with entered(port, "ana", database) as ana:
                assert "made up" not in said(ana.replies, "N") and "made-up" not in ana.status["server_version"]
                assert "charged ε 0.1" in said(ana.query(TEXT), "N")
                listed = rows(ana.query("SELECT datname FROM pg_database ORDER BY 1"))
                assert listed == [("market",), ("market_made_up",), ("shop",), ("shop_made_up",)]
        with entered(port, "ben", "market") as ben:
            assert shape(ben.query(COUNT)).endswith("T D C(SELECT 1) ZI")
            assert ("0.1",) in rows(ben.query("SELECT epsilon_spent FROM dpsql.budget"))
        with entered(port, "ben", "shop") as ben:
            assert ben.replies[-1].fields["C"] == "3D000" and "connect to  market" in ben.replies[-1].fields["H"]
        with entered(port, "ana", "shop_made_up") as ana:
            assert "is made up: answers are free" in said(ana.replies, "N")
            assert "made-up data" in ana.status["server_version"]
            first, again = ana.query(TEXT), ana.query(TEXT)
            assert "free: the data is made up" in said(first, "N") and "lower end" in said(first, "N")
            assert rows(first) == rows(again) and [row[0] for row in rows(first)] == ["Bonn", "Lyon", "Oslo"]
            assert len(rows(ana.query(MEANS))) == 3
            assert len(rows(ana.query("SELECT COUNT(*) FROM shop_made_up.public.orders"))) == 1
            assert shape(ana.query("SELECT note FROM orders")) == "E(42501) ZI"
            ((price, *_),) = rows(ana.query(f"EXPLAIN (COST) {COUNT}"))
            assert price == "ε 0"
            assert rows(ana.query("SELECT * FROM dpsql.history")) == []
            assert rows(ana.query("SELECT epsilon_spent FROM dpsql.budget")) == [("0",)]
            assert "made up; private" in str(
                rows(ana.query("SELECT obj_description(oid) FROM pg_class WHERE relname = 'orders'"))
            )
            assert not holds(b"".join(reply.body for reply in ana.replies))
        status, metrics = told_by(health, "/metrics")
        assert status == 200 and 'dpsql_statements_total{database="shop_made_up",kind="query",answer="free"}' in metrics
        assert 'dpsql_spent{database="market",unit="customer",account="ben",part="epsilon"} 0.1' in metrics
        assert 'dpsql_spent{database="shop_made_up"' not in metrics
    assert float(shop.spent()) == pytest.approx(0.1) and float(market.spent()) == pytest.approx(0.2)
    lines = audit(shop)
    charged = [(line["name"], line["database"]) for line in lines if line.get("price")]
    assert charged == [("ana", "shop"), ("ana", "market"), ("ben", "market")]
    assert {"shop_made_up"} <= {line.get("database") for line in lines}


def test_made_up_alone_needs_neither_data_nor_ledger(tmp_path: Path) -> None:
    """The folder has a policy and users, and nothing else comes into it but the audit log."""
    (tmp_path / "shop.yaml").write_text(POLICY.replace("EPSILON", "10"))
    login = f"secret: '{people().secret_of('ana')}', defaults: {{epsilon: 0.1}}"
    users = f"users:\n  ana: {{{login}}}\n  student: {{{login}, databases: [shop_made_up]}}\n"
    (tmp_path / "users.yaml").write_text(users)
    with serving(Shop(tmp_path), "--made-up", "only") as (_, port):
        with entered(port, "student", "shop_made_up") as student:
            assert len(rows(student.query(TEXT))) == 3
            assert shape(student.query("SELECT SUM(customer) FROM orders")).startswith("E(")
        with entered(port, "ana", "shop") as ana:
            assert ana.replies[-1].fields["C"] == "3D000"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.jsonl", "shop.yaml", "users.yaml"]
