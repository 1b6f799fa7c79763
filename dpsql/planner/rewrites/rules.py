"""The rewrites, in order. Each is a guess that the analysis checks afterwards on the finished tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dpsql.core.ir.nodes import Aggregate, Filter, Join, Limit, Node, Release, Scan
from dpsql.core.ir.walk import kinds
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
from dpsql.planner.rewrites.releases.pick_within_units import pick_within_units
from dpsql.planner.rewrites.releases.promised_conditions import promised_conditions
from dpsql.planner.rewrites.releases.same_rows import same_rows
from dpsql.planner.rewrites.rewrite_context import RewriteContext

Rewrite = Callable[[Node, RewriteContext], Node]

RULES: tuple[tuple[Rewrite, type[Node]], ...] = (
    (inline_projections, Aggregate),
    (order_joins, Join),
    (place_conditions, Filter),
    (read_periods, Scan),
    (narrow_joins, Join),
    (correlate_publicly, Join),
    (join_owners, Join),
    (join_periods, Scan),
    (follow_paths, Scan),
    (count_partners, Aggregate),
    (limit_frequencies, Join),
    (keep_private, Aggregate),
    (pick_within_units, Aggregate),
    (promised_conditions, Scan),
    (leave_out_unlisted, Aggregate),
    (clip_columns, Aggregate),
    (refuse_constants, Aggregate),
    (sum_integers, Aggregate),
    (search_values, Aggregate),
    (searched_clips, Aggregate),
    (whole_keys, Aggregate),
    (expand_aggregates, Aggregate),
    (add_group_keys, Release),
    (promised_conditions, Filter),  # once more: of group keys that are listed now
    (same_rows, Release),
    (list_choices, Release),
    (pick_groups, Limit),
    (rows_that_count, Release),
    (bound_contributions, Release),
    (choose_components, Release),
    (choose_grids, Release),
    (cut_slices, Release),
    (read_carried, Scan),
    (read_stored_integers, Release),
)
"""In the order in which they are applied, each with a kind of node: in a tree that has none it changes nothing."""


def rewrite(root: Node, ctx: RewriteContext, behind: Rewrite | None = None) -> Node:
    """The plan in which every aggregate over private rows is a release. Raises Rejected.

    behind: of a part of it that is done up to this rule, with the rest of them.
    """
    there = kinds(root)
    begin = 0 if behind is None else 1 + [rule for rule, _ in RULES].index(behind)
    for rule, kind in RULES[begin:]:
        if kind in there:
            found = rule(root, ctx)
            if found is not root:
                root, there = found, kinds(found)
    if behind is None and ctx.searching is not None and ctx.searching.waits:
        # Rows that a search counts, as they were once their releases were limited.
        ctx.searching.finish(partial(rewrite, ctx=ctx, behind=bound_contributions))
    return root
