"""Values of SQL as PostgreSQL's clients know them: the oid of each type, and its values as text and as bytes.

What is sent as text is what PostgreSQL prints with DateStyle ISO, IntervalStyle postgres, TimeZone UTC and
bytea_output hex. Integers that PostgreSQL does not have are the next larger ones it has, the largest `numeric`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final
from uuid import UUID

from dpsql.core.ir import array_text
from dpsql.core.ir import types as t
from dpsql.core.ir.types import Kind, SqlType
from dpsql.faces.server.statements import Value
from dpsql.faces.server.wire import arrays, numerics, times


class Unreadable(Exception):
    """A parameter's bytes are no value of its type. sqlstate: 22P02 for text, 22P03 for bytes, 42804 for its type."""

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@dataclass(frozen=True, slots=True)
class WireType:
    """A type of PostgreSQL. size: bytes of a value, -1 if they differ. array: the oid of arrays of it.

    text, binary: a value → bytes. from_text, from_binary: bytes → a value; they raise ValueError, struct.error or
    InvalidOperation for what is none.
    """

    name: str
    oid: int
    size: int
    array: int
    text: Callable[[Any], str]
    binary: Callable[[Any], bytes]
    from_text: Callable[[str], Value]
    from_binary: Callable[[bytes], Value]
    sql: SqlType


def _packed(form: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    shape = struct.Struct(f"!{form}")
    return shape.pack, lambda data: shape.unpack(data)[0]


def _boolean(text: str) -> bool:
    """As PostgreSQL reads it: any beginning of a word that means only one of the two."""
    word = text.strip().lower()
    for meaning, words in ((True, ("true", "yes", "on", "1")), (False, ("false", "no", "off", "0"))):
        if word and word != "o" and any(w.startswith(word) for w in words):
            return meaning
    raise ValueError(text)


def _integer(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if len(text) > 40 or "_" in text or not least <= (found := int(text)) <= most:
            raise ValueError
        return found

    return read


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError
    return float(text)


def _single(text: str) -> float:
    """The nearest number of 32 bits. Raises ValueError, OverflowError."""
    found: float = _f4[1](_f4[0](_float(text)))
    return found


def _float_text(single: bool) -> Callable[[float], str]:
    """The shortest text that is read back as the same number, in PostgreSQL's form."""

    def write(value: float) -> str:
        value = float(value)
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        digits = _shortest_single(value) if single else repr(value)
        mantissa, _, exponent = f"{Decimal(digits):e}".partition("e")
        power = int(exponent) if value else 0
        if -5 < power < (6 if single else 15):
            plain = f"{Decimal(digits):f}"
            return plain.rstrip("0").rstrip(".") if "." in plain else plain
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"

    return write


def _shortest_single(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("!f", float(text)) == struct.pack("!f", value):
                return text
        except OverflowError:
            continue
    return repr(value)


def _bytes(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    if "\\" in text:
        raise ValueError("only bytea's hex format is read")
    return text.encode()


def _exact_length(size: int, read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def checked(data: bytes) -> Any:
        if len(data) != size:
            raise ValueError
        return read(data)

    return checked


def _utf8(data: bytes) -> str:
    return data.decode("utf-8")


def _number_type(name: str, oid: int, size: int, array: int, form: str, sql: SqlType) -> WireType:
    pack, unpack = _packed(form)
    most = 2 ** (8 * size - 1)
    return WireType(name, oid, size, array, str, pack, _integer(-most, most - 1), unpack, sql)


def _text_type(name: str, oid: int, array: int) -> WireType:
    return WireType(name, oid, -1, array, str, lambda v: str(v).encode(), str, _utf8, t.VARCHAR)


_f4, _f8 = _packed("f"), _packed("d")

BOOL = WireType(
    "bool", 16, 1, 1000, lambda v: "t" if v else "f", lambda v: b"\1" if v else b"\0", _boolean,
    _exact_length(1, lambda data: data != b"\0"), t.BOOLEAN,
)  # fmt: skip
INT2 = _number_type("int2", 21, 2, 1005, "h", t.SMALLINT)
INT4 = _number_type("int4", 23, 4, 1007, "i", t.INTEGER)
INT8 = _number_type("int8", 20, 8, 1016, "q", t.BIGINT)
FLOAT4 = WireType("float4", 700, 4, 1021, _float_text(True), _f4[0], _single, _f4[1], t.FLOAT)
FLOAT8 = WireType("float8", 701, 8, 1022, _float_text(False), _f8[0], _float, _f8[1], t.DOUBLE)
NUMERIC = WireType(
    "numeric", 1700, -1, 1231, numerics.text, numerics.binary, numerics.from_text, numerics.from_binary,
    t.decimal(38, 10),
)  # fmt: skip
TEXT = _text_type("text", 25, 1009)
VARCHAR = _text_type("varchar", 1043, 1015)
BPCHAR = _text_type("bpchar", 1042, 1014)
NAME = _text_type("name", 19, 1003)
UNKNOWN = _text_type("unknown", 705, 1009)
BYTEA = WireType("bytea", 17, -1, 1001, lambda v: "\\x" + bytes(v).hex(), bytes, _bytes, bytes, t.BLOB)
DATE = WireType("date", 1082, 4, 1182, times.date_text, times.date_binary, times.date_from_text, times.date_from_binary,
    t.DATE)  # fmt: skip
TIME = WireType("time", 1083, 8, 1183, times.time_text, times.time_binary, times.time_from_text, times.time_from_binary,
    t.TIME)  # fmt: skip
TIMESTAMP = WireType(
    "timestamp", 1114, 8, 1115, times.timestamp_text, times.timestamp_binary, times.timestamp_from_text,
    times.timestamp_from_binary, t.TIMESTAMP,
)  # fmt: skip
TIMESTAMPTZ = WireType(
    "timestamptz", 1184, 8, 1185, times.timestamptz_text, times.timestamp_binary, times.timestamptz_from_text,
    times.timestamptz_from_binary, t.TIMESTAMPTZ,
)  # fmt: skip
INTERVAL = WireType(
    "interval", 1186, 16, 1187, times.interval_text, times.interval_binary, times.interval_from_text,
    times.interval_from_binary, t.INTERVAL,
)  # fmt: skip
UUID_TYPE = WireType(
    "uuid", 2950, 16, 2951, str, lambda v: UUID(str(v)).bytes, UUID, lambda data: UUID(bytes=data), t.UUID
)

# Of PostgreSQL's catalogue alone: no data of ours has them (`catalogue/catalogue_asking.py`).
OID, XID = (
    WireType(name, oid, 4, array, str, struct.Struct("!I").pack, _integer(0, 2**32 - 1),
             lambda data: struct.unpack("!I", data)[0], SqlType(Kind.INTEGER, name))
    for name, oid, array in (("oid", 26, 1028), ("xid", 28, 1011))
)  # fmt: skip
CHAR, JSON = _text_type("char", 18, 1002), _text_type("json", 114, 199)
INT2VECTOR, OIDVECTOR = (
    WireType(name, oid, -1, array, lambda v: " ".join(map(str, v)), arrays.packer(item.oid, item.binary),
             str, _utf8, t.VARCHAR)
    for name, oid, array, item in (("int2vector", 22, 1006, INT2), ("oidvector", 30, 1013, OID))
)  # fmt: skip

_ALL: Final = (
    BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC, TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, BYTEA, DATE, TIME, TIMESTAMP,
    TIMESTAMPTZ, INTERVAL, UUID_TYPE, OID, XID, CHAR, JSON,
)  # fmt: skip
_BY_OID: Final = {w.oid: w for w in _ALL}
_BY_ARRAY: Final = {w.array: w for w in reversed(_ALL)}  # text[] is text's, not unknown's

_BY_NAME: Final = {
    "TINYINT": INT2, "SMALLINT": INT2, "INTEGER": INT4, "BIGINT": INT8, "HUGEINT": NUMERIC, "UTINYINT": INT2,
    "USMALLINT": INT4, "UINTEGER": INT8, "UBIGINT": NUMERIC, "FLOAT": FLOAT4,
    "oid": OID, "xid": XID, "name": NAME, '"char"': CHAR, "character varying": VARCHAR, "json": JSON,
    "int2vector": INT2VECTOR, "oidvector": OIDVECTOR,
}  # fmt: skip
_BY_KIND: Final = {
    Kind.BOOLEAN: BOOL, Kind.DECIMAL: NUMERIC, Kind.DOUBLE: FLOAT8, Kind.VARCHAR: TEXT, Kind.DATE: DATE,
    Kind.TIMESTAMP: TIMESTAMP, Kind.TIMESTAMPTZ: TIMESTAMPTZ, Kind.TIME: TIME, Kind.INTERVAL: INTERVAL,
    Kind.UUID: UUID_TYPE, Kind.BLOB: BYTEA, Kind.NULL: TEXT,
}  # fmt: skip


@cache
def wire_type(sql: SqlType) -> WireType:
    """How values of a type are sent."""
    if sql.kind is Kind.LIST:
        inner = sql.item
        while inner is not None and inner.item is not None:
            inner = inner.item  # PostgreSQL's arrays have any number of dimensions, and one type for all
        return _array_type(wire_type(inner or t.VARCHAR))
    return _BY_NAME.get(sql.name) or _BY_KIND[sql.kind]


@cache
def _array_type(item: WireType) -> WireType:
    return WireType(
        f"{item.name}[]", item.array, -1, item.array, arrays.writer(item.text), arrays.packer(item.oid, item.binary),
        array_text.reader(item.from_text), arrays.unpacker(item.oid, item.from_binary), t.list_of(item.sql),
    )  # fmt: skip


def modifier(sql: SqlType) -> int:
    """PostgreSQL's typmod: precision and scale of a DECIMAL, -1 where there is nothing to say."""
    return (sql.precision << 16 | sql.scale) + 4 if sql.kind is Kind.DECIMAL else -1


def of_oid(oid: int) -> WireType | None:
    """The type of an oid that a client names; None if it is none that is known here."""
    found = _BY_OID.get(oid)
    if found is not None:
        return found
    item = _BY_ARRAY.get(oid)
    return None if item is None else _array_type(item)


def encoder(sql: SqlType, format: int) -> Callable[[Value], bytes | None]:
    """Value → its bytes in this format (0 text, 1 binary), None for NULL."""
    found = wire_type(sql)
    if format:
        binary = found.binary
        return lambda value: None if value is None else binary(value)
    text = found.text
    return lambda value: None if value is None else text(value).encode("utf-8", "replace")


def decode(data: bytes | None, kind: WireType, format: int) -> Value:
    """A parameter's bytes → its value. Raises Unreadable."""
    if data is None:
        return None
    try:
        if format:
            return kind.from_binary(data)
        text = data.decode("utf-8")
        if "\0" in text:
            raise ValueError
        return kind.from_text(text)
    except (ValueError, OverflowError, struct.error, InvalidOperation, IndexError):
        how = "binary" if format else "text"
        raise Unreadable(f"a parameter is no {kind.name} in {how} format", "22P03" if format else "22P02") from None
