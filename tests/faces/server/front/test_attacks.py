"""What an outsider, or an analyst, may send to take time and memory from others: each is refused, and the others go on.

No test looks at a clock. Texts that a parser would read for hours hang where they are not refused; what would be waited
for is over when the test moves the loop's time on.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpsql.faces.server.catalogue.catalogue_asking import CatalogueOfLogins
from dpsql.faces.server.front import kept
from dpsql.faces.server.front.listen import ConnectionLimits, tls_context
from dpsql.faces.server.front.transactions import MOST_SAVEPOINTS
from dpsql.faces.server.gateway import Gateway
from dpsql.faces.server.pace import Pace
from dpsql.faces.server.statements import Login
from dpsql.faces.server.workers.worker_link import WorkerLink
from dpsql.faces.server.workers.worker_pool import Pool
from dpsql.policy.load import load_policy
from tests.faces.server.front.test_opening import TLS, last_error
from tests.support import recorded_catalogue
from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served, people
from tests.support.wire_client import (
    SSL_REQUEST,
    Client,
    bind,
    describe,
    execute,
    packet,
    parse,
    shape,
    startup,
)

DEEP = 100_000


async def no_worker() -> WorkerLink:
    raise AssertionError("a text that is refused reached a worker")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The front with the planner and the catalogue, and no worker behind them."""
    place = Path(tmp_path_factory.mktemp("clinic")) / "clinic.yaml"
    place.write_text(recorded_catalogue.POLICY, encoding="utf-8")
    policy = load_policy(place)
    catalogue = CatalogueOfLogins(policy)
    gateway = Gateway(policy, Pool(no_worker, 1, 1, Pace((1.0,))))
    with Served(gateway, people(eve=Login("eve", "eve")), catalogue=catalogue) as found:
        yield found
    catalogue.close()


def doubled(first: str, step: str, times: int, last: str) -> str:
    """A WITH query over another, again and again."""
    steps = [f"t{i} AS (SELECT {step} AS x FROM t{i - 1})" for i in range(1, times)]
    return f"WITH {', '.join([f't0 AS (SELECT {first} AS x)', *steps])} SELECT {last} FROM t{times - 1} x, pg_type"


HOSTILE = {
    "parentheses": f"SELECT {'(' * DEEP}1{')' * DEEP} FROM pg_class",
    "parentheses of no query": "(" * DEEP,
    "parentheses over a table": f"SELECT COUNT(*) FROM visits WHERE {'(' * 40_000}true{')' * 40_000}",
    "arrays in arrays": f"SELECT {'ARRAY[' * 40}1{']' * 40} FROM pg_class",
    "arrays in arrays over a table": f"SELECT {'ARRAY[' * 40}1{']' * 40} FROM visits",
    "types in types": f"SELECT {'varchar(' * 40}1{')' * 40} FROM pg_class",
    "types in types over a table": f"SELECT {'varchar(' * 40}1{')' * 40} FROM visits",
    "subscripts": f"SELECT oid{'[1]' * 3_000} FROM pg_class",
    "a list of a million": f"SELECT oid FROM pg_class WHERE oid IN ({'1,' * 450_000}1)",
    "a list over a table": f"SELECT COUNT(*) FROM visits WHERE age IN ({'1,' * 450_000}1)",
    "a text of many megabytes": f"SELECT '{'x' * 16_000_000}' FROM pg_class",
    "repeat": "SELECT repeat('x', 300000000) FROM pg_class",
    "lpad": "SELECT lpad('x', 300000000) FROM pg_class",
    "range": "SELECT range(50000000) FROM pg_class",
    "generate_series": "SELECT relname FROM pg_class, generate_series(1, 1000000000) x",
    "generate_series of a list": "SELECT generate_series(1, 100000000) FROM pg_class",
    "a sleep": "SELECT pg_sleep(100000), relname FROM pg_class",
    "cross joins": f"SELECT count(*) FROM {', '.join(f'pg_type t{i}' for i in range(12))} WHERE t0.oid + t11.oid = 7",
    "cross joins of columns": f"SELECT {', '.join(['a.*'] * 70)} FROM pg_attribute a",
    "rows without end": "SELECT a.typname FROM pg_type a, pg_type b, pg_type c",
    "a WITH that reads itself": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t, pg_class"
    ),
    "arrays doubled": doubled("ARRAY[1, 2]", "ARRAY[x, x]", 25, "x.x"),
    "JSON doubled": doubled("json_build_object('a', 'b')", "json_build_object('a', x, 'b', x)", 25, "x.x"),
    "quotes doubled": doubled("'\"'::text", "quote_ident(x)", 30, "x.x"),
    "replaced by more": doubled("'a'::text", "replace(x, 'a', 'aaaaaaaaaa')", 9, "x.x"),
}  # fmt: skip
HOSTILE["a WITH read twice by the next"] = (
    "WITH u0 AS (SELECT oid FROM pg_class), "
    + ", ".join(f"u{i} AS (SELECT * FROM u{i - 1} x, u{i - 1} y)" for i in range(1, 40))
    + " SELECT nowhere FROM u39"
)
LONG = {
    "a list of a million",
    "a list over a table",
    "parentheses of no query",
    "parentheses over a table",
    "quotes doubled",
}
"""Those that are read for a second before they are refused: in every protocol in tests/deep/faces/server."""
REFUSALS = {"0A000", "42601", "42501", "42P01", "42703", "42883", "53400", "54000"}


def simple(client: Client, sql: str) -> list[str]:
    return [r.fields["C"] for r in client.query(sql) if r.kind == "E"]


def extended(client: Client, sql: str) -> list[str]:
    client.send(parse(sql), bind(), describe("P"), execute(), packet(b"S"))
    return [r.fields["C"] for r in client.until("Z") if r.kind == "E"]


def within(begin: str, end: str = "") -> Callable[[Client, str], list[str]]:
    return lambda client, sql: simple(client, f"BEGIN; {begin}{sql}{end}") + simple(client, "ROLLBACK; DEALLOCATE ALL")


WAYS = {
    "simple": simple,
    "extended": extended,
    "PREPARE": within("PREPARE q AS ", "; EXECUTE q"),
    "a cursor": within("DECLARE c CURSOR FOR ", "; FETCH ALL c"),
    "COPY": within("COPY (", ") TO STDOUT"),
}


@pytest.fixture(scope="module")
def analyst(server: Served) -> Iterator[Client]:
    with server.raw() as connection:
        connection.settimeout(600)
        found = Client(connection)
        found.login(NAME, PASSWORD)
        yield found


@pytest.mark.parametrize(
    ("name", "way"), [(name, list(WAYS)[at % len(WAYS)]) for at, name in enumerate(HOSTILE) if name not in LONG]
)
def test_what_eats_time_or_memory_is_refused(analyst: Client, name: str, way: str) -> None:
    """With an SQLSTATE, and the conversation goes on. In every protocol:
    tests/deep/faces/server/test_hostile_texts.py.
    """
    found = WAYS[way](analyst, HOSTILE[name])
    assert len(found) == 1 and set(found) <= REFUSALS, found
    assert shape(analyst.query("SHOW epsilon")) == "T D C(SHOW) ZI"
    analyst.replies.clear()


def test_texts_of_the_catalogue_are_cut_where_they_are_doubled(server: Served) -> None:
    """27 doublings would make 2 GB of 16 characters."""
    with server.raw() as connection:
        client = Client(connection)
        client.login(NAME, PASSWORD)
        found = client.query(doubled("'xxxxxxxxxxxxxxxx'::text", "x || x", 28, "x.x"))
        assert found[-2].kind == "C"
        assert max(len(reply.body) for reply in found) < 3_000


def test_a_regex_takes_time_that_grows_with_the_text_alone(server: Served) -> None:
    """DuckDB's are automata: one that goes back would try 2⁴⁰ ways."""
    with server.raw() as connection:
        client = Client(connection)
        client.login(NAME, PASSWORD)
        found = client.query(f"SELECT oid FROM pg_class WHERE '{'a' * 40}' ~ '^(a+)+$b'")
        assert shape(found) == "T C(SELECT 0) ZI"


# --- slow clients -----------------------------------------------------------------------------------------------------


def test_who_sends_slowly_is_cut_off_and_others_are_served_meanwhile() -> None:
    """One byte now and then keeps nobody's place: the time for a login is one, from the first byte to the last."""
    context = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    password = packet(b"p", b"SCRAM-SHA-256\0\0\0\0\x10n,,n=,r=abcdefgh")
    with Served(Answers(), tls=context, seconds=3600) as served, ExitStack() as open:
        slow: dict[str, tuple[socket.socket, bytes]] = {}
        for name, begun, rest in (
            ("nothing", b"", startup(user=NAME, database="clinic")),
            ("a length", b"\0\0", b"\0\x20" + b"\0" * 20),
            ("half a start", startup(user=NAME)[:7], startup(user=NAME)[7:]),
            ("a handshake", SSL_REQUEST, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
            ("a password", startup(user=NAME, database="clinic"), password),
            ("half a password", startup(user=NAME, database="clinic") + password[:9], password[9:]),
        ):
            connection = open.enter_context(served.raw())
            connection.sendall(begun)
            slow[name] = connection, rest
        served.call(_until(lambda: len(served.front._tasks) == len(slow)))
        for _ in range(7):
            served.later(500)
            for name, (connection, rest) in slow.items():
                if rest:
                    connection.sendall(rest[:1])
                    slow[name] = connection, rest[1:]
            with served.raw() as other:
                client = Client(other)
                with client.secure():
                    assert shape(client.login(NAME, PASSWORD)).endswith("ZI")
                    assert shape(client.query("SELECT n")) == "N T D C(SELECT 1) ZI"
        served.later(3600)
        ends = {name: end_of(connection) for name, (connection, _) in slow.items()}
        handshake = ends.pop("a handshake")
        assert b"08006" in handshake or not handshake.strip(b"S")
        assert all(b"08006" in end for end in ends.values()), ends
        served.call(_until(lambda: not served.front._tasks))


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def end_of(connection: socket.socket) -> bytes:
    """All that is left until the server ends the connection."""
    found = b""
    try:
        while more := connection.recv(10_000):
            found += more
    except ConnectionResetError:
        pass
    return found


# --- many connections -------------------------------------------------------------------------------------------------


def test_so_many_connections_are_all_there_may_be() -> None:
    """500 in tests/deep/faces/server/test_hostile_texts.py."""
    all_there_may_be(50)


def all_there_may_be(connections: int) -> None:
    """Of five users, a fifth of them each."""
    own_share = connections // 5
    limits = ConnectionLimits(connections=connections, of_one_user=own_share, not_logged_in=40, from_one_address=10)
    others = {f"user{i}": Login(f"user{i}", f"user{i}") for i in range(5)}
    with Served(Answers(), people(**others), limits=limits) as served, ExitStack() as open:
        clients = []
        for number in range(connections):
            client = Client(open.enter_context(served.raw()))
            assert shape(client.login(f"user{number // own_share}", PASSWORD)).endswith("ZI")
            clients.append(client)
            if number == own_share - 1:
                with served.raw() as own:
                    assert Client(own).login("user0", PASSWORD)[-1].fields["C"] == "53300"
        with served.raw() as one_more:
            one_more.sendall(startup(user="user0", database="clinic"))
            assert last_error(one_more) == "53300"
        for client in (clients[0], clients[connections // 2], clients[-1]):
            assert shape(client.query("SELECT n")) == "N T D C(SELECT 1) ZI"
        clients[7].send(packet(b"X"))
        with pytest.raises(EOFError):
            clients[7].receive()
        served.call(_until(lambda: len(served.front._tasks) < connections))
        with served.raw() as in_its_place:
            assert shape(Client(in_its_place).login("user0", PASSWORD)).endswith("ZI")


def test_addresses_of_one_network_share_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has an IPv6 network has 2⁶⁴ addresses in it."""
    from dpsql.faces.server.front.client_link import ClientLink as Connection

    numbers = iter(range(1, 100))
    monkeypatch.setattr(Connection, "address", property(lambda self: f"2001:db8:1:2::{next(numbers)}"))
    with Served(Answers(), limits=ConnectionLimits(from_one_address=2)) as served, ExitStack() as open:
        first, second = (Client(open.enter_context(served.raw())) for _ in range(2))
        for client in (first, second):
            client.send(struct.pack("!II", 8, 80877104))
            assert client.exactly(1) == b"N"
        with served.raw(), pytest.raises(EOFError):
            first.receive()


# --- one connection ---------------------------------------------------------------------------------------------------


def logged_in(served: Served, open: ExitStack) -> Client:
    client = Client(open.enter_context(served.raw()))
    client.login(NAME, PASSWORD)
    return client


def test_savepoints_end_somewhere() -> None:
    with Served(Answers()) as served, ExitStack() as open:
        client = logged_in(served, open)
        client.query("BEGIN")
        found = client.query(f"SAVEPOINT {'x' * 9_000};" * 100)
        assert found[-1].body == b"T"
        found = client.query("SAVEPOINT s;" * (MOST_SAVEPOINTS - 100))
        assert shape(found).endswith("C(SAVEPOINT) ZT")
        assert shape(client.query("SAVEPOINT s")) == "E(53400) ZE"


def test_values_of_portals_end_somewhere() -> None:
    with Served(Answers()) as served, ExitStack() as open:
        client = logged_in(served, open)
        half = b"x" * (kept.MOST_BOUND // 2)
        asked = parse("SELECT n WHERE y = $1", "s")
        found = client.extended(asked, *(bind([half], portal=f"p{i}", statement="s") for i in range(3)))
        assert shape(found) == "1 2 2 E(53400) ZI"


def test_answers_of_portals_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a stored answer, which is free, each portal holds a copy."""
    monkeypatch.setattr(kept, "MOST_HELD", 300_000)
    with Served(Answers()) as served, ExitStack() as open:
        client = logged_in(served, open)
        client.query("BEGIN")
        steps = []
        for i in range(4):
            steps += [bind(portal=f"p{i}", statement="s"), execute(f"p{i}", 1)]
        found = shape(client.extended(parse("SELECT n, i FROM numbers(2000)", "s"), *steps))
        assert found == "1" + " 2 N D s" * 2 + " 2 E(53400) ZE"
        assert isinstance(served.answering, Answers) and len(served.answering.asked) == 2


def test_replies_are_sent_before_they_are_many() -> None:
    """Who never says Sync is told all the same, and nothing is gathered for him."""
    with Served(Answers()) as served, ExitStack() as open:
        client = logged_in(served, open)
        client.send(parse("SELECT n, i, region, d, f, dec", "s"))
        for _ in range(20):
            client.send(*([describe("S", "s")] * 100))
        first = client.receive()  # and no Sync was sent
        assert first.kind == "1"
        client.send(packet(b"S"))
        assert len(client.until("Z")) == 2 * 2_000 + 1


def test_a_statement_in_the_log_is_no_longer_than_one_that_is_answered() -> None:
    with Served(Answers()) as served, ExitStack() as open:
        client = logged_in(served, open)
        assert shape(client.query("SELECT " + "x" * 900_000)).startswith("E")
        assert max(len(event.statement) for event in served.log.events) == 100_000


# --- keys that stop a statement ---------------------------------------------------------------------------------------


def test_keys_are_drawn_anew_and_wrong_ones_take_nobodys_place() -> None:
    with Served(Answers(), limits=ConnectionLimits(from_one_address=3)) as served, ExitStack() as open:
        keys = {logged_in(served, open).key for _ in range(20)}
        assert len(keys) == 20 and len({key[4:] for key in keys}) == 20  # by chance: 20² / 2³²
        for number in range(50):
            with served.raw() as connection:
                connection.sendall(struct.pack("!IIii", 16, 80877102, number, number))
                assert connection.recv(1) == b""
        assert isinstance(served.answering, Answers) and not served.answering.stopped


# --- passwords --------------------------------------------------------------------------------------------------------


def test_who_leaves_before_a_proof_has_not_tried() -> None:
    """psql connects once without a password, to see whether one is wanted: that is no failure."""
    with Served(Answers()) as served:
        for _ in range(30):
            with served.raw() as connection:
                client = Client(connection)
                client.send(startup(user=NAME, database="clinic"))
                client.until("R")
        with served.raw() as connection:
            assert shape(Client(connection).login(NAME, PASSWORD)).endswith("ZI")
        assert served.waits == []


def test_tries_side_by_side_share_no_allowance() -> None:
    """Ten proofs that come at one time: those after the fifth wait, each longer."""
    with Served(Answers(), limits=ConnectionLimits(from_one_address=10)) as served, ExitStack() as open:
        for _ in range(9):
            client = Client(open.enter_context(served.raw()))
            assert client.login(NAME, "wrong password")[-1].fields["C"] == "28P01"
        assert served.waits == [1.0, 2.0, 4.0, 8.0]


def test_a_context_has_no_old_tls() -> None:
    context = tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2 and context.options & ssl.OP_NO_RENEGOTIATION
