"""Words of messages."""

from __future__ import annotations


def with_article(name: object) -> str:
    """A type's name with its article: an INTEGER, a VARCHAR, a UBIGINT."""
    text = str(name)
    return f"{'an' if text[:1].upper() in ('A', 'E', 'I', 'O') else 'a'} {text}"
