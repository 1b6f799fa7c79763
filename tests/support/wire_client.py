"""A client that speaks PostgreSQL's protocol byte by byte, for tests that look at single messages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.faces.server.wire.scram import prepared


def proof_of(password: str, header: str, first: str, reply: str) -> tuple[bytes, bytes]:
    """client-final, and what a server that knows the secret replies."""
    parts = dict(part.split("=", 1) for part in reply.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), base64.b64decode(parts["s"]), int(parts["i"]))
    without = f"c={base64.b64encode(header.encode()).decode()},r={parts['r']}"
    said = f"{first},{reply},{without}".encode()
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), said, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), said, "sha256")
    return f"{without},p={base64.b64encode(proof).decode()}".encode(), b"v=" + base64.b64encode(server)


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def packet(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def startup(version: int = 3 << 16, **parameters: str) -> bytes:
    return packet(b"", struct.pack("!I", version) + b"".join(text(k) + text(v) for k, v in parameters.items()) + b"\0")


SSL_REQUEST = struct.pack("!II", 8, 80877103)
GSS_REQUEST = struct.pack("!II", 8, 80877104)


@dataclass
class Reply:
    """A message of the server. fields: of an error or a notice."""

    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        return {part[:1].decode(): part[1:].decode() for part in self.body.split(b"\0") if part}


@dataclass
class Client:
    """A connection. replies: every message that has come. status: as the server told it."""

    socket: socket.socket
    replies: list[Reply] = field(default_factory=list)
    status: dict[str, str] = field(default_factory=dict)
    key: bytes = b""

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self.socket.recv(count - len(found))
            if not more:
                raise EOFError(found)
            found += more
        return found

    def receive(self) -> Reply:
        """The next message. Raises EOFError once the server has ended the connection."""
        kind = self.exactly(1).decode()
        (length,) = struct.unpack("!I", self.exactly(4))
        reply = Reply(kind, self.exactly(length - 4))
        if kind == "S":
            name, value, _ = reply.body.decode().split("\0")
            self.status[name] = value
        if kind == "K":
            self.key = reply.body
        self.replies.append(reply)
        return reply

    def until(self, *kinds: str) -> list[Reply]:
        """The messages up to one of these kinds, that included; ParameterStatus left out."""
        found: list[Reply] = []
        while True:
            reply = self.receive()
            if reply.kind != "S":
                found.append(reply)
            if reply.kind in kinds:
                return found

    @contextmanager
    def secure(self, certificate: Path | None = None) -> Iterator[None]:
        """Go on under TLS, whoever the server is. certificate: to be shown if it asks for one, with its key."""
        self.send(SSL_REQUEST)
        assert self.exactly(1) == b"S"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate)
        with context.wrap_socket(self.socket) as self.socket:
            yield

    def login(self, name: str, password: str, database: str = "clinic", **parameters: str) -> list[Reply]:
        """Up to ReadyForQuery, or to an error."""
        self.send(startup(user=name, database=database, **parameters))
        return self.prove(password)

    def proof(self, password: str) -> tuple[bytes, bytes] | Reply:
        """What is to be sent, and what answers it; or an error."""
        first = "n=,r=abcdefgh"
        message = f"n,,{first}".encode()
        self.send(packet(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(message)) + message))
        reply = self.until("R", "E")[-1]
        return reply if reply.kind == "E" else proof_of(password, "n,,", first, reply.body[4:].decode())

    def prove(self, password: str) -> list[Reply]:
        demand = self.until("R", "E")[-1]
        if demand.kind == "E":
            return [demand]
        if demand.body == struct.pack("!I", 0):  # nothing has to be proven
            return [demand, *self.until("Z", "E")]
        assert demand.body == struct.pack("!I", 10) + b"SCRAM-SHA-256\0\0"
        proven = self.proof(password)
        if isinstance(proven, Reply):
            return [proven]
        final, expected = proven
        self.send(packet(b"p", final))
        found = self.until("Z", "E")
        if found[0].kind == "R":
            assert found[0].body == struct.pack("!I", 12) + expected
        return found

    # --- conversation ----------------------------------------------------------------------------------------------

    def query(self, sql: str) -> list[Reply]:
        self.send(packet(b"Q", text(sql)))
        return self.until("Z")

    def extended(self, *messages: bytes) -> list[Reply]:
        """Messages, and Sync."""
        self.send(*messages, packet(b"S"))
        return self.until("Z")


def parse(sql: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    return packet(b"P", text(name) + text(sql) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(
    values: Sequence[bytes | None] = (), formats: Sequence[int] = (), results: Sequence[int] = (), portal: str = "",
    statement: str = "",
) -> bytes:  # fmt: skip
    body = text(portal) + text(statement) + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    body += struct.pack("!H", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return packet(b"B", body + struct.pack(f"!H{len(results)}H", len(results), *results))


def describe(kind: str, name: str = "") -> bytes:
    return packet(b"D", kind.encode() + text(name))


def execute(portal: str = "", most: int = 0) -> bytes:
    return packet(b"E", text(portal) + struct.pack("!i", most))


def close(kind: str, name: str = "") -> bytes:
    return packet(b"C", kind.encode() + text(name))


def shape(replies: Sequence[Reply]) -> str:
    """The kinds of messages, one letter each; errors with their SQLSTATE, the end with its status."""
    found = []
    for reply in replies:
        match reply.kind:
            case "E":
                found.append(f"E({reply.fields['C']})")
            case "Z":
                found.append(f"Z{reply.body.decode()}")
            case "C":
                found.append(f"C({reply.body[:-1].decode()})")
            case kind:
                found.append(kind)
    return " ".join(found)


def rows(replies: Sequence[Reply]) -> list[tuple[str | None, ...]]:
    """The values of DataRows, as text."""
    found = []
    for reply in replies:
        if reply.kind == "D":
            at, values = 2, list[str | None]()
            for _ in range(struct.unpack_from("!H", reply.body)[0]):
                (length,) = struct.unpack_from("!i", reply.body, at)
                at += 4
                values.append(None if length < 0 else reply.body[at : at + length].decode())
                at += max(length, 0)
            found.append(tuple(values))
    return found
