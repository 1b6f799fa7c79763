"""Which limits never need to be above another: of what is at most as large for every unit.

*Claim.* Where `is_at_most` is true, a unit's total of the one is at most its total of the other, whatever its rows.
*Why.* Both are of the same rows in the same groups; each row that counts for the one counts for the other, whose
conditions are a part of its own; a count adds one for each, different values are at most the rows that have them, and
a sum adds the same value, whose sign is known, so that nothing that the other adds besides makes its total smaller.
*When it would be false.* Of values with both signs: a filter may leave out what brought |total| down. *Tested by*
tests/planner/test_dominating_limits.py. The limit is enforced all the same: a wrong answer costs accuracy, no privacy.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.ir.components import Component, DistinctCount, RowCount, ValueSum
from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.types import BOOLEAN
from dpsql.planner.searches.limits_to_search import LimitToSearch


def is_at_most(one: LimitToSearch, other: LimitToSearch) -> bool:
    """Whether the totals that a limit is on are at most those of another, for every unit."""
    a, b = one.counts, other.counts
    alike = one.of == other.of and one.norm == other.norm and one.grid == other.grid
    if one.label == other.label or a is None or b is None or not alike:
        return False
    if isinstance(a, ValueSum) and isinstance(b, ValueSum):
        (value, own), (larger, theirs) = _opened(a), _opened(b)
        return value == larger and (b.lo >= 0 or b.hi <= 0) and theirs <= own
    counts = isinstance(a, RowCount | DistinctCount) and isinstance(b, RowCount)
    return counts and _conditions(b) <= _conditions(a)


def _opened(c: ValueSum) -> tuple[Expr, frozenset[Expr]]:
    """What is added up, and where: CASE WHEN f THEN v ELSE 0 END is v where f holds."""
    match c.arg:
        case Call(function="case", args=(condition, value, Literal(value=0 | None))):
            return value, frozenset((*_parts(condition), *_parts(c.filter)))
    return c.arg, frozenset(_parts(c.filter))


def _conditions(c: Component) -> frozenset[Expr]:
    """What a row has to be, to be counted."""
    valid = () if c.arg is None else (Call("is_not_null", (c.arg,), BOOLEAN),)
    return frozenset((*valid, *_parts(c.filter)))


def _parts(condition: Expr | None) -> Iterator[Expr]:
    match condition:
        case None:
            return
        case Call(function="and", args=args):
            for each in args:
                yield from _parts(each)
        case _:
            yield condition
