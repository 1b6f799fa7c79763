"""Stored answers over random queries: equal addresses mean equal integers, and noise is drawn only where it is charged.

Every query is asked together with rewritings that mean the same. Whatever the planner makes of those, one that costs
nothing shows exactly the numbers that were shown before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.answers.results.answer import Release
from dpsql.answers.stored.address import Addresses, ReleaseAddress
from dpsql.api.connection import Connection
from dpsql.core.ir.components import Component
from dpsql.core.ir.nodes import Filter
from dpsql.core.ir.walk import transform
from dpsql.core.ledger.accountant import cost
from dpsql.core.ledger.losses.regions import everywhere
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.core.release.noisy import GivenAnswers, wanted
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.deep.frontend.test_meaning import _query, _tables
from tests.support.neighbour_oracle import exact, plan_of
from tests.support.random_databases import Store, World, random_world, world_of
from tests.support.random_queries import random_query

Address = Callable[[ReleaseAddress, Component, str], str]


def _real(base: ReleaseAddress, component: Component, keys: str) -> str:
    return base.address(component, keys)


# Equal addresses, equal integers --------------------------------------------------------------------------------------


def _integers(plan: Plan, policy: Policy, store: Store, address: Address) -> Iterator[tuple[str, object]]:
    """(address, exact integers per key) of every component of the releases that read no other."""
    addresses = Addresses(plan, policy)
    for place, planned in enumerate(plan.releases):
        if addresses.reads(place):
            continue
        base, vector, node = addresses.of(place), exact(planned, store), planned.measured.node
        keys = "" if node.threshold is None else base.address_of_keys()  # stands for one set of stored keys
        for i, component in enumerate(node.components):
            yield address(base, component, keys), {k: v[i] for k, v in vector.items() if k or v}


def _clashes(seeds: Sequence[int], address: Address, worlds: Callable[[random.Random], World]) -> tuple[int, list[str]]:
    """How often an address came again, and where it stood for other integers."""
    again, found, store = 0, [], Store()
    for seed in seeds:
        rng = random.Random(seed)
        world = worlds(rng)
        store.load(world)
        known: dict[str, tuple[object, str]] = {}
        facts = FactStore(store)
        for _ in range(20):
            sql = random_query(rng, world)
            more = rng.choice(("COUNT(*) AS more", "COUNT(*) FILTER (WHERE 1 = 1) AS more", "3 AS more"))
            for asked in (sql, sql.replace("SELECT ", f"SELECT {more}, ", 1)):
                try:
                    plan = plan_of(store, facts, world, asked)
                except Rejected:
                    continue
                for name, integers in _integers(plan, world.policy, store, address):
                    first = known.setdefault(name, (integers, asked))
                    again += first[1] != asked
                    if first[0] != integers:
                        found.append(f"{first[1]}\n{asked}")
    store.close()
    return again, found


def test_equal_addresses_mean_equal_integers() -> None:
    again, found = _clashes(range(6), _real, random_world)
    assert not found, found[0]
    assert again > 40


def _without_filter(base: ReleaseAddress, component: Component, keys: str) -> str:
    return base.address(replace(component, filter=None), keys)


def _without_argument(base: ReleaseAddress, component: Component, keys: str) -> str:
    return base.address(replace(component, arg=None), keys)


def _without_conditions(base: ReleaseAddress, component: Component, keys: str) -> str:
    return replace(base, below=transform(base.below, Filter, lambda node: node.input)).address(component, keys)


@pytest.mark.parametrize("mutant", [_without_filter, _without_argument, _without_conditions])
def test_an_address_that_leaves_something_out_is_noticed(mutant: Address) -> None:
    _, found = _clashes(range(6), mutant, random_world)
    assert found


# Rewritings -----------------------------------------------------------------------------------------------------------


def _rewritten(rng: random.Random, sql: str, columns: Sequence[str]) -> str:
    """A query with the same rows: same columns by name, in some order."""
    shuffled = ", ".join(rng.sample(list(columns), len(columns)))
    return rng.choice(
        (
            sql,
            f"SELECT * FROM ({sql}) AS again",
            f"WITH again AS ({sql}) SELECT {shuffled} FROM again",
            f"SELECT {shuffled} FROM ({sql}) AS again ORDER BY {columns[0]}",
            f"SELECT {shuffled}, 1 AS one FROM ({sql}) AS again",
            sql.replace("COUNT(*)", "COUNT(1)"),
            sql.replace(" AS t", " AS u").replace("t.", "u."),
            f"WITH again AS ({sql}), more AS (SELECT COUNT(*) AS m FROM log) SELECT {shuffled}, m FROM again, more",
            f"SELECT {shuffled} FROM ({sql}) AS again WHERE {columns[0]} IS NOT DISTINCT FROM {columns[0]}",
        )
    )


class Watched:
    """A session that notes for which mechanisms noise was drawn."""

    def __init__(self, world: World, store: Store, monkeypatch: pytest.MonkeyPatch, accountant: str) -> None:
        self.ledger = MemoryLedger("meaning", accountant)
        self.con = Connection(world.policy, store, None, self.ledger)  # type: ignore[arg-type]
        self.drawn: list[object] = []
        for kind in (DiscreteLaplace, DiscreteGaussian):
            inner = kind.add_noise

            def add_noise(self_: Any, values: Any, *rest: Any, inner: Any = inner) -> Any:
                self.drawn.append(self_)
                return inner(self_, values, *rest)

            monkeypatch.setattr(kind, "add_noise", add_noise)

    def run(self, sql: str, epsilon: str) -> Release:
        """Run it, and check that what was drawn is what was charged."""
        before, entries = self.ledger.spent("person"), len(self.ledger.history())
        row = self.ledger.spent("log")
        self.drawn.clear()
        answer = self.con.execute(sql, epsilon=epsilon, delta="1e-6")
        charged = {}
        if len(self.ledger.history()) > entries:
            (entry,) = (r.entry for r in self.ledger.history()[entries:])
            charged = dict(entry.charges)
            assert not entry.received
        parts: dict[str, list[PrivacyLoss]] = {}
        waiting = list(self.drawn)
        for release in answer.plan.releases:
            measured = release.measured
            new = []
            for i in wanted(measured, GivenAnswers()):
                if any(m is measured.measurements[i].mechanism for m in waiting):
                    waiting = [m for m in waiting if m is not measured.measurements[i].mechanism]
                    new.append(i)
            for unit in measured.contributions:
                parts.setdefault(unit, []).extend(measured.losses(unit, new))
        assert not waiting
        convert = max((r.measured.conversion_delta for r in answer.plan.releases), default=Fraction(0))
        accountant = self.con.policy.privacy.accountant
        expected = {u: cost(accountant, p, convert).on_grid() for u, p in parts.items()}
        assert charged == {u: loss for u, loss in expected.items() if loss != NO_LOSS}, sql
        for unit, earlier in (("person", before), ("log", row)):
            assert self.ledger.spent(unit) == earlier + charged.get(unit, NO_LOSS)
        return answer


def _by_name(answer: Release, names: Sequence[str]) -> list[tuple[Any, ...]]:
    at = [answer.columns.index(n) for n in names]
    return sorted((tuple(row[i] for i in at) for row in answer.rows), key=repr)


@pytest.mark.filterwarnings("ignore:.*are shown from:dpsql.UtilityWarning")
@pytest.mark.parametrize("seed", range(4))
def test_a_rewriting_hits_or_pays(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, store = random.Random(seed), Store()
    free = paid = 0
    world = world_of(_tables(rng), 0, "meaning")
    store.load(world)
    session = Watched(world, store, monkeypatch, world.policy.privacy.accountant)
    for _ in range(12):
        sql, _ = _query(rng, world)
        if "LIMIT" in sql or "HAVING" in sql:  # which rows are shown is no part of the question
            sql = sql.split(" HAVING")[0].split(" ORDER BY")[0].removeprefix("SELECT * FROM (").split("WITH r AS (")[-1]
        try:
            first = session.run(sql, "1")
        except Rejected:
            continue
        columns = list(first.columns)
        shown = _by_name(first, columns)
        for _ in range(3):
            other = _rewritten(rng, sql, columns)
            epsilon = rng.choice(("1", "0.3", "0.01"))
            try:
                answer = session.run(other, epsilon)
            except Rejected:
                continue
            if answer.spent == NO_LOSS:
                free += 1
                assert _by_name(answer, columns) == shown, f"{sql}\n{other}"
            else:
                paid += 1
                if _by_name(answer, columns) != shown:
                    shown = _by_name(answer, columns)  # paid for: it may be the better one from now on
    store.close()
    session.con.close()
    assert free >= 8
    assert paid <= free


def test_fresh_noise_for_nothing_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a run that is told that everything is given, and draws all the same."""
    from dpsql.core.release import charge

    rng, store = random.Random(1), Store()
    world = world_of(_tables(rng), 0, "meaning")
    store.load(world)
    session = Watched(world, store, monkeypatch, world.policy.privacy.accountant)
    session.run("SELECT COUNT(*) AS n FROM visits", "1")
    little = {"person": everywhere(PrivacyLoss(Fraction(1, 1000)))}
    monkeypatch.setattr(charge._Parts, "price", lambda *_: charge.Price(little, little))
    with pytest.raises(AssertionError):
        session.run("SELECT COUNT(*) AS n FROM visits WHERE age > 0", "1")
    store.close()
