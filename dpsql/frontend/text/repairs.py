"""Repairs that a program can make: from a refusal of a query to the edits of its text, where there is one clear answer.

Safe repairs say the same in other words: the engine gives the same rows for the text before and after
(tests/diagnostics/test_fixes.py runs both). All others guess what was meant, and a person has to confirm them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import Token, TokenType

from dpsql.core.ir.short_text import identifier, qualified
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Mark, Source, Span
from dpsql.frontend.parse import UNREADABLE

_SAME = {"mean": "AVG"}
"""Functions that are another one's second name in the engine."""
_ANY_ORDER = frozenset(
    {"SUM", "AVG", "COUNT", "VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP"}
)
"""Aggregates that are the same in whatever order the rows come."""

Rule = Callable[[Diagnostic, str, Sequence[Token]], Fix | None]


def with_fixes(diagnostics: Sequence[Diagnostic], source: Source, dialect: str = "duckdb") -> tuple[Diagnostic, ...]:
    """The findings about a query, each with the repair that a program can make of it, if there is one."""
    about = [d.fix is None and d.source is not None and d.source.text == source.text for d in diagnostics]
    if not any(about):
        return tuple(diagnostics)
    try:
        tokens: list[Token] = sqlglot.tokenize(source.text + "\n", read=dialect)
    except UNREADABLE:
        tokens = []
    return tuple(
        _fixed(d, _fix(d, source.text, tokens)) if own else d for d, own in zip(diagnostics, about, strict=True)
    )


def _fixed(diagnostic: Diagnostic, fix: Fix | None) -> Diagnostic:
    """The finding with its fix; what the fix does is better advice than where all functions are listed."""
    if fix is not None and diagnostic.mark in (Mark.LISTED, Mark.ORDER_WITHIN):
        return replace(diagnostic, fix=fix, help=(fix.message,))
    return replace(diagnostic, fix=fix)


def alternatives(diagnostic: Diagnostic, source: Source, dialect: str = "duckdb") -> tuple[Fix, ...]:
    """The guesses at a finding where several names are near: one for each, for somebody to choose from."""
    if diagnostic.fix is not None or len(diagnostic.meant) < 2:
        return ()
    each = [replace(diagnostic, meant=(name,)) for name in diagnostic.meant]
    return tuple(d.fix for d in with_fixes(each, source, dialect) if d.fix is not None)


def _fix(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    if diagnostic.span is None:
        return None
    found = (
        rule(diagnostic, text, tokens)
        for code, mark, rule in _RULES
        if code == diagnostic.code and mark in (None, diagnostic.mark)
    )
    return next((fix for fix in found if fix is not None), None)


# --- safe: the same meaning in other words ---------------------------------------------------------------------------


def _recursive(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """WITH RECURSIVE, where no query reads itself → WITH."""
    places = [i for i in range(len(tokens)) if tokens[i].text.upper() == "RECURSIVE" and _word(tokens, i - 1) == "WITH"]
    if len(places) != 1:
        return None
    at = places[0]
    for i in range(at + 1, len(tokens)):
        if _word(tokens, i) == "AS" or (_is_open(tokens, i) and _word(tokens, i - 1) not in ("AS", "MATERIALIZED")):
            continue
        # A name, at the beginning or after a comma outside of all brackets, is a WITH query's.
        body = next((j for j in range(i, len(tokens)) if _is_open(tokens, j) and _opens_body(tokens, j)), None)
        end = None if body is None else _closing(tokens, body)
        if end is None:
            return None
        name = tokens[i].text.lower()
        if sum(t.text.lower() == name for t in tokens[at : end + 1]) != 1:
            return None
        if end + 1 >= len(tokens) or tokens[end + 1].token_type is not TokenType.COMMA:
            return Fix("leave RECURSIVE out", (_gone(text, tokens, at, at),), safe=True)
        return None  # several queries: left to a person
    return None


def _unsorted(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """ORDER BY of a query in brackets whose rows are read in any order: without it.

    Only where nothing can see the order: no window, and no LIMIT except behind an ORDER BY of its own.
    """
    place = diagnostic.span or Span(0, 0)
    before = [i for i in range(len(tokens)) if tokens[i].start < place.start and _sorts(tokens, i)]
    if not before or any(t.text.upper() == "OVER" for t in tokens):
        return None
    at = before[-1]
    end = _end_of_clause(tokens, at)
    if end is None or _cut_unsorted(tokens, at):
        return None
    return Fix("leave ORDER BY out: its order is lost", (_gone(text, tokens, at, end - 1),), safe=True)


def _in_any_order(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """SUM(x ORDER BY y) → SUM(x)."""
    first, last = _covered(diagnostic, tokens)
    places = [i for i in range(first, last + 1) if _sorts(tokens, i)]
    if len(places) != 1:
        return None
    at = places[0]
    end, opening = _end_of_clause(tokens, at), _opening(tokens, at)
    if end is None or opening is None or tokens[opening - 1].text.upper() not in _ANY_ORDER:
        return None
    edit = _gone(text, tokens, at, end - 1)
    return Fix("leave ORDER BY out: the order changes nothing", (edit,), safe=_keeps_name(tokens, at))


def _same_function(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    first, _ = _covered(diagnostic, tokens)
    if first + 2 >= len(tokens) or tokens[first + 1].text != "(":
        return None
    name = tokens[first].text.lower()
    if name in _SAME:
        written = _cased(_SAME[name], tokens[first].text)
        return Fix(f"write {written}", (_put(tokens, first, first, written),), safe=_keeps_name(tokens, first))
    if name == "count_star" and tokens[first + 2].text == ")":
        written = _cased("COUNT(*)", tokens[first].text)
        return Fix(f"write {written}", (_put(tokens, first, first + 2, written),), safe=_keeps_name(tokens, first))
    return None


# --- guesses ---------------------------------------------------------------------------------------------------------


def _near_name(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """A column, table or function that is nearly called like exactly one that there is."""
    meant = _meant(diagnostic)
    if meant is None:
        return None
    first, last = _covered(diagnostic, tokens)
    if first > last:
        return None
    if diagnostic.code == "DP103":
        return Fix(f"did you mean {identifier(meant)}?", (_put(tokens, last, last, identifier(meant)),))
    if diagnostic.code == "DP105":
        if _word(tokens, first + 1) != "(":
            return None
        return Fix(f"did you mean {meant}?", (_put(tokens, first, first, _cased(meant, tokens[first].text)),))
    end = first
    while end + 2 <= last and tokens[end + 1].token_type is TokenType.DOT:
        end += 2
    return Fix(f"did you mean {qualified(meant)}?", (_put(tokens, first, end, qualified(meant)),))


def _text_in_quotes(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """name = "Anna" → name = 'Anna'."""
    span = diagnostic.span
    if span is None or not text.startswith('"', span.start) or text[span.end - 1 : span.end] != '"':
        return None
    name, meant = text[span.start + 1 : span.end - 1].replace('""', '"'), _meant(diagnostic)
    likely = meant is not None and difflib.SequenceMatcher(None, name.lower(), meant.lower()).ratio() >= 0.8
    if likely:
        return None
    written = "'" + name.replace("'", "''") + "'"
    return Fix("texts stand in single quotes", (Edit(span, written),))


def _keyword(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """SELCT → SELECT."""
    meant, span = _meant(diagnostic), diagnostic.span
    if meant is None or span is None:
        return None
    written = text[span.start : span.end]
    if written.upper() == meant + "BY":
        meant += " BY"
    return Fix(f"did you mean {meant}?", (Edit(span, _cased(meant, written)),))


def _backticks(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    if "'" in text or text.count("`") % 2 or '"' in text:
        return None
    edits = [Edit(Span(m.start(), m.end()), f'"{m[1]}"') for m in re.finditer(r"`([^`\n]+)`", text)]
    return Fix("names stand in double quotes", tuple(edits)) if edits else None


def _top(diagnostic: Diagnostic, text: str, tokens: Sequence[Token]) -> Fix | None:
    """SELECT TOP 3 … → SELECT … LIMIT 3."""
    if not tokens or _words(tokens, 0, 2) != ["SELECT", "TOP"]:
        return None
    counted = [i for i in range(2, min(4, len(tokens))) if tokens[i].token_type is TokenType.NUMBER]
    if not counted or any(t.text.upper() == "LIMIT" for t in tokens):
        return None
    end = counted[0] + (tokens[2].text == "(")
    last = len(tokens) - 1 - (tokens[-1].token_type is TokenType.SEMICOLON)
    behind = Span(tokens[last].end + 1, tokens[last].end + 1)
    limit = Edit(behind, _cased(f" LIMIT {tokens[counted[0]].text}", tokens[0].text))
    return Fix("write LIMIT at the end", (_gone(text, tokens, 1, end), limit))


_RULES: tuple[tuple[str, Mark | None, Rule], ...] = (
    ("DP010", None, _keyword),
    ("DP010", Mark.BACKTICKS, _backticks),
    ("DP010", Mark.TOP, _top),
    ("DP101", Mark.RECURSIVE, _recursive),
    ("DP101", Mark.ORDER_WITHIN, _in_any_order),
    ("DP102", None, _near_name),
    ("DP103", Mark.PERHAPS_TEXT, _text_in_quotes),
    ("DP103", None, _near_name),
    ("DP105", None, _same_function),
    ("DP105", None, _near_name),
    ("DP112", Mark.ORDER_OF_ROWS, _unsorted),
)
"""Which refusals a repair is tried for, by code and mark (None: whatever it is); the first that gives one counts."""


# --- tokens ----------------------------------------------------------------------------------------------------------


def _meant(diagnostic: Diagnostic) -> str | None:
    """The one name that a refusal proposes."""
    return diagnostic.meant[0] if len(diagnostic.meant) == 1 else None


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text.upper() if 0 <= at < len(tokens) else ""


def _words(tokens: Sequence[Token], at: int, count: int) -> list[str]:
    return [t.text.upper() for t in tokens[at : at + count]]


def _covered(diagnostic: Diagnostic, tokens: Sequence[Token]) -> tuple[int, int]:
    """The first and the last token within the finding's span; the first is the greater one if there is none."""
    span = diagnostic.span or Span(0, 0)
    inside = [i for i, t in enumerate(tokens) if span.start <= t.start and t.end < span.end]
    return (inside[0], inside[-1]) if inside else (len(tokens), -1)


def _put(tokens: Sequence[Token], first: int, last: int, text: str) -> Edit:
    return Edit(Span(tokens[first].start, tokens[last].end + 1), text)


def _gone(text: str, tokens: Sequence[Token], first: int, last: int) -> Edit:
    """Nothing in place of these tokens and the spaces in front of them."""
    start = len(text[: tokens[first].start].rstrip())
    if first > 0 and start > tokens[first - 1].end + 1:
        start = tokens[first].start  # a comment stands between: its line has to end
    return Edit(Span(start, tokens[last].end + 1), "")


def _is_open(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].token_type is TokenType.L_PAREN


def _opens_body(tokens: Sequence[Token], at: int) -> bool:
    return _word(tokens, at - 1) in ("AS", "MATERIALIZED")


_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def _closing(tokens: Sequence[Token], at: int) -> int | None:
    """The bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].token_type in _OPENING) - (tokens[i].token_type in _CLOSING)
        if depth == 0:
            return i
    return None


def _opening(tokens: Sequence[Token], at: int) -> int | None:
    """The innermost bracket that is open at `at`."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (tokens[i].token_type in _CLOSING) - (tokens[i].token_type in _OPENING)
        if depth < 0:
            return i
    return None


def _sorts(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].token_type is TokenType.ORDER_BY or _words(tokens, at, 2) == ["ORDER", "BY"]


def _end_of_clause(tokens: Sequence[Token], at: int) -> int | None:
    """The bracket right behind an ORDER BY clause; None if it stands in none, or if another clause follows."""
    opening = _opening(tokens, at)
    end = None if opening is None else _closing(tokens, opening)
    if end is None:
        return None
    depth = 0
    for token in tokens[at:end]:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and token.text.upper() in ("LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT"):
            return None
    return end


def _cut_unsorted(tokens: Sequence[Token], gone: int) -> bool:
    """Whether a LIMIT, OFFSET or FETCH may see the order of the ORDER BY at `gone`: it has no ORDER BY of its own."""
    cuts = [i for i, t in enumerate(tokens) if t.text.upper() in ("LIMIT", "OFFSET", "FETCH")]
    sorts = [i for i in range(len(tokens)) if _sorts(tokens, i) and i != gone]
    return any(not any(s < c and _opening(tokens, s) == _opening(tokens, c) for s in sorts) for c in cuts)


def _keeps_name(tokens: Sequence[Token], at: int) -> bool:
    """Whether no column is called by the text at `at`: it stands outside of SELECT lists, or has a name given by AS."""
    place: int | None = at
    while place is not None:
        opening = _opening(tokens, place)
        clause = next(
            (_word(tokens, i) for i in range(place, -1 if opening is None else opening, -1)
             if _word(tokens, i) in _BEGIN and _opening(tokens, i) == opening),
            "",
        )  # fmt: skip
        if clause:
            return clause != "SELECT" or _is_named(tokens, place)
        place = opening
    return False


_BEGIN = ("SELECT", "FROM", "WHERE", "HAVING", "QUALIFY", "ON")


def _is_named(tokens: Sequence[Token], at: int) -> bool:
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].token_type in _OPENING) - (tokens[i].token_type in _CLOSING)
        if depth < 0 or (depth == 0 and (tokens[i].token_type is TokenType.COMMA or _word(tokens, i) == "FROM")):
            return False
        if depth == 0 and _word(tokens, i) == "AS":
            return True
    return False


def _cased(word: str, like: str) -> str:
    """A keyword or function in the letter case of what it replaces."""
    return word.lower() if like == like.lower() else word.upper()
