"""Averages, variances and quantiles of what has no bounds get some from a search, where it may find them.

Sums of ids need none: their totals are limited (`bound_contributions`). Elsewhere AUTO in a CLIP is a bound that is
found, too.

Each id spreads one weight over the octaves of its values, whatever the number of its rows: so the search needs no limit
on rows, which in turn needs no bounds. What is released is clipped to what was found, as to bounds that are declared.

Example:
    >>> before_after(search_values, "SELECT AVG(age) FROM patients")
    project avg(age)                     →  project avg(age)
    └─ aggregate AVG(CLIP(age, 0, 110))     └─ aggregate AVG(CLIP(age, 0, 110))
       └─ scan patients                        └─ scan patients
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Expr, walk
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Filter, Node, output_columns
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import transform
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.arguments import bound
from dpsql.frontend.bind.aggregates.searched_clips import SEARCHING, is_auto, is_searched, searched_in
from dpsql.planner.rewrites.bounds.choose_grids import gridded, resolution_of
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.planner.searches.limits_to_search import Rule, Searching
from dpsql.planner.searches.may_search import left_open
from dpsql.planner.searches.octave_counts import of_values


def search_values(root: Node, ctx: RewriteContext) -> Node:
    """Clip what is averaged to bounds that are found."""
    if ctx.searching is None:
        return root

    def change(node: Aggregate) -> Node:
        if node.inner or not ctx.private(node.input):
            return node
        searching = ctx.searching_in(node.input)
        if searching is None or any(call.per_group is not None for call in node.calls):
            return node
        facts = derive_once(node.input, ctx.analysis).fact
        searching = searching.aside() if facts.empty else searching
        return replace(node, calls=tuple(_Call(node, c, facts, searching, ctx).changed() for c in node.calls))

    return transform(root, Aggregate, change)


class _Call:
    def __init__(
        self, node: Aggregate, call: AggregateCall, facts: Facts, searching: Searching, ctx: RewriteContext
    ) -> None:
        self.node, self.call, self.facts, self.searching, self.ctx = node, call, facts, searching, ctx

    def changed(self) -> AggregateCall:
        """The call with bounds."""
        call = self.call
        total = call.function == "sum" and bool(self.facts.ids)
        if call.function not in SEARCHING or call.distinct or call.arg is None or total:
            return call
        arg = transform_expr(call.arg, self._found) if searched_in(call.arg) else call.arg
        value = self.facts.value(arg)
        everywhere = self.searching.values_everywhere or self.ctx.searches_rows(self.node.input)
        if value.type.numeric and not value.interval.bounded and everywhere:
            arg = self._clipped(arg, None, None)
        elif arg is call.arg and (opened := left_open(arg, self.facts, self.ctx.analysis.table)) is not None:
            arg = self._clipped(arg, None, None, opened)
        return call if arg is call.arg else replace(call, arg=arg)

    def _found(self, e: Expr) -> Expr:
        """A CLIP whose bounds are searched, with bounds."""
        if not is_searched(e):
            return e
        assert isinstance(e, Call)
        x, *ends = e.args
        low, high = (None if is_auto(end) else end for end in ends)
        return self._clipped(x, low, high)

    def _clipped(self, x: Expr, low: Expr | None, high: Expr | None, opened: Expr | None = None) -> Call:
        """x within bounds that are found. low, high: those of them that are written.

        opened: x without the clips that the policy puts around what is searched: then bounds stay where they leave x.
        """
        if any(e in self.searching.clips.values() for e in walk(x)):
            raise reject(
                "DP101", "bounds are searched of what is itself clipped to bounds that are searched", span=x.span,
                help=["leave bounds to AUTO once, around the whole:  CLIP(…, AUTO)"],
            )  # fmt: skip
        t = x.type
        places = {Kind.INTEGER: Fraction(1), Kind.DECIMAL: Fraction(1, 10**t.scale)}
        grid = places.get(t.kind) or resolution_of(x, self.facts, self.ctx.analysis.table)
        rows = self.node.input if self.call.filter is None else Filter(self.node.input, self.call.filter)
        id_column = next((c for c in output_columns(rows) if c.uid in self.facts.ids), None)
        made = of_values(rows, id_column, x, grid, self.searching.numbers)
        octaves = gridded(made, derive_once(made.input, self.ctx.analysis))
        within = self._units(low, grid), self._units(high, grid)
        if opened is not None:
            span = self.facts.value(x).interval
            low_end, high_end = (None if end is None else int(end // grid) for end in (span.lo, span.hi))
            within = low_end, high_end
        rule = Rule.RANGE if self.call.p is None else Rule.QUANTILE
        label, found = self.searching.bounds(octaves, expression(opened or x), rule, grid, within)
        ends = [bound(end * grid, t, up) for end, up in zip(found, (False, True), strict=True)]
        clip = Call("clip", (x, *ends), t)
        self.searching.clips[label] = clip
        return clip

    def _units(self, end: Expr | None, grid: Fraction) -> int | None:
        """A written bound in units of the grid."""
        if end is None:
            return None
        at = self.facts.value(end).interval.lo
        return None if at is None else int(at // grid)
