"""`dpsql serve` as a process, with workers of its own: what a client sees, that no planted value shows, and the end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import duckdb
import pytest

from tests.faces.server.front.test_opening import TLS
from tests.support.canary import CANARY, MARKER, holds
from tests.support.served import PASSWORD, people
from tests.support.served_shop import with_serve
from tests.support.small_shop import COUNT, ENDLESS, MEANS, Shop, make_shop
from tests.support.wire_client import Client, bind, describe, execute, packet, parse, rows, shape, text

pytestmark = pytest.mark.processes


NAMES = ("ana", "ben", "cleo", "dora", "eli")


def shop_in(folder: Path, last: str = "600s") -> Shop:
    """A shop with planted values in private rows, and some who may log in; answers leave soon."""
    found = with_serve(make_shop(folder / "shop"), f"{{answers_at: [100ms, 1s, 10s, {last}], workers: 2, memory: 1GB}}")
    with duckdb.connect(str(found.policy.with_name("shop.duckdb"))) as connection:
        connection.execute(f"UPDATE orders SET note = '{MARKER}' WHERE customer = 7")
        connection.execute(f"INSERT INTO orders VALUES ({CANARY}, 'Bonn', {CANARY}, '{CANARY}{MARKER}')")
    secret = people().secret_of("ana")
    users = [f"  {name}: {{secret: '{secret}', defaults: {{epsilon: 0.1}}}}" for name in NAMES]
    users[1] = f"  ben: {{secret: '{secret}'}}"
    found.policy.with_name("users.yaml").write_text("\n".join(["users:", *users, ""]))
    return found


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return shop_in(tmp_path)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, int]]:
    """A server for tests that do not end it, each with logins of its own."""
    found = shop_in(tmp_path_factory.mktemp("running"))
    with serving(found) as (_, port):
        yield found, port


@contextmanager
def serving(shop: Shop, *more: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that is ready, and its port. It is told to stop at the end, and stops."""
    command = [sys.executable, "-m", "dpsql", "serve", str(shop.policy), "--port", "0", "--audit-log"]
    process = subprocess.Popen(
        [*command, str(shop.policy.with_name("audit.jsonl")), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, text=True, env={**os.environ, "COVERAGE_PROCESS_START": ""},
    )  # fmt: skip
    assert process.stdout is not None
    ready = process.stdout.readline()
    try:
        assert ready.startswith("ready: psql postgresql://NAME@127.0.0.1:"), process.communicate()
        yield process, int(ready.split(":")[3].split("/")[0])
    finally:
        process.send_signal(signal.SIGTERM)
        printed, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert not holds(printed) and not holds(said)


@contextmanager
def connected(port: int, name: str = "ana", **more: str) -> Iterator[Client]:
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        client = Client(connection)
        client.login(name, PASSWORD, "shop", **more)
        yield client


def everything(client: Client) -> bytes:
    return b"".join(reply.kind.encode() + reply.body for reply in client.replies)


def audit(shop: Shop) -> list[dict[str, str]]:
    return [json.loads(line) for line in shop.policy.with_name("audit.jsonl").read_text().splitlines()]


ASKED = [
    COUNT,
    "SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY city ORDER BY city",
    "SELECT MAX(note) FROM orders",
    "SELECT note FROM orders",
    "SELECT COUNT(*) FROM orders WHERE note = 'x'",
    "SELECT COUNT(*) FROM orders WHERE CAST(note AS INTEGER) > 1",
    "SELECT note, COUNT(*) FROM orders GROUP BY note",
    "SELECT SUM(customer) FROM orders",
    "SELECT * FROM orders LIMIT 0",
    "COPY orders TO STDOUT",
    "TABLE orders",
    "COPY (SELECT city, COUNT(*) AS n FROM orders GROUP BY city) TO STDOUT (FORMAT csv, HEADER)",
    "EXPLAIN SELECT COUNT(*) FROM orders",
    "EXPLAIN (FORMAT JSON) SELECT COUNT(*) FROM orders",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM orders",
    "SELECT * FROM dpsql.budget",
    "SELECT * FROM dpsql.history",
    "SELECT * FROM dpsql.tables",
    "SHOW TABLES",
    "DESCRIBE orders",
    "SUMMARIZE orders",
    "SELECT 1 / 0",
    "SELECT n FROM nowhere",
    "BEGIN; DECLARE c CURSOR FOR SELECT city, COUNT(*) AS n FROM orders GROUP BY city; FETCH ALL FROM c; COMMIT",
    "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SET limits = 'search'; SELECT SUM(amount) AS s FROM orders; RESET limits",
    "INSERT INTO orders VALUES (1)",
]


def test_planted_values_are_in_no_message_and_no_line(running: tuple[Shop, int]) -> None:
    shop, port = running
    with connected(port, "cleo") as client:
        for sql in ASKED:
            client.query(sql)
            client.extended(parse(sql), describe("S"), bind(), execute())
        assert not holds(everything(client))
        answered = client.query(ASKED[1])
        assert shape(answered).endswith("T D D D C(SELECT 3) ZI") and [row[0] for row in rows(answered)] == [
            "Bonn",
            "Lyon",
            "Oslo",
        ]
    assert not holds(shop.policy.with_name("audit.jsonl").read_bytes())
    lines = audit(shop)
    assert {key for line in lines for key in line} <= {
        "at", "what", "name", "address", "statement", "outcome", "plan", "price", "entry", "kind", "database"
    }  # fmt: skip
    assert not any("XX000" in line.get("outcome", "") or "DP904" in line.get("outcome", "") for line in lines)


def test_accounts_and_defaults_are_those_of_the_login(running: tuple[Shop, int]) -> None:
    shop, port = running
    with connected(port) as ana, connected(port, "ben") as ben:
        assert shape(ben.query(COUNT)) == "E(22023) ZI"
        ana.query(MEANS)
        ben.query("SET epsilon = 0.25")
        ben.query(MEANS)
        spent = {}
        for name, client in (("ana", ana), ("ben", ben)):
            spent[name] = rows(client.query("SELECT epsilon_spent FROM dpsql.budget"))
    assert spent == {"ana": [("0.1",)], "ben": [("0.25",)]}
    charged = [(line["name"], line["price"]) for line in audit(shop) if line.get("price") and line["name"] in spent]
    assert charged == [("ana", "ε 0.1"), ("ben", "ε 0.25")]


def test_parameters_in_text_and_in_bytes(running: tuple[Shop, int]) -> None:
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount > $1 AND city = $2"
    with connected(running[1], "dora") as client:
        client.extended(parse("SET epsilon = 1000"), bind(), execute())
        first = client.extended(parse(sql, "s"), describe("S", "s"), bind([b"50", b"Bonn"], statement="s"), execute())
        again = client.extended(bind([b"50", b"Bonn"], statement="s"), execute())
    assert first[1].body == bytes([0, 2, 0, 0, 2, 189, 0, 0, 0, 25])  # float8, text
    assert rows(first) == rows(again) != []


def test_what_runs_is_stopped_by_its_client_and_stays_charged(tmp_path: Path) -> None:
    """It goes on until the last moment, which is not far here: that tells nobody how far it was."""
    shop = shop_in(tmp_path, "40s")
    with serving(shop) as (_, port), connected(port) as client:
        client.send(packet(b"Q", text(ENDLESS)))
        wait_until_reserved(shop)
        with socket.create_connection(("127.0.0.1", port), timeout=600) as other:
            other.sendall(bytes([0, 0, 0, 16, 4, 210, 22, 46]) + client.key)
            assert other.recv(1) == b""
        assert shape(client.until("Z")) == "E(57014) ZI"
        assert ("0.1",) in rows(client.query("SELECT epsilon_spent FROM dpsql.budget"))
    (charged,) = (line for line in audit(shop) if line.get("price"))
    assert (charged["what"], charged["outcome"], charged["price"]) == ("charged", "DP901", "ε 0.1")
    with shop.ledger() as ledger:
        assert [receipt.entry.id for receipt in ledger.history()] == [charged["entry"]]


def wait_until_reserved(shop: Shop, entries: int = 1) -> None:
    """Returns once the ledger holds so many entries, as another process reads it."""
    path = shop.policy.with_name("shop.ledger.sqlite")
    pause = threading.Event()
    for _ in range(60_000):
        with (
            suppress(sqlite3.OperationalError),  # it is not there yet, or has no table yet
            closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as connection,
        ):
            if connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0] >= entries:
                return
        pause.wait(0.01)
    raise AssertionError("nothing was reserved")


def test_sigterm_lets_what_runs_come_to_its_end(shop: Shop) -> None:
    with serving(shop) as (process, port), connected(port, "ben") as idle, connected(port) as client:
        client.send(packet(b"Q", text(COUNT)))
        wait_until_reserved(shop)
        process.send_signal(signal.SIGTERM)
        assert shape([idle.receive()]) == "E(57P01)"
        assert shape(client.until("Z")).endswith("T D C(SELECT 1) ZI")
        assert shape([client.receive()]) == "E(57P01)"


def told_by(port: int, path: str) -> tuple[int, str]:
    """What the custodian's listener says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    with closing(connection):
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()


def test_what_is_counted_is_told_to_the_custodian_and_holds_no_planted_value(shop: Shop) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        health = probe.getsockname()[1]
    with serving(shop, "--health", str(health)) as (_, port), connected(port) as client:
        for sql in ASKED[:5] + ASKED[:1]:
            client.query(sql)
        assert told_by(health, "/healthz") == (200, "ok\n")
        status, told = told_by(health, "/metrics")
        asked = [sys.executable, "-m", "dpsql.faces.server.health", str(health)]
        assert subprocess.run(asked, timeout=600).returncode == 0
    assert status == 200 and not holds(told)
    codes = [line["outcome"] for line in audit(shop) if line["what"] == "statement" and line["outcome"] != "ok"]
    fresh = [line for line in audit(shop) if line.get("price")]
    assert len(fresh) >= 2 and len(codes) >= 2
    for line in (
        'dpsql_connections{database="shop"} 1', 'dpsql_logins_total{outcome="ok"} 1', 'dpsql_queue{database="shop"} 0',
        'dpsql_workers_restarted_total{database="shop"} 0',
        f'dpsql_statements_total{{database="shop",kind="query",answer="fresh"}} {len(fresh)}',
        'dpsql_statements_total{database="shop",kind="query",answer="stored"} 1',
        f'dpsql_spent{{database="shop",unit="customer",account="ana",part="epsilon"}} {float(shop.spent())}',
        *(f'dpsql_refusals_total{{database="shop",code="{code}"}} {codes.count(code)}' for code in codes),
    ):  # fmt: skip
        assert line in told.splitlines()


@pytest.mark.parametrize(
    ("more", "words"),
    [(["--health", "nowhere"], "no address with a port"), (["--host", "0.0.0.0"], "need TLS"),
     (["--tls-cert", str(TLS / "certificate.pem")], "given together"),
     (["--users", "nowhere.yaml"], "DP009"), (["--tls-cert", "x", "--tls-key", "y"], "cannot be read")],
)  # fmt: skip
def test_what_it_does_not_start_with(shop: Shop, more: list[str], words: str) -> None:
    command = [sys.executable, "-m", "dpsql", "serve", str(shop.policy), "--port", "0", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    assert done.returncode in (1, 2) and words in done.stderr and "Traceback" not in done.stderr and done.stdout == ""
