"""A query that leaves limits to searches: planned twice, what finds them and what is asked once they are known."""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import Node
from dpsql.diagnostics.errors import reject
from dpsql.frontend.bound import BoundQuery
from dpsql.planner.costs.privacy_cost import HALF
from dpsql.planner.plan import Plan
from dpsql.planner.plan_of_stages import plan_of_stages
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.searches.limits_to_search import Searching
from dpsql.planner.searches.octave_counts import together
from dpsql.planner.searches.search_share import for_searches, part_of
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.searching import require_known_at_any_bounds, with_limits_followed, with_searches


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
    rest = plan_of_stages(rewritten, replace(query, settings=own, clips=frozenset(searching.clips.values())))
    if searching.is_done:
        return with_limits_followed(rest, searching)
    require_known_at_any_bounds(rest, searching)
    if rest.known:
        return rest
    histograms = {fingerprint(w.octaves, numbered=True): w.octaves for w in searching.missing}
    root, columns = together(tuple(histograms.values()), searching.numbers)
    octaves = replace(
        query,
        parsed=replace(query.parsed, clause=None),
        bound=BoundQuery(root, columns, query.bound.source),
        settings=for_searches(settings, policy, share),
        weights=searching.weights,
        limits=ContributionLimits(),
    )
    return with_searches(rest, plan_of_stages(root, octaves), searching, tuple(histograms), query)
