"""How many rows of an id a policy says that nobody exceeds (`nobody_has_more`): for intervals alone.

No noise rests on it and no limit is left out for it: where it is false an interval misses what the limit cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Join, JoinKind, Release, Scan, SetKind, SetOperation, Unnest
from dpsql.core.ir.walk import Tagged
from dpsql.core.numbers.cap import Finite
from dpsql.core.policy.tables import Table


def promised_rows(rows: Tagged[Facts], table: Callable[[str], Table]) -> int | None:
    """The most of these rows that an id has, if what the policy promises of its tables is true; None: it says nothing.

    A join counts in rows of the side whose rows it does not repeat.
    """
    match rows.node:
        case Scan(table=name):
            limit, copied = table(name).max_rows_per_unit, table(name).copied
            held = limit is not None and (limit.nobody_has_more or (limit.assumed and copied is None))
            return limit.rows if held and limit is not None else None
        case Release() | Unnest():
            return None
        case Join(kind=kind, equalities=equalities):
            left, right = rows.inputs
            if kind.filters or (kind is not JoinKind.FULL and _single(right.fact, [e.right for e in equalities])):
                return promised_rows(left, table)
            once = kind is JoinKind.INNER and _single(left.fact, [e.left for e in equalities])
            return promised_rows(right, table) if once else None
        case SetOperation(kind=SetKind.UNION):
            sides = [promised_rows(side, table) for side in rows.inputs]
            return None if None in sides else sum(n for n in sides if n is not None)
    return promised_rows(rows.inputs[0], table) if rows.inputs else None


def _single(side: Facts, ends: Sequence[Expr]) -> bool:
    """Whether at most one row of this side can match."""
    most = side.most_rows(frozenset(e.uid for e in ends if isinstance(e, Column)))
    return isinstance(most, Finite) and most.value <= 1
