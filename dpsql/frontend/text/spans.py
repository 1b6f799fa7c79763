"""Where a syntax node stands in the text: the hull of its tokens, else its keyword beside them, else its parent's hull.

sqlglot keeps positions of names and literals only. A call's name and closing bracket are added back, and what is
written without them (CURRENT_USER, `?`, INTERVAL, NULL, `{}`) is looked for where the tree says that it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Span

_KEYWORDS: dict[type[exp.Expr], str] = {
    exp.Placeholder: r"\?|[$:]\w+",
    exp.Parameter: r"[$@]\w+",
    exp.Null: r"NULL\b",
    exp.Boolean: r"(?:TRUE|FALSE)\b",
    exp.Interval: r"INTERVAL\b",
    exp.CurrentDate: r"(?:CURRENT_DATE|TODAY)\b",
    exp.CurrentTime: r"(?:CURRENT_TIME|LOCALTIME)\b",
    exp.Localtime: r"LOCALTIME\b",
    exp.CurrentUser: r"CURRENT_USER\b",
    exp.SessionUser: r"SESSION_USER\b",
    exp.CurrentCatalog: r"CURRENT_CATALOG\b",
    exp.Array: r"(?:ARRAY\s*)?\[",
    exp.Map: r"MAP\b",
    exp.ToMap: r"MAP\b",
    exp.Struct: r"\{",
    exp.CurrentTimestamp: r"(?:CURRENT_TIMESTAMP|LOCALTIMESTAMP|NOW)\b",
    exp.Star: r"\*",
    exp.Group: r"GROUP\s+BY\b",
    exp.Array: r"(?:\bARRAY\s*)?\[",
    exp.JSONObject: r"\bJSON_OBJECT\b",
    exp.Struct: r"\{",
    exp.ToMap: r"\bMAP\b",
}
"""How what is written without a name is written; a function is looked for by its name."""
_BRACED = (exp.Struct, exp.ToMap)
_BRACKETED = (exp.Func, exp.Paren, exp.Filter, exp.Window)
_NAMED = frozenset({exp.Column, exp.Identifier, exp.Literal, exp.Table})
"""What its tokens are all of."""
_INDEXED = re.compile(r"[\s)]*\]")
_SUBQUERY = re.compile(r"\(\s*(?:SELECT|WITH|FROM|VALUES)\b", re.IGNORECASE)


_NO_CODE = re.compile(r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)""", re.DOTALL)


@lru_cache(maxsize=8)
def code_of(text: str) -> str:
    """The text with blanks for comments and underscores for strings and quoted names: nothing is found in them."""
    return _NO_CODE.sub(lambda m: (" " if m[0][0] in "-/" else "_") * len(m[0]), text)


_HULL: Final = "hull"
_BEFORE: Final = "before"
_NOWHERE: Final = (2**62, -1)
_LEAVES = frozenset({exp.Identifier, exp.Literal})
_NO_PART = frozenset({bool, str, type(None)})


def span_of(node: exp.Expr, text: str) -> Span:
    """A non-empty span for any node."""
    own = _hull(node)
    if own is not None and type(node) in _NAMED:
        return own
    text = code_of(text)
    bare = own is None
    if own is None:
        own = _keyword(node, text)
    at: exp.Expr | None = node
    while own is None and at is not None:
        at = at.parent
        own = None if at is None else _hull(at)
    if own is None or at is None:
        return Span(0, max(1, len(text)))
    if isinstance(at, _BRACED) and (braces := _braces(own, text)) is not None:
        return braces
    if isinstance(node, exp.Paren) and at is node:
        inner = span_of(node.this, text)
        before = _end_before(text, inner.start)
        own = Span(before - 1, inner.end) if before and text[before - 1] == "(" else inner
    if isinstance(at, exp.WithinGroup) and at is node:
        return Span(own.start, _bracket(text, own.start, own.end))
    if isinstance(at, exp.Bracket) and at is node and (behind := _INDEXED.match(text, own.end)) is not None:
        return Span(own.start, behind.end())
    if isinstance(at, _BRACKETED):
        own = own if bare and at is node else _open(own, at, text)
        if isinstance(at, exp.Cast) and text[own.start : own.end].upper().startswith(("CAST", "TRY_CAST")):
            return Span(own.start, _bracket(text, own.start, own.end))  # the type has no token either
        return _close(own, text)
    if isinstance(at, exp.Binary) and at is node:
        # A call or bracket at either end has no token where it begins or ends.
        for end in (_end(at, "this"), _end(at, "expression")):
            own = own.hull(span_of(end, text)) if isinstance(end, _BRACKETED) else own
    return own


def _end(node: exp.Expr, side: str) -> exp.Expr | None:
    """The first or last operand of a chain of operators."""
    at: exp.Expr | None = node
    while isinstance(at, exp.Binary) and not isinstance(at, exp.Func):
        at = at.args.get(side)
    return at


def _own(node: exp.Expr) -> tuple[int, int] | None:
    meta = node._meta
    if meta and "start" in meta and "end" in meta:
        return meta["start"], meta["end"] + 1
    return None


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """The nodes directly below: sqlglot's `iter_expressions`, a generator that takes twice as long."""
    found: list[exp.Expr] = []
    for given in node.args.values():
        if given.__class__ is list:
            found += [item for item in given if isinstance(item, exp.Expr)]
        elif isinstance(given, exp.Expr):
            found.append(given)
    return found


def _hull(node: exp.Expr) -> Span | None:
    """Where the hull of a node's tokens starts and ends; None if it has none."""
    meta = node._meta
    if node.__class__ in _LEAVES:
        return Span(meta["start"], meta["end"] + 1) if meta and "end" in meta else None
    known: tuple[int, int] | None = meta.get(_HULL) if meta else None
    if known is None:
        remember(node)
        known = node.meta[_HULL]
    return Span(*known) if known[1] >= 0 else None


def remember(tree: exp.Expr) -> int:
    """Write the hull of its tokens beside each node but names and literals, so that none is looked at twice.

    Returns how deep the tree is.
    """
    nodes, above, starts, ends, depths = [tree], [0], list[int](), list[int](), [1]
    deepest = 0
    for at, node in enumerate(nodes):
        meta = node._meta
        start, end = (meta["start"], meta["end"] + 1) if meta and "end" in meta else _NOWHERE
        depth = depths[at]
        for given in node.args.values():
            kind = given.__class__
            if kind in _NO_PART:
                continue
            if kind in _LEAVES:
                deepest = depth
                meta = given._meta
                if meta and "end" in meta:
                    if meta["start"] < start:
                        start = meta["start"]
                    if meta["end"] >= end:
                        end = meta["end"] + 1
            elif kind is list:
                parts = [item for item in given if isinstance(item, exp.Expr)]
                nodes += parts
                above += [at] * len(parts)
                depths += [depth + 1] * len(parts)
            elif isinstance(given, exp.Expr):
                nodes.append(given)
                above.append(at)
                depths.append(depth + 1)
        starts.append(start)
        ends.append(end)
    for at in range(len(nodes) - 1, -1, -1):
        start, end, over, node = starts[at], ends[at], above[at], nodes[at]
        if start < starts[over]:
            starts[over] = start
        if end > ends[over]:
            ends[over] = end
        if node._meta is None:
            node._meta = {_HULL: (start, end)}
        else:
            node._meta[_HULL] = start, end
    return max(deepest + 1, depths[-1])


def _look_through(tree: exp.Expr) -> None:
    """Write beside each node of a tree where the tokens before it end, and how many of its kind were written since."""
    waiting, written = [tree], 0
    since: dict[type[exp.Expr], int] = {}
    while waiting:
        node = waiting.pop()
        kind, own = node.__class__, _own(node)
        node.meta[_BEFORE] = written, sum(n for other, n in since.items() if issubclass(other, kind))
        if own is not None and own[1] > written:
            written, since = own[1], {}
        else:
            since[kind] = since.get(kind, 0) + 1
        waiting += parts_of(node)[::-1]


def _keyword(node: exp.Expr, text: str) -> Span | None:
    """The node's keyword, looked for after the tokens that stand before the node in the tree."""
    pattern = next((p for kind, p in _KEYWORDS.items() if isinstance(node, kind)), None)
    if pattern is None and isinstance(node, exp.Func):
        pattern = rf"\b(?:{'|'.join(map(re.escape, node.sql_names()))})\b"
    if pattern is None:
        return None
    if node.meta_get(_BEFORE) is None:
        _look_through(node.root())
    before, passed = node.meta[_BEFORE]
    return _matches(pattern, text, before).at(passed)


@dataclass(slots=True)
class _Matches:
    """The places of a pattern in a text, looked for as far as they are asked for."""

    rest: Iterator[re.Match[str]]
    found: list[Span] = field(default_factory=list)

    def at(self, number: int) -> Span | None:
        while len(self.found) <= number:
            match = next(self.rest, None)
            if match is None:
                return None
            self.found.append(Span(*match.span()))
        return self.found[number]


@lru_cache(maxsize=64)
def _matches(pattern: str, text: str, start: int) -> _Matches:
    return _Matches(re.compile(pattern, re.IGNORECASE).finditer(text, start))


def _open(span: Span, node: exp.Expr, text: str) -> Span:
    """A call whose name has no token (MAX, EXTRACT): take in the name and bracket right before its arguments."""
    if not isinstance(node, exp.Func) or _own(node) is not None:
        return span
    bracket = text.rfind("(", 0, span.start)
    if bracket < 0 or _OPENING.fullmatch(text, bracket, span.start) is None:
        return span
    start = end = _end_before(text, bracket)
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    balanced = isinstance(node, exp.Cast) or (
        text.count("(", span.start, span.end) <= text.count(")", span.start, span.end)
    )
    return Span(start, span.end) if start < end and balanced else span


_OPENING = re.compile(r"\(\s*(?:DISTINCT\s+)?", re.IGNORECASE)
_NOTHING = re.compile(r"\s*\(\s*\)")
_BEHIND = re.compile(r"\s*\)")
_MARKS = re.compile(r"[()]")


def _end_before(text: str, at: int) -> int:
    """Where what stands before a place ends, the spaces there left aside."""
    while at and text[at - 1].isspace():
        at -= 1
    return at


def _close(span: Span, text: str) -> Span:
    missing = text.count("(", span.start, span.end) - text.count(")", span.start, span.end)
    nothing = _NOTHING.match(text, span.end)  # a call without arguments
    end = nothing.end() if nothing is not None and not missing else span.end
    while missing > 0:
        closing = _BEHIND.match(text, end)
        if closing is None:
            break
        end, missing = closing.end(), missing - 1
    return Span(span.start, end)


def _braces(span: Span, text: str) -> Span | None:
    """The braces around a struct's values, with MAP before them; None if it is written as a call."""
    start = span.start + (text[span.start] == "{")
    before = re.compile(r"(?:\bMAP\s*)?\{[^{}]*\Z", re.IGNORECASE).search(text, 0, start)
    behind = re.compile(r"[^{}]*\}").match(text, span.end)
    return None if before is None or behind is None else Span(before.start(), behind.end())


def query_span(node: exp.Expr, text: str) -> Span:
    """A subquery with the brackets around it: neither they nor the word SELECT have tokens in the tree."""
    own = span_of(node, text)
    text = code_of(text)
    for opening in reversed(list(_SUBQUERY.finditer(text, 0, own.end))):
        end = _bracket(text, opening.start(), opening.start() + 1)
        if opening.start() <= own.start and end >= own.end:
            return Span(opening.start(), end)
    return own


def _bracket(text: str, start: int, least: int) -> int:
    """The end of the bracket that opens after `start`; `least` if it does not close."""
    depth = 0
    for mark in _MARKS.finditer(text, start):
        if depth == 0 and mark.start() > least:
            return least + 1
        depth += 1 if mark[0] == "(" else -1
        if depth == 0 and mark.end() > least:
            return mark.end()
    return least + (depth == 0 and least < len(text))
