"""PostgreSQL's arrays: `{1,NULL,"a b"}`, and bytes with a head for each dimension."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from dpsql.core.ir.array_text import SPACES

_QUOTED = {*'{}",\\', *SPACES}
_MOST_ITEMS = 100_000


def writer(item: Callable[[Any], str]) -> Callable[[list[Any]], str]:
    """How lists are written whose items are written so."""

    def write(values: list[Any]) -> str:
        return "{" + ",".join(map(one, values)) + "}"

    def one(value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, list):
            return write(value)
        text = item(value)
        if not text or text.upper() == "NULL" or _QUOTED & set(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text

    return write


def packer(oid: int, item: Callable[[Any], bytes]) -> Callable[[list[Any]], bytes]:
    """How lists are packed. Lists of lists have to be as long as each other, as PostgreSQL's are."""

    def pack(values: list[Any]) -> bytes:
        sizes, level = [len(values)], list(values)
        while any(isinstance(value, list) for value in level):
            if not all(isinstance(value, list) for value in level) or len({len(inner) for inner in level}) > 1:
                raise ValueError("an array's rows are as long as each other")
            sizes.append(len(level[0]))
            level = [value for inner in level for value in inner]
        if not level:
            sizes = []
        head = struct.pack("!iiI", len(sizes), any(v is None for v in level), oid)
        parts = (b"\xff\xff\xff\xff" if v is None else _with_length(item(v)) for v in level)
        return head + b"".join(struct.pack("!ii", size, 1) for size in sizes) + b"".join(parts)

    return pack


def _with_length(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def unpacker(oid: int, item: Callable[[bytes], Any]) -> Callable[[bytes], list[Any]]:
    """How lists of one dimension are unpacked. It raises ValueError or struct.error."""

    def unpack(data: bytes) -> list[Any]:
        dimensions, _, given = struct.unpack_from("!iiI", data)
        if dimensions == 0:
            return []
        if dimensions != 1 or given != oid:
            raise ValueError
        count, _ = struct.unpack_from("!ii", data, 12)
        if not 0 <= count <= _MOST_ITEMS:
            raise ValueError
        at, found = 20, []
        for _ in range(count):
            (length,) = struct.unpack_from("!i", data, at)
            at += 4
            if length < -1 or at + max(length, 0) > len(data):
                raise ValueError
            found.append(None if length == -1 else item(data[at : at + length]))
            at += max(length, 0)
        if at != len(data):
            raise ValueError
        return found

    return unpack
