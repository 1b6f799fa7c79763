"""x ->> 'key', x -> 'list' ->> 0, json_extract_string(x, '$.a.b'), x #>> '{a,b}': the text of a value in JSON.

sqlglot takes the key 'a.b' for a path of two, so that steps are read in the text, and compared with what it found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.core.ir.expressions import Expr, Literal
from dpsql.core.ir.types import VARCHAR
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.spans import span_of

if TYPE_CHECKING:
    from dpsql.frontend.bind.expressions.expressions import ExprBinder

_STEP = re.compile(r"(?:\s*(?:::|\bAS\b)\s*jsonb?\b)?[\s)]*(?:->>?|,)\s*(?:'((?:[^']|'')*)'|(\d{1,9}))", re.IGNORECASE)
_SIMPLE = re.compile(r"[A-Za-z_]\w*")
_LISTED = re.compile(r"\{\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*\}")
_JSON = frozenset({exp.DataType.Type.JSON, exp.DataType.Type.JSONB})
TEXTS = (exp.JSONExtractScalar, exp.JSONBExtractScalar)


def json_text(binder: ExprBinder, node: exp.Expr) -> Expr | None:
    """The call that reads it; None where its path is not understood."""
    chain = [node]
    while isinstance(inner := chain[-1].this.unnest(), exp.JSONExtract):
        chain.append(inner)
    paths, at = [], _end(inner, binder.source.text)
    for each in reversed(chain):
        if isinstance(each, exp.JSONBExtractScalar):
            listed = _LISTED.fullmatch(each.expression.name) if isinstance(each.expression, exp.Literal) else None
            paths.append("".join(f".{key.strip()}" for key in listed[1].split(",")) if listed else None)
            continue
        written = _STEP.match(binder.source.text, at)
        at = written.end() if written else at
        paths.append(_path(written, each.args.get("expression")) if written else None)
    if None in paths:
        return None
    whole = Literal("$" + "".join(filter(None, paths)), VARCHAR, binder.span(node))
    return binder.call("json_extract_string", (binder.bind(as_text(inner)), whole), binder.span(node))


def _end(node: exp.Expr, text: str) -> int:
    """Where it ends in the text, its steps included: sqlglot does not know where they are."""
    if not isinstance(node, (exp.JSONExtract, *TEXTS)):
        return span_of(node, text).end
    at = _end(node.this.unnest(), text)
    written = _STEP.match(text, at)
    return written.end() if written else at


def as_text(node: exp.Expr) -> exp.Expr:
    """What a cast to JSON casts: it is read as JSON anyway."""
    return node.this if isinstance(node, exp.Cast) and node.to.this in _JSON else node


def only_texts(node: exp.Expr, binder: ExprBinder) -> Rejected:
    """Build the refusal of x -> 'key' where its text is not asked for."""
    return reject(
        "DP105", "a query reads texts in JSON, not JSON itself", span=binder.span(node),
        help=["write the last step as  ->> 'key',  and cast its text:  CAST(x ->> 'key' AS INTEGER)"],
    )  # fmt: skip


def _path(written: re.Match[str], found: exp.Expr | None) -> str | None:
    """A step as paths have it, if sqlglot has read the same."""
    text = written[2] or written[1].replace("''", "'")
    if not isinstance(found, exp.JSONPath) or _letters(text) != "".join(map(_name, found.expressions[1:])):
        return None
    if written[2]:
        return f"[{text}]"
    if text.startswith("$"):
        return text[1:]
    if _SIMPLE.fullmatch(text):
        return f".{text}"
    return None if not text or text.startswith("/") or '"' in text else f'."{text}"'


def _name(part: exp.Expr) -> str:
    return _letters(str(part.this))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
