"""What else is wrong with a refused query: what was refused is left out of its text, and the rest is looked at again.

Found this way are only mistakes that the parts left out have nothing to do with: names that do not exist, and values
without bounds. Nobody runs the changed text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Source, Span
from dpsql.diagnostics.together import MOST

Look = Callable[[Source], tuple[Diagnostic, ...]]
"""The refusals of a text, with their fixes; none if it is accepted."""

ROUNDS = 6
"""How often a query is looked at again at most."""

_REPLACED = frozenset({"DP103", "DP104", "DP105", "DP106", "DP108", "DP114", "DP115"})
"""Refused expressions: a NULL stands for them."""
_INDEPENDENT = frozenset({"DP102", "DP103", "DP104", "DP105", "DP201", "DP202", "DP203"})
"""What can be said of one part whatever the others are."""
_SPACE = r"\s|--[^\n]*\n|(?>/\*.*?\*/)"
"""A space or a comment, read in one way only: else the time would double with each comment."""
_SUMMED = re.compile(rf"(?:SUM|AVG|VAR\w*|STDDEV\w*)(?:{_SPACE})*\((?:DISTINCT|{_SPACE})*\Z", re.IGNORECASE)
"""What stands in front of an aggregate's argument, which has to be a number."""
_LAST_NAME = re.compile(r'(\w+)"?\Z')
_NO_ALIAS = "|".join(
    ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ON", "USING", "WHERE", "GROUP",
     "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT")
)  # fmt: skip
_ALIAS = re.compile(rf"(?:{_SPACE})+(?:AS\b|(?!(?:{_NO_ALIAS})\b)[^\W\d]\w*|\")", re.IGNORECASE | re.DOTALL)
"""A name behind a table's name."""


def further(found: Sequence[Diagnostic], source: Source, look: Look) -> tuple[Diagnostic, ...]:
    """`found`, the refusals of `source`, and what can be found besides, in the order of the text."""
    everything, pending, text = list(found), list(found), source.text
    origin: list[int | None] = list(range(len(text)))
    left_out: set[str] = set()
    for _ in range(ROUNDS):
        edits = [_placeholder(d, text) for d in pending if d.source is not None and d.source.text == text]
        if len(everything) >= MOST or not edits or len(edits) < len(pending) or None in edits:
            break
        left_out |= {name for d in pending for name in _names(d, text)}
        text, origin = _applied([e for e in edits if e is not None], text, origin)
        pending = []
        for d in look(Source(text, source.name)):
            moved = _moved(d, origin, source)
            if moved is None or d.code not in _INDEPENDENT or not left_out.isdisjoint(_names(d, text)):
                continue
            if all((d.code, d.message) != (e.code, e.message) and moved.span != e.span for e in everything):
                pending.append(d)
                everything.append(moved)
    if len(everything) == len(found):
        return tuple(found)
    return tuple(sorted(everything, key=lambda d: -1 if d.span is None else d.span.start)[:MOST])


def _placeholder(diagnostic: Diagnostic, text: str) -> Edit | None:
    """What stands for the refused part; None if nothing can."""
    if diagnostic.span is None:
        return None
    if diagnostic.code in _REPLACED:
        summed = _SUMMED.search(text, 0, diagnostic.span.start) is not None
        return Edit(diagnostic.span, "CAST(NULL AS INTEGER)" if summed else "NULL")
    if diagnostic.code == "DP102" and diagnostic.fix is not None and len(diagnostic.fix.edits) == 1:
        (edit,) = diagnostic.fix.edits
        if _ALIAS.match(text, edit.span.end):
            return edit
        return Edit(edit.span, f"{edit.text} AS {text[edit.span.start : edit.span.end].rpartition('.')[2]}")
    return None


def _names(diagnostic: Diagnostic, text: str) -> tuple[str, ...]:
    """The name that a finding about a column ends with, in small letters."""
    if diagnostic.span is None or diagnostic.code not in ("DP103", "DP104"):
        return ()
    name = _LAST_NAME.search(text[diagnostic.span.start : diagnostic.span.end])
    return () if name is None else (name[1].lower(),)


def _applied(edits: Sequence[Edit], text: str, origin: list[int | None]) -> tuple[str, list[int | None]]:
    """The text with edits that do not overlap (the first wins), and where each of its characters comes from."""
    pieces: list[str] = []
    places: list[int | None] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.span.start, -e.span.end)):
        if edit.span.start < at:
            continue
        pieces += [text[at : edit.span.start], edit.text]
        places += [*origin[at : edit.span.start], *[None] * len(edit.text)]
        at = edit.span.end
    return "".join([*pieces, text[at:]]), places + origin[at:]


def _moved(diagnostic: Diagnostic, origin: Sequence[int | None], source: Source) -> Diagnostic | None:
    """The finding where it stands in the source; None if it is about what was left out."""

    def back(span: Span) -> Span | None:
        places = [at for at in origin[span.start : span.end] if at is not None]
        if not places or len(places) < span.end - span.start:
            return None
        return Span(places[0], places[-1] + 1)

    span = None if diagnostic.span is None else back(diagnostic.span)
    if span is None:
        return None
    fix = diagnostic.fix
    if fix is not None:
        edits = [Edit(place, e.text) for e in fix.edits if (place := back(e.span)) is not None]
        fix = replace(fix, edits=tuple(edits)) if len(edits) == len(fix.edits) else None
    return replace(diagnostic, source=source, span=span, fix=fix)
