"""The rewrites, in order. Each is a guess that the analysis checks afterwards on the finished tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dpsql.core.ir.nodes import Node
from dpsql.planner.rewrites.bounds.bound_contributions import bound_contributions
from dpsql.planner.rewrites.bounds.choose_grids import choose_grids, sum_integers
from dpsql.planner.rewrites.bounds.clip_columns import clip_columns
from dpsql.planner.rewrites.bounds.read_stored_integers import read_stored_integers
from dpsql.planner.rewrites.bounds.refuse_constants import refuse_constants
from dpsql.planner.rewrites.bounds.rows_that_count import rows_that_count
from dpsql.planner.rewrites.bounds.search_values import search_values
from dpsql.planner.rewrites.bounds.searched_clips import searched_clips
from dpsql.planner.rewrites.joins.correlate_publicly import correlate_publicly
from dpsql.planner.rewrites.joins.count_partners import count_partners
from dpsql.planner.rewrites.joins.follow_paths import follow_paths
from dpsql.planner.rewrites.joins.join_owners import join_owners
from dpsql.planner.rewrites.joins.join_periods import join_periods
from dpsql.planner.rewrites.joins.limit_frequencies import limit_frequencies
from dpsql.planner.rewrites.joins.narrow_joins import narrow_joins
from dpsql.planner.rewrites.joins.order_joins import order_joins
from dpsql.planner.rewrites.joins.place_conditions import place_conditions
from dpsql.planner.rewrites.joins.read_carried import read_carried
from dpsql.planner.rewrites.joins.read_periods import read_periods
from dpsql.planner.rewrites.keys.add_group_keys import add_group_keys
from dpsql.planner.rewrites.keys.leave_out_unlisted import leave_out_unlisted
from dpsql.planner.rewrites.keys.list_choices import list_choices
from dpsql.planner.rewrites.keys.pick_groups import pick_groups
from dpsql.planner.rewrites.keys.whole_keys import whole_keys
from dpsql.planner.rewrites.releases.choose_components import choose_components
from dpsql.planner.rewrites.releases.cut_slices import cut_slices
from dpsql.planner.rewrites.releases.expand_aggregates import expand_aggregates
from dpsql.planner.rewrites.releases.inline_projections import inline_projections
from dpsql.planner.rewrites.releases.keep_private import keep_private
from dpsql.planner.rewrites.releases.promised_conditions import promised_conditions
from dpsql.planner.rewrites.releases.same_rows import same_rows
from dpsql.planner.rewrites.rewrite_context import RewriteContext

Rewrite = Callable[[Node, RewriteContext], Node]

RULES: tuple[Rewrite, ...] = (
    inline_projections,
    order_joins,
    place_conditions,
    read_periods,
    narrow_joins,
    correlate_publicly,
    join_owners,
    join_periods,
    follow_paths,
    count_partners,
    limit_frequencies,
    keep_private,
    promised_conditions,
    leave_out_unlisted,
    clip_columns,
    refuse_constants,
    sum_integers,
    search_values,
    searched_clips,
    whole_keys,
    expand_aggregates,
    add_group_keys,
    promised_conditions,  # once more: of group keys that are listed now
    same_rows,
    list_choices,
    pick_groups,
    rows_that_count,
    bound_contributions,
    choose_components,
    choose_grids,
    cut_slices,
    read_carried,
    read_stored_integers,
)


def rewrite(root: Node, ctx: RewriteContext) -> Node:
    """The plan in which every aggregate over private rows is a release. Raises Rejected."""
    for rule in RULES:
        root = rule(root, ctx)
    if ctx.searching is not None and ctx.searching.waits:
        ctx.searching.finish(partial(_with_forms, ctx=ctx))
    return root


def _with_forms(rows: Node, ctx: RewriteContext) -> Node:
    """Rows that a search counts, as they were once their releases were limited: what is done to these afterwards."""
    for rule in RULES[RULES.index(bound_contributions) + 1 :]:
        rows = rule(rows, ctx)
    return rows
