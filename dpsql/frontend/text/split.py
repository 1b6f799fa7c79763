"""A text of several statements → each of them, where it begins, and the comments; what stands in strings counts for
nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import Token, TokenType

from dpsql.frontend.parse import UNREADABLE, require_dialect

_COMMENT = re.compile(r"--[^\r\n]*|#[^\r\n]*|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DEEPER = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
_OURS = re.compile(r"(?:--|#|//|/\*)\s*dpsql\s*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextStatement:
    """One statement of a text, without its semicolon. `start`: its offset in the text, in characters.

    `shape` is a hash of its tokens: the same however they are spaced, broken into lines and commented.
    `lead`: what stands before it from the first comment of dpsql on, which may say settings of it. `trail`: what
    stands behind it up to its semicolon, if a comment of dpsql is there, which would not hold.
    """

    text: str
    start: int
    shape: str = ""
    lead: str = ""
    trail: str = ""

    @property
    def end(self) -> int:
        """The offset behind its last character."""
        return self.start + len(self.text)

    @property
    def whole(self) -> TextStatement:
        """The same with its lead and its trail."""
        return TextStatement(self.lead + self.text + self.trail, self.start - len(self.lead), self.shape)


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment with its marks, and its offset in the text."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The statements and the comments of a text, each in order."""

    statements: tuple[TextStatement, ...]
    comments: tuple[Comment, ...]


def split_statements(text: str, dialect: str = "duckdb") -> tuple[TextStatement, ...]:
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
    tokens = tokens_of(text, dialect)
    if tokens is None:
        return Parts((TextStatement(text, 0, shape_of(text.split())),), ())
    comments: list[Comment] = []
    behind = 0
    for token in tokens:
        comments += _comments(text, behind, token.start)
        behind = token.end + 1
    comments += _comments(text, behind, len(text))
    return Parts(tuple(statement for statement, _ in cut(text, tokens) if statement is not None), tuple(comments))


def tokens_of(text: str, dialect: str = "duckdb") -> list[Token] | None:
    """The tokens of a text; None where it has none in this dialect (an open quote, say).

    sqlglot makes one token of what follows EXPLAIN, PREPARE and the like, up to a semicolon, of which a batch holds
    some: here these words are names, each another one, for they may be marks of strings ($EXPLAIN$).
    """
    read = _commands(dialect).sub(lambda word: f"_{word[0][1:]}", text)
    try:
        return sqlglot.tokenize(read + "\n", read=dialect)  # the line's end: as in parse
    except UNREADABLE:
        return None


@cache
def _commands(dialect: str) -> re.Pattern[str]:
    tokenizer = sqlglot.Dialect.get_or_raise(dialect).tokenizer_class
    words = sorted(word for word, kind in tokenizer.KEYWORDS.items() if kind in tokenizer.COMMANDS)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)


@dataclass(slots=True)
class Brackets:
    """Where in the brackets of a DP BATCH a text is, token by token. depth: -1 outside. last: word, in capitals."""

    depth: int = -1
    last: str = ""

    def ends(self, token: Token, word: str) -> bool:
        """Whether this token, which is written so, ends a statement; what follows is outside then."""
        before, self.last = self.last, word.upper()
        if self.depth < 0 and before == "DP" and self.last == "BATCH":
            self.depth = 0
        elif self.depth >= 0:
            self.depth += _DEEPER.get(token.token_type, 0)
        if token.token_type is not TokenType.SEMICOLON or self.depth > 0:
            return False
        self.depth, self.last = -1, ""
        return True


def cut(text: str, tokens: Sequence[Token]) -> Iterator[tuple[TextStatement | None, int | None]]:
    """Each statement of a text, None for an empty one, and the offset behind its semicolon; None where it has none.

    tokens: all of the text's.
    """
    words: list[str] = []
    start = end = rest = 0
    inside = Brackets()
    for token in tokens:
        word = text[token.start : token.end + 1]
        if inside.ends(token, word):
            yield _statement(text, start, end, words, rest, token.start), token.end + 1
            words, rest = [], token.end + 1
            continue
        start, end = start if words else token.start, token.end + 1
        words.append(word)
    if words:
        yield _statement(text, start, end, words, rest, len(text)), None


def _statement(text: str, start: int, end: int, words: list[str], rest: int, behind: int) -> TextStatement | None:
    """words: none of an empty one. rest, behind: where what stands before it begins, and what stands behind it ends."""
    if not words:
        return None
    trail = text[end:behind] if lead_of(text, end, behind) else ""
    return TextStatement(text[start:end], start, shape_of(words), lead_of(text, rest, start), trail)


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
