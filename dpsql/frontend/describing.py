"""DESCRIBE, SHOW TABLES and SUMMARIZE: questions about the policy, read from tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import Token, TokenType

from dpsql.diagnostics.diagnostic import Source, Span

About = Literal["tables", "all tables", "columns", "query", "summary"]

_NAME: Final = re.compile(r"[^\W\d]\w*")
_WORDS: Final = frozenset({"SHOW", "DESCRIBE", "DESC", "SUMMARIZE"})
_QUERIES: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN})


@dataclass(frozen=True, slots=True)
class Describing:
    """What is asked of the policy.

    about: the names of the tables, or all that there is to know of them; the columns of one, or of the result of a
        query; what is known of the values in a table.
    table: the name's parts, for "columns" and "summary". at: where it stands.
    """

    about: About
    table: tuple[str, ...]
    at: Span


def describing(tokens: Sequence[Token], source: Source) -> Describing | None:
    """What a statement asks of the policy; None for any other. Of a query, the tokens behind the first one are it."""
    if not tokens or tokens[0].text.upper() not in _WORDS:
        return None
    found = list(tokens)
    while found and found[-1].token_type is TokenType.SEMICOLON:
        found.pop()
    if not found or any(t.token_type is TokenType.SEMICOLON for t in found):
        return None
    first, rest, at = found[0].text.upper(), found[1:], Span(found[0].start, found[-1].end + 1)
    if first == "SHOW":  # some dialects read what stands behind it as one text
        match " ".join(t.text for t in rest).upper().split():
            case ["TABLES"]:
                return Describing("tables", (), at)
            case ["ALL", "TABLES"]:
                return Describing("all tables", (), at)
        return None
    if not rest:
        return None if first == "SUMMARIZE" else Describing("all tables", (), at)
    if first != "SUMMARIZE" and rest[0].token_type in _QUERIES:
        return Describing("query", (), at)
    if rest[0].token_type is TokenType.TABLE:
        rest = rest[1:]
    table = _name(rest, source.text)
    if table is None:
        return None
    return Describing("summary" if first == "SUMMARIZE" else "columns", table, Span(rest[0].start, rest[-1].end + 1))


def _name(tokens: Sequence[Token], text: str) -> tuple[str, ...] | None:
    """The parts of a qualified name; None if the tokens are something else."""
    names, dots = tokens[::2], tokens[1::2]
    if len(names) != len(dots) + 1 or any(t.token_type is not TokenType.DOT for t in dots):
        return None
    quoted = (t.token_type is TokenType.IDENTIFIER or _NAME.fullmatch(text, t.start, t.end + 1) for t in names)
    return tuple(t.text for t in names) if all(quoted) else None
