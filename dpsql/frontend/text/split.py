"""A text of several statements → each of them, where it begins, and the comments; what stands in strings counts for
nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot

from dpsql.frontend.parse import UNREADABLE, require_dialect

_COMMENT = re.compile(r"--[^\r\n]*|#[^\r\n]*|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DEEPER = {sqlglot.TokenType.L_PAREN: 1, sqlglot.TokenType.R_PAREN: -1}
_OURS = re.compile(r"(?:--|#|//|/\*)\s*dpsql\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text, without its semicolon. `start`: its offset in the text, in characters.

    `shape` is a hash of its tokens: the same however they are spaced, broken into lines and commented.
    `lead`: what stands before it from the first comment of dpsql on, which may say settings of it.
    """

    text: str
    start: int
    shape: str = ""
    lead: str = ""

    @property
    def end(self) -> int:
        """The offset behind its last character."""
        return self.start + len(self.text)

    @property
    def whole(self) -> Statement:
        """The same, beginning with its lead."""
        return Statement(self.lead + self.text, self.start - len(self.lead), self.shape)


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment with its marks, and its offset in the text."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The statements and the comments of a text, each in order."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...]


def split_statements(text: str, dialect: str = "duckdb") -> tuple[Statement, ...]:
    """The statements of a text in order, from the first token to the last; empty ones are left out. The queries of a
    DP BATCH stay together: they stand in its brackets.

    A text that has no tokens in this dialect (an open quote, say) is one statement: parsing it says what is wrong.
    Raises Rejected DP903 for an unknown dialect.
    """
    return split_text(text, dialect).statements


def split_text(text: str, dialect: str = "duckdb") -> Parts:
    """The statements as `split_statements` gives them, and what stands between their tokens as comments.

    A text without tokens in this dialect has no comments. Raises Rejected DP903 for an unknown dialect.
    """
    require_dialect(dialect)
    try:
        tokens = sqlglot.tokenize(text + "\n", read=dialect)  # the line's end: as in parse
    except UNREADABLE:
        return Parts((Statement(text, 0, shape_of(text.split())),), ())
    found: list[Statement] = []
    comments: list[Comment] = []
    words: list[str] = []
    start = end = behind = rest = depth = 0
    for token in tokens:
        comments += _comments(text, behind, token.start)
        behind = token.end + 1
        if token.token_type in _DEEPER and [w.upper() for w in words[:2]] == ["DP", "BATCH"]:
            depth += _DEEPER[token.token_type]
        if token.token_type is sqlglot.TokenType.SEMICOLON and depth <= 0:
            if words:
                found.append(Statement(text[start:end], start, shape_of(words), lead_of(text, rest, start)))
            words, rest, depth = [], behind, 0
            continue
        if not words:
            start = token.start
        end = behind
        words.append(text[token.start : end])
    if words:
        found.append(Statement(text[start:end], start, shape_of(words), lead_of(text, rest, start)))
    comments += _comments(text, behind, len(text))
    return Parts(tuple(found), tuple(comments))


def lead_of(text: str, start: int, end: int) -> str:
    """From the first comment of dpsql on, what stands in a stretch of text that holds no token."""
    if "dpsql" not in text[start:end].lower():
        return ""
    return next((text[c.start : end] for c in _comments(text, start, end) if _OURS.match(c.text)), "")


def shape_of(words: list[str]) -> str:
    """A short hash of the words of a statement."""
    return hashlib.blake2b("\x1f".join(words).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _comments(text: str, start: int, end: int) -> Iterator[Comment]:
    """The comments in a stretch of text that holds no token."""
    if end - start < 2:
        return
    for match in _COMMENT.finditer(text, start, end):
        yield Comment(match[0], match.start())
