"""The oracle: exact integers of a plan on every neighbour of a database, compared with the claimed sensitivities."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from dpsql.core.ir.components import Component, ProductSum
from dpsql.core.ir.nodes import key_sources
from dpsql.core.privacy_loss import PrivacyLoss, compose
from dpsql.core.release import noisy
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore
from tests.support.random_databases import Store, World

SALT = 987_654_321
Vector = dict[noisy.Key, list[int]]


@dataclass(frozen=True, slots=True)
class Change:
    """How far one component moved: groups that changed, Σ|Δ|, ΣΔ², max|Δ|."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


@dataclass(slots=True)
class Tally:
    """What a run of the oracle saw, so that a generator that tests nothing is noticed."""

    queries: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    pairs: int = 0
    changed: int = 0
    equal: int = 0
    shapes: dict[str, int] = field(default_factory=dict)
    components: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    in_parallel: int = 0
    in_parallel_equal: int = 0
    in_parallel_mixed: int = 0

    @property
    def planned(self) -> int:
        return self.queries - sum(self.refused.values())


class Violation(AssertionError):
    """Two neighbouring databases whose answers lie further apart than the plan says."""


def plan_of(
    store: Store,
    facts: FactStore,
    world: World,
    sql: str,
    limits: ContributionLimits | None = None,
    coverage: bool = False,
) -> Plan:
    """The plan of a query at ε = 1, δ = 10⁻⁶. Raises Rejected."""
    own = limits or ContributionLimits()
    settings = QuerySettings(Fraction(1), Fraction(1, 10**6), own, coverage=coverage, anyway=True)
    return facts.compile(lambda public: compile_query(Source(sql), world.policy, public, settings, (), store.table_sql))


def exact(planned: PlannedRelease, store: Store, salt: int = SALT) -> Vector:
    """Key → the integers that noise would be added to, for exactly the keys that may be released."""
    found = noisy._fetch(planned, EngineAsk(store, salt)).rows()
    sources = key_sources(planned.measured.node)
    if sources is None:
        return found
    zeros = [0] * len(planned.measured.node.components)
    keys = noisy.public_keys(sources, len(planned.measured.node.keys))
    return {key: found.get(key, zeros) for key in keys}


def change(a: Vector, b: Vector, component: int) -> Change:
    """The change of one component; a key that is missing counts as zero."""
    moved = [
        abs(a[k][component] if k in a else 0 - b[k][component])
        if k not in a or k not in b
        else abs(a[k][component] - b[k][component])
        for k in {**a, **b}
    ]
    moved = [d for d in moved if d]
    return Change(len(moved), sum(moved), sum(d * d for d in moved), max(moved, default=0))


def violations(planned: PlannedRelease, a: Vector, b: Vector, tally: Tally | None = None) -> Iterator[str]:
    """What two databases' vectors say against the plan's claims."""
    # What everybody knows is given as that, whatever the statement says.
    read = [m.known is None for m in planned.measured.measurements]
    moved = tuple(change(a, b if own else a, i) for i, own in enumerate(read))
    for i, (m, seen) in enumerate(zip(planned.measured.measurements, moved, strict=True)):
        claim = m.sensitivity
        if tally is not None:
            tally.pairs += 1
            tally.changed += seen.l1 > 0
            tally.equal += seen.l1 == claim.l1 > 0
        for name in ("l0", "l1", "l2_squared", "linf"):
            if getattr(seen, name) > getattr(claim, name):
                yield f"component {i} {_shown(m.component)}: {name} moved by {getattr(seen, name)}, claimed {claim}"
    together = _VERDICTS.of(planned, moved)
    if tally is not None:
        tally.in_parallel += together.in_parallel
        tally.in_parallel_equal += together.equal
        tally.in_parallel_mixed += together.mixed
    yield from together.problems
    threshold = planned.measured.threshold
    if threshold is None:
        return
    deciding = planned.measured.node.threshold
    assert deciding is not None
    for one, other in ((a, b), (b, a)):
        new = [k for k in one if k not in other]
        if len(new) > threshold.g:
            yield f"{len(new)} new keys, claimed {threshold.g}"
        most = max((one[k][deciding] for k in new), default=0)
        if most > threshold.r:
            yield f"a new key with {most} units, claimed {threshold.r}"


class Together(NamedTuple):
    """What changes of all components say against the joint claims: of parallel groups, and of the release's price."""

    problems: tuple[str, ...]
    in_parallel: int
    equal: int
    mixed: int


class Verdicts:
    """Of one release at a time, each found once: thousands of pairs of databases change in the same few ways."""

    def __init__(self) -> None:
        self.planned: PlannedRelease | None = None
        self.price = PrivacyLoss()
        self.found: dict[tuple[Change, ...], Together] = {}

    def of(self, planned: PlannedRelease, moved: tuple[Change, ...]) -> Together:
        if planned is not self.planned:
            self.planned, self.found = planned, {}
            self.price = compose(planned.measured.losses(planned.measured.unit))
        if moved not in self.found:
            self.found[moved] = self._judged(planned, moved)
        return self.found[moved]

    def _judged(self, planned: PlannedRelease, moved: tuple[Change, ...]) -> Together:
        lost, problems, in_parallel, equal, mixed = PrivacyLoss(), [], 0, 0, 0
        for parallel in planned.measured.parallel_groups:
            noisy = [(planned.measured.measurements[i], moved[i]) for i in parallel]
            noisy = [(m, seen) for m, seen in noisy if m.sensitivity.l1]
            lost += compose(m.mechanism.loss(Fraction(seen.l1), Fraction(seen.l2_squared)) for m, seen in noisy)
            if len(noisy) < 2:
                continue
            l1 = sum(Fraction(seen.l1, m.sensitivity.l1) for m, seen in noisy)
            l2_squared = sum(Fraction(seen.l2_squared) / m.sensitivity.l2_squared for m, seen in noisy)
            in_parallel += l1 > 0
            equal += l1 == 1
            mixed += sum(seen.l1 > 0 for _, seen in noisy) > 1
            if l1 > 1 or l2_squared > 1:
                problems.append(
                    f"components {parallel} together moved by {l1} (l2²: {l2_squared}) of what each may alone"
                )
        if not lost.within(self.price):
            problems.append(f"the release lost {lost}, priced at {self.price}")
        return Together(tuple(problems), in_parallel, equal, mixed)


_VERDICTS = Verdicts()


def _shown(c: Component) -> str:
    return f"{c.kind} arg={c.arg is not None} filter={c.filter is not None} paired={c.paired}"


def attack(
    store: Store, facts: FactStore, world: World, sql: str, tally: Tally, limits: ContributionLimits | None = None,
    surgery: Callable[[Plan], Plan] = lambda plan: plan,
) -> None:  # fmt: skip
    """Run one query on a loaded world and all its neighbours. Raises Violation with everything needed to repeat it."""
    tally.queries += 1
    try:
        plan = surgery(plan_of(store, facts, world, sql, limits))
    except Rejected as refusal:
        for d in refusal.diagnostics[:1]:
            tally.refused[d.code] = tally.refused.get(d.code, 0) + 1
            tally.refusals.setdefault(d.code, f"{d.message}\n      {sql}")
        return
    for planned in plan.releases:
        for statement in planned.statements:
            tally.shapes[statement.shape] = tally.shapes.get(statement.shape, 0) + 1
        for m in planned.measured.measurements:
            name = m.component.kind + (" paired" if m.component.paired else "")
            name += " squared" if isinstance(m.component, ProductSum) and m.component.times is None else ""
            tally.components[name] = tally.components.get(name, 0) + 1
        vectors = []
        for db in range(world.neighbours + 1):
            store.show(db)
            try:
                vectors.append(exact(planned, store))
            except Exception as error:
                raise Violation(f"database {db}: {error}\n{report(world, sql, planned)}") from error
        store.show(0)
        for db, vector in enumerate(vectors[1:], 1):
            for problem in violations(planned, vectors[0], vector, tally):
                detail = f"database 0: {vectors[0]}\ndatabase {db}: {vector}"
                raise Violation(f"{problem}\n{detail}\n{report(world, sql, planned)}")


def report(world: World, sql: str, planned: PlannedRelease) -> str:
    """Everything needed to repeat a finding."""
    lines = [f"query: {sql}", f"world: {world.description}", f"contribution: {planned.measured.contribution}"]
    lines += [f"statement ({s.shape}):\n{s.salted(SALT)}" for s in planned.statements]
    lines += [f"component: {m.component}\n  {m.sensitivity}" for m in planned.measured.measurements]
    for table in world.tables:
        lines.append(f"table {table.name}: {table.entry}")
        lines += [f"  {bin(mask & 0xFFFFFFFF)[2:]:>8} {row}" for row, mask in table.rows]
    return "\n".join(lines)


def random_limits(rng: random.Random) -> ContributionLimits:
    """Now and then the query tightens the policy's limits."""
    if rng.random() < 0.75:
        return ContributionLimits()
    return ContributionLimits(
        rng.choice((None, 1, 2, 5)), rng.choice((None, 1, 3)), rng.choice((None, 1, 2, 50)), rng.choice((1, 1, 3))
    )
