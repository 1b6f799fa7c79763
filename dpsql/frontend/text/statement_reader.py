"""Reading a statement of dpsql's own, word by word: what is not expected is refused where it stands."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import ClassVar

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.lexer import RESERVED, Token, tokens

_LONGEST = 63
"""Characters of a name."""


def parts_about(sql: str, word: str, verbs: Collection[str]) -> tuple[str, list[Token]] | None:
    """The verb of `CREATE DP SUMMARY …` and its like, and what follows the word; None of any other text."""
    if word.lower() not in sql[:1_000].lower():
        return None
    parts = [t for t in tokens(sql) if t.kind != "comment"]
    while parts and parts[-1].text == ";":
        parts.pop()
    about = len(parts) >= 3 and [p.upper for p in parts[1:3]] == ["DP", word] and parts[0].upper in verbs
    return (parts[0].upper, parts[3:]) if about else None


class StatementReader:
    """The tokens of a statement, read from left to right. about, forms: for what it says of one that it cannot read."""

    about: ClassVar[str]
    forms: ClassVar[tuple[str, ...]]

    def __init__(self, source: Source, parts: Sequence[Token], end: int) -> None:
        self.source, self.parts, self.at, self.end = source, parts, 0, end

    @property
    def here(self) -> Token | None:
        """What stands here; None at the end."""
        return self.parts[self.at] if self.at < len(self.parts) else None

    def name(self) -> str:
        """The name that stands here. Raises Rejected DP010, as all of these do."""
        here = self.here
        if here is None or not here.is_name or not here.name or not here.closed or here.upper in RESERVED:
            raise self.wrong("a name is missing here", here)
        if len(here.name) > _LONGEST or not here.name.isprintable():
            raise self.wrong(f"a name has at most {_LONGEST} characters, and none that cannot be printed", here)
        self.at += 1
        return here.name

    def number(self) -> str:
        """The number that stands here, perhaps in quotes."""
        here = self.here
        if here is None or here.kind not in ("number", "string") or not here.closed:
            raise self.wrong("a number is missing here", here)
        self.at += 1
        return here.text.replace("_", "")

    def day(self) -> dt.date:
        """The `DATE '…'` that stands here."""
        self.word("DATE")
        here = self.here
        try:
            found = dt.date.fromisoformat("" if here is None or here.kind != "string" else here.text.strip("'"))
        except ValueError:
            raise self.wrong("a day is missing here", here) from None
        self.at += 1
        return found

    def accept(self, sign: str) -> bool:
        """Whether this sign stands here; then it is read."""
        found = self.here is not None and self.here.text == sign
        self.at += found
        return found

    def sign(self, sign: str) -> None:
        """Read this sign."""
        if not self.accept(sign):
            raise self.wrong(f"{sign} is missing here", self.here)

    def word(self, word: str) -> None:
        """Read this word."""
        if self.here is None or self.here.upper != word:
            raise self.wrong(f"{word} is missing here", self.here)
        self.at += 1

    def over(self) -> None:
        """Nothing follows."""
        if self.here is not None:
            raise self.wrong("the statement ends before this", self.here)

    def wrong(self, what: str, at: Token | None) -> Rejected:
        """The refusal of what stands at a token, or at the end."""
        span = Span(self.end, self.end) if at is None else Span(at.start, at.end)
        first, *others = self.forms
        return reject(
            "DP010", f"a statement about {self.about} cannot be read: {what}", span=span, source=self.source,
            help=[f"write  {first}", *(f"or  {form}" for form in others)], notes=[NOTHING_RAN],
        )  # fmt: skip
