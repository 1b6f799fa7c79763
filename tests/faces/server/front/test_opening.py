"""The first bytes of a connection: TLS or not, what comes before a handshake, limits, and clients that never finish."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.server.front import login as login_module
from dpsql.faces.server.front.client_link import ClientLink
from dpsql.faces.server.front.listen import ConnectionLimits, Front, tls_context
from dpsql.faces.server.front.route import Route
from dpsql.faces.server.statements import Login
from dpsql.faces.server.wire.messages import STARTUP_LIMIT
from tests.support.answering import Answers, NoCatalogue
from tests.support.served import NAME, PASSWORD, Served, people
from tests.support.wire_client import GSS_REQUEST, SSL_REQUEST, Client, packet, shape, startup, text

TLS = Path(__file__).resolve().parents[3] / "fixtures" / "tls"


@pytest.fixture
def context() -> ssl.SSLContext:
    return tls_context(str(TLS / "certificate.pem"), str(TLS / "key.pem"))


@pytest.fixture
def secure(context: ssl.SSLContext) -> Iterator[Served]:
    with Served(Answers(), tls=context) as found:
        yield found


@pytest.fixture
def from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections look as if they came from another machine."""
    monkeypatch.setattr(login_module, "is_local", lambda address: False)


def last_error(connection: socket.socket) -> str:
    """The error that a connection ends with; "" if it ends without one."""
    client = Client(connection)
    try:
        while (reply := client.receive()).kind != "E":
            pass
    except (EOFError, ConnectionResetError):
        return ""
    with pytest.raises(EOFError):
        client.receive()
    assert reply.fields["S"] == "FATAL"
    return reply.fields["C"]


def test_a_conversation_under_tls(secure: Served) -> None:
    with secure.raw() as connection:
        client = Client(connection)
        client.send(GSS_REQUEST)
        assert client.exactly(1) == b"N"
        with client.secure():
            assert isinstance(client.socket, ssl.SSLSocket) and client.socket.version() in ("TLSv1.2", "TLSv1.3")
            client.login(NAME, PASSWORD)
            assert shape(client.query("SELECT n")) == "N T D C(SELECT 1) ZI"
            big = client.query("SELECT n FROM numbers(20000)")
            assert sum(r.kind == "D" for r in big) == 20_000


def test_without_a_certificate_the_answer_is_no(served: Served) -> None:
    with served.raw() as connection:
        client = Client(connection)
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"N"
        assert shape(client.login(NAME, PASSWORD)).endswith("ZI")


def test_old_versions_of_tls_are_not_spoken(secure: Served) -> None:
    with secure.raw() as connection:
        client = Client(connection)
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        with pytest.warns(DeprecationWarning):
            old.minimum_version = ssl.TLSVersion.TLSv1_1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            old.wrap_socket(connection)


def test_bytes_before_the_handshake_end_the_connection(secure: Served) -> None:
    """CVE-2021-23222: a query that is put in front of a handshake is no part of what comes under TLS."""
    with secure.raw() as connection:
        connection.sendall(SSL_REQUEST + startup(user=NAME))
        assert last_error(connection) == "08P01"


def test_bytes_that_come_later_are_taken_for_the_handshake(secure: Served) -> None:
    with secure.raw() as connection:
        client = Client(connection)
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        connection.sendall(startup(user=NAME, database="clinic") + packet(b"Q", text("SELECT n")))
        try:
            while connection.recv(1000):
                pass
        except ConnectionResetError:
            pass
    assert isinstance(secure.answering, Answers) and secure.answering.asked == []
    assert not any(event.what == "login" for event in secure.log.events)


def test_tls_is_asked_for_once(secure: Served) -> None:
    with secure.raw() as connection:
        client = Client(connection)
        with client.secure():
            client.send(SSL_REQUEST)
            assert last_error(client.socket) == "08P01"


@pytest.mark.usefixtures("from_elsewhere")
def test_other_machines_need_tls(secure: Served) -> None:
    with secure.raw() as connection:
        connection.sendall(startup(user=NAME, database="clinic"))
        assert last_error(connection) == "28000"
    with secure.raw() as connection:
        client = Client(connection)
        with client.secure():
            assert shape(client.login(NAME, PASSWORD)).endswith("ZI")


@pytest.mark.usefixtures("from_elsewhere")
def test_other_machines_are_not_spoken_to_without_tls(served: Served) -> None:
    with served.raw() as connection:
        connection.sendall(SSL_REQUEST)
        assert connection.recv(10) == b"N" and connection.recv(1) == b""


def test_a_listener_for_other_machines_needs_a_certificate() -> None:
    with Served(Answers()) as served, pytest.raises(Rejected, match="TLS"):
        served.call(Front(served.door, Route(Answers(), NoCatalogue())).start("0.0.0.0", 0))


def test_a_certificate_that_is_none_is_refused() -> None:
    for pair in (("nowhere.pem", "nowhere.pem"), (str(TLS / "key.pem"), str(TLS / "key.pem"))):
        with pytest.raises(Rejected, match="certificate"):
            tls_context(*pair)


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False),
     ("::ffff:10.0.0.1", False), ("fe80::1%eth0", False), ("", False)],
)  # fmt: skip
def test_what_is_this_machine(address: str, local: bool) -> None:
    assert login_module.is_local(address) is local


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", struct.pack("!I", STARTUP_LIMIT + 1), struct.pack("!I", 3), b"\xff" * 8,
     struct.pack("!II", 8, 2 << 16), struct.pack("!II", 9, 3 << 16) + b"u", b"\x16\x03\x01\x02\x00\x01\x00"],
)  # fmt: skip
def test_what_is_no_start_ends_the_connection(served: Served, data: bytes) -> None:
    with served.raw() as connection:
        connection.sendall(data)
        assert last_error(connection) == "08P01"


def test_a_query_before_the_login_ends_the_connection(served: Served) -> None:
    with served.raw() as connection:
        connection.sendall(startup(user=NAME, database="clinic") + packet(b"Q", text("SELECT n")))
        assert last_error(connection) == "08P01"
    with served.raw() as connection:
        connection.sendall(startup(user=NAME, database="clinic") + b"p" + struct.pack("!I", STARTUP_LIMIT + 1))
        assert last_error(connection) == "08P01"


def test_who_never_finishes_is_sent_away() -> None:
    """The time for a login is over at once here; nobody waits."""
    with Served(Answers(), seconds=0) as served:
        for begun in (b"", b"\0\0", SSL_REQUEST, startup(user=NAME)[:-1]):
            with served.raw() as connection:
                connection.sendall(begun)
                assert last_error(connection) == "08006"


def refused_of(served: Served) -> list[tuple[str, str]]:
    return [(event.name, event.outcome) for event in served.log.events if event.what == "refused login"]


def test_who_has_not_logged_in_gives_his_place_to_who_comes() -> None:
    """An idle host does not shut out those behind the same address. First goes who has said nothing."""
    limits = ConnectionLimits(connections=5, of_one_user=2, not_logged_in=4, from_one_address=2)
    with Served(Answers(), limits=limits) as served, served.raw() as one, served.raw() as idle:
        begun = Client(one)
        begun.send(GSS_REQUEST)
        assert begun.exactly(1) == b"N"
        with served.raw() as friend:
            assert idle.recv(1) == b""
            assert refused_of(served) == [("", "53300")]
            assert shape(Client(friend).login(NAME, PASSWORD)).endswith("ZI")
            assert shape(begun.login(NAME, PASSWORD)).endswith("ZI")


def test_the_network_with_most_strangers_gives_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[str] = []
    made = ClientLink.connection_made

    def connection_made(link: ClientLink, transport: asyncio.BaseTransport) -> None:
        places.append(["10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.3"][len(places)])
        link.place = places[-1]  # type: ignore[attr-defined]
        made(link, transport)

    monkeypatch.setattr(ClientLink, "connection_made", connection_made)
    monkeypatch.setattr(ClientLink, "address", property(lambda self: self.place))
    monkeypatch.setattr(login_module, "is_local", lambda address: True)
    limits = ConnectionLimits(connections=9, of_one_user=9, not_logged_in=3, from_one_address=3)
    with Served(Answers(), limits=limits) as served, ExitStack() as open:
        alone, first, second, new = [open.enter_context(served.raw()) for _ in range(4)]
        assert first.recv(1) == b""
        for link in (alone, second, new):
            link.sendall(GSS_REQUEST)
            assert link.recv(1) == b"N"


def test_who_finds_no_place_is_told_as_libpq_prints_it(secure: Served) -> None:
    """Under TLS, which libpq asks for first: an error before it would be one of TLS. The log has one line a minute."""
    secure.front._limits = ConnectionLimits(connections=1)
    with secure.raw() as connection:
        client = Client(connection)
        with client.secure():
            assert shape(client.login(NAME, PASSWORD)).endswith("ZI")
            with secure.raw() as other, (late := Client(other)).secure():
                late.send(startup(user="ben", database="clinic"))
                found = late.receive()
                assert (found.kind, found.fields["S"], found.fields["C"]) == ("E", "FATAL", "53300")
            assert refused_of(secure) == [("ben", "53300")]
            for name, lines in (("eve", 1), ("max", 2)):
                with secure.raw() as another:
                    another.sendall(startup(user=name, database="clinic"))
                    assert last_error(another) == "53300"
                assert len(refused_of(secure)) == lines
                secure.later(61)
            with secure.raw() as stranger:  # who may stop what runs all the same
                stranger.sendall(struct.pack("!IIii", 16, 80877102, 1, 1))
                assert stranger.recv(1) == b""


PROXY = b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 5432\r\n"


def test_a_proxy_says_where_a_client_comes_from(context: ssl.SSLContext) -> None:
    """Under the same rules: from another machine, TLS is needed."""
    with Served(Answers(), tls=context, proxies=["127.0.0.0/8"]) as served:
        with served.raw() as connection:
            client = Client(connection)
            client.send(PROXY)
            with client.secure():
                assert shape(client.login(NAME, PASSWORD)).endswith("ZI")
        with served.raw() as plain:
            plain.sendall(PROXY + startup(user=NAME, database="clinic"))
            assert last_error(plain) == "28000"
        with served.raw() as together:
            together.sendall(PROXY + SSL_REQUEST + b"x")
            assert last_error(together) == "08P01"
        with served.raw() as silent:
            silent.sendall(startup(user=NAME, database="clinic"))
            assert last_error(silent) == "08P01"
        assert {event.address for event in served.log.events} == {"192.0.2.7"}


def test_nobody_else_says_where_he_comes_from() -> None:
    with Served(Answers(), proxies=["192.0.2.0/24"]) as served, served.raw() as connection:
        connection.sendall(PROXY + startup(user=NAME, database="clinic"))
        assert last_error(connection) == "08P01"


def test_fifty_right_passwords_of_one_address_at_one_time() -> None:
    """All of them are there before the first proof comes."""
    others = {f"user{i}": Login(f"user{i}", f"user{i}") for i in range(5)}
    with Served(Answers(), people(**others)) as served, ExitStack() as open:
        clients = [Client(open.enter_context(served.raw())) for _ in range(50)]
        for number, client in enumerate(clients):
            client.send(startup(user=f"user{number % 5}", database="clinic"))
        for client in clients:
            assert client.receive().kind == "R"
        proofs = [client.proof(PASSWORD) for client in clients]
        for client, proof in zip(clients, proofs, strict=True):
            assert isinstance(proof, tuple)
            client.send(packet(b"p", proof[0]))
        for client in clients:
            assert shape(client.until("Z", "E")).endswith("ZI")
        assert served.waits == []


def test_a_place_is_free_again_when_a_client_has_left() -> None:
    with Served(Answers(), limits=ConnectionLimits(connections=1)) as served:
        for _ in range(3):
            with served.raw() as connection:
                client = Client(connection)
                assert shape(client.login(NAME, PASSWORD)).endswith("ZI")
                client.send(packet(b"X"))
                with pytest.raises(EOFError):
                    client.receive()


def test_many_small_records_arrive_whole(secure: Served) -> None:
    """TLS gives them out one by one, into one buffer."""
    assert isinstance(secure.answering, Answers)
    with secure.raw() as connection:
        client = Client(connection)
        with client.secure():
            client.login(NAME, PASSWORD)
            secure.answering.hold = True
            client.send(packet(b"Q", text("SELECT n")))
            assert secure.answering.running.wait(60)
            for i in range(100):
                for part in (
                    packet(b"Q", text(f"SHOW epsilon -- {i}"))[:7],
                    packet(b"Q", text(f"SHOW epsilon -- {i}"))[7:],
                ):
                    client.send(part)
            secure.answering.hold = False
            assert shape(client.until("Z")) == "N T D C(SELECT 1) ZI"
            for _ in range(100):
                assert shape(client.until("Z")) == "T D C(SHOW) ZI"


def test_what_comes_together_with_the_end_of_the_handshake_is_read(secure: Served) -> None:
    """The first packet under TLS may be in one segment with the client's last message of the handshake."""
    with secure.raw() as connection:
        client = Client(connection)
        client.send(SSL_REQUEST)
        assert client.exactly(1) == b"S"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        tls.write(startup(user=NAME, database="clinic"))
        connection.sendall(outgoing.read())
        found = b""
        while len(found) < 24:
            try:
                found += tls.read(1000)
            except ssl.SSLWantReadError:
                incoming.write(connection.recv(65_536))
        assert found == packet(b"R", struct.pack("!I", 10) + b"SCRAM-SHA-256\0\0")
        tls.write(b"?")
        connection.sendall(outgoing.read())
        while b"08P01" not in found:
            try:
                found += tls.read(1000)
            except ssl.SSLWantReadError:
                incoming.write(connection.recv(65_536))
