"""Settings in a comment before a query: `/* dpsql: epsilon=0.5, delta=1e-9 */ SELECT …`, or `-- dpsql: epsilon=0.5`.

For tools that send what is typed and have no place for SET. A comment says for one statement what SET says for a
session, and can say nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from dpsql.server.front.commands import Command, CopyOut, Declare, ExecutePrepared, Prepare, Query
from dpsql.server.front.errors import Fault
from dpsql.server.front.tokens import Token, comments, tokens
from dpsql.server.front.variables import OWN, Variables, own_name

Said = tuple[tuple[str, str, int], ...]
"""Names and values, and where each name stands in the statement."""

_OURS: Final = re.compile(r"\s*dpsql\s*:", re.IGNORECASE)
_PAIR: Final = re.compile(r"""[\s,]*([^\s,=]+)\s*=\s*(?:'([^']*)'|"([^"]*)"|([^\s,'"]+))(?=[\s,]|\Z)""")
_REST: Final = re.compile(r"[\s,]*")
_FORM: Final = "/* dpsql: epsilon=0.5, delta=1e-9 */ SELECT …"
_BEGINS: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM", "("})


def said_before(command: Command | None, text: str) -> Said:
    """What the comments before a statement's query say. Raises Fault 42601, 42704: with its place."""
    if "dpsql" not in text.lower():  # the usual case is not read a second time
        return ()
    found: list[tuple[str, str, int]] = []
    for start, comment in comments(text, _end(command, text)):
        if ours := _OURS.match(comment):
            found += _read(comment, ours.end(), start)
    names = [name for name, _, _ in found]
    for name, _, at in found:
        if names.count(name) > 1 or (name == "rho" and "epsilon" in names):
            both = "epsilon and rho are" if "rho" in names and "epsilon" in names else f"{name} is"
            raise Fault("42601", f"{both} said more than once in comments of one statement", _FORM, at)
    return tuple(found)


def with_said(variables: Variables, said: Said) -> Variables:
    """What holds for a statement. Raises Fault as SET does, with its place."""
    for name, value, at in said:
        try:
            variables = variables.set(name, value)
        except Fault as fault:
            fault.at = at
            raise
    return variables


def _read(comment: str, at: int, start: int) -> Iterator[tuple[str, str, int]]:
    while pair := _PAIR.match(comment, at):
        at = pair.end()
        name = own_name(pair[1].lower())
        if name is None:
            message = f'a comment of dpsql has no "{pair[1][:100]}"; it has {", ".join(OWN)}'
            raise Fault("42704", message, _FORM, start + pair.start(1))
        yield name, next(value for value in pair.groups()[1:] if value is not None), start + pair.start(1)
    rest = _REST.match(comment, at)
    assert rest is not None
    if rest.end() < len(comment):
        wrong = comment[rest.end() :].split()[0][:100]
        raise Fault("42601", f'"{wrong}" in a comment of dpsql is no name=value', _FORM, start + rest.end())


def _end(command: Command | None, text: str) -> int:
    """Where the first token of the query stands, in front of which comments count; 0 where no query is."""
    match command:
        case Declare(query=query) | CopyOut(query=query) | Prepare(query=query):
            return query.at or 0
        case Query():
            return _behind_explain(text)
        case ExecutePrepared():
            return next(tokens(text)).start
    return 0


def _behind_explain(text: str) -> int:
    """The place of the first token that is not of EXPLAIN and its options."""
    rest = tokens(text)
    first = next(rest)
    if first.upper != "EXPLAIN":
        return first.start
    following = next(rest, None)
    if following is not None and following.upper == "(":
        inner = next(rest, None)
        if inner is None or inner.upper in _BEGINS:
            return following.start
        following = _behind_brackets(rest)
    words = chain([] if following is None else [following], rest)
    return next((token.start for token in words if token.upper not in ("ANALYZE", "ANALYSE", "VERBOSE")), len(text))


def _behind_brackets(rest: Iterator[Token]) -> Token | None:
    for token in rest:
        if token.upper == ")":
            return next(rest, None)
    return None
