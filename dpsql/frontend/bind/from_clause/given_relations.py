"""Relations that are no tables of the policy: `dpsql.<counter>`, whose rows are public and are handed in.

*Claim.* What a query reads of one is what the caller handed in for this query. *Why.* They stand in its settings, by
name; no name of theirs is looked up anywhere else. *Tested by* tests/service/test_counters.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.core.ir.nodes import Values
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.parameters import GivenRelation
from dpsql.frontend.bind.scope import BoundRelation, VisibleColumn

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
