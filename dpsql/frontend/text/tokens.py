"""Text → sqlglot's tokens, quicker than its own tokenizer where that is written in Python.

*Claim.* The tokens are those of `reader.tokenize`, but that `$1,$2` are two parameters. *Why.* Read here are plain
words, numbers, strings, quoted names and the operators below, in the dialects whose tables of keywords were looked
through for what begins like them; whatever else stands in a text (comments, escapes, parameters, braces, other letters,
keywords of two words but three) leaves all of it to sqlglot. *When it would be false.* A later sqlglot that reads one
of these otherwise. *Tested by* tests/frontend/test_tokens.py, on every text of the fixtures and on random ones.
"""

from __future__ import annotations

import re
from functools import cache

import sqlglot
from sqlglot import Token, TokenType, tokenizer_core

_COMPILED = not (tokenizer_core.__file__ or "").endswith(".py")
_PLAIN = re.compile(
    r"""[ \t\n]*(?:
      ((?:[Gg][Rr][Oo][Uu][Pp]|[Oo][Rr][Dd][Ee][Rr]|[Pp][Aa][Rr][Tt][Ii][Tt][Ii][Oo][Nn])[ ][Bb][Yy](?=[ \t\n(]))
    | ([A-Za-z_][A-Za-z0-9_]*(?=[ \t\n(),.;=<>+*/%|:\[\]?-]))
    | ([(),.;\[\]] | [-=<>+*/%|:?!]+(?![&@#~^$]))
    | ([0-9]+(?:\.[0-9]+)?(?![\w.]))
    | '([^'\\\r\n]*)'(?!')
    | "([^"\\\r\n]*)"(?!")
    | (.) )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_WORDS, _WORD, _MARK, _NUMBER, _STRING, _QUOTED, _OTHER = range(1, 8)
_VAR = TokenType.VAR
_KINDS = {_NUMBER: TokenType.NUMBER, _STRING: TokenType.STRING, _QUOTED: TokenType.IDENTIFIER}
_MARKS = (*"(),.;[]=<>+-*/%?", "<=", ">=", "<>", "!=", "||", "::", "//")


@cache
def _tables(reader: sqlglot.Dialect) -> tuple[dict[str, TokenType], dict[str, TokenType], frozenset[str]]:
    """The kinds of words and of marks, and the words that begin more than themselves."""
    tokenizer = reader.tokenizer_class
    words, marks = tokenizer.KEYWORDS, tokenizer.SINGLE_TOKENS
    longer = {re.split(r"\W", key)[0] for key in words if re.search(r"\w\W", key)}
    commands = {key for key, kind in words.items() if kind in tokenizer.COMMANDS}
    known = {mark: kind for mark in _MARKS if (kind := words.get(mark) or marks.get(mark)) is not None}
    return words, known, frozenset(longer | commands)


def tokens_of(text: str, reader: sqlglot.Dialect) -> list[Token]:
    """What `reader.tokenize` gives. Raises what it raises. A text that ends with a line's end is read faster."""
    quick = not _COMPILED and type(reader).__name__ in ("DuckDB", "Postgres") and text.endswith("\n")
    found = _plain(text, reader) if quick else None
    return _tokenized(text, reader) if found is None else found


_NUMBERED = re.compile(r"(?<![\w$])\$(?=[0-9])")
"""What begins a parameter with a number, and no quote: a tag of a dollar quote does not begin with a digit."""
_STANDS_FOR_IT = "\ue000"
"""A character of private use. Where a text has it, sqlglot reads its parameters itself."""


def _tokenized(text: str, reader: sqlglot.Dialect) -> list[Token]:
    """sqlglot's tokens. It takes `$1,$` for the beginning of a quote: what has a number is shown to it otherwise.

    The mark is one character for another, so that places stay; where it stood in a string, that has its own text again.
    """
    if "$" not in text or _STANDS_FOR_IT in text:
        return reader.tokenize(text)
    found: list[Token] = []
    for token in _with_mark(reader).tokenize(_NUMBERED.sub(_STANDS_FOR_IT, text)):
        if _STANDS_FOR_IT in token.text or any(_STANDS_FOR_IT in c for c in token.comments):
            whole, place = token.text.replace(_STANDS_FOR_IT, "$"), (token.line, token.col, token.start, token.end)
            comments = [c.replace(_STANDS_FOR_IT, "$") for c in token.comments]
            token = Token(token.token_type, whole, *place, comments)
        found.append(token)
    return found


@cache
def _with_mark(reader: sqlglot.Dialect) -> sqlglot.Tokenizer:
    """The dialect's tokenizer, to which the mark begins a parameter."""
    own = reader.tokenizer_class
    marks = {**own.SINGLE_TOKENS, _STANDS_FOR_IT: TokenType.PARAMETER}
    return type(own.__name__, (own,), {"SINGLE_TOKENS": marks})(reader)  # type: ignore[no-any-return]


def _plain(text: str, reader: sqlglot.Dialect) -> list[Token] | None:
    """None where something is not plain."""
    words, marks, longer = _tables(reader)
    found: list[Token] = []
    line, before, behind = 1, -1, text.find("\n")  # the ends of this line and of the one before it
    for match in _PLAIN.finditer(text):  # what it finds stands side by side: `_OTHER` is any character
        kind = match.lastindex or _OTHER
        written = match[kind]
        start, end = match.span(kind)
        if kind == _WORD:
            upper = written.upper()
            if upper in longer:
                return None
            type_ = words.get(upper, _VAR)
        elif kind == _MARK:
            if written not in marks:
                return None
            type_ = marks[written]
        elif kind == _WORDS:
            written = written.upper()
            type_ = words[written]
        elif kind == _OTHER:
            return found if written == "\n" and end == len(text) else None
        else:
            type_ = _KINDS[kind]
            if kind != _NUMBER:
                start, end = start - 1, end + 1
        while behind < start:
            line, before, behind = line + 1, behind, text.find("\n", behind + 1)
        found.append(Token(type_, written, line, end - 1 - before, start, end - 1, []))
    return found
