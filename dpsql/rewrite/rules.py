"""The rewrites, in order. Each is a guess that the analysis checks afterwards on the finished tree."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.plan.nodes import Node
from dpsql.rewrite.add_group_keys import add_group_keys
from dpsql.rewrite.bound_contributions import bound_contributions
from dpsql.rewrite.choose_components import choose_components
from dpsql.rewrite.choose_grids import choose_grids
from dpsql.rewrite.clip_columns import clip_columns
from dpsql.rewrite.context import RewriteContext
from dpsql.rewrite.correlate_publicly import correlate_publicly
from dpsql.rewrite.expand_aggregates import expand_aggregates
from dpsql.rewrite.follow_paths import follow_paths
from dpsql.rewrite.inline_projections import inline_projections
from dpsql.rewrite.keep_private import keep_private
from dpsql.rewrite.limit_frequencies import limit_frequencies
from dpsql.rewrite.narrow_joins import narrow_joins
from dpsql.rewrite.order_joins import order_joins
from dpsql.rewrite.place_conditions import place_conditions
from dpsql.rewrite.refuse_constants import refuse_constants

Rewrite = Callable[[Node, RewriteContext], Node]

RULES: tuple[Rewrite, ...] = (
    inline_projections,
    order_joins,
    place_conditions,
    narrow_joins,
    correlate_publicly,
    follow_paths,
    limit_frequencies,
    keep_private,
    clip_columns,
    refuse_constants,
    expand_aggregates,
    add_group_keys,
    bound_contributions,
    choose_components,
    choose_grids,
)


def rewrite(root: Node, ctx: RewriteContext) -> Node:
    """The plan in which every aggregate over private rows is a release. Raises Rejected."""
    for rule in RULES:
        root = rule(root, ctx)
    return root
