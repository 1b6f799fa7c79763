"""Table names → scans of the policy's tables. Closed world: what the policy does not list does not exist.

But for `dpsql.<counter>`, whose rows are public and are handed in. *Claim.* What a query reads of one is what the
caller handed in for this query. *Why.* They stand in its settings, by name; no name of theirs is looked up anywhere
else. *Tested by* tests/service/test_counters.py.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Scan, Values
from dpsql.core.ir.short_text import qualified
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.parameters import GivenRelation, Numbering
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


SCHEMA = "dpsql"


def given_relation(
    node: exp.Table, relations: Sequence[GivenRelation], binder: Callable[[], ExprBinder]
) -> BoundRelation | None:
    """The relation that an item of FROM names; None if it is none of these. Raises Rejected DP101."""
    if not relations or node.args.get("catalog") is not None or node.db.lower() != SCHEMA:
        return None
    asked = isinstance(node.this, exp.Anonymous)
    name = str(node.this.this if asked else node.name).lower()
    found = next((r for r in relations if r.name.lower() == name and (r.of_days is not None) is asked), None)
    if found is None:
        return None
    own = binder()
    rows = found.rows
    at = own.span(node)
    own.numbering.leaf(at)
    if found.of_days is not None:
        ends = [own.value(own.bind(each)).constant for each in node.this.expressions]
        days = [e for e in ends if isinstance(e, dt.date) and not isinstance(e, dt.datetime)]
        told = found.of_days(*days) if len(days) == len(ends) == 2 else None
        if told is None:
            raise reject(
                "DP101", f"{SCHEMA}.{found.name} is of two days that are counted, the first one first", span=at,
                help=[f"{SCHEMA}.{found.name}(DATE '2026-12-01', DATE '2026-12-07')"],
            )  # fmt: skip
        rows = told
    columns = tuple(own.numbering.column(name, type_) for name, type_ in found.columns)
    return BoundRelation(Values(columns, tuple(rows), at), tuple(VisibleColumn("", c.name, c) for c in columns))
