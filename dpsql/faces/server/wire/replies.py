"""What the server sends, as bytes. Each function is one message of PostgreSQL's protocol, under its name there."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

TEXT, BINARY = 0, 1


class RowField(NamedTuple):
    """A column as RowDescription has it. oid, size, modifier: of its type."""

    name: str
    oid: int
    size: int
    modifier: int
    format: int


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _text(text: str) -> bytes:
    """A text with its end; what cannot be in one, a NUL or half a surrogate, is replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace") + b"\0"


def authentication_ok() -> bytes:
    return _message(b"R", struct.pack("!I", 0))


def authentication_sasl(mechanism: str) -> bytes:
    return _message(b"R", struct.pack("!I", 10) + _text(mechanism) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return _message(b"R", struct.pack("!I", 11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return _message(b"R", struct.pack("!I", 12) + data)


def negotiate_protocol_version(minor: int, options: Sequence[str]) -> bytes:
    """minor: the newest that is spoken. options: those that were asked for and are not known."""
    return _message(b"v", struct.pack("!II", minor, len(options)) + b"".join(map(_text, options)))


def parameter_status(name: str, value: str) -> bytes:
    return _message(b"S", _text(name) + _text(value))


def backend_key_data(process: int, key: int) -> bytes:
    return _message(b"K", struct.pack("!ii", process, key))


def ready_for_query(status: str) -> bytes:
    """status: "I" idle, "T" in a transaction, "E" in one that failed."""
    return _message(b"Z", status.encode())


def row_description(fields: Sequence[RowField]) -> bytes:
    parts = [struct.pack("!H", len(fields))]
    for f in fields:
        parts.append(_text(f.name) + struct.pack("!IhIhih", 0, 0, f.oid, f.size, f.modifier, f.format))
    return _message(b"T", b"".join(parts))


def data_row(values: Sequence[bytes | None]) -> bytes:
    return _message(b"D", row_of(values))


def row_of(values: Sequence[bytes | None]) -> bytes:
    """The number of values and each behind its length: a DataRow's body, and a row of COPY's binary format."""
    parts = [struct.pack("!H", len(values))]
    for value in values:
        parts.append(b"\xff\xff\xff\xff" if value is None else struct.pack("!I", len(value)) + value)
    return b"".join(parts)


def no_data() -> bytes:
    return _message(b"n")


def parameter_description(oids: Sequence[int]) -> bytes:
    return _message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def parse_complete() -> bytes:
    return _message(b"1")


def bind_complete() -> bytes:
    return _message(b"2")


def close_complete() -> bytes:
    return _message(b"3")


def portal_suspended() -> bytes:
    return _message(b"s")


def empty_query_response() -> bytes:
    return _message(b"I")


def command_complete(tag: str) -> bytes:
    return _message(b"C", _text(tag))


def copy_out_response(columns: int, format: int) -> bytes:
    return _message(b"H", struct.pack(f"!bH{columns}h", format, columns, *[format] * columns))


def copy_data(data: bytes) -> bytes:
    return _message(b"d", data)


def copy_done() -> bytes:
    return _message(b"c")


def error_response(fields: Iterable[tuple[str, str]]) -> bytes:
    """fields: (letter, text) in the order in which they are sent."""
    return _message(b"E", _fields(fields))


def notice_response(fields: Iterable[tuple[str, str]]) -> bytes:
    return _message(b"N", _fields(fields))


def _fields(fields: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(letter.encode() + _text(text) for letter, text in fields) + b"\0"
