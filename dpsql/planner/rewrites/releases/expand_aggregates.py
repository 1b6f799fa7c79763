"""An aggregate over private rows becomes a release: noisy components, and recipes that make the columns from them.

AVG splits into a centred sum and a count, variances into these two and a sum of squares; equal components are measured
once, whatever columns they serve.

Example:
    >>> before_after(expand_aggregates, "SELECT AVG(age), COUNT(*) FROM patients")
    aggregate AVG(CLIP(age, 0, 110)), COUNT(*)  →  release SUM(CLIP(age, 0, 110) - middle), COUNT(*)
    └─ scan patients                               └─ scan patients
"""

from __future__ import annotations

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, ValueSum
from dpsql.core.ir.expressions import Expr, columns_of
from dpsql.core.ir.nodes import Aggregate, AggregateCall, GroupKeys, Node, Release
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.walk import transform
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.frontend.aggregates.aggregate import Shared
from dpsql.frontend.aggregates.all_aggregates import AGGREGATES
from dpsql.frontend.aggregates.arguments import label
from dpsql.frontend.aggregates.formula import Formula
from dpsql.frontend.aggregates.interval_end import End
from dpsql.frontend.aggregates.sum import Sum
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.planner.searches.limits_to_search import Searching


def expand_aggregates(root: Node, ctx: RewriteContext) -> Node:
    """Replace every aggregate over private rows by a release (its keys still private, its grids not yet chosen)."""

    def change(node: Aggregate) -> Node:
        if node.inner or not ctx.private(node.input):
            return node
        return _release(node, derive_once(node.input, ctx.analysis).fact, ctx)

    return transform(root, Aggregate, change)


def _release(node: Aggregate, facts: Facts, ctx: RewriteContext) -> Release:
    components: list[Component] = []

    def shared(component: Component) -> int:
        if component not in components:
            components.append(component)
        return components.index(component)

    searching = ctx.searching_in(node.input, of_rows=True)
    if any(call.per_group is not None for call in node.calls):
        searching = None  # single aggregates bring their own limits
    outputs, together = [], Together()
    for call in node.calls:
        with together.attempt():
            searched = searching is not None and _is_searched(call, facts, searching, ctx)
            found = _formula(call, facts, shared, searched)
            recipe = End(found, call.end == "high") if call.end else found
            outputs.append(Output(call.column, recipe, label(call), call.span))
    together.settle()
    return Release(
        GroupKeys(node.input, node.keys, None),
        tuple(k.column for k in node.keys),
        tuple(components),
        tuple(outputs),
        span=node.span or (node.calls[0].span if node.calls else None),
    )


def _formula(call: AggregateCall, facts: Facts, shared: Shared, searched: bool) -> Formula:
    """searched: whether it is a sum whose values have no bounds, and whose totals get a limit that is found."""
    aggregate = AGGREGATES[call.function]
    if call.distinct and not aggregate.distinct:
        raise reject(
            "DP101", f"{call.function.upper()}(DISTINCT …) is not supported", span=call.span,
            help=["COUNT, SUM and AVG(DISTINCT …) are; or aggregate without DISTINCT"],
        )  # fmt: skip
    if searched and call.arg is not None:
        return Sum(shared(ValueSum(call.arg, call.filter)))
    return aggregate.bind(call, facts, shared)


def _is_searched(call: AggregateCall, facts: Facts, searching: Searching, ctx: RewriteContext) -> bool:
    """Whether it is a sum of numbers without bounds whose totals per id can be limited by a search, and are to be."""
    if call.function != "sum" or call.distinct or call.arg is None or call.per_group is not None or not facts.ids:
        return False
    value = facts.value(call.arg)
    if not value.type.numeric or value.interval.bounded:
        return False
    everywhere = searching.everywhere or searching.undeclared or searching.values_everywhere
    return everywhere or call.arg in searching.asked or _left_open(call.arg, facts, ctx)


def _left_open(arg: Expr, facts: Facts, ctx: RewriteContext) -> bool:
    """Whether the policy leaves every column without bounds to a search, or the rows of its table."""
    hints = [facts.columns[uid].hint for uid in columns_of(arg)]
    if any(h is None or not h.table for h in hints):
        return False
    open_ones = [h for h in hints if h is not None and (h.bounds is None or not h.bounds.bounded)]
    tables = [(ctx.analysis.table(h.table), h.column) for h in open_ones]
    return all(t.search_rows or ((c := t.column(name)) is not None and c.search_bounds) for t, name in tables)
