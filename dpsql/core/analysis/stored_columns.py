"""Which columns of a relation are bare columns of tables: read as they are stored, and never computed on the way.

*Claim.* Wherever a statement names such a column, on one row it reads the same value, and compares it with a literal of
its own type exactly. *Why.* Filters, joins, groupings and sets move rows, and a projection that passes a column on bare
computes nothing: there is no text that an engine could evaluate twice, rewrite, or evaluate in another way where it has
moved it. *When it would be false.* A column that is computed below, in a subquery, a window or a view of this
statement: `sign(x)` may be one value in a WHERE and another in a SELECT, and a cast may move to the other side of a
comparison; one that is converted on its way through a UNION. *Tested by* tests/core/analysis/test_stored_columns.py.

A column that the policy computes is one of its table's: its text is the custodian's, and stands below all of a query.
"""

from __future__ import annotations

from typing import assert_never

from dpsql.core.analysis.facts import Columns
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Item,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
)

_NONE: Columns = frozenset()


def stored_columns(node: Node) -> Columns:
    """The numbers of those columns of a node that are bare columns of tables."""
    match node:
        case Scan(columns=columns):
            return frozenset([c.uid for c in columns])
        case Filter(input=below) | Sort(input=below) | Limit(input=below) | Truncate(input=below):
            return stored_columns(below)
        case Window(input=below) | Unnest(input=below) | BoundContributions(input=below):
            return stored_columns(below)
        case GroupKeys(input=below, items=items):
            found = stored_columns(below)
            return found | _passed(items, found)
        case Project(input=below, items=items) | Aggregate(input=below, keys=items):
            return _passed(items, stored_columns(below))
        case Join(kind=kind, left=left, right=right):
            return stored_columns(left) if kind.filters else stored_columns(left) | stored_columns(right)
        case SetOperation(left=left, right=right, columns=columns):
            a, b = stored_columns(left), stored_columns(right)
            return frozenset(
                [
                    c.column.uid
                    for c in columns
                    if isinstance(c.left, Column) and c.left.uid in a and c.left.type == c.column.type
                    if isinstance(c.right, Column) and c.right.uid in b and c.right.type == c.column.type
                ]
            )
        case Values() | Release():
            return _NONE
        case _:
            assert_never(node)


def row_numbers(node: Node) -> Columns:
    """The numbers of those columns of a node that are row numbers of a window over its rows: 1 and more, never NULL."""
    match node:
        case Window(input=below, calls=calls):
            return row_numbers(below) | {c.column.uid for c in calls if c.function == "row_number"}
        case Filter(input=below) | Sort(input=below) | Limit(input=below) | Truncate(input=below):
            return row_numbers(below)
        case Project(input=below, items=items):
            return _passed(items, row_numbers(below))
        case _:
            return _NONE


def _passed(items: tuple[Item, ...], below: Columns) -> Columns:
    return frozenset([i.column.uid for i in items if isinstance(i.expr, Column) and i.expr.uid in below])
