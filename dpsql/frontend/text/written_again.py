"""An expression as text, for repairs that are pasted: all of it, or they ask something else.

The place of a node is that of its tokens, and the tree keeps none of NOT, IS NULL, IN's bracket or CASE's END.
"""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.text.spans import span_of

_LONGEST = 200


def written_again(node: exp.Expr, source: Source) -> str:
    """As it is written, if its place holds all of it; else as sqlglot writes it; … if it is long."""
    span = span_of(node, source.text)
    text = source.text[span.start : span.end]
    if not _is_all_of(node, text):
        text = node.sql("duckdb", comments=False)
    return text if len(text) <= _LONGEST and "\n" not in text else "…"


def _is_all_of(node: exp.Expr, text: str) -> bool:
    try:
        return parse_one(text, dialect="duckdb") == node
    except SqlglotError:
        return False
