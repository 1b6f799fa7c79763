"""Who does not read is let go, and gives his place to who comes. Time is the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

pytest.importorskip("uvicorn")

from dpsql.faces.server.front.listen import ConnectionLimits
from dpsql.faces.server.web import listener as listener_module
from dpsql.faces.server.web.entrance import Busy, Entrance
from dpsql.faces.server.web.guard import Guard, Message, Receive, Send
from dpsql.faces.server.web.listener import UNREAD_SECONDS, Listener, WebLimits
from tests.support.served import Hurried

T = TypeVar("T")
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n"


async def page(scope: Message, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"50000")]})
    await send({"type": "http.response.body", "body": b"x" * 50_000})


class Listening:
    """A listener of one page, in a thread of its own."""

    def __init__(self, limits: WebLimits) -> None:
        self.listener = Listener(Guard(page, secure=False), None, limits)
        self.loop = Hurried()
        self.port = 0

    def call(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self.loop).result(60)

    def later(self, seconds: float) -> None:
        async def pass_by() -> None:
            self.loop.ahead += seconds
            await asyncio.sleep(0)

        self.call(pass_by())

    @property
    def connections(self) -> list[Any]:
        return list(self.listener._state.connections)

    async def until(self, condition: Any) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def asks(self, connection: socket.socket, times: int = 1) -> None:
        with contextlib.suppress(ConnectionError):
            connection.sendall(REQUEST.replace(b"PORT", str(self.port).encode()) * times)

    def is_deaf(self, connection: socket.socket) -> None:
        """It asks a lot, reads nothing, and the listener has no room for more."""
        before = sum(c._unread._full for c in self.connections)
        self.asks(connection, 400)
        self.call(self.until(lambda: sum(c._unread._full for c in self.connections) > before))


@contextmanager
def listening(limits: WebLimits) -> Iterator[Listening]:
    found = Listening(limits)
    thread = threading.Thread(target=found.loop.run_forever, daemon=True)
    thread.start()
    found.port = found.call(found.listener.start("127.0.0.1", 0))
    try:
        yield found
    finally:
        for connection in found.connections:
            found.loop.call_soon_threadsafe(connection.transport.abort)
        found.call(found.listener.stop(0))
        found.loop.call_soon_threadsafe(found.loop.stop)
        thread.join(60)
        found.loop.close()


def test_who_reads_nothing_is_let_go_whatever_was_to_be_sent() -> None:
    with listening(WebLimits(5, 5)) as served, served.raw() as deaf:
        served.is_deaf(deaf)
        for _ in range(3):
            served.later(UNREAD_SECONDS + 1)
        served.call(served.until(lambda: not served.connections))


def test_who_reads_nothing_gives_his_place_to_who_comes() -> None:
    with listening(WebLimits(3, 3)) as served, ExitStack() as open:
        for _ in range(3):
            served.is_deaf(open.enter_context(served.raw()))
        for _ in range(5):
            with served.raw() as friend:
                served.asks(friend)
                assert friend.recv(12) == b"HTTP/1.1 200"
        assert len(served.connections) <= 4


def test_who_asks_nothing_gives_his_place_to_who_comes() -> None:
    with listening(WebLimits(2, 2)) as served, served.raw() as first, served.raw() as second:
        served.call(served.until(lambda: len(served.connections) == 2))
        with served.raw() as friend:
            served.asks(friend)
            assert friend.recv(12) == b"HTTP/1.1 200"
            assert first.recv(1) == b""
            served.asks(second)
            assert second.recv(12) == b"HTTP/1.1 200"


def test_addresses_of_one_network_are_one() -> None:
    own = [listener_module._network(SimpleNamespace(client=(f"2001:db8:1:2::{i}", 1))) for i in (1, 2)]  # type: ignore[arg-type]
    assert own[0] == own[1] != listener_module._network(SimpleNamespace(client=("2001:db8:1:3::1", 1)))  # type: ignore[arg-type]
    nobody: Any = None
    entrance = Entrance(nobody, nobody, "analyst", nobody, ConnectionLimits(from_one_address=1))
    with (
        entrance._place("2001:db8::1"),
        entrance._place("2001:db8:0:1::1"),
        pytest.raises(Busy),
        entrance._place("2001:db8::2"),
    ):
        pass
