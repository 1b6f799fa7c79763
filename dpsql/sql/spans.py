"""Where a syntax node stands in the text: the hull of its tokens, else the nearest ancestor's hull."""

from __future__ import annotations

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Span


def _own(node: exp.Expr) -> Span | None:
    meta = node._meta
    if meta and "start" in meta and "end" in meta:
        return Span(int(meta["start"]), int(meta["end"]) + 1)
    return None


def _hull(node: exp.Expr) -> Span | None:
    found: Span | None = None
    for part in node.walk():
        own = _own(part)
        if own is not None:
            found = own if found is None else found.hull(own)
    return found


def span_of(node: exp.Expr, text: str) -> Span:
    """A non-empty span for any node. A call's closing parenthesis has no token in the tree; it is added back."""
    at: exp.Expr | None = node
    while at is not None:
        hull = _hull(at)
        if hull is not None:
            return _close(hull, text) if isinstance(at, exp.Func | exp.Paren | exp.Filter) else hull
        at = at.parent
    return Span(0, max(1, len(text)))


def _close(span: Span, text: str) -> Span:
    missing = text.count("(", span.start, span.end) - text.count(")", span.start, span.end)
    end = span.end
    while missing > 0:
        following = end + len(text[end:]) - len(text[end:].lstrip())
        if following >= len(text) or text[following] != ")":
            break
        end, missing = following + 1, missing - 1
    return Span(span.start, end)
