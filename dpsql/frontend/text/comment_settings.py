"""What a comment of dpsql sets: `dpsql: epsilon=0.5, delta=1e-9`. One reader for all who take a query.

It needs no parser of SQL, so that a server's front can use it. Comments for the check (`ignore[…]`, `parameters(…)`)
set nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

NAMES: Final = (
    "epsilon",
    "delta",
    "rho",
    "allow_dearer",
    "coverage",
    "consistent_totals",
    "limits",
    "anyway",
    "notices",
    "intervals",
)
"""What a comment may say; each may be written with `dpsql.` before it. The last two are about how a server answers."""

FORM: Final = "/* dpsql: epsilon=0.5, delta=1e-9 */ SELECT …"
_OURS: Final = re.compile(r"\s*dpsql\s*:(?!\s*(?:ignore|parameters)\b)", re.IGNORECASE)
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
