"""Bytes of clients: what is whole is read, what is not is waited for, what is none is refused by its first bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.faces.server.wire import messages as m


def packet(body: bytes, kind: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
formats = st.lists(st.sampled_from([0, 1]), max_size=3)


def encoded(message: m.Later | m.Startup) -> bytes:
    """The bytes of a message, by this test's own reading of the protocol."""
    match message:
        case m.Startup(minor, parameters):
            pairs = b"".join(text(k) + text(v) for k, v in parameters.items())
            return packet(struct.pack("!I", 3 << 16 | minor) + pairs + b"\0")
        case m.SimpleQuery(sql):
            return packet(text(sql), b"Q")
        case m.Parse(name, sql, types):
            return packet(text(name) + text(sql) + struct.pack(f"!H{len(types)}I", len(types), *types), b"P")
        case m.Bind(portal, statement, formats, values, results):
            body = text(portal) + text(statement) + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
            body += struct.pack("!H", len(values))
            for value in values:
                body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
            return packet(body + struct.pack(f"!H{len(results)}H", len(results), *results), b"B")
        case m.Describe(kind, name):
            return packet(kind.encode() + text(name), b"D")
        case m.Close(kind, name):
            return packet(kind.encode() + text(name), b"C")
        case m.Execute(portal, most):
            return packet(text(portal) + struct.pack("!i", most), b"E")
        case m.Password(data):
            return packet(data, b"p")
        case m.Sync():
            return packet(b"", b"S")
        case m.Flush():
            return packet(b"", b"H")
        case m.Terminate():
            return packet(b"", b"X")
    raise AssertionError(message)


@st.composite
def binds(draw: st.DrawFn) -> m.Bind:
    values = tuple(draw(st.lists(st.none() | st.binary(max_size=8), max_size=4)))
    given_formats = draw(st.sampled_from([(), (1,), (0,) * len(values), (1,) * len(values)]))
    return m.Bind(draw(names), draw(names), given_formats, values, tuple(draw(formats)))


later = st.one_of(
    st.builds(m.SimpleQuery, names),
    st.builds(m.Parse, names, names, st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple)),
    binds(),
    st.builds(m.Describe, st.sampled_from("SP"), names),
    st.builds(m.Close, st.sampled_from("SP"), names),
    st.builds(m.Execute, names, st.integers(0, 2**31 - 1)),
    st.builds(m.Password, st.binary(max_size=30)),
    st.sampled_from([m.Sync(), m.Flush(), m.Terminate()]),
)


@given(st.lists(later, max_size=5), st.integers(1, 9))
def test_what_is_sent_in_pieces_is_read_whole(sent: list[m.Later], size: int) -> None:
    data, decoder, read = b"".join(map(encoded, sent)), m.Decoder(), []
    decoder.logged_in()
    for at in range(0, len(data), size):
        decoder.feed(data[at : at + size])
        while (message := decoder.later()) is not None:
            read.append(message)
    assert read == sent and decoder.is_empty


@given(st.dictionaries(names.filter(bool), names, max_size=4), st.integers(0, 9))
def test_the_start_of_a_connection_is_read(parameters: dict[str, str], minor: int) -> None:
    decoder = m.Decoder()
    decoder.feed(encoded(m.Startup(minor, parameters)))
    assert decoder.first() == m.Startup(minor, parameters) and decoder.is_empty


def test_requests_before_the_start() -> None:
    decoder = m.Decoder()
    decoder.feed(
        struct.pack("!II", 8, 80877103) + struct.pack("!II", 8, 80877104) + struct.pack("!IIii", 16, 80877102, 7, -9)
    )
    assert [decoder.first() for _ in range(4)] == [m.SslRequest(), m.GssRequest(), m.CancelRequest(7, -9), None]


@given(st.binary(max_size=40))
def test_no_bytes_make_anything_but_messages_or_a_refusal(data: bytes) -> None:
    for read in (m.Decoder.first, m.Decoder.later):
        decoder = m.Decoder()
        decoder.feed(data)
        try:
            while read(decoder) is not None:
                pass
        except m.MalformedMessage as error:
            assert str(error)


@pytest.mark.parametrize("length", [0, 7, m.STARTUP_LIMIT + 1, 2**32 - 1])
def test_a_start_of_a_size_that_is_not_accepted_is_refused_by_its_length(length: int) -> None:
    decoder = m.Decoder()
    decoder.feed(struct.pack("!I", length))
    with pytest.raises(m.MalformedMessage):
        decoder.first()


def test_larger_messages_are_for_those_who_have_logged_in() -> None:
    head = b"Q" + struct.pack("!I", m.STARTUP_LIMIT + 1)
    stranger, friend = m.Decoder(), m.Decoder()
    friend.logged_in()
    for decoder in (stranger, friend):
        decoder.feed(head)
    assert friend.later() is None
    with pytest.raises(m.MalformedMessage):
        stranger.later()
    friend = m.Decoder()
    friend.logged_in()
    friend.feed(b"Q" + struct.pack("!I", m.LIMIT + 1))
    with pytest.raises(m.MalformedMessage):
        friend.later()


BAD = {
    "an unknown type": b"?\0\0\0\4",
    "no end of a text": packet(b"SELECT 1", b"Q"),
    "no UTF-8": packet(b"\xff\0", b"Q"),
    "something behind the end": packet(b"\0!", b"Q"),
    "a value longer than the message": packet(b"\0\0" + struct.pack("!HHi", 0, 1, 5) + b"abc", b"B"),
    "a negative length": packet(b"\0\0" + struct.pack("!HHi", 0, 1, -2), b"B"),
    "a format that is none": packet(b"\0\0" + struct.pack("!HhHH", 1, 7, 0, 0), b"B"),
    "formats for other values": packet(b"\0\0" + struct.pack("!HhhHH", 2, 0, 0, 0, 0), b"B"),
    "more types than there are": packet(b"\0\0\xff\xff", b"P"),
    "a kind that is none": packet(b"X\0", b"D"),
}


@pytest.mark.parametrize("what", BAD)
def test_malformed_messages_are_refused(what: str) -> None:
    decoder = m.Decoder()
    decoder.logged_in()
    decoder.feed(BAD[what])
    with pytest.raises(m.MalformedMessage):
        decoder.later()


@pytest.mark.parametrize("code", [2 << 16, 0, 80877105, 2**31])
def test_other_protocols_are_refused(code: int) -> None:
    decoder = m.Decoder()
    decoder.feed(struct.pack("!II", 9, code) + b"\0")
    with pytest.raises(m.MalformedMessage):
        decoder.first()
