"""Settings in a comment before a query: `/* dpsql: epsilon=0.5, delta=1e-9 */ SELECT …`, or `-- dpsql: epsilon=0.5`.

Found here for all who take a query: Python, the commands, the shell and the check; servers find them by their own
tokens. What such a comment says (comment_settings.py) holds for its query alone.
"""

from __future__ import annotations

import re
from typing import Final

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.comment_settings import FORM, Misread, Said, require_once, said_in
from dpsql.frontend.text.split import Comment, split_text

_MARKS: Final = re.compile(r"/\*|--|//|#")


def settings_before(source: Source, dialect: str = "duckdb") -> tuple[Said, ...]:
    """What the comments before the one query of a text say.

    Raises Rejected DP902 at the place of a comment that says nothing, or that stands elsewhere and so would not hold.
    """
    if "dpsql" not in source.text.lower():  # the usual case is not read a second time
        return ()
    parts = split_text(source.text, dialect)
    begins = parts.statements[0].start if parts.statements else 0
    found: list[Said] = []
    try:
        for comment in parts.comments:
            here = tuple(said_in(*_inside(comment)))
            if here and comment.start > begins:
                raise Misread("this comment does not stand before the query, and would not hold", here[0].at)
            found += here
        require_once(found)
    except Misread as wrong:
        raise misread(wrong, source) from None
    return tuple(found)


def refuse_settings(source: Source, why: str, repair: str, dialect: str = "duckdb") -> None:
    """Raise Rejected DP902 if a comment of a text says something, which nobody would heed. why: in words."""
    if said := settings_before(source, dialect):
        raise reject("DP902", why, span=Span(said[0].at, said[0].at + len(said[0].name)), source=source, help=[repair])


def misread(wrong: Misread, source: Source) -> Rejected:
    """The refusal of a query for what its comment says."""
    end = re.compile(r"[^\s=,]*").match(source.text, wrong.at)
    assert end is not None
    span = Span(wrong.at, max(end.end(), wrong.at + 1))
    help = [FORM, "for the check:  -- dpsql: ignore[DP301] why it is right here", "else write something before  dpsql:"]
    return reject("DP902", str(wrong), span=span, source=source, help=help)


def _inside(comment: Comment) -> tuple[str, int]:
    """A comment without its marks, and where what it says begins."""
    marks = _MARKS.match(comment.text)
    assert marks is not None
    text = comment.text.removesuffix("*/") if marks[0] == "/*" else comment.text
    return text[marks.end() :], comment.start + marks.end()
