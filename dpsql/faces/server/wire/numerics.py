"""PostgreSQL's numeric: text, and bytes of four decimal digits each."""

from __future__ import annotations

import re
import struct
from decimal import Decimal

_TEXT = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*")
_NEGATIVE, _NAN = 0x4000, 0xC000
_MOST_DIGITS = 1_000


def text(value: Decimal | int) -> str:
    """Without an exponent, as PostgreSQL prints it."""
    return f"{Decimal(value):f}"


def from_text(text: str) -> Decimal:
    """Raises ValueError."""
    if len(text) > _MOST_DIGITS or _TEXT.fullmatch(text) is None:
        raise ValueError
    return Decimal(text.strip())


def binary(value: Decimal | int) -> bytes:
    """Digits in groups of four on both sides of the point, the exponent of the first group, and decimals to show."""
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!hhHh", 0, 0, _NAN, 0)
    shown = max(-exponent, 0)
    number = "".join(map(str, digits)) + "0" * max(exponent, 0)
    number = number.rjust(shown + 1, "0")
    whole, fraction = number[: len(number) - shown], number[len(number) - shown :]
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[i : i + 4]) for i in range(0, len(whole) + len(fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        weight, sign = 0, 0
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight, _NEGATIVE if sign else 0, shown, *groups)


def from_binary(data: bytes) -> Decimal:
    """Raises ValueError or struct.error."""
    count, weight, sign, shown = struct.unpack_from("!hhHh", data)
    groups = struct.unpack(f"!{count}h", data[8:])
    if sign not in (0, _NEGATIVE) or not all(0 <= g < 10_000 for g in groups) or abs(weight) > 250 or shown > 1_000:
        raise ValueError
    digits = "".join(f"{g:04d}" for g in groups) or "0"
    # Each text is read exactly, whatever the precision of the context.
    found = Decimal(f"{'-' if sign else ''}{digits}E{4 * (weight - count + 1)}")
    whole, _, fraction = f"{found:f}".partition(".")
    return Decimal(f"{whole}.{fraction[:shown].ljust(shown, '0')}" if shown else whole)
