"""The tokens of a scalar text, and the atoms in it: what no reading divides."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from dpsql.core.gate.vocabularies import Vocabulary

_QUOTED: Final = r'"(?:[^"\0]|"")*"|`(?:[^`\0]|``)*`'
_TOKEN: Final = re.compile(
    rf"""[ \n]*(
        \d+(?:\.\d+)?(?:e[-+]?\d+)?D?(?![\w.])
      | [A-Za-z_]\w*(?:\.(?:\w+|{_QUOTED}))?
      | \0[^\0']+\0
      | "C"
      | [(),\[\]]
      | [^\s\w(),\[\]'"`\0$]+
      | \Z
    )""",
    re.ASCII | re.VERBOSE,
)
"""A number, a word with or without the name of a column behind it, a mark, a collation, a bracket, symbols, the end."""
_TEXTS: Final = {
    False: re.compile(r"[ \n]*('(?:[^'\0]|'')*')"),
    True: re.compile(r"[ \n]*('(?:[^'\0\\$]|\\[\\']|\\u0024|\\u0000)*')"),
}
"""A literal, where a backslash is a character, and where it is not: then as literals are printed."""
_BLANK: Final = re.compile("[ \n]*")
_NO_TOKEN: Final = "?"
_WORD: Final = re.compile(r"\w", re.ASCII)


class NotScalar(Exception):
    """A text is no scalar expression over its atoms."""


class ScalarTokens:
    """Reads a text from left to right; each method reads what it is named by, or raises NotScalar.

    token: the next one, which ends at `end`; "" behind the last. read: the atoms that were read.
    """

    def __init__(self, text: str, atoms: Collection[str], words: Vocabulary) -> None:
        self.text, self.words = text, words
        self.atoms: Collection[str] = sorted(atoms, key=len, reverse=True)
        self.read = set[str]()
        self.end = self.start = 0
        self.token = ""
        self.step()

    def step(self, at: int | None = None) -> None:
        """To the next token."""
        at = self.end if at is None else at
        found = _TOKEN.match(self.text, at) or _TEXTS[self.words.escapes].match(self.text, at)
        if found is None:  # of which an atom may begin, and nothing else
            self.start = self.end = _BLANK.match(self.text, at).end()  # type: ignore[union-attr]
            self.token = _NO_TOKEN
            return
        self.start, self.end = found.span(1)
        self.token = found[1]

    def took(self, token: str) -> bool:
        """Whether this was the next token."""
        if self.token != token:
            return False
        self.step()
        return True

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self.took(token):
                raise NotScalar

    def one_of(self, allowed: Collection[str]) -> str:
        token = self.token
        if token not in allowed:
            raise NotScalar
        self.step()
        return token

    def literal(self) -> None:
        if not self.token.startswith("'"):
            raise NotScalar
        self.step()

    def atom(self) -> bool:
        """Whether an atom stands here, and something else behind it."""
        for atom in self.atoms:
            if self.text.startswith(atom, self.start):
                end = self.start + len(atom)
                if not _glued(self.text[end - 1 : end + 1]):
                    self.read.add(atom)
                    self.step(end)
                    return True
        return False


def _glued(pair: str) -> bool:
    """Whether two characters are of one token: the last of an atom and the next one."""
    return len(pair) == 2 and (
        (_WORD.match(pair[0]) is not None and (_WORD.match(pair[1]) is not None or pair[1] in ".'"))
        or pair in ("''", '""', "``")
    )
