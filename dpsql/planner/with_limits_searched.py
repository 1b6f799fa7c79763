"""A query that leaves limits to searches: planned twice, what finds them and what is asked once they are known.

Where rows depend on another released number, the limit of that one is found first: the searches are rounds, each with
an equal part of what all of them may lose. Which round is whose follows from the query and the policy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import Node
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bound import BoundQuery
from dpsql.planner.costs.privacy_cost import HALF
from dpsql.planner.plan import Plan, Written
from dpsql.planner.plan_of_stages import plan_of_stages
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.searches.limits_to_search import LimitToSearch, Rule, Searching
from dpsql.planner.searches.may_search import for_searches, part_of
from dpsql.planner.searches.octave_counts import together
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.searching import Round, require_known_at_any_bounds, with_limits_followed, with_searches


def with_limits_searched(rewritten: Node, query: QueryToPlan, searching: Searching) -> Plan:
    """The plan with the searches that come first; without them once all is found. Raises Rejected."""
    policy, settings = query.policy, query.settings
    if settings.max_error and not searching.is_done:
        raise reject(
            "DP411", "the error depends on limits that are still to be found",
            help=[
                "run the query with an epsilon first: its searches are kept, and max_error can be planned with them",
                "or declare the limits",
            ],
        )  # fmt: skip
    # How many units are above a limit that was found, its octaves tell for nothing.
    share = searching.share * HALF if settings.half else searching.share
    own = replace(settings, aside=share) if settings.half else part_of(settings, policy, 1 - share)
    own = replace(own, coverage=False)
    averaged = (w for w in searching.wanted.values() if w.rule is Rule.AVERAGE and not w.quantiles)
    counted = tuple(w.of for w in averaged if w.of is not None)
    clips = frozenset(searching.clips.values())
    rest = plan_of_stages(rewritten, replace(query, settings=own, clips=clips, counted=counted))
    rest = replace(rest, written=Written(query.parameters, settings))
    if searching.is_done:
        return with_limits_followed(rest, searching)
    require_known_at_any_bounds(rest, searching)
    if rest.known:
        return rest
    rounds = searching.rounds
    left = ([limit for limit in each if limit.label not in searching.found] for each in rounds)
    share /= len(rounds)
    return with_searches(rest, [_round(each, query, searching, share) for each in left if each], searching, query)


def _round(limits: Sequence[LimitToSearch], query: QueryToPlan, searching: Searching, share: Fraction) -> Round:
    """What finds these limits, at a share of the query's price. Raises Rejected."""
    named = [fingerprint(limit.octaves, numbered=True) for limit in limits]
    histograms = {name: limit.octaves for name, limit in zip(named, limits, strict=True)}
    root, columns = together(tuple(histograms.values()), searching.numbers)
    octaves = replace(
        query,
        parsed=replace(query.parsed, clause=None),
        bound=BoundQuery(root, columns, query.bound.source),
        settings=for_searches(query.settings, query.policy, share),
        weights=searching.weights,
        limits=ContributionLimits(),
    )
    plan = plan_of_stages(root, octaves)
    places = {r.measured.node.keys: at for at, r in enumerate(plan.releases)}
    return Round(plan, tuple(limits), tuple(places[histograms[name].keys] for name in named))
