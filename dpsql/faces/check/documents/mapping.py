"""From places in a text that was made from another one back to that one: edits, compiled models, rendered templates.

A made text is a row of pieces. A piece is either the same characters as in the original, or something that stands for
a range of it (a relation's name for `{{ ref('x') }}`): then all of it is at that range.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Span

_TAG = r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}"
_TAGS = re.compile(_TAG, re.DOTALL)
_TOKEN = re.compile(rf"{_TAG}|\w+|\s+|.", re.DOTALL)
_MOST_TOKENS = 4_000
"""Larger blocks are compared by lines alone: comparing takes time that grows with the square."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """`text[start:end]` of the made text is at `origin` of the original; `same`: character by character."""

    start: int
    end: int
    origin: Span
    same: bool


@dataclass(frozen=True, slots=True)
class Mapping:
    """The pieces of a made text in order, without gaps."""

    pieces: tuple[TextPiece, ...]

    def __call__(self, span: Span) -> Span:
        """Where the original has what stands at `span` of the made text."""
        found: Span | None = None
        for piece in self._touched(span):
            own = piece.origin
            if piece.same:
                shift = own.start - piece.start
                own = Span(max(span.start, piece.start) + shift, min(span.end, piece.end) + shift)
            found = own if found is None else found.hull(own)
        return Span(0, 0) if found is None else found

    def is_exact(self, span: Span) -> bool:
        """Whether everything at `span` stands in the original as it is."""
        return all(piece.same for piece in self._touched(span))

    def _touched(self, span: Span) -> Iterator[TextPiece]:
        if not self.pieces:
            return
        first = max(0, bisect_right([piece.start for piece in self.pieces], span.start) - 1)
        one = self.pieces[first]
        if span.start == span.end or span.start >= one.end:  # nothing, or behind the end
            yield one
            return
        for piece in self.pieces[first:]:
            if piece.start >= span.end:
                return
            if piece.end > span.start:
                yield piece

    def after(self, earlier: Mapping) -> Mapping:
        """The way back through two steps: this text was made from one that `earlier` leads back from."""
        pieces: list[TextPiece] = []
        for piece in self.pieces:
            if not piece.same:
                pieces.append(TextPiece(piece.start, piece.end, earlier(piece.origin), False))
                continue
            shift = piece.start - piece.origin.start
            for old in earlier._touched(piece.origin):
                low, high = max(old.start, piece.origin.start), min(old.end, piece.origin.end)
                if low < high:
                    origin = old.origin
                    if old.same:
                        origin = Span(low - old.start + origin.start, high - old.start + origin.start)
                    pieces.append(TextPiece(low + shift, high + shift, origin, old.same))
        return Mapping(tuple(pieces))


@dataclass(frozen=True, slots=True)
class TextChange:
    """The characters at `span` are replaced by `text`. at: what the new text stands for; None: the replaced ones."""

    span: Span
    text: str
    at: Span | None = None


def edited(text: str, changes: Iterable[TextChange]) -> tuple[str, Mapping]:
    """A text after changes that do not overlap, and the way back."""
    parts: list[str] = []
    pieces: list[TextPiece] = []
    at = length = 0

    def keep(end: int) -> None:
        nonlocal length
        if end > at:
            parts.append(text[at:end])
            pieces.append(TextPiece(length, length + end - at, Span(at, end), True))
            length += end - at

    for change in sorted(changes, key=lambda c: (c.span.start, c.span.end)):
        keep(change.span.start)
        if change.text:
            parts.append(change.text)
            pieces.append(TextPiece(length, length + len(change.text), change.at or change.span, False))
            length += len(change.text)
        at = change.span.end
    keep(len(text))
    return "".join(parts), Mapping(tuple(pieces))


def compared(original: str, made: str) -> Mapping:
    """The way back from a text of which only the original is known: equal lines first, then equal words.

    A Jinja tag of the original is one word. What was put between two words is at the nearest tag.
    """
    pieces: list[TextPiece] = []
    tags = [Span(*m.span()) for m in _TAGS.finditer(original)]
    lines, made_lines = original.splitlines(keepends=True), made.splitlines(keepends=True)
    for (a, b), (c, d), same in _blocks(lines, made_lines):
        if same or d - c > _MOST_TOKENS or b - a > _MOST_TOKENS:
            pieces.append(TextPiece(c, d, _origin(original, Span(a, b), tags, same), same))
            continue
        words = [m[0] for m in _TOKEN.finditer(original, a, b)]
        made_words = [m[0] for m in _TOKEN.finditer(made, c, d)]
        for (e, f), (g, h), equal in _blocks(words, made_words):
            pieces.append(TextPiece(c + g, c + h, _origin(original, Span(a + e, a + f), tags, equal), equal))
    return Mapping(tuple(piece for piece in pieces if piece.end > piece.start))


def _origin(original: str, span: Span, tags: Sequence[Span], same: bool) -> Span:
    """Where a piece comes from: without white space around it, and for what was put in, the nearest tag."""
    if same:
        return span
    text = original[span.start : span.end]
    if text.strip():
        start = span.start + len(text) - len(text.lstrip())
        return Span(start, start + len(text.strip()))
    if not tags:
        return span
    return min(tags, key=lambda tag: (min(abs(tag.end - span.start), abs(tag.start - span.start)), tag.start))


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[tuple[int, int], tuple[int, int], bool]]:
    """Ranges of characters (old, new, whether they are equal) from sequences of texts.

    In long sequences, texts that stand in more than one of a hundred places begin no match: each pair of them would be
    looked at, which takes minutes for some thousand lines.
    """
    ends_old, ends_new = _ends(old), _ends(new)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=len(old) > 1_000).get_opcodes():
        yield (ends_old[a], ends_old[b]), (ends_new[c], ends_new[d]), tag == "equal"


def _ends(texts: Sequence[str]) -> list[int]:
    found = [0]
    for text in texts:
        found.append(found[-1] + len(text))
    return found
