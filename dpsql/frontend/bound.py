"""What stages hand on. Parsed lives in `sql` (it holds sqlglot's tree); Annotated and Measured beside their makers."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Node
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.note import Note


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose every name is resolved against the policy. `columns` are the output columns, in order.

    notes: what the query asked the clock.
    """

    root: Node
    columns: tuple[Column, ...]
    source: Source
    notes: tuple[Note, ...] = ()
