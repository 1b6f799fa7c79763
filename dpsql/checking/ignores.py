"""`-- dpsql: ignore[DP301] reason`: what such a comment says, which statement it is about, and what it hides.

It is about the statement that it stands in, beside on the same line, or directly above (comments may stand between,
an empty line may not). A comment that says it wrongly, hides nothing, or asks for what cannot be ignored is a DP902.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsql.checking.selection import is_protected
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Span

_MARK = re.compile(r"(?:--|#|//|/\*)\s*dpsql\s*:", re.IGNORECASE)
VALUES = re.compile(_MARK.pattern + r"\s*parameters\b", re.IGNORECASE)
"""How a comment with values begins: parameters.py reads it."""
_BODY = re.compile(r"\s*ignore\s*\[([^\]]*)\](.*?)(?:\*/)?\s*\Z", re.IGNORECASE | re.DOTALL)
_FORM = "write  -- dpsql: ignore[DP301] why it is right here"


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment. span: where it stands. statement: the number of the one it is about, None: there is none.

    codes: each code and where it stands. mistakes: what is wrong with it, as findings (source None: in the text).
    """

    span: Span
    statement: int | None
    codes: tuple[tuple[str, Span], ...]
    mistakes: tuple[Diagnostic, ...]


def read_ignores(text: str, statements: Sequence[Span], comments: Sequence[Span]) -> tuple[Ignore, ...]:
    """The comments of a text that are for the check, in order."""
    return tuple(
        _read(text, comment, about(text, comment, statements, comments))
        for comment in comments
        if _MARK.match(text, comment.start, comment.end) and not VALUES.match(text, comment.start, comment.end)
    )


def apply_ignores(
    ignores: Sequence[Ignore], statement: int, diagnostics: Sequence[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings of one statement that are left, and the DP902 of ignores that hide none of them.

    A statement that is refused for what cannot be ignored was not looked at beyond that: nothing is called unused.
    """
    wanted = [
        (code, span)
        for ignore in ignores
        if ignore.statement == statement
        for code, span in ignore.codes
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


def _read(text: str, comment: Span, statement: int | None) -> Ignore:
    mark = _MARK.match(text, comment.start, comment.end)
    assert mark is not None
    body = _BODY.match(text, mark.end(), comment.end)
    if body is None:
        return Ignore(
            comment,
            statement,
            (),
            (
                _wrong(
                    comment, "this comment says nothing that dpsql knows", f"{_FORM}  or  -- dpsql: parameters(lo = 18)"
                ),
            ),
        )
    codes: list[tuple[str, Span]] = []
    mistakes: list[Diagnostic] = []
    for code, span in _words(body[1], body.start(1)):
        mistake = _mistake(code, span)
        if mistake is not None:
            mistakes.append(mistake)
        else:
            codes.append((code, span))
    if not codes and not mistakes:
        mistakes.append(_wrong(comment, "this comment ignores no code", _FORM))
    if not re.search(r"\w", body[2]):
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
    return Ignore(comment, statement, tuple(codes), tuple(mistakes))


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


def about(text: str, comment: Span, statements: Sequence[Span], comments: Sequence[Span]) -> int | None:
    """The number of the statement that a comment is about; None: of none."""
    above: int | None = None
    for number, span in enumerate(statements):
        if span.start <= comment.start < span.end:
            return number
        if span.end <= comment.start:
            above = number if "\n" not in text[span.end : comment.start] else None
        elif _is_direct(text, comment, span, comments):
            between = text[comment.end : span.start]
            return number if above is None or "\n" not in between else above
        else:
            break
    return above


def _is_direct(text: str, comment: Span, statement: Span, comments: Sequence[Span]) -> bool:
    """Whether nothing stands between them but comments, and no empty line."""
    gap, at = [], comment.end
    for other in comments:
        if comment.end <= other.start and other.end <= statement.start:
            gap += [text[at : other.start], "x" * (other.end - other.start)]
            at = other.end
    lines = "".join([*gap, text[at : statement.start]]).split("\n")
    return all(line.strip() for line in lines[1:-1])


def _wrong(span: Span, message: str, repair: str) -> Diagnostic:
    return Diagnostic("DP902", message, None, span, help=(repair,))
