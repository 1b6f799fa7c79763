"""Settings in a comment before a query: `/* dpsql: epsilon=0.5, delta=1e-9 */ SELECT …`, or `-- dpsql: epsilon=0.5`.

Read here for all who take a query: Python, the commands, the shell, the check and servers. What such a comment says
holds for its query alone. Comments for the check (`ignore[…]`, `parameters(…)`) are none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.split import Comment, split_text

NAMES: Final = (
    "epsilon",
    "delta",
    "rho",
    "allow_dearer",
    "coverage",
    "consistent_totals",
    "limits",
    "notices",
    "intervals",
)
"""What a comment may say; each may be written with `dpsql.` before it. The last two are about how a server answers."""

FORM: Final = "/* dpsql: epsilon=0.5, delta=1e-9 */ SELECT …"
_OURS: Final = re.compile(r"\s*dpsql\s*:(?!\s*(?:ignore|parameters)\b)", re.IGNORECASE)
_MARKS: Final = re.compile(r"/\*|--|//|#")
_PAIR: Final = re.compile(r"""[\s,]*([^\s,=]+)\s*=\s*(?:'([^']*)'|"([^"]*)"|([^\s,'"]+))(?=[\s,]|\Z)""")
_REST: Final = re.compile(r"[\s,]*")


class Said(NamedTuple):
    """One setting, as it was written. at: where its name stands in the text."""

    name: str
    value: str
    at: int


class Misread(Exception):
    """A comment of dpsql that says nothing. unknown: it is name=value, and there is no such name."""

    def __init__(self, message: str, at: int, *, unknown: bool = False) -> None:
        super().__init__(message)
        self.at, self.unknown = at, unknown


def said_in(comment: str, start: int) -> Iterator[Said]:
    """What a comment says, without its marks; nothing if it is not dpsql's. start: where it begins. Raises Misread."""
    ours = _OURS.match(comment)
    if ours is None:
        return
    at = ours.end()
    while pair := _PAIR.match(comment, at):
        at = pair.end()
        name = pair[1].lower().removeprefix("dpsql.")
        if name not in NAMES:
            message = f'a comment of dpsql has no "{pair[1][:100]}"; it has {", ".join(NAMES)}'
            raise Misread(message, start + pair.start(1), unknown=True)
        yield Said(name, next(value for value in pair.groups()[1:] if value is not None), start + pair.start(1))
    rest = _REST.match(comment, at)
    assert rest is not None
    if rest.end() < len(comment):
        wrong = comment[rest.end() :].split()[0][:100]
        raise Misread(f'"{wrong}" in a comment of dpsql is no name=value', start + rest.end())


def require_once(said: Sequence[Said]) -> None:
    """Raise Misread if something is said twice, or both ε and ρ."""
    names = [each.name for each in said]
    for each in said:
        if names.count(each.name) > 1 or (each.name == "rho" and "epsilon" in names):
            both = "epsilon and rho are" if "rho" in names and "epsilon" in names else f"{each.name} is"
            raise Misread(f"{both} said more than once in comments of one statement", each.at)


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
