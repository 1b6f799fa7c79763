"""Where a client of the consoles comes from: what a declared proxy says, and nobody else."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dpsql.faces.server.front.listen import ConnectionLimits
from tests.support.served_web import ServedWeb, served_web
from tests.support.small_shop import make_shop

BEHIND = ("127.0.0.0/8", "10.0.0.0/24")


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    shop = make_shop(tmp_path_factory.mktemp("shop"))
    with served_web(shop, limits=ConnectionLimits(connections=4), proxies=BEHIND) as found:
        yield found


def tried(web: ServedWeb, *said: str) -> tuple[int, list[str]]:
    """The status of a wrong password, and the addresses that the audit log has of it."""
    known = len(web.log.events)
    headers = [("x-forwarded-for", text) for text in said]
    answer = web.client().post("/login", data={"name": "ana", "password": "wrong"}, headers=headers)
    return answer.status_code, [event.address for event in web.log.events[known:]]


@pytest.mark.parametrize(
    ("said", "address"),
    [
        (("203.0.113.7",), "203.0.113.7"),
        (("198.51.100.1, 203.0.113.7",), "203.0.113.7"),
        (("127.0.0.1, 203.0.113.7",), "203.0.113.7"),
        (("203.0.113.7,10.0.0.9 , 127.0.0.2",), "203.0.113.7"),
        (("198.51.100.1", "203.0.113.7"), "203.0.113.7"),
        (("' OR 1=1, 203.0.113.7",), "203.0.113.7"),
        (("2001:db8::1",), "2001:db8::1"),
        (("::ffff:203.0.113.7",), "203.0.113.7"),
    ],
)
def test_the_address_is_what_the_first_declared_proxy_saw(
    proxied: ServedWeb, said: tuple[str, ...], address: str
) -> None:
    """What stands before it a client may have sent himself."""
    assert tried(proxied, *said) == (403, [address])


@pytest.mark.parametrize("said", [(), ("",), ("unknown",), ("203.0.113.7:80",), ("203.0.113.7,",), ("10.0.0.9",)])
def test_a_proxy_that_says_nothing_that_is_understood_is_refused(proxied: ServedWeb, said: tuple[str, ...]) -> None:
    assert tried(proxied, *said) == (400, [])


def test_nobody_elses_word_is_taken(web: ServedWeb) -> None:
    """Else whoever guesses passwords would come from elsewhere each time."""
    assert tried(web, "203.0.113.7") == (403, ["127.0.0.1"])


def asked(web: ServedWeb, connection: socket.socket) -> bytes:
    head = f"GET /login HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n"
    connection.sendall(head.encode())
    found = b""
    while not found.endswith(b"</html>\n"):
        part = connection.recv(65536)
        if not part:
            break
        found += part
    return found


def test_all_who_come_through_a_proxy_are_not_counted_as_one(proxied: ServedWeb) -> None:
    """Half of all connections may be of one address, and all of them of a proxy: nobody has to give way."""
    there = [socket.create_connection(("127.0.0.1", proxied.port), timeout=120) for _ in range(4)]
    try:
        for connection in [*there, *there]:
            assert asked(proxied, connection).startswith(b"HTTP/1.1 200")
    finally:
        for connection in there:
            connection.close()
