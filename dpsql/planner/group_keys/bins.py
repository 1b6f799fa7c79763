"""Bins of numbers with declared bounds: `FLOOR(cost / 10)` of a cost between 0 and 100 is one of 0, 1 … 10.

Bounds are what the policy says of a column, and no fact about its rows: what lies beyond them is in no listed bin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor

from dpsql.core.analysis.expression_values import evaluate
from dpsql.core.functions.domains.domains import ENUMERABLE
from dpsql.core.functions.value import Domain, Value
from dpsql.core.ir.expressions import Call, Expr, columns_of, walk
from dpsql.core.ir.types import Kind
from dpsql.diagnostics.errors import Rejected

WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
"""Functions whose DOUBLEs are whole numbers."""


def bins(items: Sequence[Expr]) -> list[Expr]:
    """Expressions in `items` that are whole numbers by what they compute, typed DOUBLE, and read columns."""
    found = (e for item in items for e in walk(item) if isinstance(e, Call) and e.function in WHOLE)
    return list(dict.fromkeys(e for e in found if len(e.args) == 1 and e.type.kind is Kind.DOUBLE and columns_of(e)))


def bins_between(expr: Expr, bounded: Mapping[int, Value]) -> Domain | None:
    """All whole numbers that such an expression can be within the bounds of its columns; None if they are too many."""
    try:
        value = evaluate(expr, bounded)
    except Rejected:
        return None
    low, high = value.interval.lo, value.interval.hi
    if low is None or high is None or high - low > ENUMERABLE:
        return None
    return Domain(tuple(map(float, range(ceil(low), floor(high) + 1))), value.nullable)
