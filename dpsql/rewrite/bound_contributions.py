"""Choose how the contribution of one id is bounded, and put the bounding node under the release.

Which limits apply (semantics.md §4): the smallest of each kind over the private tables whose rows are counted, and the
query. Without groups, or with the group a function of the id: C if given, else M. Otherwise (M, G) if both are given,
else C. Where the tree already proves that an id has few enough rows, no weights are needed and no node is added.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.analysis.counted import counted
from dpsql.analysis.derive import derive
from dpsql.analysis.facts import Facts
from dpsql.analysis.rules.release import no_limit
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Rejected
from dpsql.numbers.cap import Finite
from dpsql.plan.expr import Column
from dpsql.plan.nodes import BoundContributions, GroupKeys, Measure, Node, Release, output_columns
from dpsql.plan.walk import transform
from dpsql.rewrite.context import RewriteContext


def bound_contributions(root: Node, ctx: RewriteContext) -> Node:
    """Insert the bounding node under every release of an id unit that needs one."""

    def change(node: Node) -> Node:
        return _bounded(node, ctx) if isinstance(node, Release) else node

    return transform(root, change)


def _bounded(node: Release, ctx: RewriteContext) -> Release:
    facts = derive(node.input, ctx.analysis).fact
    if not facts.ids:
        return node
    assert isinstance(node.input, GroupKeys)
    bounding = _choose(node, node.input, facts, ctx)
    return node if bounding is None else replace(node, input=bounding)


def _choose(node: Release, keyed: GroupKeys, facts: Facts, ctx: RewriteContext) -> BoundContributions | None:
    proven = _proven(facts)
    total, per_group, groups = _limits(keyed, ctx)
    id_column = _id_column(facts, keyed)
    keys = tuple(i.column for i in keyed.items)
    private_keys = keyed.sources is None
    key_columns = frozenset(k.uid for k in keys)
    one_group = not keys or key_columns <= facts.by_id
    if private_keys and not one_group:
        # An id must not decide how many keys it touches: keep G groups, or as many as it may have rows.
        if proven is not None and (groups is None or proven <= groups) and (total is None or proven <= total):
            return None
        if per_group is not None and groups is not None:
            return BoundContributions(keyed, id_column, keys, None, per_group, groups, truncate_groups=True)
        rows = total if total is not None else proven
        if rows is None:
            raise Rejected([Diagnostic.from_reason(no_limit(node, facts))])
        return BoundContributions(keyed, id_column, keys, rows, None, min(rows, groups or rows), truncate_groups=True)
    if any(facts.is_key(frozenset({uid}) | key_columns) for uid in facts.ids):
        per_group = 1
    if one_group:
        rows = total if total is not None else per_group
        if proven is not None and (rows is None or proven <= rows):
            return None
        if rows is None and all(c.measure is Measure.UNITS for c in node.components):
            rows = 1  # an id counts once, however many rows it has
        if rows is None:
            raise Rejected([Diagnostic.from_reason(no_limit(node, facts))])
        return BoundContributions(keyed, id_column, keys, None, rows, 1, few_groups=True)
    if per_group is not None and groups is not None:
        if proven is not None and proven <= per_group * groups:
            return None
        assert keyed.sources is not None
        possible = 1
        for source in keyed.sources:
            possible *= len(source.keys)
        few = 0 < possible <= groups
        return BoundContributions(keyed, id_column, keys, None, per_group, possible if few else groups, few_groups=few)
    if proven is not None and (total is None or proven <= total):
        return None
    if total is None:
        raise Rejected([Diagnostic.from_reason(no_limit(node, facts))])
    return BoundContributions(keyed, id_column, keys, total)


def _proven(facts: Facts) -> int | None:
    """Rows per id that the finished tree itself proves, or None."""
    found = [facts.most_rows(frozenset({uid})) for uid in facts.ids]
    values = [cap.value for cap in found if isinstance(cap, Finite)]
    return None if not values else int(min(values))


def _limits(node: GroupKeys, ctx: RewriteContext) -> tuple[int | None, int | None, int | None]:
    """(C, M, G): the smallest of each over the private tables whose rows are counted below, and the query."""
    private = counted(node.input, ctx.analysis)
    totals = [
        t.max_rows_per_unit.rows for t in private if t.max_rows_per_unit is not None and not t.max_rows_per_unit.assumed
    ]
    per_group = [t.max_rows_per_group for t in private if t.max_rows_per_group is not None]
    groups = [t.max_groups_per_unit for t in private if t.max_groups_per_unit is not None]
    limits = ctx.limits
    return (
        min([*totals, *([limits.rows] if limits.rows is not None else [])], default=None),
        min([*per_group, *([limits.per_group] if limits.per_group is not None else [])], default=None),
        min([*groups, *([limits.groups] if limits.groups is not None else [])], default=None),
    )


def _id_column(facts: Facts, keyed: GroupKeys) -> Column:
    return next(c for c in output_columns(keyed) if c.uid in facts.ids)
