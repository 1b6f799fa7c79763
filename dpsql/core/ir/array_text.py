"""Arrays as PostgreSQL writes them: `{1,NULL,"a b"}`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

SPACES = " \t\n\r\v\f"
_MOST_DIMENSIONS = 6


def reader(item: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """How lists are read whose items are read so. It raises ValueError or IndexError."""

    def read(text: str) -> list[Any]:
        stack: list[list[Any]] = []
        whole: list[Any] | None = None
        wanted = True  # whether a value may stand here
        for token, quoted in _tokens(text):
            if whole is not None:
                raise ValueError
            if quoted or token not in "{},":
                if not stack or not wanted:
                    raise ValueError
                stack[-1].append(None if not quoted and token.upper() == "NULL" else item(token))
                wanted = False
            elif token == "{":
                if not wanted or len(stack) == _MOST_DIMENSIONS:
                    raise ValueError
                stack.append([])
            elif token == "}":
                if not stack or (wanted and stack[-1]):
                    raise ValueError
                done, wanted = stack.pop(), False
                if stack:
                    stack[-1].append(done)
                else:
                    whole = done
            else:
                if not stack or wanted:
                    raise ValueError
                wanted = True
        if whole is None:
            raise ValueError
        return whole

    return read


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Marks and items; whether an item was quoted. Raises ValueError."""
    at = 0
    while at < len(text):
        character = text[at]
        if character in "{},":
            yield character, False
            at += 1
        elif character in SPACES:
            at += 1
        elif character == '"':
            found, at = [], at + 1
            while text[at] != '"':  # IndexError at the end, which whoever decodes expects
                at += text[at] == "\\"
                found.append(text[at])
                at += 1
            at += 1
            yield "".join(found), True
        else:
            start = at
            while at < len(text) and text[at] not in '{},"\\':
                at += 1
            if at == start:
                raise ValueError
            yield text[start:at].rstrip(SPACES), False
