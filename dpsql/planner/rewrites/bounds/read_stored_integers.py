"""What a prepared copy has computed already is read: the grid integers of a column, in place of its clip and rounding.

*Claim.* A component reads them only where they are what it would compute. *Why.* They are the integers of the column's
own clip on the least grid that its declared bounds fit, by the very text that queries are printed with. A component
reads them if it has this clip, this grid and these ends. Its center is even or 0: halves are rounded to even, and less
an odd number they would not be. A copy says for which bounds it holds them. *When it would be false.* Another rounding
in a copy than in a query. What a component adds lies between its ends all the same: a copy that holds others is not
opened, and nobody writes to one that is.
*Tested by* tests/service/test_prepared.py.

Example:
    >>> before_after(read_stored_integers, "SELECT SUM(cost) FROM visits", prepared=True)
    release SUM(CLIP(cost, 0.0, 1000.0)) of integers 0 … 1048576000, each worth 1/1048576
    → release SUM(CLIP(cost, 0.0, 1000.0)) of integers 0 … 1048576000, each worth 1/1048576, read from 'cost in units'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dpsql.core.analysis.declared_columns import declared_bounds
from dpsql.core.ir.components import Component, ProductSum, QuantileChoice, ValueSum
from dpsql.core.ir.expressions import Call, Column
from dpsql.core.ir.nodes import Node, Release, Scan, output_columns
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import transform, walk
from dpsql.core.numbers.interval import Interval
from dpsql.core.policy.tables import Column as Declared
from dpsql.core.values.value import Value
from dpsql.frontend.aggregates.arguments import bound
from dpsql.planner.rewrites.bounds.choose_grids import MOST_UNITS, on_least_grid
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def read_stored_integers(root: Node, ctx: RewriteContext) -> Node:
    """Let every component read what a copy holds of it."""
    if not ctx.reads_copies:
        return root

    def change(node: Release) -> Node:
        there = _stored(node.input, ctx)
        return replace(node, components=tuple(_reading(c, there) for c in node.components)) if there else node

    return transform(root, Release, change)


def stored_form(declared: Declared, column: Column) -> ValueSum | None:
    """The sum whose integers a copy holds of a column; None of one without bounds, or whose integers cost nothing."""
    bounds = declared_bounds(declared, column)
    if column.type.kind not in (Kind.DOUBLE, Kind.DECIMAL) or bounds is None or bounds.lo is None or bounds.hi is None:
        return None
    low, high = bound(bounds.lo, column.type, False), bound(bounds.hi, column.type, True)
    within = Value(column.type, Interval(*(Fraction(end.value) for end in (low, high))))  # type: ignore[arg-type]
    return on_least_grid(ValueSum(Call("clip", (column, low, high), column.type)), within, MOST_UNITS)


def said_of(form: ValueSum) -> str:
    """What of a form its integers rest on, for the copy to say."""
    return f"{form.grid} {form.lo} {form.hi}"


def ends_of(said: str) -> tuple[int, int]:
    """The least and the greatest integer of a form of which this is said."""
    _, low, high = said.split()
    return int(low), int(high)


def _stored(rows: Node, ctx: RewriteContext) -> Mapping[int, tuple[ValueSum, Column]]:
    """Number of a column → its stored form and the column with these integers, if the rows have both."""
    there, found = {c.uid for c in output_columns(rows)}, {}
    for scan in walk(rows):
        if not isinstance(scan, Scan) or (table := ctx.analysis.table(scan.table)).copied is None:
            continue
        named = {c.name: c for c in scan.columns}
        for name, integers in table.copied.units.items():
            declared, column, units = table.column(name), named[name], named[integers.name]
            assert declared is not None
            form = stored_form(declared, column)
            if form is not None and {column.uid, units.uid} <= there:
                found[column.uid] = form, units
    return found


def _reading(c: Component, stored: Mapping[int, tuple[ValueSum, Column]]) -> Component:
    match c:
        case ValueSum() | QuantileChoice() | ProductSum(times=None) if c.of_unit is None:
            match c.arg:
                case Call(function="clip", args=(Column(uid=uid), *_)) if uid in stored:
                    form, units = stored[uid]
                    held = (c.arg, c.grid, c.lo + c.center, c.hi + c.center)
                    alike = held == (form.arg, form.grid, form.lo, form.hi)
                    return replace(c, units=units) if alike and c.center % 2 == 0 else c
    return c
