"""The rewrites, in order. Each is a guess that the analysis checks afterwards on the finished tree."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.core.ir.nodes import Node
from dpsql.planner.rewrites.add_group_keys import add_group_keys
from dpsql.planner.rewrites.bound_contributions import bound_contributions
from dpsql.planner.rewrites.choose_components import choose_components
from dpsql.planner.rewrites.choose_grids import choose_grids, sum_integers
from dpsql.planner.rewrites.clip_columns import clip_columns
from dpsql.planner.rewrites.context import RewriteContext
from dpsql.planner.rewrites.correlate_publicly import correlate_publicly
from dpsql.planner.rewrites.count_partners import count_partners
from dpsql.planner.rewrites.expand_aggregates import expand_aggregates
from dpsql.planner.rewrites.follow_paths import follow_paths
from dpsql.planner.rewrites.inline_projections import inline_projections
from dpsql.planner.rewrites.join_owners import join_owners
from dpsql.planner.rewrites.keep_private import keep_private
from dpsql.planner.rewrites.limit_frequencies import limit_frequencies
from dpsql.planner.rewrites.list_choices import list_choices
from dpsql.planner.rewrites.narrow_joins import narrow_joins
from dpsql.planner.rewrites.order_joins import order_joins
from dpsql.planner.rewrites.pick_groups import pick_groups
from dpsql.planner.rewrites.place_conditions import place_conditions
from dpsql.planner.rewrites.read_stored_integers import read_stored_integers
from dpsql.planner.rewrites.refuse_constants import refuse_constants
from dpsql.planner.rewrites.same_rows import same_rows
from dpsql.planner.rewrites.search_values import search_values
from dpsql.planner.rewrites.searched_clips import searched_clips
from dpsql.planner.rewrites.whole_keys import whole_keys

Rewrite = Callable[[Node, RewriteContext], Node]

RULES: tuple[Rewrite, ...] = (
    inline_projections,
    order_joins,
    place_conditions,
    narrow_joins,
    correlate_publicly,
    join_owners,
    follow_paths,
    count_partners,
    limit_frequencies,
    keep_private,
    clip_columns,
    refuse_constants,
    sum_integers,
    search_values,
    searched_clips,
    whole_keys,
    expand_aggregates,
    add_group_keys,
    same_rows,
    list_choices,
    pick_groups,
    bound_contributions,
    choose_components,
    choose_grids,
    read_stored_integers,
)


def rewrite(root: Node, ctx: RewriteContext) -> Node:
    """The plan in which every aggregate over private rows is a release. Raises Rejected."""
    for rule in RULES:
        root = rule(root, ctx)
    return root
