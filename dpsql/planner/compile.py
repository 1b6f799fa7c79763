"""The pipeline in order; each stage's input is the previous one's output, so none can be skipped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import releases_of
from dpsql.core.analysis.whole_plan import (
    require_one_relation,
    require_public,
    require_public_correlation,
    require_releases,
)
from dpsql.core.ir import step_count as steps
from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import Node, Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.renumber import unused_numbers
from dpsql.core.ir.walk import Tagged
from dpsql.core.ledger.accountant import cost
from dpsql.core.noise.accuracy import meet
from dpsql.core.noise.calibration import measure
from dpsql.core.noise.measurement import MeasuredRelease, conversion_delta_of
from dpsql.core.noise.request import Request
from dpsql.core.numbers.normal import root
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import TableNames
from dpsql.core.printing.shapes.choose import statements
from dpsql.core.printing.shapes.statement import placeholder
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.engines.open import dialect_of
from dpsql.frontend import dialects
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.bound import Bound
from dpsql.frontend.parse import Parsed, parse
from dpsql.planner.clause import require_clause, with_clause
from dpsql.planner.coverage import add_coverage, notes_of_coverage, with_small_share
from dpsql.planner.declared_facts import rely_on_declared
from dpsql.planner.expected_error import total_error
from dpsql.planner.named_outputs import outputs_named
from dpsql.planner.notes import drawn_by, notes_of, pairs_counted
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.context import Limits, RewriteContext
from dpsql.planner.rewrites.rules import rewrite
from dpsql.planner.settings import Settings
from dpsql.planner.unread import Unread
from dpsql.planner.warnings.undeclared_values import undeclared_values
from dpsql.planner.warnings.warnings import warnings_of
from dpsql.postprocessing.planning.interval_notes import interval_notes
from dpsql.postprocessing.planning.plan import post_processing, require_shown
from dpsql.postprocessing.planning.steps import Coverage


def compile_query(
    source: Source,
    policy: Policy,
    public: PublicFacts,
    settings: Settings,
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
    steps.begin()
    try:
        return _compile(source, policy, public, settings, parameters, target, tables or target.identifier)
    except Rejected as refusal:
        refusal.diagnostics = tuple(_as_written(d.at(source)) for d in refusal.diagnostics)
        raise
    except RecursionError:
        raise reject("DP010", "the statement is nested too deeply", source=source) from None
    finally:
        steps.end()


def _as_written(found: Diagnostic) -> Diagnostic:
    """A clip that the help proposes names the column as the query does: with its table, in quotes."""
    if found.source is None or found.span is None:
        return found
    written = found.source.text[found.span.start : found.span.end]
    if _NAME.fullmatch(written):
        name = written.rpartition(".")[2].strip('"')
        clip = re.compile(rf"(?<=CLIP\(){re.escape(name)}(?=, [^,]+, [^,]+\)\Z)", re.IGNORECASE)
        return replace(found, help=tuple(clip.sub(lambda _: written, text) for text in found.help))
    return replace(found, help=tuple(_CLIP.sub(lambda m: _same(m[0], written), text) for text in found.help))


_NAME = re.compile(r'[\w."]+')
_CLIP = re.compile(r"(?<=CLIP\().+(?=, [^,]+, [^,]+\)\Z)")
_LOOSE = re.compile(r'\w+\.|[\s"()]')
"""In what two spellings of an expression may differ: tables, quotes, blanks and brackets."""


def _same(shown: str, written: str) -> str:
    """An expression as the query writes it, if it is what is marked there."""
    alike = _LOOSE.sub("", shown).lower() == _LOOSE.sub("", written).lower()
    return written if alike and "\n" not in written else shown


def _compile(
    source: Source,
    policy: Policy,
    public: PublicFacts,
    settings: Settings,
    parameters: Sequence[Any] | Mapping[str, Any],
    dialect: Dialect,
    tables: TableNames,
) -> Plan:
    ctx = Context(policy, public, policy.defaults.max_keys)
    parsed = parse(source, settings.dialect)
    settings = with_clause(settings, parsed.clause)
    limits = replace(settings.limits, min_units=max(settings.limits.min_units, policy.defaults.min_units))
    bound = bind(parsed, policy, parameters, dialect)
    dialects.check_types(bound.root, parsed.dialect)
    if not settings.max_error:
        return _planned(source, ctx, limits, settings, parsed, bound, dialect, tables, total_error)
    # Sums may be plain or share a count's noise: which form meets the errors for less depends on them.
    plain = _planned(source, ctx, limits, settings, parsed, bound, dialect, tables, None)
    try:
        shared = _planned(source, ctx, limits, settings, parsed, bound, dialect, tables, total_error)
    except Rejected:
        return plain
    return min(plain, shared, key=lambda plan: (plan.loss.rho, plan.loss.epsilon))


def _planned(
    source: Source,
    ctx: Context,
    limits: Limits,
    settings: Settings,
    parsed: Parsed,
    bound: Bound,
    dialect: Dialect,
    tables: TableNames,
    error: Callable[[Release, Facts], float] | None,
) -> Plan:
    """The plan of a bound query. error: how the form of its sums is chosen; None: plain sums."""
    policy, public = ctx.policy, ctx.public
    draft = Derivation.begin(ctx, drafting=True)
    rewritten = rewrite(bound.root, RewriteContext(draft, limits, error))
    whole, unread = derive(rewritten, ctx), Unread()
    read = unread.without(whole)
    tree = whole if read is whole.node else derive(read, ctx)
    require_public(tree)
    # What is not read is refused all the same where it would be refused with rows.
    require_releases(whole)
    require_public_correlation(whole)
    require_shown(whole.node, bound.columns, ctx)
    rely_on_declared(tree, ctx)
    every, found = releases_of(whole), releases_of(tree)
    tagged = list(found.distinct)
    require_one_relation(every.distinct)
    if parsed.clause is not None:
        require_clause(parsed.clause, every.distinct)
    for wish, named in (("weights", settings.weights), ("max_error", settings.max_error if every.distinct else {})):
        outputs_named(wish, named, whole, bound.columns, every)
    weights = outputs_named("weights", settings.weights, tree, bound.columns, found, whole=False)
    measures = any(not t.inputs[0].fact.empty for t in tagged)
    heaviest = {uid: max(amounts) for uid, amounts in weights.items()}
    coverage: tuple[Coverage, ...] = ()
    if settings.coverage:
        coverage = add_coverage(found, unused_numbers(rewritten), settings, source, ctx)
        heaviest = with_small_share(heaviest, tagged, coverage)
        found = releases_of(tree, *(c.tree for c in coverage))
        tagged = list(found.distinct)
    request = _request(settings, policy, every.distinct, measures, heaviest)
    errors = outputs_named("max_error", settings.max_error, tree, bound.columns, found, whole=False)
    least = {uid: min(amounts) for uid, amounts in errors.items()}
    if settings.max_error and measures:
        measured, request = meet(tagged, request, least, settings.confidence)
    else:
        measured = measure(tagged, request)
    charges = _charges(measured, policy, request)
    noisy = ByIdentity[Node, str]()
    for node in found.nodes(tree, *(c.tree for c in coverage)):
        noisy[node] = found.standing_for(node, placeholder(f"r{found.index[node]}"))
    releases = tuple(
        PlannedRelease(m, () if m.known else statements(t, dialect, tables, noisy), f"r{i}")
        for i, (m, t) in enumerate(zip(measured, tagged, strict=True))
    )
    post = post_processing(tree, bound.columns, releases, found, dialect, tables)
    spent = request

    def at(place: int) -> Callable[[Fraction], MeasuredRelease]:
        return lambda epsilon: measure(tagged, replace(spent, epsilon=epsilon, rho=None))[place]

    warnings = tuple(
        w
        for i, (m, t) in enumerate(zip(measured, tagged, strict=True))
        if not m.empty and all(c.place != i for c in coverage)
        for w in warnings_of(m, t.inputs[0], source, ctx, limits, request.epsilon, at(i))
    )
    warnings = (*undeclared_values(bound.root, policy, source), *warnings)
    names = [c.name for c in bound.columns]
    asked = (request.budget, request.accountant, sorted(request.weights.items()), sorted(least.items()))
    # Measured public facts decide noise that neither the tree nor the statements tell.
    drawn = [(r.conversion_delta, r.threshold, [(m.mechanism, m.known) for m in r.measurements]) for r in measured]
    identity = fingerprint(tree.node, [r.statements for r in releases], post, names, asked, policy.hash, drawn)
    unread_notes = tuple(unread.why)
    told = interval_notes(bound.columns, post, releases)
    notes = (
        *unread_notes,
        *notes_of(measured),
        *pairs_counted(tagged),
        *notes_of_coverage(settings, coverage),
        *told,
        *drawn_by(policy.noise),
        *dialects.notes(parsed.dialect),
    )
    dearer = policy.defaults.allow_dearer if settings.allow_dearer is None else settings.allow_dearer
    return Plan(
        source, bound.columns, tree, releases, post, request.epsilon, request.delta, charges, policy.hash,
        identity, dict(public.used), not public.missing, notes, warnings, settings.max_error if measures else {},
        settings.confidence, dearer, unread_notes, coverage,
    )  # fmt: skip


def _request(
    settings: Settings,
    policy: Policy,
    releases: Sequence[Tagged[Facts]],
    measures: bool,
    weights: Mapping[int, Fraction],
) -> Request:
    """What the query may lose. Raises Rejected DP401, DP406, DP408.

    releases: all that the query has. measures: whether any of them needs data; else nobody need say what it may cost.
    """
    accountant = policy.privacy.accountant
    private_keys = [t.node for t in releases if isinstance(t.node, Release) and t.node.threshold is not None]
    if accountant == "pure_dp" and private_keys:
        raise reject(
            "DP408", "private group keys need a δ, which pure differential privacy does not have",
            span=private_keys[0].keys[0].span, label="no public list of these values is known",
            help=["custodian: declare a domain for the group columns, or use approx_dp"],
        )  # fmt: skip
    if not measures:
        return Request(Fraction(1), accountant=accountant)
    epsilon = settings.epsilon if settings.epsilon is not None else policy.defaults.epsilon
    delta = settings.delta if settings.delta is not None else policy.defaults.delta
    if settings.rho is not None:
        if accountant != "zcdp":
            raise reject(
                "DP406", f"a rho was given, and the policy's accountant, {accountant}, counts epsilon",
                help=["give an epsilon; or, custodian: set  privacy.accountant: zcdp  (a new ledger)"],
            )  # fmt: skip
        epsilon = root(2 * settings.rho).lo  # what a pure ε of the same price would be
    if settings.max_error:
        epsilon = Fraction(1)  # stands for the one that is found
    if epsilon is None:
        raise reject(
            "DP401", "no epsilon was given, and the policy has no default",
            help=["say how much to spend, e.g.  run(epsilon=0.5)  or  --epsilon 0.5"],
        )  # fmt: skip
    if accountant == "pure_dp":
        delta = None
    return Request(epsilon, delta or Fraction(0), accountant, settings.rho, weights)


def _charges(measured: Sequence[MeasuredRelease], policy: Policy, request: Request) -> dict[str, PrivacyLoss]:
    """What the plan costs; never above the request, but for the rounding to the ledger's grid."""
    for parts in _parts_by_unit(measured).values():
        if not cost(policy.privacy.accountant, parts, conversion_delta_of(measured)).within(request.budget):
            raise reject(
                "DP406", "the plan would cost more than was asked for; nothing was run",
                help=["please report this query: the planner contradicts itself"],
            )  # fmt: skip
    return charges_of(measured, policy)


def charges_of(measured: Iterable[MeasuredRelease], policy: Policy) -> dict[str, PrivacyLoss]:
    """Privacy unit → loss, from the very objects that will draw the noise, in the policy's accountant.

    On the ledger's grid, so that what is announced is exactly what will be charged. Gaussian noise is converted at the
    δ that the releases state, and that δ is charged: whatever it is, the two numbers belong together.
    """
    releases = tuple(measured)
    convert = conversion_delta_of(releases)
    by_unit = _parts_by_unit(releases)
    return {unit: cost(policy.privacy.accountant, parts, convert).on_grid() for unit, parts in by_unit.items()}


def _parts_by_unit(measured: Sequence[MeasuredRelease]) -> dict[str, list[PrivacyLoss]]:
    found: dict[str, list[PrivacyLoss]] = {}
    for release in measured:
        for unit in release.contributions:
            found.setdefault(unit, []).extend(release.losses(unit))
    return found
