"""Bounds that one aggregate brings in GoogleSQL's spelling, and what they mean for it.

COUNT and SUM bound what an id may contribute to a group, all but COUNT what a row may; an id without rows
contributes 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.core.ir.expressions import Expr, Literal
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.google.privacy_clause import Bounds, bounds_of


@dataclass(frozen=True, slots=True)
class Own:
    """per_group: for the total of each id in each group. per_row: for each value."""

    per_group: Bounds | None = None
    per_row: Bounds | None = None


def own_bounds(node: exp.Expr, function: str, distinct: bool) -> Own:
    """The bounds written in an aggregate, by their meaning. Raises Rejected DP014 if it cannot have them."""
    written = bounds_of(node)
    if written is None:
        return Own()
    if distinct:
        raise _wrong("an aggregate over DISTINCT values takes no bounds", written.span, "leave them out")
    per_group, per_row = written.per_group, written.per_row
    if written.clamped is not None:  # of an average the values are clipped, of anything else the totals
        per_group, per_row = (written.clamped, None) if function in ("count", "sum") else (None, written.clamped)
    if function not in ("count", "sum") and per_group is not None:
        name = function.upper()
        raise _wrong(f"{name} bounds each value, not a total", written.span, "use contribution_bounds_per_row")
    if function == "count" and per_row is not None:
        raise _wrong("COUNT bounds rows per group, not values", written.span, "use contribution_bounds_per_group")
    if per_group is None:
        return Own(None, per_row)
    low, high = per_group
    if function == "count" and (low > 0 or high < 1 or high.denominator != 1):
        raise _wrong("COUNT takes bounds from 0 to a whole number above 0", written.span, "for example  (0, 4)")
    if function == "sum" and not low <= 0 <= high:
        raise _wrong("SUM takes bounds with 0 between them", written.span, "an id without rows contributes 0")
    return Own((Fraction(0), high) if function == "count" else per_group)


def clip(binder: ExprBinder, arg: Expr, bounds: Bounds) -> Expr:
    """CLIP(arg, low, high), as if it had been written."""
    return binder.call("clip", (arg, *(_literal(x, arg.span) for x in bounds)), arg.span or Span(0, 1))


def _literal(x: Fraction, span: Span | None) -> Literal:
    """The number as it was written: bounds are read from decimal digits, so their denominators divide a power of 10."""
    if x.denominator == 1:
        return literals.integer(int(x), span)
    scale = 0
    while x.denominator != 1 and 10**scale % x.denominator:
        scale += 1
    return literals.exact(Decimal(f"{int(x * 10**scale)}E-{scale}"), span)


def _wrong(message: str, span: Span, repair: str) -> Rejected:
    return reject("DP014", message, span=span, help=[repair])
