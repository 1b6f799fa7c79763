"""Default deny for the arguments of syntax nodes."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import reject
from dpsql.sql.spans import span_of


def checked(node: exp.Expr, source: Source, *allowed: str) -> dict[str, Any]:
    """The arguments of a syntax node that are set; refuses (DP101) any that is not in `allowed`."""
    given = {k: v for k, v in node.args.items() if v not in (None, False, [], "")}
    surplus = sorted(set(given) - set(allowed))
    if surplus:
        what = ", ".join(name.rstrip("_").upper().replace("_", " ") for name in surplus)
        culprit = given[surplus[0]]
        culprit = culprit[0] if isinstance(culprit, list) else culprit
        at = culprit if isinstance(culprit, exp.Expr) else node
        raise reject(
            "DP101", f"{what} is outside the accepted SQL", span=span_of(at, source.text), label="not supported here"
        )
    return given
