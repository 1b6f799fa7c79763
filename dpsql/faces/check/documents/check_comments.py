"""`-- dpsql: WORD …`: the comments of a text that are for the check, and the statement that each is about.

It is about the statement that it stands in, beside on the same line, or directly above (comments may stand between,
an empty line may not). What its words mean is the business of the room of its first word:
faces/check/examine/ignores.py, parameter_comments.py.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsql.diagnostics.diagnostic import Diagnostic, Span

if TYPE_CHECKING:
    from dpsql.frontend.text.split import Parts

PARAMETERS, IGNORE = "parameters", "ignore"
"""The words of comments that give values, and that hide findings."""

_MARK = re.compile(r"(?:--|#|//|/\*)\s*dpsql\s*:\s*(\w*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Directive:
    """One comment for the check, not understood yet.

    span: where it stands, with its marks. statement: the number of the one it is about, None: there is none.
    word: its first word in small letters, "" if there is none. body: what stands behind the word, without an end mark.
    """

    span: Span
    statement: int | None
    word: str
    body: Span


@dataclass(frozen=True, slots=True)
class Remark:
    """What a comment for the check says, beside the values that it gives.

    span, statement: as of its directive. codes: each code that it asks to be ignored, and where that stands.
    mistakes: what is wrong with it, as findings (source None: in the text).
    """

    span: Span
    statement: int | None
    codes: tuple[tuple[str, Span], ...]
    mistakes: tuple[Diagnostic, ...]


def directives_in(text: str, parts: Parts) -> tuple[Directive, ...]:
    """The comments for the check, in order. parts: those of this text."""
    statements = [Span(part.start, part.end) for part in parts.statements]
    comments = [Span(c.start, c.start + len(c.text)) for c in parts.comments]
    found = []
    for comment, number in zip(comments, _about(text, statements, comments), strict=True):
        mark = _MARK.match(text, comment.start, comment.end)
        if mark is not None:
            closed = text.startswith("/*", comment.start) and text.endswith("*/", comment.start, comment.end)
            body = Span(mark.end(), comment.end - 2 if closed else comment.end)
            found.append(Directive(comment, number, mark[1].lower(), body))
    return tuple(found)


def _about(text: str, statements: Sequence[Span], comments: Sequence[Span]) -> Iterator[int | None]:
    """Of each comment the number of the statement that it is about; None: of none."""
    starts = [span.start for span in statements]
    followers = [bisect_right(starts, comment.start) for comment in comments]  # the first statement behind each
    direct = _direct(text, statements, comments, followers)
    for comment, after, is_direct in zip(comments, followers, direct, strict=True):
        above = after - 1 if after else None
        if above is not None and comment.start < statements[above].end:
            yield above
            continue
        if above is not None and text.find("\n", statements[above].end, comment.start) >= 0:
            above = None
        if is_direct and (above is None or text.find("\n", comment.end, starts[after]) < 0):
            yield after
        else:
            yield above


def _direct(text: str, statements: Sequence[Span], comments: Sequence[Span], followers: Sequence[int]) -> list[bool]:
    """Of each comment whether nothing stands between it and the statement behind it but comments, and no empty line.

    From the last to the first: one that is followed by another comment is as near as that one.
    """
    found = [False] * len(comments)
    for i in reversed(range(len(comments))):
        if followers[i] == len(statements):
            continue
        stop = statements[followers[i]].start
        near = True
        if i + 1 < len(comments) and comments[i + 1].start < stop:
            stop, near = comments[i + 1].start, found[i + 1]
        found[i] = near and all(line.strip() for line in text[comments[i].end : stop].split("\n")[1:-1])
    return found
