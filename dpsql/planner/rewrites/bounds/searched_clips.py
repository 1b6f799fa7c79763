"""CLIP(x, AUTO) in a sum: x without a bound, whose total for each id is limited by a search.

The end that is written stays a clip. Where the policy declares both bounds of x, those hold, and nothing is searched.
Elsewhere AUTO is refused: a search limits totals of ids.

Example:
    >>> before_after(searched_clips, "SELECT SUM(CLIP(cost, AUTO)) FROM visits")
    aggregate SUM(CLIP(CLIP(cost, 0.0, 1000.0), NULL, NULL))  →  aggregate SUM(CLIP(cost, 0.0, 1000.0))
    └─ scan visits                                               └─ scan visits
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Node
from dpsql.core.ir.types import BOOLEAN, Kind
from dpsql.core.ir.walk import transform
from dpsql.core.policy.tables import MOST_STEPS
from dpsql.diagnostics.diagnostic import Mark
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.words import number
from dpsql.frontend.aggregates.arguments import bound
from dpsql.frontend.bind.aggregates.searched_clips import is_auto, is_searched, searched_in
from dpsql.functions.numbers.clipping import clip_bounds
from dpsql.planner.rewrites.bounds.choose_grids import resolution_of
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.planner.searches.limits_to_search import Searching


def searched_clips(root: Node, ctx: RewriteContext) -> Node:
    """Open the searched ends of clips. Raises Rejected DP101, DP214."""

    def change(node: Aggregate) -> Node:
        if all(searched_in(call.arg) is None for call in node.calls):
            return node
        facts = derive_once(node.input, ctx.analysis).fact
        private = ctx.private(node.input) and not node.inner and bool(facts.ids)
        searching = ctx.searching_in(node.input, of_rows=True) if private else None
        return replace(node, calls=tuple(_opened(call, facts, searching, ctx) for call in node.calls))

    return transform(root, Aggregate, change)


def _opened(call: AggregateCall, facts: Facts, searching: Searching | None, ctx: RewriteContext) -> AggregateCall:
    clip = searched_in(call.arg)
    if clip is None or call.arg is None:
        return call
    if call.function != "sum" or call.per_group is not None or searching is None:
        raise reject(
            "DP101", "AUTO is not searched here", span=clip.span, mark=Mark.UNSEARCHED,
            label="what is searched is a SUM of private rows of an id",
            help=["write the bounds themselves:  CLIP(x, lower, upper)"],
        )  # fmt: skip
    arg = transform_expr(call.arg, lambda e: _open(e, facts, ctx) if isinstance(e, Call) and is_searched(e) else e)
    searching.asked.add(arg)
    return replace(call, arg=arg)


def _open(clip: Call, facts: Facts, ctx: RewriteContext) -> Expr:
    x, lower, upper = clip.args
    given = lower if is_auto(upper) else upper
    if is_auto(given):
        return x
    assert isinstance(given, Literal)
    ends = (facts.value(x), facts.value(given), facts.value(given))
    end, _ = clip_bounds(ends)
    grid = resolution_of(x, facts, ctx.analysis.table)
    if x.type.kind is Kind.DOUBLE and max(end, -end) > MOST_STEPS * grid:
        raise reject(
            "DP214", f"{number(end)} lies beyond 2^62 steps of {_power(grid)}, the resolution of what is added up",
            span=given.span or clip.span,
            help=["custodian: give the column a coarser one, e.g.  resolution: 1", "or leave this bound to AUTO, too"],
        )  # fmt: skip
    at = bound(end, x.type, given is upper)
    beyond = Call("lt" if given is lower else "gt", (x, at), BOOLEAN)
    if x.type.kind is Kind.DOUBLE:  # what is infinite, or no number, adds nothing, as in every CLIP
        beyond = Call("and", (beyond, Call("isfinite", (x,), BOOLEAN)), BOOLEAN)
    return Call("case", (beyond, at, x), x.type, clip.span)


def _power(x: Fraction) -> str:
    """A power of two."""
    return f"2^{x.numerator.bit_length() - x.denominator.bit_length()}"
