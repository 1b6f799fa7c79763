"""What stages hand on. Parsed lives in `sql` (it holds sqlglot's tree); Annotated and Measured beside their makers."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Source
from dpsql.plan.expr import Column
from dpsql.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class Bound:
    """A query whose every name is resolved against the policy. `columns` are the output columns, in order."""

    root: Node
    columns: tuple[Column, ...]
    source: Source
