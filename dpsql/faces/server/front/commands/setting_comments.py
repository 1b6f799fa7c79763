"""Settings in comments before a statement's query: which of them are before it, and what they set.

For tools that send what is typed and have no place for SET. A comment says for one statement what SET says for a
session, and can say nothing else. How it is written: frontend/text/comment_settings.py, which reads it for everybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, TypeAlias

from dpsql.faces.server.front.commands.client_tokens import ClientToken, comments, tokens
from dpsql.faces.server.front.commands.commands import Command, CopyOut, Declare, ExecutePrepared, Prepare, QueryCommand
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.variables import Variables
from dpsql.frontend.text.comment_settings import FORM, Misread, require_once, said_in
from dpsql.frontend.text.comment_settings import Said as Setting

Said: TypeAlias = tuple[Setting, ...]

_BEGINS: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM", "("})


def said_before(command: Command | None, text: str) -> Said:
    """What the comments before a statement's query say. Raises Fault 42601, 42704: with its place."""
    if "dpsql" not in text.lower():  # the usual case is not read a second time
        return ()
    try:
        found = tuple(chain.from_iterable(said_in(comment, at) for at, comment in comments(text, _end(command, text))))
        require_once(found)
    except Misread as wrong:
        raise ProtocolFault("42704" if wrong.unknown else "42601", str(wrong), FORM, wrong.at) from None
    return found


def with_said(variables: Variables, said: Said) -> Variables:
    """What holds for a statement. Raises Fault as SET does, with its place."""
    for each in said:
        try:
            variables = variables.said(each.name, each.value)
        except ProtocolFault as fault:
            fault.at = each.at
            raise
    return variables


def _end(command: Command | None, text: str) -> int:
    """Where the first token of the query stands, in front of which comments count; 0 where no query is."""
    match command:
        case Declare(query=query) | CopyOut(query=query) | Prepare(query=query):
            return query.at or 0
        case QueryCommand():
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


def _behind_brackets(rest: Iterator[ClientToken]) -> ClientToken | None:
    for token in rest:
        if token.upper == ")":
            return next(rest, None)
    return None
