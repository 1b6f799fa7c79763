"""From the text of a query to its plan. Read it beside `service/pipeline.py`.

    text ─ parse, bind ─▶ tree ─ rewrite ─▶ finished tree ─ stages ─▶ what each asks ─ calibrate ─▶ plan

The stages stand in `stages/all_stages.py`, and `plan_of_stages.py` makes a plan of them. Here is decided which of
several forms of a query is planned, and whether limits are searched first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir import step_count as steps
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import TableNames
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.engines.open import dialect_of
from dpsql.frontend.bind.expressions.computed import with_computed
from dpsql.planner.batch.unlisted import without_lists
from dpsql.planner.costs.expected_error import total_error
from dpsql.planner.notes.as_written import as_written
from dpsql.planner.notes.rows_wanted import rows_wanted
from dpsql.planner.plan import Plan
from dpsql.planner.plan_of_stages import plan_of_stages
from dpsql.planner.rewrites.rewrite_context import RewriteContext
from dpsql.planner.rewrites.rules import rewrite
from dpsql.planner.searches.may_search import (
    lacks_limits,
    not_searched,
    says_auto,
    with_search_proposed,
    would_be_searched,
)
from dpsql.planner.searches.search_share import searching_of
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.query_to_plan import Parameters, QueryToPlan, bound_query
from dpsql.planner.stages.searching import error_of_limits
from dpsql.planner.with_limits_searched import with_limits_searched


def compile_query(
    source: Source,
    policy: Policy,
    public: PublicFacts,
    settings: QuerySettings,
    parameters: Parameters = (),
    tables: TableNames | None = None,
    dialect: Dialect | None = None,
) -> Plan:
    """Compile one query.

    public: measured facts about public tables; what is missing is noted in it (`public.missing`).
    tables: policy table → the engine's qualified name; its own by default.
    dialect: that of the engine; by default of the one that the policy's data asks for.
    Raises Rejected with every diagnostic pointing into `source`.
    """
    target = dialect or dialect_of(policy)
    policy = with_computed(policy, target)
    policy = without_lists(policy) if settings.unlisted else policy
    ctx = Context(policy, public, policy.defaults.max_keys)
    query: QueryToPlan | None = None
    steps.begin()
    try:
        query = bound_query(source, ctx, settings, parameters, target, tables)
        return _cheapest(query)
    except Rejected as refusal:
        found = refusal.diagnostics if query is None else rows_wanted(refusal.diagnostics, query.bound.root, source)
        if would_be_searched(found, policy, settings):
            with suppress(Rejected, RecursionError):
                searched = replace(settings, search=True)
                _cheapest(bound_query(source, ctx, searched, parameters, target, tables))
                found = with_search_proposed(found)
        refusal.diagnostics = tuple(as_written(d.at(source)) for d in found)
        raise
    except RecursionError:
        raise reject("DP010", "the statement is nested too deeply", source=source) from None
    finally:
        steps.end()


Error = Callable[[Release, Facts], float]


def _cheapest(query: QueryToPlan) -> Plan:
    """The plan; where its errors are asked for, that of the form of sums which meets them for less."""
    if query.settings.consistent_totals:
        return _quietest(query, None)  # of the same form in all sets of groups
    if not query.settings.max_error:
        return _quietest(query, total_error)
    if query.settings.search is None and not query.settings.found:
        # How large an error will be is known of declared limits alone, so that where there are some they hold.
        try:
            return _cheapest(replace(query, settings=replace(query.settings, search=False)))
        except Rejected as refusal:
            if not any(map(lacks_limits, refusal.diagnostics)):
                raise
    # Sums may be plain or share a count's noise: which form meets the errors for less depends on them.
    plain = _quietest(query, None)
    try:
        shared = _quietest(query, total_error)
    except Rejected:
        return plain
    return min(plain, shared, key=lambda plan: (plan.loss.rho, plan.loss.epsilon))


def _quietest(query: QueryToPlan, error: Error | None) -> Plan:
    """The plan; where limits are searched, of the noise that errs less.

    error: how the form of its sums is chosen; None: plain sums.
    """
    plan, rooted = _planned(query, error)
    if query.settings.family or plan.searches is None or not rooted:
        return plan
    # The noise decides which limits are searched, so that it is chosen before: once, whatever they are.
    gaussian = plan.searches.settings.family == DiscreteGaussian.name
    try:
        roots, _ = _planned(replace(query, settings=replace(query.settings, family=DiscreteGaussian.name)), error)
    except Rejected:
        if gaussian:
            raise
        return plan  # there is no δ, or not enough
    return roots if gaussian or error_of_limits(roots) < error_of_limits(plan) else plan


def _planned(query: QueryToPlan, error: Error | None) -> tuple[Plan, bool]:
    """One form of the query, rewritten and planned; and whether limits are on roots of squares, or might be."""
    settings, parsed = query.settings, query.parsed
    auto = says_auto(query.bound.root, parsed.source.text)
    searching = searching_of(settings, query.policy, auto, parsed.clause is not None)
    draft = Derivation.begin(query.ctx, drafting=True)
    try:
        ctx = RewriteContext(draft, query.limits, error, searching, settings.consistent_totals)
        rewritten = rewrite(query.bound.root, ctx)
    except Rejected as refusal:
        if searching is not None and searching.withheld:
            refusal.diagnostics = tuple(map(not_searched, refusal.diagnostics))
        raise
    if searching is None or not searching.wanted:
        return plan_of_stages(rewritten, query), False
    return with_limits_searched(rewritten, query, searching), searching.rooted
