"""A text of several statements → each of them and where it begins; semicolons in strings and comments do not count."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot.errors import SqlglotError

from dpsql.sql.parse import require_dialect


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text, without its semicolon. `start`: its offset in the text, in characters."""

    text: str
    start: int


def split_statements(text: str, dialect: str = "duckdb") -> tuple[Statement, ...]:
    """The statements of a text in order, from the first token to the last; empty ones are left out.

    A text that has no tokens in this dialect (an open quote, say) is one statement: parsing it says what is wrong.
    Raises Rejected DP903 for an unknown dialect.
    """
    require_dialect(dialect)
    try:
        tokens = sqlglot.tokenize(text + "\n", read=dialect)  # the line's end: as in parse
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        return (Statement(text, 0),)
    found: list[Statement] = []
    start: int | None = None
    end = 0
    for token in tokens:
        if token.token_type is sqlglot.TokenType.SEMICOLON:
            if start is not None:
                found.append(Statement(text[start:end], start))
            start = None
            continue
        start = token.start if start is None else start
        end = token.end + 1
    if start is not None:
        found.append(Statement(text[start:end], start))
    return tuple(found)
