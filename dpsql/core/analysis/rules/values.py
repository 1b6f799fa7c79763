"""Rows written in the query.

Claim: they are public; their columns have exactly the written values, which are the public list of their keys. Of no
    rows, which stand for a relation that has none (planner/notes/unread.py), everything holds.
Why: they are part of the question, not of the data.
When it would be false: a noisy value of an earlier release among them (it is a relation of its own).
Not proved: rows that are written in the query are a premise, as a public table is
Tested by: tests/core/analysis/test_values.py

Example:
    >>> facts("SELECT * FROM (VALUES (1, 'a'), (2, 'b'))", "keys")
    values   public · key (col0, col1)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.ir.expressions import Column, LiteralValue
from dpsql.core.ir.nodes import Values
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.interval import hull, point
from dpsql.core.values.constants import literal
from dpsql.core.values.value import MISSING, Domain, Value, type_range


def values(node: Values) -> Facts:
    """Facts of the written rows."""
    columns = {c.uid: ColumnFact(_value(c, [row[i] for row in node.rows])) for i, c in enumerate(node.columns)}
    different = len({tuple(map(_compared, row)) for row in node.rows}) == len(node.rows)
    keys = frozenset({frozenset(columns)} if different else ())
    if len(node.rows) == 1:
        keys = frozenset({frozenset()})
    return Facts(columns, keys=keys, size=len(node.rows), rule="values")


def _compared(value: LiteralValue) -> LiteralValue:
    """Equal exactly where SQL takes two values for the same: NaN is not the same as itself in Python."""
    return "nan" if isinstance(value, float) and value != value else value


def _in_order(value: LiteralValue) -> Any:
    return value


def _value(column: Column, held: list[LiteralValue]) -> Value:
    present = list(dict.fromkeys(v for v in held if v is not None))
    found = Value(column.type, range=type_range(column.type), nullable=None in held)
    if present:
        ends = present
        if column.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DATE):  # between which all others are
            ends = [min(present, key=_in_order), max(present, key=_in_order)]
        written = [literal(v, column.type) for v in ends]
        span = written[0].interval
        for other in written[1:]:
            span = hull(span, other.interval)
        found = replace(found, interval=span, finite=all(v.finite for v in written))
    elif not held:
        found = replace(found, interval=point(0))
    return replace(found, domain=Domain(tuple(present), None in held), constant=MISSING)
