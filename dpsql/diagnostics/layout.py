"""Where a span stands on a screen: terminal columns, tabs, wide and invisible characters, line ends."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source, Span

TAB_WIDTH = 4
LONGEST_LINE = 400
"""Characters of a line that are shown; of a longer one (a generated list), those around the mark."""
_BEFORE_MARK = 100


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """One source line as it is printed. The mark covers screen columns `[start, end)`, never empty."""

    text: str
    start: int
    end: int


def visible(character: str) -> str:
    """The character as it may be printed: control and format characters (escape codes, bidirectional overrides) are
    shown as U+FFFD so that a text cannot write to the reader's terminal; emoji joiners and marks stay."""
    category = unicodedata.category(character)
    if category in ("Cc", "Cs", "Zl", "Zp") or (category == "Cf" and character not in "\u200c\u200d"):
        return "\ufffd"
    return character


def width(character: str) -> int:
    """Screen columns of a printable character: 0, 1 or 2 (Unicode TR 11, East Asian Width; ambiguous counts as 1)."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def text_width(text: str) -> int:
    """Screen columns of a printable text."""
    return len(text) if text.isascii() else sum(map(width, text))


def one_line(text: str) -> str:
    """`text` on a single line, without control characters: for messages, labels and file names."""
    line = " ".join([part.strip() for part in text.splitlines()]).strip().replace("\t", " ")
    return line if line.isprintable() else "".join(map(visible, line))


def inert(text: str) -> str:
    """Lines of text, none of which is a command to what runs CI: what begins with `::`, or has `##[` or `##vso[`."""
    return _COMMAND.sub(lambda found: f"{found[1] or ''}\ufffd", text)


def printable(text: str) -> str:
    """Lines of text without control characters and commands to CI; a tab is four blanks."""
    return inert(_ODD.sub(lambda found: visible(found[0]), text.replace("\t", "    ")))


def escaped(text: str) -> str:
    """JSON in which control and format characters and commands to CI are escaped: it means the same."""
    shown = _ODD.sub(lambda found: found[0] if visible(found[0]) == found[0] else _units(found[0]), text)
    return _IN_JSON.sub(r"\\u0023", shown)


_ODD = re.compile(r"[^\x20-\x7e\n]")
_IN_JSON = re.compile(r"#(?=#\w*\[)")
_COMMAND = re.compile(rf"^([^\S\n]*):(?=:)|{_IN_JSON.pattern}", re.MULTILINE)


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def anchor(source: Source, span: Span) -> Span:
    """`span` cut to the text. A span without a visible character at the end of the text (an unexpected end) is moved
    back to stand right behind the last visible character."""
    start = max(0, min(span.start, len(source.text)))
    end = max(start, min(span.end, len(source.text)))
    if start > 0 and not source.text[start:].strip():
        start = end = len(source.text[:start].rstrip())
    return Span(start, end)


def mark(line: str, first: int, last: int) -> MarkedLine:
    """Lay out `line` and mark its characters `[first, last)`; an empty range marks one column."""
    cells: list[str] = []
    column, start, end = 0, None, 0
    for index, character in enumerate(line):
        if index == first:
            start = column
        if character == "\t":
            shown = " " * (TAB_WIDTH - column % TAB_WIDTH)
            column += len(shown)
        else:
            shown = visible(character)
            column += width(shown)
        cells.append(shown)
        if first <= index < last:
            end = column
    begin = column if start is None else start
    return MarkedLine("".join(cells), begin, max(end, begin + 1))


def marked_lines(source: Source, span: Span) -> Iterator[MarkedLine]:
    """The lines a span (already anchored) touches, each with its part of the mark. Indentation is not marked."""
    first_line, first_column = source.position(span.start)
    last_line, last_column = source.position(span.end)
    if last_line > first_line and last_column == 1:  # the span ends with a line end: the next line is not part of it
        last_line -= 1
        last_column = len(source.line(last_line)) + 1
    for number in range(first_line, last_line + 1):
        line = source.line(number)
        begin = first_column - 1 if number == first_line else len(line) - len(line.lstrip())
        end = last_column - 1 if number == last_line else len(line.rstrip())
        if number in (first_line, last_line) or begin < end:
            yield mark(*_cut(line, begin, min(end, len(line))))


def _cut(line: str, first: int, last: int) -> tuple[str, int, int]:
    """A line that is not too long, and its characters `[first, last)` as they are counted in it."""
    if len(line) <= LONGEST_LINE:
        return line, first, last
    start = max(0, first - _BEFORE_MARK)
    stop = start + LONGEST_LINE
    front, back = "… " if start else "", " …" if stop < len(line) else ""
    moved = len(front) - start
    return f"{front}{line[start:stop]}{back}", first + moved, min(last, stop) + moved
