"""A server's port: no bytes cost memory or make an exception before a login, and after it each message has its answer.

The first byte of an input says which half it is for: even, a connection is opened and the rest is all that the client
sends; odd, the rest is what somebody sends who has logged in. What was not understood ends the connection with an error
that has a SQLSTATE, never with XX000, which stands for what nobody foresaw.
"""

from __future__ import annotations

import asyncio
import struct
import tracemalloc
from collections.abc import Sequence
from random import Random
from typing import Any
from unittest.mock import patch

from dpsql.faces.server.front.asking import Asking
from dpsql.faces.server.front.client_link import ClientLink
from dpsql.faces.server.front.conversation import Conversation
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.listen import Front
from dpsql.faces.server.front.login import Door
from dpsql.faces.server.front.route import Route
from dpsql.faces.server.front.variables import Variables
from dpsql.faces.server.people.users import User, Users
from dpsql.faces.server.statements import Login
from dpsql.faces.server.wire import messages as m
from dpsql.faces.server.wire import replies
from dpsql.faces.server.wire.scram import Exchange, make_secret
from tests.deep.fuzz.target import Target, damaged
from tests.support.answering import Answers, NoCatalogue, Recorded
from tests.support.wire_client import (
    GSS_REQUEST,
    SSL_REQUEST,
    bind,
    close,
    describe,
    execute,
    packet,
    parse,
    startup,
    text,
)

ANA = Login("ana", "ana", databases=("clinic",))
USERS = Users({"ana": User(make_secret("correct horse battery", b"0123456789abcdef", 1), ANA)})
OPENING, TALKING = b"\0", b"\1"
_MEMORY = 400_000
"""Bytes that a connection, and the event loop that is made for it here, may hold for a moment before a login."""
_SCRAM = b"SCRAM-SHA-256\0\0\0\0\x10n,,n=,r=abcdefgh"


class Memory(asyncio.Transport):
    """A transport to nowhere: what is written is kept, what is to be read is given when it is asked for."""

    def __init__(self, data: bytes) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.data, self.at, self.written, self.over = data, 0, bytearray(), False
        self.link: ClientLink
        self._planned = False

    def resume_reading(self) -> None:
        if not self._planned and not self.over:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._give)

    def pause_reading(self) -> None:
        pass

    def _give(self) -> None:
        self._planned = False
        if self.over:
            return
        buffer = self.link.get_buffer(-1)
        more = self.data[self.at : self.at + len(buffer)]
        if not more:
            self.close()
            return
        buffer[: len(more)] = more
        self.at += len(more)
        self.link.buffer_updated(len(more))

    def write(self, data: Any) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def close(self) -> None:
        if not self.over:
            self.over = True
            self.link.connection_lost(None)

    abort = close


async def _opened(data: bytes) -> bytes:
    door = Door(USERS, Recorded(), seconds=3600, sleep=_at_once)
    front = Front(door, Route(Answers(), NoCatalogue()))
    transport = Memory(data)
    transport.link = ClientLink(front._started)
    transport.link.connection_made(transport)
    await asyncio.gather(*front._tasks)
    return bytes(transport.written)


async def _at_once(seconds: float) -> None:
    """A wait that nobody spends."""


async def _talked(data: bytes) -> bytes:
    transport = Memory(data)
    transport.link = link = ClientLink(lambda link: None)
    link.connection_made(transport)
    link.logged_in()
    decoder = m.Decoder()
    decoder.logged_in()
    answering = Route(Answers(), NoCatalogue())
    try:
        await Conversation(link, decoder, Asking(ANA, answering, Recorded()), Variables(user="ana")).talk()
    except m.MalformedMessage as error:
        return bytes(transport.written) + replies.error_response(ProtocolFault("08P01", str(error)).fields())
    except Exception as error:
        if type(error).__name__ != "Gone":
            raise
    return bytes(transport.written)


def one(data: bytes) -> str:
    """`N`, or the SQLSTATE that an opened connection ends with; of one who has logged in, the last kind of reply."""
    if not data or data[0] % 2 == 0:
        tracemalloc.start()
        try:
            with patch("dpsql.faces.server.front.login.Exchange", lambda secret: Exchange(secret, "NONCE")):
                written = asyncio.run(_opened(data[1:]))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < _MEMORY, f"{peak} bytes for {len(data)}"
        assert len(written) < 500 + len(data), "more is said than was asked"
        states = _states(written)
        assert "XX000" not in states, written
        return states[-1] if states else "N" if written else "nothing"
    written = asyncio.run(_talked(data[1:]))
    states = _states(written)
    assert "XX000" not in states, written
    return f"then {states[-1] if states else 'fine'}"


def _states(written: bytes) -> list[str]:
    """The SQLSTATEs of the errors in what was written."""
    found = []
    at = 0
    while at + 5 <= len(written):
        if written[at : at + 1] == b"N" and written[at + 1 : at + 2] in (b"N", b"E", b"R"):  # an answer of one byte
            at += 1
            continue
        (length,) = struct.unpack_from("!I", written, at + 1)
        if written[at : at + 1] == b"E":
            body = written[at + 5 : at + 1 + length].split(b"\0")
            found += [part[1:].decode() for part in body if part[:1] == b"C"]
        at += 1 + length
    return found


def seeds() -> Sequence[bytes]:
    """Conversations as clients have them."""
    login = startup(user="ana", database="clinic", options="-c epsilon=0.5")
    proof = packet(b"p", b"c=biws,r=abcdefghNONCE,p=" + b"A" * 43 + b"=")
    flow = parse("SELECT n WHERE x = $1", "s") + describe("S", "s") + bind([b"5"], statement="s") + describe("P")
    cursor = "BEGIN; DECLARE c CURSOR FOR SELECT n; FETCH ALL c; COMMIT"
    copy = "COPY (SELECT list, blob, dec) TO STDOUT (FORMAT csv, HEADER)"
    return [
        OPENING + SSL_REQUEST + GSS_REQUEST + login + packet(b"p", _SCRAM) + proof,
        OPENING + startup(3 << 16 | 9, user="eve", **{"_pq_.x": "1"}) + packet(b"p", _SCRAM),
        OPENING + struct.pack("!IIii", 16, 80877102, 1, 2),
        TALKING + packet(b"Q", text("SELECT n, region FROM numbers(3); SHOW ALL")) + packet(b"X"),
        TALKING + flow + execute(most=1) + execute() + close("S", "s") + packet(b"S") + packet(b"H"),
        TALKING + packet(b"Q", text(cursor)) + packet(b"F", b"\0\0"),
        TALKING + packet(b"Q", text(copy)) + packet(b"d", b"x"),
        TALKING + packet(b"Q", text("PREPARE q (int) AS SELECT n WHERE x = $1; EXECUTE q (5); DEALLOCATE ALL")),
    ]


PIECES = [
    SSL_REQUEST, GSS_REQUEST, packet(b"S"), packet(b"Q", text("SELECT n")), packet(b"Q", b"\xff\0"), parse("SELECT n"),
    packet(b"p", _SCRAM), bind(), execute(), describe("P"), b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff",
    startup(user="ana", database="clinic"), text("SET epsilon = 1"), b"\0\0\x27\x11", b"(", b"'", b"$$", b"/*", b";",
    b"\0", b"E'\\",
]  # fmt: skip


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """One to three changes."""
    for _ in range(rng.randrange(1, 4)):
        data = data[:1] + damaged(data[1:], rng, others, PIECES)
    return data


TARGET = Target("wire", one, mutate, seeds)
