"""Facts for every node of a plan, bottom-up: one `match`, one rule per operator, default deny."""

from __future__ import annotations

from typing import assert_never

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.empty_relations import no_rows
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.contribution_bounding import bound_contributions
from dpsql.core.analysis.rules.filter import filter_
from dpsql.core.analysis.rules.group_keys import group_keys
from dpsql.core.analysis.rules.join import join
from dpsql.core.analysis.rules.private_aggregate import aggregate, mixed_with_private_rows
from dpsql.core.analysis.rules.project import project
from dpsql.core.analysis.rules.public_rows import grouped, order, window
from dpsql.core.analysis.rules.release import release
from dpsql.core.analysis.rules.scan import scan
from dpsql.core.analysis.rules.set_operation import set_operation
from dpsql.core.analysis.rules.truncate import truncate
from dpsql.core.analysis.rules.unnest import unnest
from dpsql.core.analysis.rules.values import values
from dpsql.core.analysis.rules.window_of_unit import of_one_unit, window_of_unit
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    inputs,
)
from dpsql.core.ir.step_count import take
from dpsql.core.ir.walk import Tagged, children_first
from dpsql.core.ir.well_formed import require_well_formed
from dpsql.core.value_classes import replace


def derive(node: Node, ctx: Context) -> Tagged[Facts]:
    """The plan with its facts, from nothing: whoever made the plan, no fact of it is taken from him.

    Raises Rejected where a rule refuses, and DP904 if it is no plan.
    """
    require_well_formed(node)
    return derive_once(node, Derivation.begin(ctx, drafting=ctx.drafting))


def derive_once(node: Node, found: Derivation) -> Tagged[Facts]:
    """As `derive`, with what this derivation has found before: for rewrites, which ask again after each step.

    Facts depend on the node and the context alone, so a subtree that a rewrite left as it was is not derived again.
    """
    known = found.facts
    for new in () if node in known else children_first(node, known):
        below = tuple([known[child] for child in inputs(new)])
        given = tuple([t.fact for t in below])
        facts, empty = _rule(new, given, found), no_rows(new, given)
        facts = facts if facts.empty is empty else replace(facts, empty=empty)
        take(1 + len(facts.columns))
        known[new] = Tagged(new, facts, below)
    return known[node]


def _rule(node: Node, below: tuple[Facts, ...], ctx: Derivation) -> Facts:
    match node:
        case Scan():
            return scan(node, ctx)
        case Values():
            return values(node)
        case Filter():
            return filter_(node, below[0])
        case Project():
            return project(node, below[0])
        case Join():
            return join(node, below[0], below[1], ctx)
        case SetOperation():
            return set_operation(node, below[0], below[1])
        case Unnest():
            return unnest(node, below[0])
        case Truncate():
            return truncate(node, below[0])
        case GroupKeys():
            return group_keys(node, below[0])
        case BoundContributions():
            return bound_contributions(node, below[0])
        case Release():
            return release(node, below[0], ctx)
        case Aggregate():
            return _aggregate(node, below[0], ctx)
        case Window():
            return window_of_unit(node, below[0]) if of_one_unit(node, below[0]) else window(node, below[0])
        case Sort():
            return order(node, below[0], "ORDER BY")
        case Limit():
            return order(node, below[0], "LIMIT")
        case _:
            assert_never(node)


def _aggregate(node: Aggregate, below: Facts, ctx: Derivation) -> Facts:
    """Over private rows an aggregate stays private, or must become a release; while drafting it is taken for one."""
    if not below.public:
        if node.inner:
            return aggregate(node, below, ctx)
        if not ctx.drafting:
            raise mixed_with_private_rows(node)
    return grouped(node)
