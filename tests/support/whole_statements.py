"""Whole statements on databases that differ in one unit: no release moves, or loses, more than it is priced at.

Random policies and databases with ids, rows and replaced units, under each accountant; random statements, some with
coverage, with limits that are searched, or as members of a batch. A comparison is one release on one neighbour.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.core.engine import AsksAgain
from dpsql.core.ir.nodes import Release, key_sources
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import walk
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.mechanisms import PureExponential
from dpsql.core.release import noisy
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.histograms import Histograms
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.batches.batch_design import (
    WrittenMember,
    designed,
    marginal_settings,
    read_members,
    require_additive,
)
from dpsql.service.planning.public_facts import FactStore
from tests.support.chosen_losses import Database, changed, decimal, loss_of_group, renyi_of_group
from tests.support.neighbour_oracle import SALT, Tally, Vector, random_limits, violations
from tests.support.random_databases import BUDGETS, Store, Table, World, id_world, row_world, world_of
from tests.support.random_queries import random_query
from tests.support.random_statements import CONDITIONS, random_statement
from tests.support.searched_worlds import found_limit, opened

CRASHES = AssertionError, OverflowError, ValueError, TypeError, ZeroDivisionError
"""Of planning, which has read no private row: where guesses are false, one may contradict another."""
STATEMENTS = 12
"""Of each world."""
ORDERS = (1.001, 2.0, 16.0)


@dataclass(slots=True)
class Attacked:
    """What a run saw. tally: of it, `equal` counts components that moved by all that they are priced at."""

    problems: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    statements: int = 0
    compared: int = 0
    moved: int = 0
    chosen: int = 0
    chosen_reached: int = 0
    tally: Tally = field(default_factory=Tally)
    kinds: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    forgiven: tuple[type[Exception], ...] = ()


def worlds(seed: int) -> tuple[random.Random, World]:
    """The world of a seed: one of the two kinds of units, under one of the accountants."""
    rng = random.Random(seed)
    world = row_world(rng, replace_one=True if seed % 8 == 3 else None) if seed % 4 == 3 else id_world(rng)
    accountant = sorted(BUDGETS)[seed % 3]
    tables = [_sized(t) if seed % 8 == 3 else t for t in world.tables]
    return rng, world_of(tables, world.neighbours, f"{world.description}, {accountant}", accountant)


def _sized(table: Table) -> Table:
    """With a public number of rows, of which some are replaced."""
    if table.public:
        return table
    return replace(table, policy={**table.policy, "size": {"exact": sum(dbs & 1 for _, dbs in table.rows)}})


def attacked(
    seeds: Iterable[int], until: int = 10**9, store: Store | None = None, forgiven: tuple[type[Exception], ...] = ()
) -> Attacked:
    """until: so many problems are enough. forgiven: what may crash planning, which reads no private row."""
    found, own = Attacked(forgiven=forgiven), Store() if store is None else store
    for seed in seeds:
        rng, world = worlds(seed)
        for kind, sql, releases in planned_statements(rng, world, own, found):
            found.statements += 1
            found.kinds[kind] += 1
            before = found.tally.equal
            whose = f"seed {seed}, {world.description}, {kind}: {sql}"
            problems = [p for planned in releases for p in compared(planned, own, world.neighbours, found, whose)]
            found.reached[kind] += found.tally.equal > before
            found.problems += [f"{whose}\n{p}" for p in problems[:1]]
            if len(found.problems) >= until:
                break
        if len(found.problems) >= until:
            break
    if store is None:
        own.close()
    return found


# --- plans -----------------------------------------------------------------------------------------------------------


def planned_statements(
    rng: random.Random, world: World, store: Store, found: Attacked
) -> Iterator[tuple[str, str, Sequence[PlannedRelease]]]:
    """Kind, text and releases of each statement that is not refused."""
    store.load(world)
    facts = FactStore(store)
    free = opened(rng, world)
    for _ in range(STATEMENTS):
        kind, sql = random_statement(rng, world) if rng.random() < 0.7 else ("random", random_query(rng, world))
        settings = settings_in(rng, world)
        chance = rng.random()
        try:
            if chance < 0.1:
                kind, plans = "coverage", [_compiled(store, facts, world, sql, replace(settings, coverage=True))]
            elif chance < 0.2:
                kind, plans = "searched", [*_searched(rng, store, free, sql, settings)]
            elif chance < 0.3:
                (kind, sql), members = ("batch", ""), _members(rng, world)
                sql = "; ".join(members)
                plans = [_batch(store, facts, world, members, settings)]
            else:
                plans = [_compiled(store, facts, world, sql, settings)]
        except Rejected as refusal:
            found.refused[refusal.diagnostics[0].code] += 1
            continue
        except found.forgiven as crash:
            found.refused[f"{type(crash).__name__} {crash}"[:60]] += 1
            continue
        yield kind, sql, [r for plan in plans for r in plan.releases if reads_no_other(r)]


def reads_no_other(planned: PlannedRelease) -> bool:
    return not any(isinstance(node, Release) for node in walk(planned.measured.node.input))


def settings_in(rng: random.Random, world: World) -> QuerySettings:
    price = {"rho": Fraction(1)} if world.policy.privacy.accountant == "zcdp" else {"epsilon": Fraction(1)}
    delta = Fraction(0) if world.policy.privacy.accountant == "pure_dp" else Fraction(1, 10**6)
    return QuerySettings(delta=delta, limits=random_limits(rng), anyway=True, **price)


def _compiled(store: Store, facts: FactStore, world: World, sql: str, settings: QuerySettings) -> Plan:
    return facts.compile(
        lambda public: compile_query(Source(sql), world.policy, public, settings, (), store.table_sql, store.dialect)
    )


def _searched(rng: random.Random, store: Store, world: World, sql: str, settings: QuerySettings) -> Iterator[Plan]:
    """The plan of the searches, and that of the query at limits which they can find."""
    facts = FactStore(store)
    plan = _compiled(store, facts, world, sql, replace(settings, search=True))
    yield plan.first
    if plan.searches is not None:
        limits = {s.limit.label: found_limit(rng, s) for s in plan.searches.limits}
        yield _compiled(store, facts, world, sql, replace(plan.searches.settings, found=limits))


def _members(rng: random.Random, world: World) -> list[str]:
    """Counts and sums over one table."""
    table, found = rng.choice(world.private).name, []
    for _ in range(rng.randint(2, 4)):
        keys = rng.sample(["city", "flag", "age", "age > 1"], rng.choice((0, 1, 1, 2)))
        call = rng.choice(("COUNT(*)", "COUNT(age)", "SUM(age)", "AVG(age)", "COUNT(*) FILTER (WHERE flag)"))
        where = f" WHERE {rng.choice(CONDITIONS)}" if rng.random() < 0.4 else ""
        listed = ", ".join([*(f"{k} AS k{i}" for i, k in enumerate(keys)), f"{call} AS n"])
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        found.append(f"SELECT {listed} FROM {table}{where}{by}")
    return found


def _batch(store: Store, facts: FactStore, world: World, texts: Sequence[str], settings: QuerySettings) -> Plan:
    """The query that measures the marginals of a batch. Raises Rejected."""
    written = [WrittenMember(text) for text in texts]
    read = read_members(written, world.policy, True)

    def design(public: PublicFacts) -> Plan:
        made = designed(written, read, world.policy, public, True)
        asked = marginal_settings(settings, made)
        return compile_query(Source(made.sql), world.policy, public, asked, (), store.table_sql, store.dialect)

    plan = facts.compile(design)
    require_additive(plan)
    return plan


# --- comparisons -----------------------------------------------------------------------------------------------------


def observed(planned: PlannedRelease, store: Store) -> tuple[Vector, Database]:
    """Key → the integers that noise is added to, 0 for what is chosen; and the runs of scores of the latter."""
    if isinstance(store, AsksAgain):
        store.at_hand([f for s in planned.statements if s.again is not None for f in s.again.functions])
    found = noisy._fetch(planned, EngineAsk(store, SALT, again=lambda: True))
    sources = key_sources(planned.measured.node)
    keys = found.keys if sources is None else noisy.public_keys(sources, len(planned.measured.node.keys))
    numbers: Vector = {key: [] for key in keys}
    runs: Database = {key: [] for key in keys}
    for m, column in zip(planned.measured.measurements, found.of(keys), strict=True):
        for i, key in enumerate(keys):
            if isinstance(column, Histograms):
                numbers[key].append(0)
                runs[key].append(tuple(zip(*column.scored(i, m.component), strict=True)))
            else:
                numbers[key].append(column[i])
    return numbers, runs


def compared(planned: PlannedRelease, store: Store, neighbours: int, found: Attacked, whose: str = "") -> Iterator[str]:
    """What the integers and scores of a release say against its price, on all neighbours."""
    seen = []
    for statement in planned.statements:
        found.tally.shapes[statement.shape] = found.tally.shapes.get(statement.shape, 0) + 1
    for db in range(neighbours + 1):
        store.show(db)
        try:
            seen.append(observed(planned, store))
        except Exception as error:
            sql = "\n".join(s.salted(SALT) for s in planned.statements)
            found.failed.append(f"{whose}\ndatabase {db} fails: {error}\n{sql}")
            return
        finally:
            store.show(0)
    first, runs = seen[0]
    for db, (numbers, others) in enumerate(seen[1:], 1):
        found.compared += 1
        found.moved += first != numbers or runs != others
        for problem in (*violations(planned, first, numbers, found.tally), *_chosen(planned, runs, others, found)):
            sql = "\n".join(s.salted(SALT) for s in planned.statements)
            yield f"{problem}\ndatabase 0: {first}\ndatabase {db}: {numbers}\n{sql}"


def _chosen(planned: PlannedRelease, a: Database, b: Database, found: Attacked) -> Iterator[str]:
    """What is chosen loses no more than it is priced at, in ε or in ρ."""
    # What reads nothing has no scores.
    chosen = [m for m in planned.measured.measurements if rule(m.component).chosen and planned.statements]
    for i, m in enumerate(chosen):
        for one, other in ((a, b), (b, a)):
            moved = changed(one, other, i)
            if not moved:
                continue
            found.chosen += 1
            if isinstance(m.mechanism, PureExponential):
                lost = sum(loss_of_group(p, q, m.mechanism.parameter) for p, q in moved)
                part = float(lost / decimal(m.loss.epsilon))
            else:
                eta = m.mechanism.parameter
                part = max(sum(renyi_of_group(p, q, eta, o) for p, q in moved) / o for o in ORDERS) / float(m.loss.rho)
            found.chosen_reached += part > 0.9
            if part > 1 + 1e-9:
                yield f"choice {i}: lost {part} of its price"
