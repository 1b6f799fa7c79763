"""DP508: a sum or average of durations whose bounds are those of both of their ends.

Two times of one year lie up to a year apart, either way. Noise hides that much of each row, however short the durations
are that the rows hold. What they are is not looked at: the warning follows from the query and the policy alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpsql.core.ir.components import OnGrid
from dpsql.core.ir.expressions import Call, Cast, Expr, columns_of
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.short_text import expression
from dpsql.core.measures.all_measures import rule
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.words import number


def durations(node: Release, source: Source) -> Iterator[Diagnostic]:
    """A warning for the first column of a release that is made of such durations."""
    for output in node.outputs:
        for c in (node.components[i] for i in output.recipe.components):
            between = next(_open_durations(c.arg), None) if isinstance(c, OnGrid) and rule(c).adds_values else None
            if between is None or not isinstance(c, OnGrid):
                continue
            low, high = (Fraction(end + c.center) * c.grid for end in (c.lo, c.hi))
            at = between.span
            shown = expression(between) if at is None else source.text[at.start : at.end]
            yield Diagnostic(
                "DP508",
                f"{output.label or output.column.name} takes each duration for one "
                f"from {number(low)} to {number(high)}",
                source, at or output.span, "its bounds are as wide as those of both of its ends together",
                (f"say how long one can be:  CLIP({shown}, lower, upper)",),
                ("from the bounds in the policy alone: noise hides as much, however long the durations are",),
                severity="warning",
            )  # fmt: skip
            return


def _open_durations(expr: Expr) -> Iterator[Call]:
    """Differences of two times that both are columns, with no CLIP around them."""
    match expr:
        case Call(function="clip") if expr.type.numeric:
            return
        case Call(args=args):
            ends = [columns_of(a) for a in args if a.type.temporal]
            if expr.type.numeric and len(ends) == 2 and all(ends) and ends[0] != ends[1]:
                yield expr
            for a in args:
                if a.type.numeric:  # not in conditions
                    yield from _open_durations(a)
        case Cast(arg=arg):
            yield from _open_durations(arg)
