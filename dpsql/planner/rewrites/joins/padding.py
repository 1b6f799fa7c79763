"""What an expression is for rows that an outer join padded: some of its columns are NULL there."""

from __future__ import annotations

from collections.abc import Set

from dpsql.core.ir.expressions import Column, Expr, walk
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.expression_values import evaluate


def value_where_null(expr: Expr, missing: Set[int]) -> Value | None:
    """What is known of the expression where these columns are NULL; None if nothing is."""
    env = {
        e.uid: literal(None, e.type) if e.uid in missing else Value(e.type, range=type_range(e.type))
        for e in walk(expr)
        if isinstance(e, Column)
    }
    try:
        return evaluate(expr, env)
    except Rejected:
        return None


def is_null(expr: Expr, missing: Set[int]) -> bool:
    """Whether the expression is certainly NULL where these columns are."""
    value = value_where_null(expr, missing)
    return value is not None and value.is_constant and value.constant is None
