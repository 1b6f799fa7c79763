"""`-- dpsql: ignore[DP301] reason`: what such a comment says, and what it hides of the statement it is about.

A comment that says it wrongly, hides nothing, or asks for what cannot be ignored is a DP902.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Span
from dpsql.faces.check.documents.check_comments import IGNORE, PARAMETERS, Directive, Remark
from dpsql.faces.check.examine.selection import is_protected
from dpsql.frontend.text.comment_settings import FORM as SETTINGS

_CODES = re.compile(r"\s*\[([^\]]*)\]")
_FORM = "write  -- dpsql: ignore[DP301] why it is right here"


def read_ignores(text: str, directives: Sequence[Directive], queries: Sequence[Span]) -> tuple[Remark, ...]:
    """What those comments say that do not give values, in order. queries: what is read as one query each, whose other
    comments of dpsql are its settings, or why it is refused (frontend/text/query_comments.py)."""
    return tuple(
        _read(text, directive)
        for directive in directives
        if directive.word == IGNORE
        or (directive.word != PARAMETERS and not any(q.start <= directive.span.start < q.end for q in queries))
    )


def apply_ignores(
    remarks: Sequence[Remark], statement: int, diagnostics: Sequence[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings of one statement that are left, and the DP902 of ignores that hide none of them.

    A statement that is refused for what cannot be ignored was not looked at beyond that: nothing is called unused.
    """
    wanted = [
        (code, span)
        for remark in remarks
        if remark.statement == statement
        for code, span in remark.codes
        if not is_protected(code)
    ]
    codes = {code for code, _ in wanted}
    left = [d for d in diagnostics if d.code not in codes or is_protected(d.code)]
    if any(is_protected(d.code) for d in left):
        return left, []
    found = {d.code for d in diagnostics}
    unused = [
        _wrong(span, f"{code} is ignored here, and there is no such finding", "remove the code, or the comment")
        for code, span in wanted
        if code not in found
    ]
    return left, unused


def _read(text: str, directive: Directive) -> Remark:
    comment, statement = directive.span, directive.statement
    listed = _CODES.match(text, directive.body.start, directive.body.end) if directive.word == IGNORE else None
    if listed is None:
        unknown = _wrong(
            comment,
            "this comment says nothing that dpsql knows here",
            f"{_FORM}  or  -- dpsql: parameters(lo = 18);  settings stand before their query:  {SETTINGS}",
        )
        return Remark(comment, statement, (), (unknown,))
    codes: list[tuple[str, Span]] = []
    mistakes: list[Diagnostic] = []
    for code, span in _words(listed[1], listed.start(1)):
        mistake = _mistake(code, span)
        if mistake is not None:
            mistakes.append(mistake)
        else:
            codes.append((code, span))
    if not codes and not mistakes:
        mistakes.append(_wrong(comment, "this comment ignores no code", _FORM))
    if not re.search(r"\w", text[listed.end() : directive.body.end]):
        mistakes.append(_wrong(comment, "this comment gives no reason", "say behind the bracket why it is right here"))
        codes = []
    elif statement is None and codes:
        mistakes.append(
            _wrong(
                comment,
                "this comment is about no statement",
                "put it into the statement, at the end of its line, or directly above it",
            )
        )
    return Remark(comment, statement, tuple(codes), tuple(mistakes))


def _mistake(code: str, span: Span) -> Diagnostic | None:
    if code not in CODES:
        return _wrong(span, f"{code!r} is no code", "codes are written in full, such as DP301; see  dpsql rule CODE")
    if is_protected(code):
        return _wrong(
            span,
            f"{code} cannot be ignored: no noise would protect the answer, or the check could not be made",
            "repair the query, or leave the file out of the check",
        )
    return None


def _words(text: str, start: int) -> Iterator[tuple[str, Span]]:
    for match in re.finditer(r"[^,\s]+", text):
        yield match[0].upper(), Span(start + match.start(), start + match.end())


def _wrong(span: Span, message: str, repair: str) -> Diagnostic:
    return Diagnostic("DP902", message, None, span, help=(repair,))
