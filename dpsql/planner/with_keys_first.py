"""A query of private groups in two: its keys, for half of what it may lose, and its numbers over those that are shown.

One release that does both has to know in how many groups a privacy unit is: it keeps so many of each, and every number
bears the noise of all of them. Keys alone need no limit: a unit in K groups counts for F/√K in each
(core/measures/shared_units.py), and numbers over a public list have limits of their own. So it is done where the limit
is to be found, and where the keys need fewer units than now: of units that are in √G groups, where one in G may count.

Nothing rests on this file: both are plans like any other, and the analysis derives what they cost.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.public_groups import groups_of_an_id
from dpsql.core.ir.components import KeySource, SharedUnits
from dpsql.core.ir.expressions import Column, LiteralValue
from dpsql.core.ir.fingerprint import Fingerprint
from dpsql.core.ir.nodes import BoundContributions, Release, keyed_by, output_columns
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged, transform
from dpsql.core.noise.calibration import A_TENTH
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.note import Note, Topic, in_order
from dpsql.frontend.bound import BoundQuery
from dpsql.planner.costs.privacy_cost import HALF, cost_of
from dpsql.planner.plan import Plan
from dpsql.planner.plan_of_stages import plan_of_stages
from dpsql.planner.rewrites.rewrite_context import SHOWN_FIRST
from dpsql.planner.searches.limits_to_search import WORTH_SEARCHING, Rule, share_of
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.keys_first import KeysFirst
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.releasing import Releasing
from dpsql.planner.stages.searching import OF_LIMITS
from dpsql.planner.stages.stage import Stage

WEIGHT: Final = 1024
"""F: of a unit in 1,000 groups ⌊1024/√1000⌋ = 32 are left, so that rounding takes less than a thirtieth away."""
MOST_GROUPS: Final = 1000
"""Of one unit; of one in more as many are kept."""


def with_keys_first(plan: Plan, query: QueryToPlan, numbers: Callable[[QueryToPlan], Plan]) -> Plan:
    """The plan, or one that shows the keys first where that is better. numbers: plans what follows. Raises Rejected."""
    private = _private(plan, query)
    if private is None:
        return plan
    node, keys = private.node, _keys_alone(private)
    assert isinstance(node, Release)
    try:
        if not node.outputs:
            whole = plan_of_stages(transform(plan.tree.node, Release, lambda _: keys), query)
            return whole if _needs_fewer(whole, plan) else plan
        settings, rest = _numbers(node, query, numbers)
        first = _planned(keys, rest, query)
    except Rejected:
        return plan
    return _together(first, rest, settings, query) if _needs_fewer(first, plan) else plan


def _private(plan: Plan, query: QueryToPlan) -> Tagged[Facts] | None:
    """The one release of a query that has private keys, and nothing but a search of limits may be asked beside it."""
    own, settings = query.limits, query.settings
    asked = settings.coverage or settings.consistent_totals or settings.max_error or settings.unlisted or own.groups
    if asked or query.parsed.clause is not None or settings.search is not None:
        return None
    if any(table.grows for table in query.policy.tables.values()):
        return None  # what is kept of them is kept by their days
    if len(plan.releases) != 1 or plan.releases[0].measured.threshold is None or plan.releases[0].measured.empty:
        return None
    node = plan.releases[0].measured.node
    found = next(t for t in plan.tree.walk() if t.node == node)  # of several that are one
    is_listed = bool(keyed_by(node).within) or _stand_ins(node.keys) is None
    return found if found.inputs[0].fact.ids and not is_listed else None


def _keys_alone(private: Tagged[Facts]) -> Release:
    """The keys of a release with what decides on them, and no number."""
    node, facts = private.node, private.inputs[0].fact
    assert isinstance(node, Release)
    keyed = keyed_by(node)
    most = groups_of_an_id(keyed, facts.by_id)
    id_column = next(c for c in output_columns(keyed) if c.uid in facts.ids)
    kept = BoundContributions(
        keyed, id_column, node.keys, groups=min(MOST_GROUPS, most or MOST_GROUPS), truncate_groups=True
    )
    return Release(kept, node.keys, (SharedUnits(weight=WEIGHT),), (), 0, node.min_units, node.span)


def _numbers(node: Release, query: QueryToPlan, numbers: Callable[[QueryToPlan], Plan]) -> tuple[QuerySettings, Plan]:
    """Settings under which the numbers are planned before any key is shown, and that plan. What it costs depends on no
    key. An ε is converted to ρ as a whole, so that the noise is Gaussian like that of the keys.

    Where an engine cannot compute roots, limits are on totals. Raises Rejected.
    """
    family = query.settings.family if query.policy.privacy.accountant == "zcdp" else DiscreteGaussian.name
    settings = replace(query.settings, keys=_stand_ins(node.keys), half=True, family=family)
    try:
        return settings, numbers(replace(query, settings=settings))
    except Rejected:
        settings = replace(settings, rooted=False)
        return settings, numbers(replace(query, settings=settings))


def _stand_ins(columns: Sequence[Column]) -> KeySource | None:
    """Keys in the place of those that are not shown yet; None where no column has enough values."""
    at = next((i for i, c in enumerate(columns) if c.type.kind in _VALUES), None)
    if at is None:
        return None
    of, places = _VALUES[columns[at].type.kind], range(len(columns))
    made = (tuple(of(key) if i == at else None for i in places) for key in range(1, WORTH_SEARCHING + 1))
    return KeySource(tuple(places), tuple(made), SHOWN_FIRST)


_VALUES: Final[Mapping[Kind, Callable[[int], LiteralValue]]] = {
    Kind.VARCHAR: lambda i: f"shown key {i}",
    Kind.INTEGER: lambda i: i,
    Kind.DATE: lambda i: dt.date(1, 1, 1) + dt.timedelta(i),
}


def _planned(keys: Release, rest: Plan, query: QueryToPlan) -> Plan:
    """The keys alone, for half of what searches leave."""
    settings = query.settings
    rules = () if rest.searches is None else {s.limit.rule for s in rest.searches.limits}
    asked = QuerySettings(
        settings.epsilon, settings.delta, rho=settings.rho, dialect=settings.dialect, confidence=settings.confidence,
        family=DiscreteGaussian.name, half=True, aside=HALF * share_of(rules) if rules else Fraction(0),
    )  # fmt: skip
    bound = BoundQuery(keys, keys.keys, query.bound.source)
    return plan_of_stages(
        keys, replace(query, settings=asked, bound=bound, parsed=replace(query.parsed, clause=None), weights={})
    )


def _needs_fewer(first: Plan, now: Plan) -> bool:
    """Whether keys of units in √G groups, where one in G counts now, are shown from fewer units on, by over a tenth.

    As many times as units in one group need more, those in all G need fewer. Where G is to be found, nothing is known.
    """
    (keys,), (plain,) = first.releases, now.releases
    limits = () if now.searches is None else now.searches.limits
    if any(limit.limit.rule is Rule.GROUPS for limit in limits):
        return True
    assert plain.measured.threshold is not None
    units = math.log(plain.measured.threshold.g) / 4 + _units(keys.measured)
    return units < _units(plain.measured) - A_TENTH


def _units(measured: MeasuredRelease) -> float:
    """ln T/r: of the units that show a key, each with as much as one can add to a key."""
    assert measured.threshold is not None
    return math.log(Fraction(measured.threshold.threshold, measured.threshold.r))


def _together(first: Plan, rest: Plan, settings: QuerySettings, query: QueryToPlan) -> Plan:
    """Both as one plan: the keys, and behind them at their price the stages that have them as a list."""
    if rest.searches is None:
        settings = replace(settings, search=False)  # what is drawn then must not cost more
    first = replace(first, written=replace(first.written, finds=True))
    every = [r.measured for r in (*first.releases, *rest.first.releases, *rest.later)]
    stage = KeysFirst(first, settings, query.parameters, releases=first.releases)
    return replace(
        rest,
        stages=(stage, *(_with_warnings(s, first) for s in rest.stages)),
        cost=cost_of(every, query.policy),
        bid=replace(rest.bid, delta=first.bid.delta),
        identity=Fingerprint(rest.hash, first.hash, "keys first"),
        notes=_notes(first, rest),
    )


def _with_warnings(stage: Stage, first: Plan) -> Stage:
    """Those of the keys, and of the numbers what no number of groups decides."""
    if not isinstance(stage, Releasing):
        return stage
    return replace(stage, warnings=(*first.warnings, *(w for w in stage.warnings if w.code not in OF_LIMITS)))


def _notes(first: Plan, rest: Plan) -> tuple[Note, ...]:
    told = Note(
        "half of the price shows the keys of the groups; the rest is spent on the numbers of those that are shown"
    )
    return in_order(
        (
            told,
            *(note for note in first.notes if note.topic is Topic.THRESHOLD),
            *(note for note in rest.notes if note.topic is not Topic.OTHER_KEYS),
        )
    )
