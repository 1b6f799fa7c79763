"""Letters of another case, one for one, as DuckDB has them: for engines whose own rest on a version or a locale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

_LAST_CASED = 0x1E943
"""The last letter that has another case."""
_LATER = frozenset(
    number
    for first, last in (
        (0x1C89, 0x1C8A), (0xA7CB, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7DA, 0xA7DC), (0x10D50, 0x10D85),
        (0x16EA0, 0x16ED3),
    )
    for number in range(first, last + 1)
)  # fmt: skip
"""Letters that came with Unicode 15 and after: not every Python knows them."""


def lowered(letter: str) -> str:
    """The small one of a letter."""
    return "i" if letter == "İ" else letter.lower()


def raised(letter: str) -> str:
    """The capital of a letter; where that is written as two, the one that a title begins with."""
    return "ẞ" if letter == "ß" else letter.upper() if len(letter.upper()) == 1 else letter.title()


@cache
def partners(case: Callable[[str], str]) -> Mapping[str, str]:
    """Letter → the one of another case, of those that have one. case: `lowered` or `raised`."""
    found = {chr(number): case(chr(number)) for number in range(_LAST_CASED + 1) if number not in _LATER}
    cased = {letter: other for letter, other in found.items() if other != letter and len(other) == 1}
    return {letter: other for letter, other in cased.items() if ord(other) not in _LATER}


def in_lower_case(text: str) -> str:
    """A text with the small one of each letter."""
    return "".join(partners(lowered).get(c, c) for c in text)
