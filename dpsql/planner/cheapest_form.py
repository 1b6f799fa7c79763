"""Which form of a query is planned: its sums plain or with a share in a count's noise, and the family of its noise."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import BoundContributions, Node, Release
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.note import Note, Rank, in_order
from dpsql.planner.costs.expected_error import total_error
from dpsql.planner.plan import Plan
from dpsql.planner.plan_of_stages import plan_of_stages
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.planner.rewrites.rules import rewrite
from dpsql.planner.searches.limits_to_search import WORTH_SEARCHING, Searching
from dpsql.planner.searches.may_search import lacks_limits, not_searched, says_auto, searching_of
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.releasing import Releasing
from dpsql.planner.stages.searching import error_of_limits
from dpsql.planner.warnings.read_as_one import read_as_one
from dpsql.planner.with_keys_first import with_keys_first
from dpsql.planner.with_limits_searched import with_limits_searched

Error = Callable[[Release, Facts], float]

ANYWAY: Final = "or run it all the same: /* dpsql: anyway=on */ SELECT …"


def cheapest_form(query: QueryToPlan) -> Plan:
    """The plan; where its errors are asked for, that of the form of sums which meets them for less.

    Raises Rejected; DP305 where no group could be shown.
    """
    if query.settings.max_error and query.settings.search is None and not query.settings.found:
        # How large an error will be is known of declared limits alone, so that where there are some they hold.
        try:
            return cheapest_form(replace(query, settings=replace(query.settings, search=False)))
        except Rejected as refusal:
            if not any(map(lacks_limits, refusal.diagnostics)):
                raise
    if query.settings.consistent_totals:
        plan = _quietest(query, None)  # of the same form in all sets of groups
    elif not query.settings.max_error:
        plan = _quietest(query, total_error)
    else:
        # Sums may be plain or share a count's noise: which form meets the errors for less depends on them.
        plan = _quietest(query, None)
        with suppress(Rejected):
            plan = min(plan, _quietest(query, total_error), key=lambda plan: (plan.loss.rho, plan.loss.epsilon))
    measured = [r.measured for r in plan.releases]
    alone = tuple(read_as_one(plan.tree, measured, query.source))
    if alone and not (query.settings.anyway or query.settings.found):
        raise Rejected([replace(d, help=(*d.help, ANYWAY)) for d in alone])
    if query.settings.keys is None and query.ctx.policy.search == "auto":
        plan = with_keys_first(plan, query, partial(_quietest, error=total_error))
    return _to_be_shown(plan, query.settings)


def _quietest(query: QueryToPlan, error: Error | None) -> Plan:
    """The plan; where limits are searched, of the noise that errs less.

    error: how the form of its sums is chosen; None: plain sums.
    """
    for in_rounds in (True, False):
        searching = _searching(query, in_rounds)
        try:
            rewritten = _rewritten(query, error, searching)
            if searching is None or not searching.wanted:
                return _told(plan_of_stages(rewritten, query), searching, query)
            plan = _told(with_limits_searched(rewritten, query, searching), searching, query)
            break
        except Rejected:
            # What rows depend on may be nothing that a search can draw, as groups that need a δ: then these are not
            # searched.
            if searching is None or not searching.waits:
                raise
    assert searching is not None
    if query.settings.family or plan.searches is None or not (searching.rooted and query.settings.rooted):
        return plan
    # The noise decides which limits are searched, so that it is chosen before: once, whatever they are.
    gaussian = plan.searches.settings.family == DiscreteGaussian.name
    try:
        query = replace(query, settings=replace(query.settings, family=DiscreteGaussian.name))
        roots = _quietest(query, error)
    except Rejected:
        if gaussian:
            raise
        return plan  # there is no δ, or not enough
    return roots if gaussian or error_of_limits(roots) < error_of_limits(plan) else plan


def _searching(query: QueryToPlan, in_rounds: bool) -> Searching | None:
    auto = says_auto(query.bound.root, query.parsed.source.text)
    found = searching_of(query.settings, query.policy, auto, query.parsed.clause is not None)
    return None if found is None else replace(found, in_rounds=in_rounds)


def _rewritten(query: QueryToPlan, error: Error | None, searching: Searching | None) -> Node:
    """One form of the query. searching: is told what it leaves to searches. Raises Rejected."""
    draft = Derivation.begin(query.ctx, drafting=True)
    try:
        ctx = RewriteContext(
            draft,
            query.limits,
            error,
            searching,
            query.settings.consistent_totals,
            query.settings.keys,
            query.settings.only,
        )
        return rewrite(query.bound.root, ctx)
    except Rejected as refusal:
        if searching is not None and searching.withheld:
            refusal.diagnostics = tuple(map(not_searched, refusal.diagnostics))
        raise


def _told(plan: Plan, searching: Searching | None, query: QueryToPlan) -> Plan:
    """With a note where a declared limit holds that a search might make smaller."""
    why = ""
    if searching is not None and searching.kept:
        why = "no smaller limit was searched where rows depend on another aggregate's number: the declared one holds"
    elif query.settings.search is False and query.policy.search == "auto" and not query.settings.max_error:
        nodes = (r.measured.node.input for r in plan.releases)
        limited = [b for b in nodes if isinstance(b, BoundContributions) and not b.spare_rows]
        most = max((b.rows or (b.per_group if b.one_group else 0) or 0 for b in limited), default=0)
        if most >= WORTH_SEARCHING:
            why = f"a limit of {most:,} rows is declared: limits = 'auto' finds how many are needed, for the same price"
    return replace(plan, notes=in_order((*plan.notes, Note(why, Rank.BIAS)))) if why else plan


def _to_be_shown(plan: Plan, settings: QuerySettings) -> Plan:
    """Refuse a plan of which no group could be shown, before it is paid for. Raises Rejected DP305."""
    refused = [w for w in plan.warnings if w.severity == "error"]
    if not refused:
        return plan
    # Once limits were found it is paid for.
    if not (settings.anyway or settings.nominal or settings.found):
        raise Rejected([replace(w, help=(*w.help, ANYWAY)) for w in refused])
    return replace(plan, stages=tuple(s.as_warnings() if isinstance(s, Releasing) else s for s in plan.stages))
