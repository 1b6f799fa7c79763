"""Offsets in a text ↔ lines and characters of the language server protocol, which counts in UTF-16 by default."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text. encoding: what a character's number counts, "utf-8", "utf-16" or "utf-32"."""

    text: str
    encoding: str = "utf-16"
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        ends = (m.end() for m in _LINE_END.finditer(self.text))
        object.__setattr__(self, "starts", (0, *ends))

    def position(self, offset: int) -> tuple[int, int]:
        """0-based line and character of an offset; one beyond the text is its end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        return line, self._width(self.text[self.starts[line] : offset])

    def offset(self, line: int, character: int) -> int:
        """The offset of a position; a character beyond its line's end is that end, one within another is its start."""
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.text)
        at = self.starts[line]
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        content = self.text[at:end].rstrip("\r\n")
        left = character
        for c in content:
            left -= self._width(c)
            if left < 0:
                break
            at += 1
        return at

    def _width(self, text: str) -> int:
        match self.encoding:
            case "utf-8":
                return len(text.encode("utf-8", "surrogatepass"))
            case "utf-32":
                return len(text)
            case _:
                return len(text) + sum(ord(c) > 0xFFFF for c in text)
