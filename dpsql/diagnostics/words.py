"""Words of messages."""

from __future__ import annotations


def with_article(name: object) -> str:
    """A type's name with its article: an INTEGER, a VARCHAR, a UBIGINT."""
    text = str(name)
    return f"{'an' if text[:1].upper() in ('A', 'E', 'I', 'O') else 'a'} {text}"


def in_digits(value: object) -> str:
    """A number as `str` has it; in words where it has more digits than Python prints (4,300 of a whole number)."""
    try:
        return str(value)
    except ValueError:
        return "a number of thousands of digits"


def small(text: str) -> int | None:
    """A natural number of at most nine digits; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text.lstrip("0")) <= 9 else None
