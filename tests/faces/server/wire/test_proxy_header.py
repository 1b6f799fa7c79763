"""What a proxy says of its client: read as the protocol's text has it, piece by piece, and never more than that."""

from __future__ import annotations

import ipaddress

import pytest

from dpsql.faces.server.wire.messages import MalformedMessage
from dpsql.faces.server.wire.proxy_header import proxy_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def binary(family: int, *addresses: str, command: int = 0x21, more: bytes = b"") -> bytes:
    body = b"".join(ipaddress.ip_address(a).packed for a in addresses) + b"\x01\x02\x15\x38" + more
    return SIGNATURE + bytes([command, family]) + len(body).to_bytes(2, "big") + body


GOOD = {
    b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 5432\r\n": "192.0.2.7",
    b"PROXY TCP6 2001:db8::7 2001:db8::1 56324 5432\r\n": "2001:db8::7",
    b"PROXY UNKNOWN\r\n": "",
    b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n": "",
    binary(0x11, "192.0.2.7", "192.0.2.1"): "192.0.2.7",
    binary(0x21, "2001:db8::7", "2001:db8::1", more=b"\x03\0\x04abcd"): "2001:db8::7",
    binary(0x11, "192.0.2.7", "192.0.2.1", command=0x20): "",
}


@pytest.mark.parametrize("header", GOOD)
def test_the_address_is_read_and_nothing_behind_the_header(header: bytes) -> None:
    assert all(proxy_header(header[:cut]) is None for cut in range(len(header)))
    assert proxy_header(header) == proxy_header(header + b"\0\0\0\x08rest") == (GOOD[header], len(header))


@pytest.mark.parametrize(
    "header",
    [b"\0\0\0\x08\x04\xd2\x16\x2f", b"GET / HTTP/1.1", b"PROXY TCP4 x 192.0.2.1 1 2\r\n",
     b"PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
     b"PROXY TCP5 192.0.2.7 192.0.2.1 1 2\r\n", b"PROXY " + b"x" * 110, b"PROXY TCP4\r\n", b"PROXYX",
     binary(0x11, "192.0.2.7", command=0x21), binary(0x31, "192.0.2.7", "192.0.2.1"),
     binary(0x11, "192.0.2.7", "192.0.2.1", command=0x31), SIGNATURE + b"\x21\x11\xff\xff"],
)  # fmt: skip
def test_anything_else_is_refused(header: bytes) -> None:
    with pytest.raises(MalformedMessage):
        proxy_header(header)
