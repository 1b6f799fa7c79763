"""Where a client comes from, as a proxy says before the client's first byte: the PROXY protocol, versions 1 and 2.

It is read of addresses that the custodian has named, and of nobody else: whoever may say where he comes from has as
many tries as he likes.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from dpsql.faces.server.wire.messages import MalformedMessage

_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_LONGEST_LINE: Final = 107
_LONGEST: Final = 1_024
_SIZES: Final = {0x11: 4, 0x12: 4, 0x21: 16, 0x22: 16}
"""Family and transport of version 2 → bytes of an address."""
_FAMILIES: Final = {"TCP4": 4, "TCP6": 6}


def proxy_header(data: bytes) -> tuple[str, int] | None:
    """The client's address, "" where the proxy names none (it looks whether we live), and how long the header is; None:
    it has not come whole. Raises MalformedMessage."""
    if data.startswith(_SIGNATURE[: len(data)]):
        return _binary(data)
    if data.startswith(b"PROXY "[: len(data)]):
        return _line(data)
    raise MalformedMessage("the proxy did not say where its client comes from")


def _line(data: bytes) -> tuple[str, int] | None:
    end = data.find(b"\r\n", 0, _LONGEST_LINE)
    if end < 0:
        if len(data) >= _LONGEST_LINE:
            raise MalformedMessage("a proxy's line is too long")
        return None
    words = data[:end].decode("latin-1").split(" ")
    if words[1] == "UNKNOWN":
        return "", end + 2
    if len(words) != 6 or words[1] not in _FAMILIES:
        raise MalformedMessage("a proxy's line is not understood")
    try:
        address = ipaddress.ip_address(words[2])
    except ValueError:
        raise MalformedMessage("a proxy's line names no address") from None
    if address.version != _FAMILIES[words[1]]:
        raise MalformedMessage("a proxy's line names another kind of address")
    return str(address), end + 2


def _binary(data: bytes) -> tuple[str, int] | None:
    if len(data) < 16:
        return None
    command, family, length = data[12], data[13], int.from_bytes(data[14:16], "big")
    if command not in (0x20, 0x21) or length > _LONGEST:
        raise MalformedMessage("a proxy's header is not understood")
    if len(data) < 16 + length:
        return None
    size = _SIZES.get(family)
    if command == 0x20 or family == 0:
        return "", 16 + length
    if size is None or length < 2 * size + 4:
        raise MalformedMessage("a proxy's header names no address")
    return str(ipaddress.ip_address(data[16 : 16 + size])), 16 + length
