"""SQL text → tokens, and the statements of a text. It never fails, and takes time linear in the text.

It only finds where statements end and which commands they are: whatever is asked of data is parsed again by those who
answer it, and a text that they read otherwise is refused there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal

from dpsql.faces.server.front.error_fields import ProtocolFault

Kind = Literal["word", "quoted", "string", "number", "sign"]

MOST_TEXT: Final = 1_000_000
"""Characters of one message's text; a single statement may be shorter still."""
_LONG: Final = 20_000
_LINE: Final = re.compile(r"--[^\r\n]*")
_SPACE: Final = re.compile(rf"(?:\s+|{_LINE.pattern})+")
_COMMENT: Final = re.compile(r"/\*|\*/")
_DOLLAR: Final = re.compile(r"\$([^\W\d]\w*)?\$")
_TOKEN: Final = re.compile(
    r"(?P<escaped>[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'?)"
    r"|(?P<string>'[^']*(?:''[^']*)*'?)"
    r'|(?P<quoted>"[^"]*(?:""[^"]*)*"?)'
    r"|(?P<word>[^\W\d][\w$]*)"
    r"|(?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<sign>::|\$\d+|.)",
    re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class ClientToken:
    """value: what a string or a name means; of a word it is folded to lower case, as PostgreSQL does."""

    kind: Kind
    start: int
    end: int
    value: str

    @property
    def upper(self) -> str:
        """A bare word in capitals, or a sign; "" for anything in quotes, and for numbers."""
        return self.value.upper() if self.kind == "word" else self.value if self.kind == "sign" else ""


@dataclass(frozen=True, slots=True)
class ClientStatement:
    """One statement of a text: what stands in front of its semicolon, comments too. start: its offset in the text."""

    text: str
    start: int


def tokens(text: str) -> Iterator[ClientToken]:
    """The tokens of a text; spaces and comments are left out."""
    at = 0
    while at < len(text):
        if found := _SPACE.match(text, at):
            at = found.end()
        elif text.startswith("/*", at):
            at = _behind_comment(text, at)
        elif text[at] == "$" and (tag := _DOLLAR.match(text, at)):
            close = text.find(tag[0], tag.end())
            end = len(text) if close < 0 else close + len(tag[0])
            yield ClientToken("string", at, end, text[tag.end() : len(text) if close < 0 else close])
            at = end
        else:
            token = _TOKEN.match(text, at)
            assert token is not None  # a sign is any character
            yield _read(token)
            at = token.end()


def comments(text: str, end: int) -> Iterator[tuple[int, str]]:
    """The comments that begin before an offset, without their marks, and where what they say begins."""
    behind = 0
    for at in (*((t.start, t.end) for t in _until(text, end)), (end, end)):
        while behind < at[0]:
            if line := _LINE.match(text, behind):
                yield behind + 2, line[0][2:]
                behind = line.end()
            elif text.startswith("/*", behind):
                stop = _behind_comment(text, behind)
                yield behind + 2, text[behind + 2 : stop].removesuffix("*/")
                behind = stop
            else:
                behind += 1
        behind = at[1]


def _until(text: str, end: int) -> Iterator[ClientToken]:
    return takewhile(lambda token: token.start < end, tokens(text))


def _read(found: re.Match[str]) -> ClientToken:
    text = found[0]
    match found.lastgroup:
        case "escaped":
            inner = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text[2:].removesuffix("'"), flags=re.DOTALL)
            return ClientToken("string", found.start(), found.end(), inner.replace("''", "'"))
        case "string":
            return ClientToken("string", found.start(), found.end(), text[1:].removesuffix("'").replace("''", "'"))
        case "quoted":
            return ClientToken("quoted", found.start(), found.end(), text[1:].removesuffix('"').replace('""', '"'))
        case "word":
            return ClientToken("word", found.start(), found.end(), text.lower())
        case "number":
            return ClientToken("number", found.start(), found.end(), text)
    return ClientToken("sign", found.start(), found.end(), text)


def _behind_comment(text: str, at: int) -> int:
    """The offset behind a comment, in which others may stand."""
    depth = 0
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def statements(text: str) -> list[ClientStatement]:
    """The statements of a text in order; those without any token are left out. Those of a DP BATCH stay together, as
    psql keeps them: they stand in brackets."""
    found: list[ClientStatement] = []
    start, any_token = 0, False
    before, depth = "", -1  # depth: of brackets in a batch; -1 where there is none
    for token in tokens(text):
        word, after = token.upper, before
        before = word
        if word == "BATCH" and after == "DP" and depth < 0:
            depth = 0
        elif depth >= 0:
            depth += {"(": 1, ")": -1}.get(word, 0)
        if word == ";" and depth <= 0:
            if any_token:
                found.append(ClientStatement(text[start : token.start], start))
            start, any_token, depth = token.end, False, -1
        else:
            any_token = True
    if any_token:
        found.append(ClientStatement(text[start:], start))
    return found


async def split_text(text: str) -> list[ClientStatement]:
    """`statements`; of a long text in a thread, so that others are not held up. Raises Fault 54000."""
    if len(text) > MOST_TEXT:
        raise ProtocolFault("54000", f"a text has at most {MOST_TEXT:,} characters", "pass long lists as a table")
    return await asyncio.to_thread(statements, text) if len(text) > _LONG else statements(text)
