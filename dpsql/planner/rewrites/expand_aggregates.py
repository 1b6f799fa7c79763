"""An aggregate over private rows becomes a release: noisy components, and recipes that make the columns from them.

AVG splits into a centred sum and a count, variances into these two and a sum of squares; equal components are measured
once, whatever columns they serve.

Example:
    >>> before_after(expand_aggregates, "SELECT AVG(age), COUNT(*) FROM patients")
    aggregate AVG(CLIP(age, 0, 110)), COUNT(*)  →  release SUM(CLIP(age, 0, 110) - middle), COUNT(*)
    └─ scan patients                               └─ scan patients
"""

from __future__ import annotations

from dpsql.aggregates.aggregate import Shared
from dpsql.aggregates.arguments import label
from dpsql.aggregates.formula import Formula
from dpsql.aggregates.interval_end import End
from dpsql.aggregates.table import AGGREGATES
from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, Output
from dpsql.core.ir.nodes import Aggregate, AggregateCall, GroupKeys, Node, Release
from dpsql.core.ir.walk import transform
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.together import Together
from dpsql.planner.rewrites.context import RewriteContext


def expand_aggregates(root: Node, ctx: RewriteContext) -> Node:
    """Replace every aggregate over private rows by a release (its keys still private, its grids not yet chosen)."""

    def change(node: Node) -> Node:
        if not isinstance(node, Aggregate) or node.inner or not ctx.private(node.input):
            return node
        return _release(node, derive_once(node.input, ctx.analysis).fact)

    return transform(root, change)


def _release(node: Aggregate, facts: Facts) -> Release:
    components: list[Component] = []

    def shared(component: Component) -> int:
        if component not in components:
            components.append(component)
        return components.index(component)

    outputs, together = [], Together()
    for call in node.calls:
        with together.attempt():
            found = _formula(call, facts, shared)
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


def _formula(call: AggregateCall, facts: Facts, shared: Shared) -> Formula:
    aggregate = AGGREGATES[call.function]
    if call.distinct and not aggregate.distinct:
        raise reject(
            "DP101", f"{call.function.upper()}(DISTINCT …) is not supported", span=call.span,
            help=["COUNT(DISTINCT …) is; or aggregate without DISTINCT"],
        )  # fmt: skip
    return aggregate.bind(call, facts, shared)
