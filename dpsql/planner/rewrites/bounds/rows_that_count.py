"""Rows that no component counts are left out below the limits, where that leaves an id fewer rows than a limit does.

Of DISTINCT or GROUP BY (id, few values) an id has as many rows as there are values. Where slices list these, as
`FILTER (WHERE kind = 'a')` and `FILTER (WHERE kind = 'b')` do, a row counts in one of them or nowhere. So that it
satisfies one of them stands as a filter below the limits, where an id seems to have two rows; no more of them count
(`bound_contributions.py`). The answer is the same, but that a limit cuts less. Private groups stay as they are: all of
their rows count, by a component that says which are shown.

Example:
    >>> before_after(
    ...     rows_that_count,
    ...     "SELECT COUNT(*) FILTER (WHERE code = 'a') AS a, COUNT(*) FILTER (WHERE code = 'b') AS b "
    ...     "FROM (SELECT DISTINCT patient, code FROM visits)"
    ... )
    distinct patient, code  →  filter (code = 'a') OR (code = 'b')
    └─ scan visits             └─ distinct patient, code
                                  └─ scan visits
"""

from __future__ import annotations

from functools import reduce

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.policy_limits import policy_limits
from dpsql.core.ir.expressions import MOST_NODES, Call, Expr, larger_than
from dpsql.core.ir.nodes import Filter, GroupKeys, Node, Release
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.walk import transform
from dpsql.core.value_classes import replace
from dpsql.planner.distinct_values import most_rows_of_an_id
from dpsql.planner.rewrites.releases.cut_slices import as_filter
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def rows_that_count(root: Node, ctx: RewriteContext) -> Node:
    """Put the conditions of all components below every release that counts fewer rows of an id for it."""

    def change(node: Release) -> Node:
        keyed = node.input
        assert isinstance(keyed, GroupKeys)
        counted = _counted(node)
        if counted is None:
            return node
        before = derive_once(keyed, ctx.analysis)
        if not before.fact.ids:
            return node
        known = most_rows_of_an_id(before), policy_limits(keyed.input, ctx.analysis).rows, ctx.limits.rows
        filtered = replace(keyed, input=Filter(keyed.input, counted))
        fewer = most_rows_of_an_id(derive_once(filtered, ctx.analysis))
        better = fewer is not None and all(n is None or fewer < n for n in known)
        return replace(node, input=filtered) if better else node

    return transform(root, Release, change)


def _counted(node: Release) -> Expr | None:
    """What is true of each row that a component counts; None if one counts any row."""
    found = dict.fromkeys(as_filter(c).filter for c in node.components)
    conditions = [condition for condition in found if condition is not None]
    if not conditions or len(conditions) < len(found):
        return None
    either = reduce(lambda a, b: Call("or", (a, b), BOOLEAN), conditions)
    return None if larger_than(either, MOST_NODES) else either
