"""One evening at a server: every tool asks, is refused, sees its budget and is cut off; a worker is killed; and then
ledger, audit log, metrics and every byte that went over the wire are compared with what was seen.

Clients that this machine has not are left out, by name, and the rest goes on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.core.ledger.ledger import Receipt
from tests.clients_elsewhere.clients import CLIENTS, Address, Client, Seen, is_here
from tests.deep.faces.server.test_serve import audit, serving, told_by, wait_until_reserved
from tests.support.canary import CANARY, MARKER, holds
from tests.support.served import PASSWORD, people
from tests.support.served_shop import FINE, with_serve
from tests.support.small_shop import ENDLESS, Shop, make_shop
from tests.support.wire_tap import Tap

psycopg = pytest.importorskip("psycopg")

ALL = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city ORDER BY city"
UNBOUNDED = "SELECT SUM(customer) AS s FROM orders"
BUDGET = "SELECT epsilon_spent FROM dpsql.budget"
KILLED = "mia"


def statements(number: int) -> list[str]:
    """An answer, a refusal, a budget, another answer, and one that the ceiling of the login has no room for."""
    own = [f"SELECT COUNT(*) AS n FROM orders WHERE amount < {limit}" for limit in (20 + number, 50 + number)]
    return [ALL, UNBOUNDED, BUDGET, *own]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = with_serve(make_shop(tmp_path / "shop"), f"{FINE}, workers: 1}}")
    with duckdb.connect(str(found.policy.with_name("shop.duckdb"))) as connection:
        connection.execute(f"UPDATE orders SET note = '{MARKER}' WHERE customer = 7")
        connection.execute(f"INSERT INTO orders VALUES ({CANARY}, 'Bonn', {CANARY}, '{CANARY}{MARKER}')")
    secret = people().secret_of("ana")
    own = f"secret: '{secret}', defaults: {{epsilon: 0.1}}, ceilings: {{per_day: {{epsilon: 0.25}}}}"
    users = [f"  {name}: {{{own}}}" for name in (*(client.name for client in CLIENTS), KILLED)]
    found.policy.with_name("users.yaml").write_text("\n".join(["users:", *users, ""]))
    return found


def test_an_evening(shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = [client for client in CLIENTS if is_here(client)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        health = probe.getsockname()[1]
    seen: dict[str, list[Seen]] = {}
    with serving(shop, "--health", str(health)) as (server, port), Tap(port) as tap:
        for number, client in enumerate(here):
            folder = tmp_path / client.name
            folder.mkdir()
            address = Address(tap.port, client.name, PASSWORD, "shop")
            seen[client.name] = client.talk(address, statements(number), folder)
        kill_a_worker_in_the_middle(shop, server.pid, tap.port)
        told = told_by(health, "/healthz"), told_by(health, "/metrics")
        passed = tap.both
    for client in here:
        asked_refused_and_cut_off(client, seen[client.name])
    nothing_is_unpaid(shop, here)
    the_log_tells_all(shop, here)
    assert told[0] == (200, "ok\n") and '\ndpsql_workers_restarted_total{database="shop"} 1\n' in told[1][1]
    assert f'dpsql_refusals_total{{database="shop",code="DP413"}} {refusals(shop)["DP413"]}' in told[1][1]
    assert len(passed) > 10_000 and ALL.encode() in passed
    for shown in (passed, told, shop.policy.with_name("audit.jsonl").read_bytes(), repr(seen)):
        assert not holds(shown)
    with capsys.disabled():
        away = ", ".join(client.name for client in CLIENTS if client not in here)
        print(f"\nan evening of {', '.join(client.name for client in here)}{away and f'; without {away}'}")


def asked_refused_and_cut_off(client: Client, seen: list[Seen]) -> None:
    answer, refused, budget, own, late = seen
    assert [row[0] for row in answer.rows] == ["Bonn", "Lyon", "Oslo"] and all(int(row[1]) for row in answer.rows)
    assert [[float(x) for x in row] for row in budget.rows] == [[0.1]], client.name
    assert len(own.rows) == 1 and not (answer.refused or own.refused)
    assert "[DP201]" in refused.refused and "[DP413]" in late.refused and "0.05 left" in late.refused
    if client.shows_notices:
        assert "charged ε 0.1" in answer.said and "at least the lower end" in answer.said, client.name
    if client.shows_state:
        assert (refused.state, late.state) == ("0A000", "53400"), client.name
    if client.shows_place:
        assert refused.place == UNBOUNDED.index("customer") + 1, client.name


def kill_a_worker_in_the_middle(shop: Shop, server: int, port: int) -> None:
    """Its statement ends in the constant error, what it charged stays charged, and a new worker answers the next."""
    before = len(entries(shop))
    failed: list[Any] = []
    with psycopg.connect(Address(port, KILLED, PASSWORD, "shop").url(), autocommit=True) as connection:

        def ask() -> None:
            try:
                connection.execute(ENDLESS)
            except psycopg.Error as error:
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until_reserved(shop, before + 1)
        os.kill(runs_statements(server), signal.SIGKILL)
        asking.join(600)
        (error,) = failed
        assert error.sqlstate == "XX000" and "what was charged stays charged" in error.diag.message_primary
        assert connection.execute(BUDGET).fetchall() == [(0.1,)]
        assert len(connection.execute(ALL).fetchall()) == 3


def runs_statements(server: int) -> int:
    """The process of the second worker: the first looks, and those that are started later compute what is free."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server), "--sort=start_time,pid"], capture_output=True)
    return int(told.stdout.split()[1])


def entries(shop: Shop) -> list[Receipt]:
    if not shop.policy.with_name("shop.ledger.sqlite").exists():
        return []
    with shop.ledger() as ledger:
        return [receipt for receipt in ledger.history() if receipt.entry.units]


def nothing_is_unpaid(shop: Shop, here: list[Client]) -> None:
    """What was answered with noise, and what was killed, is in the ledger: each once, for whom it was, at its price."""
    tenth = Fraction(1, 10)
    paid = Counter(receipt.entry.analyst for receipt in entries(shop))
    assert paid == {**{client.name: 2 for client in here}, KILLED: 2}
    assert all(receipt.entry.in_account("customer").epsilon == tenth for receipt in entries(shop))
    texts = {(receipt.entry.analyst, receipt.entry.statement.strip(" ;")) for receipt in entries(shop)}
    assert (KILLED, ENDLESS) in texts
    for client in here:  # dbt writes a comment in front
        assert any(name == client.name and ALL in text for name, text in texts), client.name


def the_log_tells_all(shop: Shop, here: list[Client]) -> None:
    lines = audit(shop)
    charged = {(line["name"], line["entry"]) for line in lines if line.get("entry")}
    assert charged == {(r.entry.analyst, r.entry.id) for r in entries(shop)}
    for client in here:
        own = [line for line in lines if line["name"] == client.name]
        assert {line["what"] for line in own} >= {"login", "statement", "end"}
        codes = [line["outcome"] for line in own if line["what"] == "statement"]
        assert {"ok", "DP201", "DP413"} <= set(codes), client.name
        asked = [json.dumps(line) for line in own if line["what"] == "statement"]
        assert any("dpsql.budget" in line for line in asked)
    endless = {line["what"]: line["outcome"] for line in lines if line.get("statement") == ENDLESS}
    assert endless == {"statement": "DP901", "failure": "DP901"}


def refusals(shop: Shop) -> Counter[str]:
    return Counter(line["outcome"] for line in audit(shop) if line["what"] == "statement")
