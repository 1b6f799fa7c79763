"""COPY (query) TO STDOUT: rows as text, CSV or PostgreSQL's binary format, each row one message."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from dpsql.core.ir.types import SqlType
from dpsql.faces.server.front.commands.commands import CopyOut
from dpsql.faces.server.statements import Value
from dpsql.faces.server.wire import replies
from dpsql.faces.server.wire.wire_values import encoder

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack("!II", 0, 0)
_ESCAPES: Final = str.maketrans(
    {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)


def copied(how: CopyOut, columns: Sequence[tuple[str, SqlType]], rows: Sequence[tuple[Value, ...]]) -> Iterator[bytes]:
    """CopyOutResponse, the data, and CopyDone.

    In the binary format the head travels with the first row, and the end with the last: there are drivers that take the
    first message for a row.
    """
    binary = how.format == "binary"
    yield replies.copy_out_response(len(columns), int(binary))
    encoders = [encoder(type_, int(binary)) for _, type_ in columns]
    if binary:
        head = _SIGNATURE
        for row in rows:
            values = [encode(value) for encode, value in zip(encoders, row, strict=True)]
            yield replies.copy_data(head + replies.row_of(values))
            head = b""
        yield replies.copy_data(head + b"\xff\xff")
    else:
        if how.header:
            yield replies.copy_data(_line(how, [name.encode() for name, _ in columns]))
        for row in rows:
            values = [encode(value) for encode, value in zip(encoders, row, strict=True)]
            yield replies.copy_data(_line(how, values))
    yield replies.copy_done()


def _line(how: CopyOut, values: Sequence[bytes | None]) -> bytes:
    cell = _csv if how.format == "csv" else _text
    texts = [cell(how, None if value is None else value.decode("utf-8"), len(values) == 1) for value in values]
    return (how.delimiter.join(texts) + "\n").encode()


def _text(how: CopyOut, value: str | None, alone: bool) -> str:
    if value is None:
        return how.null
    escaped = value.translate(_ESCAPES)
    return escaped if how.delimiter == "\t" else escaped.replace(how.delimiter, "\\" + how.delimiter)


def _csv(how: CopyOut, value: str | None, alone: bool) -> str:
    if value is None:
        return how.null
    if value == how.null or {how.delimiter, how.quote, "\n", "\r"} & set(value) or (alone and value == "\\."):
        inner = value.replace(how.escape, how.escape * 2)
        if how.escape != how.quote:
            inner = inner.replace(how.quote, how.escape + how.quote)
        return how.quote + inner + how.quote
    return value
