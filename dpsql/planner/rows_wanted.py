"""Who asks for rows is told that, rather than that rows cannot be ordered or cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.ir.nodes import Aggregate, Node, Scan
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Diagnostic, Source


def rows_wanted(diagnostics: Sequence[Diagnostic], root: Node, source: Source) -> tuple[Diagnostic, ...]:
    """What is said of a query that orders or cuts private rows and aggregates nothing."""
    private = [d for d in diagnostics if d.code == "DP112"]
    if not private or any(isinstance(n, Aggregate) for n in walk(root)):
        return tuple(diagnostics)
    table = next(n for n in walk(root) if isinstance(n, Scan))
    written = table.table if table.span is None else source.text[table.span.start : table.span.end]
    advice = f"aggregate it, as in  SELECT COUNT(*) FROM {written}"
    told = replace(private[0], code="DP110", message="this query would return private rows", help=(advice,), fix=None)
    return (*(d for d in diagnostics if d.code != "DP112"), told)
