"""What clients send, as values: bytes go into a Decoder, messages come out, and no size that a client names is trusted.

Of PostgreSQL's protocol 3.0 (its documentation, chapter 55). A message is a byte that names it, a length that counts
itself and the body; the first packets of a connection have no such byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

STARTUP_LIMIT: Final = 10_000
"""Bytes of a packet before anybody has logged in, as PostgreSQL has it."""
LIMIT: Final = 16 * 1024 * 1024
"""Bytes of any later message."""
MOST_PARAMETERS: Final = 65_535

_PROTOCOL_3, _CANCEL, _SSL, _GSS = 3, 80877102, 80877103, 80877104


class MalformedMessage(Exception):
    """Bytes that are no message, or too many of them. The connection ends; `str` tells the client why."""


@dataclass(frozen=True, slots=True)
class SslRequest:
    """May the connection go on under TLS?"""


@dataclass(frozen=True, slots=True)
class GssRequest:
    """May it go on under GSSAPI? It may not."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Stop what another connection runs. key: what that one was told with BackendKeyData."""

    process: int
    key: int


@dataclass(frozen=True, slots=True)
class Startup:
    """minor: of protocol 3. parameters: name → text, in order; later ones of a name replace earlier ones."""

    minor: int
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Password:
    """What answers a demand for authentication; its form depends on what was demanded."""

    data: bytes


@dataclass(frozen=True, slots=True)
class SimpleQuery:
    """A text of any number of statements."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse:
    """types: oids of the parameters, 0 for what is not said; there may be more parameters."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """formats, results: none (all are text), one for all, or one each; 0 text, 1 binary. values: None is NULL."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """kind: "S" a statement, "P" a portal."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """most: rows to give at once; 0 for all."""

    portal: str
    most: int


@dataclass(frozen=True, slots=True)
class Close:
    """kind: as of Describe."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Send what is waiting."""


@dataclass(frozen=True, slots=True)
class Sync:
    """The end of a series of messages: after an error everything up to here is skipped."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """Good-bye."""


@dataclass(frozen=True, slots=True)
class CopyIn:
    """CopyData, CopyDone or CopyFail from a client: nothing is ever copied in, so they are passed over."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function by its oid: refused."""


First: TypeAlias = SslRequest | GssRequest | CancelRequest | Startup
Later: TypeAlias = (
    Password
    | SimpleQuery
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | Terminate
    | CopyIn
    | FunctionCall
)


class Decoder:
    """Bytes → messages. It holds no more than one message that has not come whole, and what has come behind it.

    `limit` is the largest packet that is accepted next; who has logged in may send larger ones (`logged_in`).
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._limit = STARTUP_LIMIT

    def feed(self, data: bytes) -> None:
        """More bytes have come."""
        self._buffer += data

    def logged_in(self) -> None:
        """From now on messages may be as large as LIMIT."""
        self._limit = LIMIT

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come that was not given out."""
        return not self._buffer

    def first(self) -> First | None:
        """The next packet of a connection that is being opened; None: it has not come whole. Raises Malformed."""
        body = self._packet(0, 8)
        return None if body is None else _first(body)

    def later(self) -> Later | None:
        """The next message; None: it has not come whole. Raises Malformed."""
        if not self._buffer:
            return None
        kind = self._buffer[0]
        read = _READERS.get(kind)
        if read is None:
            raise MalformedMessage(f"there is no message of type {kind}")
        body = self._packet(1, 4)
        if body is None:
            return None
        found = _Body(body)
        message = read(found)
        found.end()
        return message

    def _packet(self, head: int, least: int) -> bytes | None:
        """The bytes behind the next length, which is at least `least`; refused as soon as the length is known."""
        if len(self._buffer) < head + 4:
            return None
        (length,) = struct.unpack_from("!I", self._buffer, head)
        if not least <= length <= self._limit:
            raise MalformedMessage(f"a message of {length} bytes is not accepted here")
        end = head + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[head + 4 : end])
        del self._buffer[:end]
        return body


class _Body:
    """The body of a message, read from front to end. All methods raise Malformed."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise MalformedMessage("a message is shorter than it says")
        self._at += count
        return self._data[self._at - count : self._at]

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def byte(self) -> str:
        return self.take(1).decode("latin-1")

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise MalformedMessage("a text in a message has no end")
        found, self._at = self._data[self._at : end], end + 1
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedMessage("a text in a message is not UTF-8") from None

    def int16s(self) -> tuple[int, ...]:
        count = self.int16()
        return struct.unpack(f"!{count}h", self.take(2 * count))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        if self._at != len(self._data):
            raise MalformedMessage("a message is longer than it says")


def _first(data: bytes) -> First:
    body = _Body(data)
    code = body.int32()
    if code in (_SSL, _GSS):
        body.end()
        return SslRequest() if code == _SSL else GssRequest()
    if code == _CANCEL:
        found = CancelRequest(body.int32(), body.int32())
        body.end()
        return found
    if code >> 16 != _PROTOCOL_3:
        raise MalformedMessage(f"protocol {code >> 16}.{code & 0xFFFF} is not spoken here, but 3.0")
    parameters: dict[str, str] = {}
    while name := body.text():
        parameters[name] = body.text()
    body.end()
    return Startup(code & 0xFFFF, parameters)


def _parse(body: _Body) -> Parse:
    name, sql, count = body.text(), body.text(), body.int16()
    return Parse(name, sql, struct.unpack(f"!{count}I", body.take(4 * count)))


def _bind(body: _Body) -> Bind:
    portal, statement, formats, count = body.text(), body.text(), body.int16s(), body.int16()
    values: list[bytes | None] = []
    for _ in range(count):
        length = body.int32()
        values.append(None if length == -1 else body.take(length))
    results = body.int16s()
    if len(formats) not in (0, 1, count) or not {*formats, *results} <= {0, 1}:
        raise MalformedMessage("Bind has formats that are none, or not one for each value")
    return Bind(portal, statement, formats, tuple(values), results)


def _named(kind: type[Describe] | type[Close]) -> Callable[[_Body], Later]:
    def read(body: _Body) -> Later:
        found = kind(body.byte(), body.text())
        if found.kind not in ("S", "P"):
            raise MalformedMessage("what is described or closed is a statement (S) or a portal (P)")
        return found

    return read


def _execute(body: _Body) -> Execute:
    return Execute(body.text(), max(body.int32(), 0))


def _skipped(message: Later) -> Callable[[_Body], Later]:
    def read(body: _Body) -> Later:
        body.rest()
        return message

    return read


_READERS: Final[dict[int, Callable[[_Body], Later]]] = {
    ord("p"): lambda body: Password(body.rest()),
    ord("Q"): lambda body: SimpleQuery(body.text()),
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): _named(Describe),
    ord("E"): _execute,
    ord("C"): _named(Close),
    ord("H"): lambda body: Flush(),
    ord("S"): lambda body: Sync(),
    ord("X"): lambda body: Terminate(),
    ord("F"): _skipped(FunctionCall()),
    ord("d"): _skipped(CopyIn()),
    ord("c"): _skipped(CopyIn()),
    ord("f"): _skipped(CopyIn()),
}
