"""Table names → scans of the policy's tables. Closed world: what the policy does not list does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import partial

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.short_text import qualified
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.parameters import Numbering
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn


def scan(parts: Sequence[str], policy: Policy, numbering: Numbering, span: Span, written: Span) -> BoundRelation:
    """A scan of the table with this (qualified) name, which stands at `written`. Raises Rejected DP102, DP005."""
    numbering.table(span)
    table = named(parts, policy, written)
    if not table.columns:
        raise reject(
            "DP005", f"the columns of {table.name} are not known without the data", span=span,
            help=[f"custodian: list them under tables.{table.name}.columns"],
        )  # fmt: skip
    columns = []
    for column in table.all_columns:
        if column.sql_type is None:
            raise reject(
                "DP005", f"the type of {table.name}.{column.name} is not known without the data", span=span,
                help=[f"custodian: add  type: …  to tables.{table.name}.columns.{column.name}"],
            )  # fmt: skip
        columns.append(numbering.column(column.name, column.sql_type))
    schemas = partial(policy.schemas_of, table)
    made = {c.name: c.derived.key for c in table.columns.values() if c.derived is not None}
    numbering.made |= bool(made)

    def entry(c: Column) -> VisibleColumn:
        return VisibleColumn(table.name, c.name, c, schemas=schemas, made=made.get(c.name, ""))

    entries = tuple(entry(c) for c in columns[: len(table.columns)])
    return BoundRelation(Scan(table.name, tuple(columns), None, table.name, span), entries)


def named(parts: Sequence[str], policy: Policy, written: Span) -> Table:
    """The table with this (qualified) name. Raises Rejected DP102.

    Look-up ignores letter case, quoted or not, because the engine's does: another spelling is never another table.
    """
    table = policy.called(*parts)
    if table is not None:
        return table
    name, known = ".".join(parts), [t.name for t in policy.tables.values()]
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=2)
    meant = [k for k in known if k.lower() in close]
    advice = f"did you mean {' or '.join(map(qualified, meant))}?"
    if not meant:
        advice = f"tables of the policy: {', '.join(map(qualified, known[:12]))}"
    raise reject("DP102", f"table {qualified(name)} does not exist", span=written, help=[advice], meant=meant)
