"""The static check: what can be said about a query without data, engine or budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from typing import Any

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ledger.refusals import CapReached, over_budget
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared
from dpsql.core.policy.units import DEFAULT_UNIT
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.parse import parse
from dpsql.frontend.text.batch_statement import BatchStatement, batch_statement
from dpsql.frontend.text.counter_statements import CreateCounter, counter_statement
from dpsql.frontend.text.period_statements import period_statement
from dpsql.frontend.text.query_comments import settings_before
from dpsql.frontend.text.repairs import with_fixes
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.planner.compile import compile_query
from dpsql.planner.computed import understood
from dpsql.planner.plan import Plan
from dpsql.planner.searches.may_search import found_at_run_time
from dpsql.planner.settings.privacy_clause import with_comments, with_said
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.summaries.design import require_additive, require_static
from dpsql.policy.load import load_policy
from dpsql.policy.tools.decisions import decided
from dpsql.service.batches import batch_design
from dpsql.service.batches.batch_design import designed, marginal_settings, read_members, written_in
from dpsql.service.checks.further_refusals import further
from dpsql.service.given_arguments import checked_parameters
from dpsql.service.privacy_settings import searched, settled

NOMINAL_EPSILON, NOMINAL_DELTA = Fraction(1), Fraction(1, 10**9)
"""What the check prices a query at when neither it nor the policy says: ε and δ are given at the run."""


def to_look(settings: QuerySettings, policy: Policy) -> QuerySettings:
    """With the policy's ε, or a nominal one, where these do not say how much to spend: to look, and not to run."""
    if settings.epsilon is not None or settings.rho is not None or settings.max_error:
        return settings
    epsilon = policy.defaults.epsilon
    return replace(settings, epsilon=epsilon or NOMINAL_EPSILON, nominal=epsilon is None)


def check(
    sql: str,
    policy: Policy | str | PathLike[str],
    parameters: Sequence[Any] | Mapping[str, Any] | None = (),
    *,
    dialect: str = "duckdb",
    limits: str = "auto",
    name: str = "<sql>",
    draft: bool = False,
) -> list[Diagnostic]:
    """Findings about a query, from its text and the policy alone; an empty list if it could be run.

    limits: "search" for queries that are asked so. What a search would find is not known here: such queries get a
        warning, DP506.
    draft: whether a policy may be a draft, in which decisions are open.
    No data is opened and no engine is imported: the result is the same whatever the database holds.
    Raises CannotOpen if the policy itself cannot be loaded; Rejected DP903: an argument of another kind; DP406: other
    limits.

    >>> dpsql.check("SELECT COUNT(*) AS n FROM visits WHERE day > ?", "clinic.yaml", ["2025-01-01"])
    []
    >>> [finding.code for finding in dpsql.check("SELECT SUM(surcharge) FROM visits", "clinic.yaml")]
    ['DP201']
    """
    given: object = policy
    if not isinstance(given, Policy | str | PathLike):
        raise reject("DP903", "a check needs a policy", help=["dpsql.check('SELECT …', 'policy.yaml')"])
    values = checked_parameters(sql, parameters, dialect)
    loaded = understood(policy if isinstance(policy, Policy) else load_policy(policy))
    if not draft:
        decided(loaded)
    found = examine(Source(sql, name), loaded, values, dialect=dialect, search=searched(limits))
    return list(found.diagnostics)


@dataclass(frozen=True, slots=True)
class Examined:
    """What the check says about one statement, and its static plan if it has one: of a batch the plan of all its
    marginals, of a summary a plan of the same cost. says_epsilon: whether it says an ε itself."""

    diagnostics: tuple[Diagnostic, ...]
    plan: Plan | None
    says_epsilon: bool = False


def examine(
    source: Source,
    policy: Policy,
    parameters: Sequence[Any] | Mapping[str, Any] = (),
    *,
    dialect: str = "duckdb",
    search: bool | None = None,
) -> Examined:
    """`check` of a text that is a query already, against a policy that is loaded; never raises Rejected.

    search: whether it is asked with limits that are searched; None: as the policy says.

    Findings carry the repairs that a program can make of them; a refused query is looked at for further mistakes.
    """

    settings = QuerySettings(search=search)
    try:
        if (found := _of_another_kind(source, policy, dialect)) is not None:
            return found
    except Rejected as refusal:
        return Examined(tuple(d.at(source) for d in refusal.diagnostics), None)

    def look(text: Source) -> tuple[Diagnostic, ...]:
        try:
            static_plan(text, policy, parameters, dialect=dialect, settings=settings)
        except Rejected as refusal:
            return with_fixes(refusal.diagnostics, text, dialect)
        return ()

    try:
        plan = static_plan(source, policy, parameters, dialect=dialect, settings=settings)
    except Rejected as refusal:
        return Examined(further(with_fixes(refusal.diagnostics, source, dialect), source, look), None)
    warnings = plan.warnings
    if plan.searches is not None:
        what = "the limit of " + " and of ".join(dict.fromkeys(each.limit.what for each in plan.searches.every))
        warnings = (*warnings, found_at_run_time(what, source))
    return _fitting(plan, policy, source, warnings, _says_epsilon(source, dialect))


def _says_epsilon(source: Source, dialect: str) -> bool:
    """Whether a query that has a plan says an ε itself: in its privacy clause, or a comment before it."""
    if any(each.name in ("epsilon", "rho") for each in settings_before(source, dialect)):
        return True
    if "differential_privacy" not in source.text.lower() and "anonymization" not in source.text.lower():
        return False
    clause = parse(source, dialect).clause
    return clause is not None and clause.epsilon is not None


def _of_another_kind(source: Source, policy: Policy, dialect: str) -> Examined | None:
    """What is said about a summary, a counter or a batch; None of a query. Raises Rejected."""
    summary, batch = summary_statement(source.text), batch_statement(source.text)
    counter = counter_statement(source.text)
    if isinstance(counter, CreateCounter):
        from dpsql.service.counters.countable import require_countable  # which loads numpy: other checks need none

        require_countable(counter, as_prepared(policy), source.text)
    if counter is not None or period_statement(source.text) is not None:
        return Examined((), None)
    if summary is None and batch is None:
        return None
    settings, warnings = with_comments(QuerySettings(), source, dialect), tuple[Diagnostic, ...]()
    if isinstance(summary, DropSummary):
        return Examined((), None)
    if summary is not None:
        amounts = {name: amount.strip("'") for name, amount in summary.amounts}
        settings = settled({"epsilon": amounts.get("epsilon"), "rho": amounts.get("rho")}, settings)
        plan = _summary_plan(summary, policy, source, settings)
    else:
        assert batch is not None
        try:
            plan, refused = check_batch(batch.queries, policy, settings, skip_refused=batch.skip_refused)
        except Rejected as refusal:
            raise Rejected([_placed(d, batch, source) for d in refusal.diagnostics]) from None
        warnings = tuple(replace(_placed(d, batch, source), severity="warning") for d in refused)
    return _fitting(plan, policy, source, warnings, settings.epsilon is not None or settings.rho is not None)


def _placed(found: Diagnostic, batch: BatchStatement, source: Source) -> Diagnostic:
    """In the statement what was found in its queries; without a place, what was found in what stands for them."""
    own = found.source is not None and found.source.text == batch.queries
    return replace(found, source=source, span=found.span if own else None)


def _fitting(
    plan: Plan, policy: Policy, source: Source, warnings: tuple[Diagnostic, ...], says_epsilon: bool
) -> Examined:
    """What is said about a statement that has a plan. warnings: about it."""
    never = _never_fits(plan, policy, source) if says_epsilon or policy.defaults.epsilon is not None else ()
    return Examined((*never, *warnings), None if never else plan, says_epsilon)


def _never_fits(plan: Plan, policy: Policy, source: Source) -> tuple[Diagnostic, ...]:
    """Why no account could ever pay what a statement itself, or the policy's default, asks for; empty if one could.

    δ is left out: a run may be given a smaller one.
    """
    cost = {unit: replace(loss, delta=Fraction(0)) for unit, loss in plan.cost.items() if loss != NO_LOSS}
    refusals = []
    for account in policy.budgets.analysts or (None,):
        caps = policy.caps_for(account)
        limits = [
            CapReached(code, name if unit == DEFAULT_UNIT else f"{name}, unit {unit!r}", setting, loss, cap, whole=True)
            for unit, loss in cost.items()
            for code, name, setting, cap in (
                ("DP403", "total budget", "budgets.total", caps.total.get(unit)),
                ("DP404", f"budget of analyst {account!r}", "budgets.analysts", caps.analyst.get(unit)),
                ("DP405", f"limit per query of analyst {account!r}", "budgets.analysts", caps.per_query),
            )
            if cap is not None
        ]
        refusal = over_budget(limits)
        if refusal is None:
            return ()
        refusals.append(refusal)
    first = next((d for r in refusals for d in r.diagnostics if d.code == "DP403"), refusals[0].diagnostics[0])
    return (replace(first, source=source, notes=("no account of the policy could ever pay this",)),)


def _summary_plan(summary: CreateSummary, policy: Policy, source: Source, settings: QuerySettings) -> Plan:
    """A plan of one marginal of a summary that costs what all of them do together. Raises Rejected."""
    design = require_static(summary, as_prepared(policy), source.text)
    if design is None:
        return static_plan(_count(summary.table_sql), policy, settings=settings)
    part = Source(design.sql(next(iter(design.shares))))
    plan = static_plan(part, policy, settings=replace(settings, unlisted=True))
    require_additive(plan)
    return plan


def check_batch(
    text: str, policy: Policy, settings: QuerySettings, *, skip_refused: bool = False
) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """A plan that costs what a run of a batch does, and why queries are left out of it. Lists of values that public
    tables have are not known here: what needs them is left to the run. Raises Rejected: all that a run would refuse.
    """
    prepared, public = as_prepared(policy), PublicFacts()
    written, skips, said = written_in(Source(text))
    settings = with_said(settings, said, Source(text))
    members, refused = read_members(written, prepared, skip=True)
    design = None
    try:
        design = designed(written, (members, refused), prepared, public, skip=True)
    except Rejected:
        if not public.missing:
            raise
    if design is not None and not public.missing:
        refused = dict(design.refused)
    found = tuple(d for place in sorted(refused) for d in refused[place].diagnostics)
    if found and not (skip_refused or skips):
        raise Rejected(found)
    if design is None or public.missing:
        return static_plan(_count(next(iter(members.values())).from_text), policy, settings=settings), found
    plan = static_plan(Source(design.sql), policy, settings=marginal_settings(settings, design))
    batch_design.require_additive(plan)
    return plan, found


def _count(relation: str) -> Source:
    """A query whose price is that of all others of the same rows."""
    return Source(f"SELECT COUNT(*) AS n FROM {relation}")


def static_plan(
    source: Source,
    policy: Policy,
    parameters: Sequence[Any] | Mapping[str, Any] = (),
    *,
    dialect: str = "duckdb",
    settings: QuerySettings | None = None,
) -> Plan:
    """The plan from declared facts only. Not runnable: key lists of public tables may be unknown. Raises Rejected."""
    wanted = settings or QuerySettings()
    epsilon = wanted.epsilon or policy.defaults.epsilon
    nominal = QuerySettings(
        None if wanted.rho is not None else epsilon or NOMINAL_EPSILON,
        wanted.delta or policy.defaults.delta or NOMINAL_DELTA,
        wanted.limits,
        dialect,
        wanted.rho,
        anyway=wanted.anyway,
        nominal=epsilon is None and wanted.rho is None,
        search=wanted.search,
        consistent_totals=wanted.consistent_totals,
        unlisted=wanted.unlisted,
        shares=wanted.shares,
        relations=wanted.relations,
    )
    return compile_query(source, as_prepared(policy), PublicFacts(), nominal, parameters)
