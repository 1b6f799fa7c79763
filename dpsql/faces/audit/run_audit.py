"""An audit of one query: worst-case neighbouring databases, the real pipeline on both, and what that says of its plan.

*Claim.* A correct plan is refuted with probability at most `FALSE_ALARM`. *Why.* The exact layer only compares integers
that neighbouring databases gave; the statistical one tests, on fresh runs, events that were chosen on others, at the
level divided by the number of tests, which is fixed before the first of them. *When it would be false.* If a made-up
database broke a promise of the policy: whatever refutes is held against the promises first. *Tested by*
tests/deep/faces/audit/test_audit.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dpsql.core.engine import Engine
from dpsql.core.ir.periods import Closed
from dpsql.core.ledger.accountant import cost
from dpsql.core.noise.backends import Backend, backend
from dpsql.core.noise.measurement import conversion_delta_of
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.audit.exact import ComponentChange, NeighbourPair, Violation, at_key, change, new_keys, share
from dpsql.faces.audit.neighbouring_databases import DatabaseMaker
from dpsql.faces.audit.pair_search import MOST_PAIRS, PairSearch, Target
from dpsql.faces.audit.plan_reading import PlanReading, reading
from dpsql.faces.audit.ranks import ranked
from dpsql.faces.audit.statistics import (
    FALSE_ALARM,
    EventOutcome,
    certify,
    certify_impossible,
    certify_noise,
    choose,
    choose_for_noise,
)
from dpsql.faces.audit.trials import claim, draw, shown
from dpsql.faces.audit.world import World
from dpsql.planner.compile import compile_query
from dpsql.planner.explain.components import component_name
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.checks.declared import checks
from dpsql.service.made_up.service import made_up_periods
from dpsql.service.planning.public_facts import FactStore

RUNS = 10_000
"""Releases of each database to choose an event by, and as many again to test it."""

Quantity = Literal["epsilon", "rho", "delta"]
_CROWD = 5000
_SURE = 12
"""How many scales above its threshold a key's count should be, so that it is practically always shown."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One claim and what became of it.

    what: the whole query, a component's name, or the keys of a release. outcome: of the test of what is charged. noise:
    of the test that the noise is as wide as stated; None for keys. reached: which part of the stated sensitivity
    the worst pair moves, 1 for all of it; None where the whole query is meant. pair: the databases. moved, stated: by
    how much a component moves there without noise, and the most that is stated, in integer units.
    """

    what: str
    unit: str
    quantity: Quantity
    outcome: EventOutcome
    noise: EventOutcome | None
    reached: float | None
    pair: NeighbourPair
    moved: ComponentChange | None = None
    stated: Sensitivity | None = None

    @property
    def refuted(self) -> bool:
        """Whether what is charged is refuted, or that the noise is as wide as stated."""
        return self.outcome.refuted or (self.noise is not None and self.noise.refuted)


@dataclass(frozen=True, slots=True)
class Audit:
    """The report of an audit.

    looked: pairs of databases whose exact integers were compared. violations: claims that these refute by themselves.
    mispriced: privacy units that the plan charges less than its mechanisms lose. unmoved: components that no database
    that was tried could change, so that nothing is known of them. shapes: of the statements that ran.
    """

    plan: Plan
    policy: Policy
    runs: int
    looked: int
    tested: tuple[Tested, ...]
    violations: tuple[Violation, ...]
    mispriced: tuple[str, ...]
    unmoved: tuple[str, ...]
    shapes: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        """Whether any claim is."""
        return bool(self.violations or self.mispriced or any(t.refuted for t in self.tested))


def audit(
    source: Source,
    policy: Policy,
    settings: QuerySettings,
    data: Engine | None = None,
    *,
    key_delta: Fraction | None = None,
    runs: int = RUNS,
    most_pairs: int = MOST_PAIRS,
    closed: Mapping[str, Closed] | None = None,
) -> Audit:
    """Audit one query.

    data: where public tables are read; None: they are made up. Private tables are made up in either case.
    key_delta: the δ if group keys are private; None: that of `settings`. closed: of growing tables; None: some periods.
    Raises Rejected, EngineError, CannotOpen.
    """
    world, facts = World(policy, data), made_up_periods(policy) if closed is None else closed
    try:
        plan = _planned(source, policy, settings, world, facts)
        if key_delta is not None and any(r.measured.threshold is not None for r in plan.releases):
            plan = _planned(source, policy, replace(settings, delta=key_delta), world, facts)
        return audit_plan(plan, policy, world, runs, most_pairs)
    finally:
        world.close()


def _planned(
    source: Source, policy: Policy, settings: QuerySettings, world: World, closed: Mapping[str, Closed]
) -> Plan:
    plan = FactStore(world, lambda: closed).compile(
        lambda public: compile_query(source, policy, public, settings, (), world.table_sql, world.dialect)
    )
    # The numbers of keys that are shown first are those of any public list.
    return plan if plan.keys_first is None else plan.keys_first.plan


def audit_plan(plan: Plan, policy: Policy, world: World, runs: int = RUNS, most_pairs: int = MOST_PAIRS) -> Audit:
    """Audit a plan that was made for this world."""
    reads, drawing = reading(plan, policy), backend(policy.noise)
    maker = DatabaseMaker(policy, reads, world)
    searches = [PairSearch(plan, maker, unit, most_pairs) for unit in sorted(plan.cost)]
    for search in searches:
        search.run()
    violations = tuple(v for s in searches for v in s.found.values() if keeps_promises(policy, reads, world, v.pair))
    found = [c for s in searches for c in _candidates(plan, s, policy, reads, world)]
    level = FALSE_ALARM / max(1, sum(1 if c.keys is not None else 2 for c in found))
    results = tuple(_try(plan, c, runs, level, drawing) for c in found)
    unmoved = tuple(name for s in searches for name in _untested(plan, s, found))
    made_up = f"public tables made up: {', '.join(world.made_up)}" if world.made_up else ""
    return Audit(
        plan, policy, runs, sum(s.looked for s in searches), results, violations, tuple(_mispriced(plan, policy)),
        unmoved, tuple(dict.fromkeys(s.shape for r in plan.releases for s in r.statements)),
        (made_up,) if made_up else (),
    )  # fmt: skip


# --- what is tested ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A claim to test. keys: the release whose keys are meant, instead of a target."""

    unit: str
    target: Target
    pair: NeighbourPair
    keys: int | None = None


def _candidates(
    plan: Plan, search: PairSearch, policy: Policy, reads: PlanReading, world: World
) -> Iterator[_Candidate]:
    targets: list[Target] = [None, *search.targets()]
    if len(targets) == 2:
        targets = [None]  # the query is that component
    worst = {id(pair): pair for _, pair in search.best.values()}
    crowded = {at: _crowded(plan, search, pair) for at, pair in worst.items()}
    kept = {at for at, pair in crowded.items() if keeps_promises(policy, reads, world, pair)}
    chosen = {target: id(search.best[target][1]) for target in targets if target in search.best}
    for target, at in chosen.items():
        if at in kept:
            turned = ranked(search, target, crowded[at], _wanted(plan, worst[at]))
            keeps = turned is crowded[at] or keeps_promises(policy, reads, world, turned)
            yield _Candidate(search.unit, target, turned if keeps else crowded[at])
    for at, (_, pair) in sorted(search.shown.items()):
        if search.unit in plan.releases[at].measured.contributions and keeps_promises(policy, reads, world, pair):
            yield _Candidate(search.unit, None, pair, at)


def _untested(plan: Plan, search: PairSearch, found: list[_Candidate]) -> Iterator[str]:
    """The components of which nothing is known in the end."""
    tested = {c.target for c in found if c.unit == search.unit and c.keys is None}
    alone = len(search.targets()) == 1 and None in tested
    yield from (_name(plan, t) for t in search.targets() if t not in search.best or not (alone or t in tested))


def _crowded(plan: Plan, search: PairSearch, pair: NeighbourPair) -> NeighbourPair:
    """The same pair with so many other units that private keys are shown, and their numbers can be compared."""
    wanted = _wanted(plan, pair)
    return search.look(replace(pair.candidate, crowd=wanted)) or pair if wanted else pair


def _wanted(plan: Plan, pair: NeighbourPair) -> int:
    """How many other units those are."""
    wanted = 0
    for planned, a, b in zip(plan.releases, pair.a, pair.b, strict=True):
        threshold, deciding = planned.measured.threshold, planned.measured.node.threshold
        if threshold is None or deciding is None:
            continue
        enough = threshold.threshold + int(_SURE * threshold.mechanism.scale) + 1
        one = [abs(at_key(a, key, deciding) - at_key(b, key, deciding)) for key in a.keys() | b.keys()]
        wanted = max(wanted, -(-enough // min((n for n in one if n), default=1)))
    both = 1 if pair.candidate.instead is None else 2
    return min(_CROWD, wanted * both)


def _try(plan: Plan, c: _Candidate, runs: int, level: float, drawing: Backend) -> Tested:
    if c.keys is not None:
        planned = plan.releases[c.keys]
        keys = new_keys(planned, c.pair, c.keys)
        happened = shown(planned, c.pair.a[c.keys], keys, runs, drawing)
        threshold = planned.measured.threshold
        assert threshold is not None
        outcome = certify_impossible(happened, runs, float(min(threshold.delta, plan.cost[c.unit].delta)), level)
        return Tested("keys of one side alone", c.unit, "delta", outcome, None, None, c.pair)
    claimed = claim(plan, c.pair, c.target)
    first = draw(plan, c.pair, c.target, runs, drawing)
    event = choose(first.a, first.b, claimed, level)
    of_noise = choose_for_noise(first.a, first.b, claimed, level)
    fresh = draw(plan, c.pair, c.target, runs, drawing)
    outcome = certify(event, fresh.a, fresh.b, claimed, level)
    noise = certify_noise(of_noise, fresh.a, fresh.b, claimed, level)
    quantity: Quantity = "rho" if claimed.rho else "epsilon"
    if c.target is None:
        return Tested(_name(plan, None), c.unit, quantity, outcome, noise, None, c.pair)
    at, i = c.target
    node = plan.releases[at].measured.node
    m, moved = plan.releases[at].measured.measurements[i], change(c.pair.a[at], c.pair.b[at], node.components, i)
    reached, stated = share(m, c.unit, moved), m.by_unit.get(c.unit, m.sensitivity)
    return Tested(_name(plan, c.target), c.unit, quantity, outcome, noise, reached, c.pair, moved, stated)


def _name(plan: Plan, target: Target) -> str:
    if target is None:
        return "the whole query"
    at, i = target
    measured = plan.releases[at].measured
    name = component_name(measured.node.components[i], measured)
    return name if len(plan.releases) == 1 else f"{name} of release {at}"


def _mispriced(plan: Plan, policy: Policy) -> Iterator[str]:
    """Units that are charged less than what the mechanisms lose, composed as the policy's accountant does."""
    conversion = conversion_delta_of(r.measured for r in plan.releases)
    units = {unit for r in plan.releases for unit in r.measured.contributions}
    for unit in sorted(units):
        parts = [x for r in plan.releases if unit in r.measured.contributions for x in r.measured.losses(unit)]
        charged = plan.cost.get(unit)
        if charged is None or not cost(policy.privacy.accountant, parts, conversion).within(charged):
            yield unit


def keeps_promises(policy: Policy, reads: PlanReading, world: World, pair: NeighbourPair) -> bool:
    """Whether both databases keep what the policy promises; otherwise the plan need not hold on them."""
    for tables in (pair.databases.a, pair.databases.b):
        world.show(tables)
        for check in checks(policy):
            if check.table not in reads.private or check.promised is None or check.measure is None:
                continue
            if check.kind == "size":
                continue  # the number itself is never read from the data
            if check.kind == "foreign_key":
                key = policy.tables[check.table].foreign_keys[int(check.loc[3])]
                if key.table not in (*reads.private, *reads.public):
                    continue
            found = check.measure(world)
            if found > check.promised or (check.exact and found != check.promised):
                return False
    return True
