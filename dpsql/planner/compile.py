"""The pipeline in order; each stage's input is the previous one's output, so none can be skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import Releases, releases_of
from dpsql.core.analysis.whole_plan import (
    require_one_relation,
    require_public,
    require_public_correlation,
    require_releases,
)
from dpsql.core.ir import step_count as steps
from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.fingerprint import Fingerprint, fingerprint
from dpsql.core.ir.nodes import Node, Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.renumber import unused_numbers
from dpsql.core.ir.walk import Tagged
from dpsql.core.noise.accuracy import meet
from dpsql.core.noise.calibration import measure
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.noise.request import LossRequest
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import TableNames
from dpsql.core.printing.shapes.choose import statements
from dpsql.core.printing.shapes.release_statement import placeholder
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.engines.open import dialect_of
from dpsql.frontend import dialects
from dpsql.frontend.bind.expressions.computed import with_computed
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.bound import BoundQuery
from dpsql.frontend.parse import Parsed, parse
from dpsql.planner.batch.unlisted import shares_of, summed_by_row, without_lists
from dpsql.planner.consistent_totals import consistent_totals, notes_of_totals, require_last, with_shares
from dpsql.planner.costs.expected_error import total_error
from dpsql.planner.costs.named_outputs import outputs_named
from dpsql.planner.costs.privacy_cost import cost_within, request_of
from dpsql.planner.coverage import add_coverage, notes_of_coverage, with_small_share
from dpsql.planner.declared_facts import rely_on_declared
from dpsql.planner.notes.as_written import as_written
from dpsql.planner.notes.notes import copies_read, drawn_by, joined_releases, notes_of, pairs_counted
from dpsql.planner.notes.rows_wanted import rows_wanted
from dpsql.planner.notes.unread import Unread
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.planning.answer_plan import post_processing, require_shown
from dpsql.planner.postprocessing.planning.interval_notes import interval_notes
from dpsql.planner.postprocessing.planning.steps import Coverage, PostProcessing
from dpsql.planner.rewrites.rewrite_context import ContributionLimits, RewriteContext
from dpsql.planner.rewrites.rules import rewrite
from dpsql.planner.searches.limits_to_search import Searching
from dpsql.planner.searches.may_search import not_searched, or_searched, require_search_allowed, says_auto
from dpsql.planner.searches.octave_counts import together
from dpsql.planner.searches.search_share import for_searches, part_of, searching_of
from dpsql.planner.searches.with_searches import error_of_limits, require_known_at_any_bounds, with_searches
from dpsql.planner.settings.privacy_clause import require_clause, with_clause
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.settings.setting_comments import with_comments
from dpsql.planner.warnings.undeclared_values import undeclared_values
from dpsql.planner.warnings.warnings import warnings_of

if TYPE_CHECKING:
    from dpsql.planner.postprocessing.consistency.totals import Totals  # which loads numpy


def compile_query(
    source: Source,
    policy: Policy,
    public: PublicFacts,
    settings: QuerySettings,
    parameters: Sequence[Any] | Mapping[str, Any] = (),
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

    def plan(wanted: QuerySettings) -> Plan:
        query = _bound(source, ctx, wanted, parameters, target, tables or target.identifier)
        try:
            return _cheapest(query)
        except Rejected as refusal:
            refusal.diagnostics = rows_wanted(refusal.diagnostics, query.bound.root, source)
            raise

    steps.begin()
    try:
        return plan(settings)
    except Rejected as refusal:
        found = or_searched(refusal.diagnostics, policy, settings, plan)
        refusal.diagnostics = tuple(as_written(d.at(source)) for d in found)
        raise
    except RecursionError:
        raise reject("DP010", "the statement is nested too deeply", source=source) from None
    finally:
        steps.end()


@dataclass(frozen=True, slots=True)
class _Query:
    """A bound query, and what every stage of its planning reads.

    settings: with the query's comments and privacy clause. limits: with the policy's fewest units of a private key.
    weights: number of an output column → its weight, beside those that the settings name.
    """

    parsed: Parsed
    bound: BoundQuery
    settings: QuerySettings
    limits: ContributionLimits
    ctx: Context
    dialect: Dialect
    tables: TableNames
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    weights: Mapping[int, Fraction] = field(default_factory=dict)


def _bound(
    source: Source,
    ctx: Context,
    settings: QuerySettings,
    parameters: Sequence[Any] | Mapping[str, Any],
    dialect: Dialect,
    tables: TableNames,
) -> _Query:
    """Parse, and bind names and types."""
    parsed = parse(source, settings.dialect)
    settings = with_clause(with_comments(settings, source, settings.dialect), parsed.clause)
    limits = replace(settings.limits, min_units=max(settings.limits.min_units, ctx.policy.defaults.min_units))
    bound = bind(parsed, ctx.policy, parameters, settings.asked)
    bound = replace(bound, root=summed_by_row(bound.root)) if settings.unlisted else bound
    require_search_allowed(ctx.policy, settings, parsed.clause, bound.root)
    dialects.check_types(bound.root, parsed.dialect)
    return _Query(parsed, bound, settings, limits, ctx, dialect, tables, parameters)


def _cheapest(query: _Query) -> Plan:
    """The plan; where its errors are asked for, that of the form of sums which meets them for less."""
    if query.settings.consistent_totals:
        return _planned(query, None)  # of the same form in all sets of groups
    if not query.settings.max_error:
        return _planned(query, total_error)
    # Sums may be plain or share a count's noise: which form meets the errors for less depends on them.
    plain = _planned(query, None)
    try:
        shared = _planned(query, total_error)
    except Rejected:
        return plain
    return min(plain, shared, key=lambda plan: (plan.loss.rho, plan.loss.epsilon))


def _planned(query: _Query, error: Callable[[Release, Facts], float] | None) -> Plan:
    """The plan of a bound query. error: how the form of its sums is chosen; None: plain sums."""
    ctx, settings = query.ctx, query.settings
    draft = Derivation.begin(ctx, drafting=True)
    clause = query.parsed.clause is not None
    searching = searching_of(settings, ctx.policy, says_auto(query.bound.root, query.parsed.source.text), clause)
    try:
        consistent = settings.consistent_totals
        rewritten = rewrite(query.bound.root, RewriteContext(draft, query.limits, error, searching, consistent))
    except Rejected as refusal:
        if searching is not None and searching.withheld:
            refusal.diagnostics = tuple(map(not_searched, refusal.diagnostics))
        raise
    if searching is None or not searching.wanted:
        return _finished(rewritten, query)
    plan = _searched(rewritten, query, searching)
    if settings.family or plan.searches is None or not searching.rooted:
        return plan
    # The noise decides which limits are searched, so that it is chosen before: once, whatever they are.
    gaussian = plan.searches.settings.family == DiscreteGaussian.name
    try:
        roots = _planned(replace(query, settings=replace(settings, family=DiscreteGaussian.name)), error)
    except Rejected:
        if gaussian:
            raise
        return plan  # there is no δ, or not enough
    return roots if gaussian or error_of_limits(roots) < error_of_limits(plan) else plan


def _searched(rewritten: Node, query: _Query, searching: Searching) -> Plan:
    """The plan of a query of which searches find limits; until they are found, with the plan of these searches."""
    policy, settings = query.ctx.policy, query.settings
    if settings.max_error and not searching.is_done:
        raise reject(
            "DP411", "the error depends on limits that are still to be found",
            help=[
                "run the query with an epsilon first: its searches are kept, and max_error can be planned with them",
                "or declare the limits",
            ],
        )  # fmt: skip
    # How many units are above a limit that was found, its octaves tell for nothing.
    own = replace(part_of(settings, policy, 1 - searching.share), coverage=False)
    rest = _finished(rewritten, replace(query, settings=own))
    if searching.is_done:
        return rest
    require_known_at_any_bounds(rest, searching)
    if rest.known:
        return rest
    histograms = {fingerprint(w.octaves, numbered=True): w.octaves for w in searching.missing}
    root, columns = together(tuple(histograms.values()), searching.numbers)
    octaves = _finished(
        root,
        replace(
            query,
            parsed=replace(query.parsed, clause=None),
            bound=BoundQuery(root, columns, query.bound.source),
            settings=for_searches(settings, policy, searching.share),
            weights=searching.weights,
            limits=ContributionLimits(),
        ),
    )
    return with_searches(rest, octaves, searching, tuple(histograms), settings, query.parameters, policy)


def _finished(rewritten: Node, query: _Query) -> Plan:
    """The plan of a query whose aggregates are releases."""
    ctx, settings, columns = query.ctx, query.settings, query.bound.columns
    analysed = _analysed(rewritten, query)
    coverage = _coverage(analysed, unused_numbers(rewritten), query)
    totals = consistent_totals(analysed.tree.node, analysed.releases, settings) if settings.consistent_totals else ()
    noise = _calibrated(analysed, coverage, totals, query)
    cost = cost_within(noise.request, noise.measured, ctx.policy)
    releases = _printed(noise, query)
    require_last(totals, releases)
    post = post_processing(analysed.tree, columns, releases, noise.releases, query.dialect, query.tables)
    post = replace(post, totals=totals) if totals else post
    warnings, notes = _warnings(noise, query), _notes(noise, releases, post, query)
    return Plan(
        source=query.parsed.source,
        columns=columns,
        tree=analysed.tree,
        releases=releases,
        post=post,
        epsilon=noise.request.epsilon,
        delta=noise.request.delta,
        cost=cost,
        policy_hash=ctx.policy.hash,
        identity=_identity(analysed.tree, noise, releases, post, query),
        public=dict(ctx.public.used),
        complete=not ctx.public.missing,
        notes=(*query.bound.notes, *analysed.unread, *notes),
        warnings=warnings,
        max_error=settings.max_error if analysed.needs_data else {},
        confidence=settings.confidence,
        allow_dearer=ctx.policy.defaults.allow_dearer if settings.allow_dearer is None else settings.allow_dearer,
        unread=analysed.unread,
        coverage=coverage,
        unlisted=settings.unlisted,
    )


@dataclass(frozen=True, slots=True)
class _Analysed:
    """A rewritten query of which the analysis has derived that it may be answered.

    tree: what is read of it, with facts. unread: why the rest is not read. releases: those of the tree. asked: those of
    the whole query.
    """

    tree: Tagged[Facts]
    unread: tuple[str, ...]
    releases: Releases
    asked: Releases

    @property
    def needs_data(self) -> bool:
        """Whether any release may have rows; else nobody need say what the query may cost."""
        return any(not t.inputs[0].fact.empty for t in self.releases.distinct)


def _analysed(rewritten: Node, query: _Query) -> _Analysed:
    """Derive all facts afresh, take out what is not read, and refuse what must not be answered."""
    ctx, columns = query.ctx, query.bound.columns
    whole, unread = derive(rewritten, ctx), Unread()
    read = unread.without(whole)
    tree = whole if read is whole.node else derive(read, ctx)
    require_public(tree)
    # What is not read is refused all the same where it would be refused with rows.
    require_releases(whole)
    require_public_correlation(whole)
    require_shown(whole.node, columns, ctx)
    rely_on_declared(tree, ctx)
    asked = releases_of(whole)
    require_one_relation(asked.distinct)
    if query.parsed.clause is not None:
        require_clause(query.parsed.clause, asked.distinct)
    outputs_named("weights", query.settings.weights, whole, columns, asked)
    outputs_named("max_error", query.settings.max_error if asked.distinct else {}, whole, columns, asked)
    return _Analysed(tree, tuple(unread.why), asked if tree is whole else releases_of(tree), asked)


def _coverage(analysed: _Analysed, numbers: Iterator[int], query: _Query) -> tuple[Coverage, ...]:
    """Further releases that tell what the limits leave out, where that was asked for. numbers: unused, of columns."""
    if not query.settings.coverage:
        return ()
    return add_coverage(analysed.releases, numbers, query.settings, query.parsed.source, query.ctx)


@dataclass(frozen=True, slots=True)
class _Calibrated:
    """The releases of a query, and the noise of each.

    trees: what is read, and the coverage. releases: all of theirs. request: what they may lose, with the ε that was
    found where errors were asked for. errors: number of an output column → its largest half-width.
    """

    trees: tuple[Tagged[Facts], ...]
    releases: Releases
    coverage: tuple[Coverage, ...]
    measured: tuple[MeasuredRelease, ...]
    request: LossRequest
    errors: Mapping[int, Fraction]


def _calibrated(
    analysed: _Analysed, coverage: tuple[Coverage, ...], totals: tuple[Totals, ...], query: _Query
) -> _Calibrated:
    """Choose the noise: what the given ε pays for, or the least that meets the errors."""
    settings, shown = query.settings, analysed.releases

    def named(wish: str, amounts: Mapping[str, Fraction]) -> dict[int, list[Fraction]]:
        return outputs_named(wish, amounts, analysed.tree, query.bound.columns, shown, whole=False)

    heaviest = {uid: max(amounts) for uid, amounts in named("weights", settings.weights).items()} | {**query.weights}
    if totals:
        heaviest = with_shares(heaviest, totals, shown, query.ctx.policy.privacy.accountant == "zcdp")
    weights = with_small_share(heaviest, shown.distinct, coverage) if settings.coverage else heaviest
    weights = shares_of(settings.shares, shown.distinct) if settings.shares else weights
    request = request_of(settings, query.ctx.policy, analysed.asked.distinct, analysed.needs_data, weights)
    errors = {uid: min(amounts) for uid, amounts in named("max_error", settings.max_error).items()}
    trees = analysed.tree, *(c.tree for c in coverage)
    releases = releases_of(*trees) if coverage else shown
    if settings.max_error and analysed.needs_data:
        measured, request = meet(releases.distinct, request, errors, settings.confidence)
    else:
        measured = measure(releases.distinct, request)
    return _Calibrated(trees, releases, coverage, measured, request, errors)


def _printed(noise: _Calibrated, query: _Query) -> tuple[PlannedRelease, ...]:
    """The exact statements that ask the engine for each release."""
    noisy: ByIdentity[Node, str] = ByIdentity()
    for node in noise.releases.nodes(*noise.trees):
        noisy[node] = noise.releases.standing_for(node, placeholder(f"r{noise.releases.index[node]}"))
    return tuple(
        PlannedRelease(m, () if m.known else statements(t, query.dialect, query.tables, noisy), f"r{i}")
        for i, (m, t) in enumerate(zip(noise.measured, noise.releases.distinct, strict=True))
    )


def _identity(
    tree: Tagged[Facts], noise: _Calibrated, releases: Sequence[PlannedRelease], post: PostProcessing, query: _Query
) -> Fingerprint:
    """The plan's identity: what is asked, of what policy, how it is drawn and how the answer is made of it."""
    request = noise.request
    asked = (request.budget, request.accountant, sorted(request.weights.items()), sorted(noise.errors.items()))
    # Measured public facts decide noise that neither the tree nor the statements tell.
    drawn = [
        (r.conversion_delta, r.threshold, [(m.mechanism, m.known) for m in r.measurements]) for r in noise.measured
    ]
    names, texts = [c.name for c in query.bound.columns], [r.statements for r in releases]
    return Fingerprint(tree.node, texts, post, names, asked, query.ctx.policy.hash, drawn)


def _notes(
    noise: _Calibrated, releases: Sequence[PlannedRelease], post: PostProcessing, query: _Query
) -> tuple[str, ...]:
    """What the reader of the answer should know of its noise, limits and intervals."""
    return (
        *notes_of(noise.measured, query.parsed.source),
        *pairs_counted(noise.releases.distinct),
        *joined_releases(noise.releases.distinct),
        *dict.fromkeys(copies_read(noise.releases.distinct, query.ctx.policy)),
        *notes_of_coverage(query.settings, noise.coverage),
        *notes_of_totals(post.totals, releases),
        *interval_notes(query.bound.columns, post, releases),
        *drawn_by(query.ctx.policy.noise),
        *dialects.notes(query.parsed.dialect),
    )


def _warnings(noise: _Calibrated, query: _Query) -> tuple[Diagnostic, ...]:
    """What would make the answer useless, as far as declared numbers tell."""
    source, ctx, releases = query.parsed.source, query.ctx, noise.releases.distinct

    def at(place: int) -> Callable[[Fraction], MeasuredRelease]:
        return lambda epsilon: measure(releases, replace(noise.request, epsilon=epsilon, rho=None))[place]

    return (
        *undeclared_values(query.bound.root, ctx.policy, source),
        *(
            w
            for i, (m, t) in enumerate(zip(noise.measured, releases, strict=True))
            if not m.empty and all(c.place != i for c in noise.coverage)
            for w in warnings_of(m, t.inputs[0], source, ctx, query.limits, noise.request.epsilon, at(i))
        ),
    )
