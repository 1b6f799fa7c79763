"""What a person meant whose text is no SQL: the parser's complaint in words, its place, and a repair."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

import sqlglot
from sqlglot import Token
from sqlglot.errors import ParseError

from dpsql.diagnostics.diagnostic import Mark, Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.spans import code_of

_BLANK = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
"""Spaces and comments in front of a statement."""


class SyntaxMistake(NamedTuple):
    """What a person sees in a text that no parser reads. meant: the one word that was."""

    message: str
    span: Span
    advice: str
    mark: Mark | None = None
    meant: tuple[str, ...] = ()

    def refusal(self, source: Source) -> Rejected:
        """The refusal of the text."""
        return reject(
            "DP010", f"syntax error: {self.message}", span=self.span, source=source, help=[self.advice], mark=self.mark,
            meant=self.meant,
        )  # fmt: skip


def whole_line(source: Source) -> Span:
    """The first line of the statement, comments in front of it apart."""
    blank = _BLANK.match(source.text)
    start = blank.end() if blank else 0
    if start >= len(source.text.rstrip()):
        start = 0  # nothing but comments: show them
    line = source.text[start:].split("\n", 1)[0].rstrip()
    return Span(start, start + max(1, len(line)))


def syntax_error(error: ParseError, source: Source, tokens: Sequence[Token]) -> Rejected:
    first = error.errors[0] if error.errors else {}
    description = str(first.get("description") or "the text cannot be read as SQL")
    # sqlglot describes tokens by their Python repr; people want to read where and what.
    description = re.sub(r"<Token .*", "the end of the text", description)
    missing = re.match(r"Required keyword: '\w+' missing for <class '[\w.]+\.(\w+)'>", description)
    if missing is not None:
        word = missing[1].upper()
        description = f"incomplete {word}" if re.search(rf"\b{word}\b", source.text.upper()) else "something is missing"
    highlight = str(first.get("highlight") or "")
    if description.startswith("Invalid expression") and highlight:
        description = f"{highlight} cannot stand here"
    start = len(str(first.get("start_context") or ""))
    # start_context is cut to 100 characters: find the same text in the source, counted by line and column.
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    lines = source.text.split("\n")
    offset = sum(len(text) + 1 for text in lines[: line - 1]) + column
    begin = max(0, offset - len(highlight)) if highlight else start
    end = min(begin + max(1, len(highlight)), len(source.text))  # `$1` counts as two tokens, and columns go astray
    span = Span(min(begin, end - 1), end) if highlight else whole_line(source)
    # Behind a comment of several lines its columns count from elsewhere, but so do those of its tokens.
    meant = [t for t in tokens if (t.line, t.col) == (line, column) and source.text[t.start : t.end + 1] == highlight]
    span = Span(meant[0].start, meant[0].end + 1) if len(meant) == 1 else span
    # Where the parser knows what is missing, nothing has to be guessed from the words around it.
    counted = missing is not None or "number of provided arguments" in description
    known = _batch(source) or _keyword_as_name(source, span) or _format_mark(source)
    known = known or (None if counted else _known_mistake(source, span))
    if known is not None:
        return known.refusal(source)
    if not (highlight and description.startswith(highlight)):
        description = description[:1].lower() + description[1:]
    advice = "look for a missing comma, bracket or keyword before this place"
    return SyntaxMistake(description, span, advice).refusal(source)


_CLAUSES = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "JOIN",
    "USING",
    "UNION",
    "BETWEEN",
    "QUALIFY",
)
_BATCH = re.compile(r"\s*(DP\s+BATCH)\b", re.IGNORECASE)
_KEYWORD_AS_NAME = re.compile(r"(?<![\w.\"])(UNION|EXCEPT|INTERSECT|HAVING)(?=\s*[,=<>)])", re.IGNORECASE)
_STATEMENTS = re.compile(
    r"ALTER|CREATE|DROP|FORCE|GRANT|INSERT|INSTALL|LOCK|RETURNING|REVOKE|ROLLBACK|UNCACHE", re.IGNORECASE
)
"""Keywords of the parser that stand in no query."""
_FORMAT_MARK = re.compile(r"(?:[=<>(,]|\b(?:AND|LIKE|BETWEEN))\s*(%(?:s|\((\w+)\)s)\b)", re.IGNORECASE)
_TOP = re.compile(r"\bSELECT\s+(?:DISTINCT\s+)?(TOP\s*\(?\s*(\d+)(?:\s*\))?)", re.IGNORECASE)


def _batch(source: Source) -> SyntaxMistake | None:
    """A batch where one query alone is taken, as by a cursor."""
    found = _BATCH.match(code_of(source.text))
    if found is None:
        return None
    return SyntaxMistake(
        "a batch is not one query, but several",
        Span(*found.span(1)),
        "in Python  con.batch_of(sql)  or  con.batch([…])",
    )


def _keyword_as_name(source: Source, stuck: Span) -> SyntaxMistake | None:
    """A keyword before a comma, a comparison or a closing bracket, or one of no query: a column of that name was meant.

    stuck: where the parser could not go on.
    """
    found = _KEYWORD_AS_NAME.search(code_of(source.text))
    if found is None and stuck.start > whole_line(source).start:
        found = _STATEMENTS.fullmatch(source.text, stuck.start, stuck.end)
    if found is None:
        return None
    what = f"{found[0]} is a keyword, and no name unless quoted"
    return SyntaxMistake(what, Span(*found.span()), f'write  "{found[0]}"')


def _format_mark(source: Source) -> SyntaxMistake | None:
    """A placeholder as psycopg and MySQL's drivers write it: `%s`, `%(name)s`, where no remainder can be meant."""
    found = _FORMAT_MARK.search(code_of(source.text))
    if found is None:
        return None
    named = f"${found[2]}  or  " if found[2] else ""
    return SyntaxMistake(f"{found[1]} is no placeholder here", Span(*found.span(1)), f"write  {named}?")


def misspelt(source: Source) -> Rejected | None:
    """The refusal of a statement whose first word is nearly one that begins a query; None of any other."""
    found = _misspelt(source)
    return None if found is None else found.refusal(source)


def _misspelt(source: Source) -> SyntaxMistake | None:
    word = re.compile(r"[A-Za-z_]+").match(source.text, whole_line(source).start)
    if word is None:
        return None
    close = difflib.get_close_matches(word[0].upper(), ("SELECT", "WITH", "FROM"), n=1, cutoff=0.7)
    if not close or close[0] == word[0].upper():
        return None
    return _meant(f"a query does not begin with {word[0]}", word, close[0])


def _meant(message: str, word: re.Match[str], meant: str) -> SyntaxMistake:
    return SyntaxMistake(message, Span(*word.span()), f"did you mean {meant}?", meant=(meant,))


def _known_mistake(source: Source, found: Span) -> SyntaxMistake | None:
    """What the text says to a person although no parser sees it: message, place and repair."""
    source = Source(code_of(source.text))  # words in comments and strings are no mistakes
    if (misspelt := _misspelt(source)) is not None:
        return misspelt
    if "`" in source.text[found.start : found.end]:
        quoted = (m for m in re.finditer(r"`[^`]*`?", source.text) if m.start() <= found.start < m.end())
        return SyntaxMistake(
            "names are not quoted with backticks here", next((Span(*m.span()) for m in quoted), found),
            'write  "name",  or name the dialect of the text: --dialect bigquery, in Python dialect="bigquery"',
            Mark.BACKTICKS,
        )  # fmt: skip
    bracket = re.compile(r"\[\w+\]").match(source.text, found.start)
    if bracket and re.search(r"\b(?:FROM|JOIN)\s*\Z", source.text[: found.start], re.IGNORECASE):
        return SyntaxMistake(
            "names are not quoted with brackets here", Span(*bracket.span()),
            'write  "name",  or name the dialect of the text: --dialect tsql, in Python dialect="tsql"',
        )  # fmt: skip
    hash_sign = re.compile(r"\w*\s*(#)").match(source.text, found.start)
    if hash_sign:
        return SyntaxMistake("# does not begin a comment", Span(*hash_sign.span(1)), "write  --")
    top = _TOP.search(source.text)
    if top and top.start(1) < found.end:
        limit = f"write  LIMIT {top.group(2)}  at the end"
        return SyntaxMistake("there is no TOP", Span(*top.span(1)), limit, Mark.TOP)
    before = list(re.finditer(r"\w+", source.text[: found.start]))[-1:]
    here = re.compile(r"\w+").match(source.text, found.start)
    for word in (*before, *([here] if here else [])):
        close = difflib.get_close_matches(word.group(0).upper(), _CLAUSES, n=1, cutoff=0.7)
        if close and word.group(0).upper() not in (*sqlglot.Tokenizer.KEYWORDS, *_CLAUSES):
            return _meant(f"{word.group(0)} cannot stand here", word, close[0])
    return None
