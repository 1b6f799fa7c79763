"""What a text that is still being typed holds: statements that are finished, an open quote, variables to be put in.

All by the tokens of the dialect, so a semicolon, a colon or a backslash within a string or a comment is nothing but
text. Nothing here decides about privacy: whatever is found is parsed again, as exactly one statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Literal

from sqlglot import TokenType

from dpsql.frontend.text.split import Brackets, TextStatement, cut, tokens_of

Quoting = Literal["", "'", '"']
"""How a variable is put in: as it is, as a text literal, as a quoted name."""

_NAME: Final = re.compile(r"[A-Za-z_0-9\u0080-\U0010ffff]+")
_QUOTINGS: Final[dict[str, Quoting]] = {"'": "'", '"': '"'}


@dataclass(frozen=True, slots=True)
class Scanned:
    """The statements that a semicolon ends, and `rest`: where what follows the last of these semicolons begins."""

    statements: tuple[TextStatement, ...]
    rest: int


def scan(text: str, dialect: str = "duckdb") -> Scanned | None:
    """The finished statements of a text, empty ones left out; None if it ends within a string, a name or a comment."""
    tokens = tokens_of(text, dialect)
    if tokens is None:
        return None
    ended = [(statement, rest) for statement, rest in cut(text, tokens) if rest is not None]
    return Scanned(tuple(s for s, _ in ended if s is not None), ended[-1][1] if ended else 0)


@dataclass(slots=True)
class Looked:
    """How far a text that grows line by line was looked at for an end of a statement.

    *Claim.* What was looked at needs no second look. *Why.* It ended outside of strings and comments, so the tokens of
    what follows are those that it has by itself; `brackets` knows all that ends a statement but those.
    """

    behind: int = 0
    brackets: Brackets = field(default_factory=Brackets)

    def ends(self, text: str, dialect: str) -> bool | None:
        """Whether a statement ends in what came since; None if the text ends within a string, a name or a comment."""
        new = text[self.behind :]
        tokens, brackets = tokens_of(new, dialect), replace(self.brackets)
        if tokens is None:
            return None
        if any(brackets.ends(token, new[token.start : token.end + 1]) for token in tokens):
            return True
        self.behind, self.brackets = len(text), brackets
        return False


def is_empty(text: str, dialect: str = "duckdb") -> bool:
    """Whether a text holds nothing but spaces and finished comments."""
    return not text.strip() or tokens_of(text, dialect) == []


def ends_outside(text: str, dialect: str = "duckdb") -> bool:
    """Whether what follows a text would be SQL, and not part of a string or a comment."""
    if not text.strip():
        return True
    tokens = tokens_of(text + "\\", dialect)
    return bool(tokens) and tokens is not None and tokens[-1].start == len(text)


def with_variables(text: str, value: Callable[[str], str | None], dialect: str = "duckdb") -> str:
    """`:name`, `:'name'` and `:"name"` replaced wherever `value` knows the name; everything else stays as it is.

    A text that ends within a string or a comment stays whole.
    """
    tokens = tokens_of(text, dialect) or []
    parts: list[str] = []
    done = 0
    for colon, named in pairwise(tokens):
        if colon.token_type is not TokenType.COLON or named.start != colon.end + 1 or colon.start < done:
            continue
        written = text[named.start : named.end + 1]
        quoting = _QUOTINGS.get(written[0], "")
        name = written[1:-1] if quoting else written
        known = value(name) if _NAME.fullmatch(name) else None
        if known is not None:
            parts += [text[done : colon.start], quoted(known, quoting)]
            done = named.end + 1
    return "".join([*parts, text[done:]])


def quoted(value: str, quoting: Quoting) -> str:
    """A variable's value as it is put into a text."""
    return value if not quoting else f"{quoting}{value.replace(quoting, quoting * 2)}{quoting}"
