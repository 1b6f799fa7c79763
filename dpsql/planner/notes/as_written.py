"""What a refusal says of its query: its parts as they are written; and that who asks for rows asks for these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dpsql.core.ir.nodes import Aggregate, Filter, Limit, Node, Project, Scan, Sort
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Diagnostic, Source


def as_written(found: Diagnostic) -> Diagnostic:
    """A clip that the help proposes names the column as the query does: with its table, in quotes."""
    if found.source is None or found.span is None:
        return found
    written = found.source.text[found.span.start : found.span.end]
    if _NAME.fullmatch(written):
        name = written.rpartition(".")[2].strip('"')
        clip = re.compile(rf"(?<=CLIP\(){re.escape(name)}(?=, [^,]+, [^,]+\)\Z)", re.IGNORECASE)
        return replace(found, help=tuple(clip.sub(lambda _: written, text) for text in found.help))
    return replace(found, help=tuple(_CLIP.sub(lambda m: _same(m[0], written), text) for text in found.help))


_NAME = re.compile(r'[\w."]+')
_CLIP = re.compile(r"(?<=CLIP\().+(?=, [^,]+, [^,]+\)\Z)")
_LOOSE = re.compile(r'\w+\.|[\s"()]')
"""In what two spellings of an expression may differ: tables, quotes, blanks and brackets."""


def _same(shown: str, written: str) -> str:
    """An expression as the query writes it, if it is what is marked there."""
    alike = _LOOSE.sub("", shown).lower() == _LOOSE.sub("", written).lower()
    return written if alike and "\n" not in written else shown


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
