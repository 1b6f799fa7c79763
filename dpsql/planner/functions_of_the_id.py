"""Columns that seem to be functions of the id: an id that has one value of each key is in one group.

A guess: no privacy rests on it. What is proven is `Facts.by_id`, of columns that are stored, or made by one aggregate
per id; of what is computed from them the rewrites guess that it is one value too, and the release enforces it: an id
counts for less where it is in more groups, and of private groups it keeps that many (`BoundContributions.groups`).
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.stored_columns import stored_columns
from dpsql.core.ir.expressions import columns_of
from dpsql.core.ir.nodes import Aggregate, GroupKeys, Item, Join, JoinKind, Project, Release, SetOperation
from dpsql.core.ir.walk import Tagged


def functions_of_the_id(rows: Tagged[Facts]) -> Columns:
    """Those among the columns of these rows, the proven ones among them."""
    found = set(rows.fact.by_id)
    if not rows.fact.ids or isinstance(rows.node, SetOperation | Release):
        return frozenset(found)
    below = [functions_of_the_id(each) for each in rows.inputs]
    match rows.node:
        case Project(items=items):
            found |= _computed(items, below[0])
        case Aggregate(keys=keys, calls=calls):
            found |= _computed(keys, below[0])
            if {k.column.uid for k in keys} <= found:
                found |= {c.column.uid for c in calls}
        case Join(kind=kind, residual=residual, equalities=equalities):
            together = residual is None and all(columns_of(e.left) <= below[0] for e in equalities)
            padded = kind is not JoinKind.INNER and not together  # some rows of an id, and not others
            for side, known in [*zip(rows.inputs, below, strict=True)][: 1 if padded else 2]:
                stored = stored_columns(side.node)
                alike = bool(stored) and not side.fact.ids and stored <= rows.fact.by_id  # all found the same one
                found |= side.fact.columns.keys() if alike else known
        case GroupKeys(items=items):
            found |= below[0] | _computed(items, below[0])
        case _:
            found = found.union(*below)
    return frozenset(found & rows.fact.columns.keys())


def _computed(items: Sequence[Item], below: Columns) -> set[int]:
    return {item.column.uid for item in items if columns_of(item.expr) <= below}
