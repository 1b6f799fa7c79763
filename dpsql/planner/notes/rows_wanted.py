"""Who asks for rows is told that, rather than that rows cannot be ordered or cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.ir.nodes import Aggregate, Filter, Limit, Node, Project, Scan, Sort
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Diagnostic, Source


def rows_wanted(diagnostics: Sequence[Diagnostic], root: Node, source: Source) -> tuple[Diagnostic, ...]:
    """What is said of a query whose own ORDER BY or LIMIT is over private rows: they are what it would show."""
    own = {node.span for node in _shown(root) if isinstance(node, (Sort, Limit))}
    private = [d for d in diagnostics if d.code == "DP112" and d.span in own]
    if not private:
        return tuple(diagnostics)
    advice = "aggregate it:  SELECT COUNT(*) …,  SELECT AVG(x) … GROUP BY …"
    table = next(n for n in walk(root) if isinstance(n, Scan))
    written = table.table if table.span is None else source.text[table.span.start : table.span.end]
    if not any(isinstance(n, Aggregate) for n in walk(root)):
        advice = f"aggregate it, as in  SELECT COUNT(*) FROM {written}"
    shown = f"what columns it has, for nothing:  DESCRIBE {written}"
    message = "this query would return private rows"
    told = replace(private[0], code="DP110", message=message, help=(advice, shown), fix=None)
    return (*(d for d in diagnostics if d not in private), told)


def _shown(root: Node) -> list[Node]:
    """The nodes whose rows the answer shows, but for columns."""
    found = [root]
    while isinstance(found[-1], (Project, Sort, Limit, Filter)):
        found.append(found[-1].input)
    return found
