"""The query of a counter with the period put in: as one more key, and as the days that are read.

    SELECT station, COUNT(*) AS n FROM trips GROUP BY station
        →  SELECT trips.day, station, COUNT(*) AS n FROM trips WHERE trips.day >= … AND trips.day <= … GROUP BY
           trips.day, station

It is text, and nothing rests on it: what the query reads and how it groups is found again in its plan.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.frontend.text.lexer import RESERVED, Token, tokens
from dpsql.frontend.text.quoted_names import quoted

_REFUSED = frozenset(
    {"HAVING", "ORDER", "LIMIT", "OFFSET", "QUALIFY", "UNION", "INTERSECT", "EXCEPT", "WINDOW", "FETCH"}
)
_GROUPINGS = frozenset({"ROLLUP", "CUBE", "GROUPING"})


@dataclass(frozen=True, slots=True)
class CountedQuery:
    """A query of which it is known where its clauses stand.

    table: the growing one that it reads. day: its day, as the query names it. items, where, group: places in the text:
    of what is selected; of WHERE's condition, or where it would stand, twice; of what it groups by, or None.
    """

    sql: str
    table: str
    day: str
    items: int
    where: tuple[int, int]
    has_where: bool
    group: int | None

    def of(self, first: dt.date, last: dt.date) -> str:
        """The query of these days, grouped by each."""
        start, end = self.where
        days = f"{self.day} >= DATE '{first}' AND {self.day} <= DATE '{last}'"
        condition = f" {days} AND ({self.sql[start:end]}\n)" if self.has_where else f" WHERE {days}"
        head = f"{self.sql[: self.items]} {self.day},{self.sql[self.items : start]}{condition}"
        if self.group is None:
            return f"{head} GROUP BY {self.day}{self.sql[end:]}"
        return f"{head} {self.sql[end : self.group]} {self.day},{self.sql[self.group :]}"


def counted_query(sql: str, day_of: Callable[[Sequence[str]], tuple[str, str] | None]) -> CountedQuery:
    """day_of: of a name in FROM the growing table that it means, and its day; None for any other.

    Raises Rejected DP903.
    """
    parts = [t for t in tokens(sql) if t.kind != "comment"]
    outer = _outside_brackets(parts)
    words = {at: parts[at].upper for at in outer if parts[at].kind == "word"}
    bad = next((at for at, word in words.items() if word in _REFUSED), None)
    if bad is not None:
        raise _refused(sql, f"{words[bad]} is none of a counter's clauses", parts[bad])
    if not parts or parts[0].upper != "SELECT" or parts[1].upper == "DISTINCT":
        raise _refused(sql, "a counter is one SELECT of keys, counts and sums", parts[0] if parts else None)
    clauses: dict[str, int | None] = {
        clause: next((at for at, word in words.items() if word == clause and _begins(parts, at)), None)
        for clause in ("FROM", "WHERE", "GROUP")
    }
    begins, where, group = clauses["FROM"], clauses["WHERE"], clauses["GROUP"]
    if begins is None:
        raise _refused(sql, "a counter reads a growing table", None)
    last = len(parts) if group is None else group
    tables = [
        (found, alias)
        for at in outer
        if begins <= at < (last if where is None else where) and _reads(parts[at])
        for names, alias in [_name(parts, at + 1)]
        if names and (found := day_of(names)) is not None
    ]
    if len(tables) != 1:
        raise _refused(sql, "a counter reads one growing table, by its name and once", parts[begins])
    ((table, day), alias) = tables[0]
    behind = len(sql) if group is None else parts[group].start
    if group is not None and (wrong := _keys_that_move(parts, group + 2)) is not None:
        raise _refused(sql, "the keys of a counter are named", wrong)
    stands = (behind, behind) if where is None else (parts[where].end, behind)
    return CountedQuery(
        sql, table, f"{quoted(alias)}.{quoted(day)}", parts[0].end, stands, where is not None,
        None if group is None else parts[group + 1].end,
    )  # fmt: skip


def _outside_brackets(parts: Sequence[Token]) -> list[int]:
    depth, found = 0, []
    for at, part in enumerate(parts):
        if part.text in "([{" and part.kind == "sign":
            depth += 1
        elif part.text in ")]}" and part.kind == "sign":
            depth -= 1
        elif not depth:
            found.append(at)
    return found


def _begins(parts: Sequence[Token], at: int) -> bool:
    """Whether a word begins its clause: not so in IS DISTINCT FROM."""
    return at > 0 and parts[at - 1].upper != "DISTINCT"


def _reads(part: Token) -> bool:
    return part.upper in ("FROM", "JOIN") or part.text == ","


def _name(parts: Sequence[Token], at: int) -> tuple[list[str], str]:
    """The name that stands here, and what it is called by."""
    names: list[str] = []
    while at < len(parts) and parts[at].is_name and parts[at].upper not in RESERVED:
        names.append(parts[at].name)
        at += 1
        if at >= len(parts) or parts[at].text != ".":
            break
        at += 1
    if not names:
        return [], ""
    at += at < len(parts) and parts[at].upper == "AS"
    aliased = at < len(parts) and parts[at].is_name and (parts[at].kind == "quoted" or parts[at].upper not in RESERVED)
    return names, parts[at].name if aliased else names[-1]


def _keys_that_move(parts: Sequence[Token], at: int) -> Token | None:
    """A key that is told by its place, or sets of keys."""
    whole = [t for t in parts[at:] if t.upper in _GROUPINGS or t.upper == "ALL"]
    if whole:
        return whole[0]
    for place in range(at, len(parts)):
        before, behind = parts[place - 1], parts[place + 1] if place + 1 < len(parts) else None
        alone = (before.text == "," or before.upper == "BY") and (behind is None or behind.text == ",")
        if alone and parts[place].kind == "number":
            return parts[place]
    return None


def _refused(sql: str, what: str, at: Token | None) -> Rejected:
    return reject(
        "DP903", what, span=None if at is None else Span(at.start, at.end), source=Source(sql),
        help=["CREATE DP COUNTER name AS SELECT key, COUNT(*) AS n, SUM(x) AS x FROM table WHERE … GROUP BY key …"],
        notes=[NOTHING_RAN],
    )  # fmt: skip
