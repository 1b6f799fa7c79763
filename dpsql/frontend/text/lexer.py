"""Half-typed SQL as tokens and brackets. Never fails: whatever is left open ends where the text ends.

The parser of queries refuses what is not finished; an editor has to work on exactly that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["word", "quoted", "string", "number", "comment", "sign"]

_BACKTICKS = frozenset({"bigquery", "mysql", "spark", "databricks", "sqlite"})
QUOTED_STRINGS = frozenset({"bigquery", "mysql", "spark", "databricks"})
_BRACKETS = frozenset({"tsql"})
_HASH_COMMENTS = frozenset({"bigquery", "mysql"})
_ESCAPES = frozenset({"bigquery", "mysql", "spark", "databricks", "snowflake"})

RESERVED = frozenset({
    "ALL", "AND", "ANY", "ANTI", "AS", "ASC", "ASOF", "BETWEEN", "CASE", "CAST", "COLLATE", "CROSS", "CUBE",
    "DESC", "DISTINCT", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP",
    "HAVING", "ILIKE", "IN", "INNER", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE",
    "LIMIT", "NATURAL", "NOT", "NULL", "OFFSET", "ON", "ONLY", "OR", "ORDER", "OUTER", "OVER", "PIVOT",
    "POSITIONAL", "QUALIFY", "RECURSIVE", "RIGHT", "ROLLUP", "SELECT", "SEMI", "SETS", "SIMILAR", "SOME", "TABLE",
    "TABLESAMPLE", "THEN", "TRUE", "TRY_CAST", "UNION", "UNPIVOT", "USING", "VALUES", "WHEN", "WHERE", "WINDOW",
    "WITH",
})  # fmt: skip
"""Words that cannot be the name of anything unless they are quoted."""

_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")
_LINE = re.compile(r"[^\r\n]*")
_SIGN = re.compile(r"=>|::|<=|>=|<>|!=|\|\||//|\*\*|==|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """One token, at `[start, end)`. `name`: what an identifier is called, without its quotes. `closed`: False for a
    quote or comment that the text does not end."""

    kind: Kind
    start: int
    end: int
    text: str
    name: str = ""
    closed: bool = True

    @property
    def upper(self) -> str:
        """A bare word in capitals; empty for anything else, quoted names included."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        """True for a word or a quoted name."""
        return self.kind in ("word", "quoted")


@dataclass(slots=True)
class Group:
    """What stands between two brackets, or a whole statement. `before`: the word in front of the bracket, in capitals.
    `end`: behind the closing bracket, or where the statement ends if it is missing."""

    start: int
    end: int
    parts: list[Token | Group] = field(default_factory=list)
    before: str = ""
    closed: bool = False

    @property
    def is_query(self) -> bool:
        """True if this is a query in brackets: it begins with a word that begins one."""
        first = self.parts[0] if self.parts else None
        if not isinstance(first, Token):
            return False
        return first.upper in ("SELECT", "WITH", "VALUES") or (first.upper == "FROM" and not self.is_call)

    @property
    def is_call(self) -> bool:
        """True if a function's name stands in front of the bracket."""
        return bool(self.before) and self.before not in RESERVED

    def holds(self, offset: int) -> bool:
        """True if a cursor at `offset` stands inside of the brackets."""
        return self.start < offset and (offset < self.end or not self.closed)


def tokens(text: str, dialect: str = "duckdb") -> Iterator[Token]:
    """The tokens of a text, comments included, spaces left out."""
    at = 0
    while at < len(text):
        character, two = text[at], text[at : at + 2]
        if character.isspace() or character == "\ufeff":
            at += 1
            continue
        token = None
        if two == "--" or (character == "#" and dialect in _HASH_COMMENTS):
            token = Token("comment", at, _end(_LINE, text, at), "", closed=False)
        elif two == "/*":
            token = _until(text, at, "*/", "comment", doubled=False)
        elif character == "'" or (character == '"' and dialect in QUOTED_STRINGS):
            token = _until(text, at, character, "string", escaped=dialect in _ESCAPES)
        elif character == '"' or (character == "`" and dialect in _BACKTICKS):
            token = _until(text, at, character, "quoted")
        elif character == "[" and dialect in _BRACKETS:
            token = _until(text, at, "]", "quoted")
        else:
            for kind, pattern in _PATTERNS:
                found = pattern.match(text, at)
                if found:
                    word = found.group()
                    token = Token(kind, at, found.end(), word, word if kind == "word" else "")
                    break
        assert token is not None  # a sign is any character
        yield token
        at = token.end


_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (("word", _WORD), ("number", _NUMBER), ("sign", _SIGN))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _until(text: str, start: int, close: str, kind: Kind, escaped: bool = False, doubled: bool = True) -> Token:
    """From an opening sign to its closing one; a closing sign written twice stands for itself."""
    at = start + (2 if close == "*/" else 1)
    while at < len(text):
        if escaped and text[at] == "\\":
            at += 2
        elif not text.startswith(close, at):
            at += 1
        elif doubled and text.startswith(close, at + len(close)):
            at += 2 * len(close)
        else:
            end = at + len(close)
            return Token(kind, start, end, text[start:end], text[start + 1 : at].replace(close * 2, close))
    if kind == "quoted":  # a name that is being typed: what follows is no part of it
        word = _WORD.match(text, start + 1)
        at = start + 1 if word is None else word.end()
        return Token(kind, start, at, text[start:at], text[start + 1 : at], closed=False)
    return Token(kind, start, len(text), text[start:], text[start + 1 :].replace(close * 2, close), closed=False)


def statement_at(found: Sequence[Token], offset: int, length: int) -> tuple[list[Token], int, int]:
    """The tokens of the statement that the cursor is in, comments left out, and where it begins and ends."""
    start, end = 0, length
    for token in found:
        if token.kind == "sign" and token.text == ";":
            if token.end <= offset:
                start = token.end
            else:
                end = token.start
                break
    return [t for t in found if start <= t.start < end and t.kind != "comment"], start, end


_TAKES_FROM = frozenset({"EXTRACT", "SUBSTRING", "TRIM", "OVERLAY", "POSITION"})
_ENDS_A_CALL = frozenset({"HAVING", "QUALIFY", "LIMIT", "UNION", "INTERSECT", "GROUP"})


def grouped(found: Sequence[Token], start: int, end: int) -> Group:
    """Tokens as nested brackets. A clause that cannot stand in the brackets of a call ends a call left open."""
    root = Group(start, end)
    stack = [root]
    last = ""
    for token in found:
        word = token.upper
        while len(stack) > 1 and not stack[-1].is_query and _ends(stack[-1], word, last):
            _close(stack, token.start)
        if token.kind == "sign" and token.text == "(":
            stack.append(Group(token.start, end, before=last))
        elif token.kind == "sign" and token.text == ")":
            if len(stack) > 1:
                _close(stack, token.end, closed=True)
        else:
            stack[-1].parts.append(token)
        last = word
    while len(stack) > 1:
        _close(stack, end)
    return root


def _close(stack: list[Group], end: int, closed: bool = False) -> None:
    done = stack.pop()
    done.end, done.closed = end, closed
    stack[-1].parts.append(done)


def _ends(group: Group, word: str, last: str) -> bool:
    if not group.parts and not group.is_call:
        return False
    if word == "FROM":
        return group.before not in _TAKES_FROM and last != "DISTINCT"
    if word == "WHERE":
        return group.before != "FILTER"
    return word in _ENDS_A_CALL
