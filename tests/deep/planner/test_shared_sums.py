"""Sums made of a centred sum and a count: no two neighbouring databases differ by more than their parts claim."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.ir.components import Component
from dpsql.core.noise import calibration as allocate
from dpsql.core.noise.sensitivity import Sensitivity, sensitivity
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.sum import Sum
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Tally, attack, plan_of
from tests.support.random_databases import Store, row_world
from tests.support.random_queries import random_query


def attack_shared(seeds: range) -> Tally:
    """Attack those random queries over row units that share a sum; half of the worlds replace rows."""
    store, tally = Store(), Tally()
    for seed in seeds:
        rng = random.Random(seed)
        world = row_world(rng, replace_one=seed % 2 == 0)
        store.load(world)
        facts = FactStore(store)
        for sql in [random_query(rng, world) for _ in range(10)]:
            try:
                plan = plan_of(store, facts, world, sql) if "SUM" in sql else None
            except Rejected:
                continue
            if plan is None:
                continue
            recipes = [o.recipe for r in plan.releases for o in r.measured.node.outputs]
            if any(isinstance(r, Sum) and r.count is not None for r in recipes):
                attack(store, facts, world, sql, tally, None)
    store.close()
    return tally


def test_shared_sums_stay_within_the_claims() -> None:
    tally = attack_shared(range(1000, 1080))
    assert tally.queries >= 12, tally
    assert tally.changed > 0.3 * tally.pairs and tally.equal > 0.05 * tally.pairs, tally


def test_too_small_a_claim_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: centred sums are claimed to move by half of what they do."""

    def halved(component: Component, *rest: Any) -> Sensitivity:
        found = sensitivity(component, *rest)
        if not component.paired:
            return found
        return replace(found, l1=-(-found.l1 // 2), l2_squared=found.l2_squared / 4, linf=-(-found.linf // 2))

    monkeypatch.setattr(allocate, "sensitivity", halved)
    with pytest.raises(AssertionError):
        attack_shared(range(1000, 1080))
