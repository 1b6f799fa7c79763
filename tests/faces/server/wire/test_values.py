"""Values of SQL on the wire: each is read back, as text and as bytes, and looks as PostgreSQL prints it."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.ir import types as t
from dpsql.core.ir.types import SqlType
from dpsql.faces.server.wire.wire_values import Unreadable, decode, encoder, modifier, of_oid, wire_type

micro = st.integers(-(10**6) * 86_400 * 10**4, 10**6 * 86_400 * 10**4)
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))


def single(x: float) -> float:
    found: float = struct.unpack("!f", struct.pack("!f", x))[0]
    return found


VALUES: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {
    "boolean": (t.BOOLEAN, st.booleans()),
    "tinyint": (t.TINYINT, st.integers(-128, 127)),
    "uinteger": (t.UINTEGER, st.integers(0, 2**32 - 1)),
    "integer": (t.INTEGER, st.integers(-(2**31), 2**31 - 1)),
    "bigint": (t.BIGINT, st.integers(-(2**63), 2**63 - 1)),
    "hugeint": (t.HUGEINT, st.integers(-(2**127), 2**127 - 1).map(Decimal)),
    "decimal": (t.decimal(38, 6), st.integers(-(10**38), 10**38).map(lambda i: Decimal(i).scaleb(-6))),
    "double": (t.DOUBLE, st.floats(allow_nan=False)),
    "float": (t.FLOAT, st.floats(width=32, allow_nan=False)),
    "varchar": (t.VARCHAR, texts),
    "blob": (t.BLOB, st.binary(max_size=12)),
    "date": (t.DATE, st.dates()),
    "time": (t.TIME, st.times()),
    "timestamp": (t.TIMESTAMP, moments),
    "timestamptz": (t.TIMESTAMPTZ, moments.map(lambda m: m.replace(tzinfo=dt.UTC))),
    "interval": (t.INTERVAL, micro.map(lambda n: dt.timedelta(microseconds=n))),
    "uuid": (t.UUID, st.uuids()),
    "texts": (t.list_of(t.VARCHAR), st.lists(st.none() | texts, max_size=4)),
    "numbers": (t.list_of(t.BIGINT), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4)),
}


@pytest.mark.parametrize("format", [0, 1], ids=["text", "binary"])
@pytest.mark.parametrize("name", VALUES)
def test_each_value_is_read_back(name: str, format: int) -> None:
    type_, values = VALUES[name]
    encode, kind = encoder(type_, format), wire_type(type_)

    @given(values)
    def there_and_back(value: Any) -> None:
        data = encode(value)
        assert data is not None and (format == 0 or kind.size in (-1, len(data)))
        found = decode(data, kind, format)
        assert type(found) is type(value) and found == value
        if isinstance(value, float):
            assert math.copysign(1, found) == math.copysign(1, value)  # type: ignore[arg-type]

    there_and_back()
    assert encode(None) is None and decode(None, kind, format) is None


PRINTED: list[tuple[SqlType, Any, str]] = [
    (t.BOOLEAN, True, "t"),
    (t.DOUBLE, 1.0, "1"), (t.DOUBLE, -0.0, "-0"), (t.DOUBLE, 0.1, "0.1"), (t.DOUBLE, 1e15, "1e+15"),
    (t.DOUBLE, 123456789012345.0, "123456789012345"), (t.DOUBLE, 1e-4, "0.0001"), (t.DOUBLE, 1e-5, "1e-05"),
    (t.DOUBLE, 1.5e300, "1.5e+300"), (t.DOUBLE, math.nan, "NaN"), (t.DOUBLE, -math.inf, "-Infinity"),
    (t.FLOAT, single(0.1), "0.1"), (t.FLOAT, 1234567.0, "1.234567e+06"), (t.FLOAT, 123456.0, "123456"),
    (t.decimal(10, 2), Decimal("5.00"), "5.00"), (t.decimal(38, 0), Decimal("1E+3"), "1000"),
    (t.HUGEINT, 2**100, str(2**100)),
    (t.DATE, dt.date(7, 1, 2), "0007-01-02"),
    (t.TIME, dt.time(1, 2, 3, 500_000), "01:02:03.5"),
    (t.TIMESTAMP, dt.datetime(2025, 1, 2, 3, 4, 5, 60), "2025-01-02 03:04:05.00006"),
    (t.TIMESTAMPTZ, dt.datetime(2025, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2025-01-02 01:00:00+00"),
    (t.INTERVAL, dt.timedelta(days=1, hours=2), "1 day 02:00:00"), (t.INTERVAL, dt.timedelta(0), "00:00:00"),
    (t.INTERVAL, -dt.timedelta(days=3, seconds=1), "-3 days -00:00:01"),
    (t.UUID, UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (t.BLOB, b"\x00\xff", "\\x00ff"),
    (t.list_of(t.VARCHAR), ["a", None, "", "null", 'x"\\', "a b", "a,b"], r'{a,NULL,"","null","x\"\\","a b","a,b"}'),
    (t.list_of(t.list_of(t.INTEGER)), [[1, 2], [3, 4]], "{{1,2},{3,4}}"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value", "shown"), PRINTED)
def test_text_is_as_postgresql_prints_it(type_: SqlType, value: Any, shown: str) -> None:
    assert encoder(type_, 0)(value) == shown.encode()


def test_bytes_are_as_postgresql_sends_them() -> None:
    assert encoder(t.decimal(10, 2), 1)(Decimal("-12345.60")) == struct.pack("!hhHhhhh", 3, 1, 0x4000, 2, 1, 2345, 6000)
    assert encoder(t.DATE, 1)(dt.date(2000, 1, 2)) == struct.pack("!i", 1)
    assert encoder(t.TIMESTAMP, 1)(dt.datetime(1999, 12, 31, 23, 59, 59)) == struct.pack("!q", -1_000_000)
    array = encoder(t.list_of(t.INTEGER), 1)([1, None])
    assert array == struct.pack("!iiIiiiii", 1, 1, 23, 2, 1, 4, 1, -1)
    assert encoder(t.list_of(t.list_of(t.INTEGER)), 1)([[], []]) == struct.pack("!iiI", 0, 0, 23)


def test_what_postgresql_has_no_array_for_is_no_array() -> None:
    for ragged in ([[1], [1, 2]], [[1], None]):
        with pytest.raises(ValueError):
            encoder(t.list_of(t.list_of(t.INTEGER)), 1)(ragged)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sent", ["2024-03-01", "2024-03-01T00:00:00.000+00:00", "2024-03-01T23:30:00.000-08:00", "2024-03-01T00:00:00.000Z"]
)
def test_a_date_of_javascript_is_the_day_that_it_says(sent: str) -> None:
    """As PostgreSQL reads it, whatever zone follows."""
    assert decode(sent.encode(), wire_type(t.DATE), 0) == dt.date(2024, 3, 1)


BAD: list[tuple[SqlType, str]] = [
    (t.BIGINT, "9223372036854775808"), (t.BIGINT, "1_0"), (t.BIGINT, "x"), (t.BIGINT, ""), (t.BIGINT, "1" * 5000),
    (t.SMALLINT, "40000"), (t.BOOLEAN, "o"), (t.BOOLEAN, "maybe"), (t.decimal(5, 1), "1e9999"), (t.DATE, "2025-13-01"),
    (t.decimal(5, 1), "NaN"), (t.DATE, "today"), (t.TIME, "25:00"), (t.INTERVAL, "1 month"), (t.INTERVAL, ""),
    (t.UUID, "x"), (t.BLOB, "\\xg"), (t.list_of(t.BIGINT), "{1"), (t.list_of(t.BIGINT), "{1,}"),
    (t.list_of(t.BIGINT), "{1}{2}"), (t.list_of(t.BIGINT), '{"1'), (t.list_of(t.BIGINT), "1"), (t.VARCHAR, "a\0b"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "given_text"), BAD)
def test_a_text_that_is_no_value_is_refused(type_: SqlType, given_text: str) -> None:
    with pytest.raises(Unreadable) as refused:
        decode(given_text.encode(), wire_type(type_), 0)
    assert refused.value.sqlstate == "22P02"


@given(st.sampled_from(list(VALUES)), st.binary(max_size=40), st.sampled_from([0, 1]))
def test_any_bytes_are_a_value_or_refused(name: str, data: bytes, format: int) -> None:
    try:
        decode(data, wire_type(VALUES[name][0]), format)
    except Unreadable as refused:
        assert refused.sqlstate in ("22P02", "22P03")


def test_a_bad_count_of_items_makes_no_list() -> None:
    for count in (2**31 - 1, -1, 100_001):
        with pytest.raises(Unreadable):
            decode(struct.pack("!iiIii", 1, 0, 20, count, 1), wire_type(t.list_of(t.BIGINT)), 1)


def test_every_type_has_an_oid_that_is_read_again() -> None:
    for type_, _ in VALUES.values():
        known = of_oid(wire_type(type_).oid)
        assert known is not None and known.oid == wire_type(type_).oid
    assert of_oid(16_384) is None
    assert modifier(t.decimal(10, 2)) == (10 << 16 | 2) + 4 and modifier(t.BIGINT) == -1
