"""From the numbers of searches to the plan that they lead to: the same question, compiled with the limits found.

*Claim.* What a plan says of its limits depends on noisy numbers that its reader has paid for, and a run draws nothing
that costs more than was charged. *Why.* Limits of held searches are looked up for the account itself (`resolve`); those
that a run draws are read after its charge, and the core compares what follows with what was reserved
(`core/release/charge.py`). *When it would be false.* If a limit were read from stored numbers of an account that has
not got them. *Tested by* tests/service/test_searches.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.resolve import resolve
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.charge import Charged
from dpsql.core.release.noisy import NoisyRelease, assembled
from dpsql.diagnostics.diagnostic import Mark
from dpsql.diagnostics.errors import NothingFound, Rejected, reject
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.searches.octaves import SearchResult
from dpsql.planner.searches.found import nothing_found
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.keys_first import KeysFirst
from dpsql.planner.stages.searching import LimitsFound, Searches
from dpsql.planner.stages.stage import Stage
from dpsql.service.planning.planning import WrittenQuery

if TYPE_CHECKING:
    from dpsql.service.service import Service


def with_limits(
    service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss
) -> Plan:
    """The plan of a question, with the limits that its searches have found. charged: for these. spent: by the run.

    Raises NothingFound: DP212, or DP409 if a public table has changed meanwhile.
    """
    assert plan.searches is not None
    ids = [g.answers[0].id if 0 in g.answers else charged.ids.get((at, 0), "") for at, g in enumerate(charged.given)]
    found = plan.searches.found(noisy, ids)
    if any(each.limit is None for each in found):
        raise nothing_found(plan.searches.limits, found, plan.source, spent)
    return _as_charged(service, plan, spent, "octaves", lambda: _compiled(service, plan, found))


def _as_charged(service: Service, plan: Plan, spent: PrivacyLoss, kept: str, compiled: Callable[[], Plan]) -> Plan:
    """What follows, of the same rows as what was charged. kept: what was drawn. Raises NothingFound: DP409."""
    try:
        limited = compiled()
        if limited.basis.periods != plan.basis.periods:  # what follows may cost no period that was not charged
            raise reject("DP409", "periods were closed meanwhile", source=plan.source, help=["ask again: it goes on"])
        service.facts.check_again(limited)
    except Rejected as refusal:
        said = f"{spent} was charged; the noisy {kept} are kept"
        told = [replace(d, notes=(*d.notes, said), mark=Mark.SAYS_CHARGE) for d in refusal.diagnostics]
        raise NothingFound(told) from None
    return limited


def with_held_limits(
    service: Service, plan: Plan, account: AnalystAccount, settings: QuerySettings | None = None
) -> Plan:
    """The plan with its keys and limits, if the account holds what shows or finds them. Raises CannotOpen.

    settings: in place of those that the plan was made with.
    """
    while (finding := plan.finding) is not None:
        resolution = resolve(plan, account)
        if not resolution.is_held:
            break
        held = [assembled(*each) for each in zip(plan.first.releases, resolution.given, strict=True)]
        if isinstance(finding, KeysFirst):
            if settings is not None:
                break
            plan = _with_shown(service, plan, finding, held)
            continue
        assert plan.searches is not None
        ids = [given.answers[0].id if 0 in given.answers else "" for given in resolution.given]
        plan = _compiled(service, plan, plan.searches.found(held, ids), settings)
    return plan


def with_keys(
    service: Service, plan: Plan, noisy: Sequence[NoisyRelease], charged: Charged, spent: PrivacyLoss
) -> Plan:
    """The plan of a question over the keys that are shown. spent: by the run. Raises NothingFound: DP409."""
    assert plan.keys_first is not None
    keys = plan.keys_first
    return _as_charged(service, plan, spent, "keys", lambda: _with_shown(service, plan, keys, noisy))


def _with_shown(service: Service, plan: Plan, keys: KeysFirst, noisy: Sequence[NoisyRelease]) -> Plan:
    settings = keys.with_shown(noisy)
    return service.planner.plan(WrittenQuery(plan.source.text, keys.parameters, settings.dialect), settings)


def _compiled(
    service: Service, plan: Plan, found: Sequence[SearchResult], settings: QuerySettings | None = None
) -> Plan:
    assert plan.searches is not None
    settings = settings or plan.searches.settings
    limits = {each.octaves.label: each.limit for each in found if each.limit is not None}
    limited = _with(service, plan, limits, replace(settings, family=plan.searches.settings.family))
    if (limited.searches is not None) != bool(plan.searches.following):
        raise AssertionError("a question that asks for other limits than it did before")
    told = (*plan.searches.earlier, *found)
    return replace(limited, stages=tuple(_with_results(stage, told) for stage in limited.stages))


def _with_results(stage: Stage, found: tuple[SearchResult, ...]) -> Stage:
    if isinstance(stage, Searches):
        return replace(stage, earlier=found)
    return replace(stage, results=found) if isinstance(stage, LimitsFound) else stage


def one_search(service: Service, plan: Plan, label: str) -> Plan:
    """The plan in which one search is left: what the others would find stands as 1. Raises Rejected."""
    assert plan.searches is not None
    others = [s.limit for s in plan.searches.every if s.limit.label != label]
    known = {limit.label: (0, 1) if limit.rule.of_values else 1 for limit in others}
    return _with(service, plan, known, plan.searches.settings) if known else plan


def _with(service: Service, plan: Plan, limits: Mapping[str, int | tuple[int, int]], settings: QuerySettings) -> Plan:
    """The same question with further limits."""
    assert plan.searches is not None
    question = WrittenQuery(plan.source.text, plan.searches.parameters, settings.dialect)
    known = {**plan.searches.settings.found, **limits}
    return service.planner.plan(question, replace(settings, found=known))
