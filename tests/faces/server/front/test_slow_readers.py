"""Who does not read is let go. Time is the test's own."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from dpsql.faces.server.front.client_link import UNREAD_SECONDS, ClientLink
from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served
from tests.support.wire_client import Client, packet, shape, text


def links(served: Served) -> list[ClientLink]:
    return [talking.link for talking in served.front._talking.values()]


async def _full(link: ClientLink) -> None:
    while link._may_write.is_set():
        await asyncio.sleep(0.001)


def test_who_takes_nothing_is_let_go_and_who_reads_is_not() -> None:
    with Served(Answers()) as served, ExitStack() as open:
        deaf, reader, idle = (Client(open.enter_context(served.raw())) for _ in range(3))
        for client in (deaf, reader, idle):
            client.login(NAME, PASSWORD)
        (link, *_) = links(served)
        deaf.send(*[packet(b"Q", text("SELECT n, i FROM numbers(2000)"))] * 500)
        served.call(_full(link))
        for _ in range(3):
            served.later(UNREAD_SECONDS + 1)
            assert shape(reader.query("SELECT n")) == "N T D C(SELECT 1) ZI"
        served.call(link.gone.wait())
        assert shape(idle.query("SELECT n")) == "N T D C(SELECT 1) ZI"
        with pytest.raises((EOFError, ConnectionResetError)):
            while True:
                deaf.receive()
