"""Random policies, queries and databases: every claim of every component is compared with exact integers.

A seed that fails is printed with all that is needed to repeat it: `attack_worlds(row_world, [seed])`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Tally, attack, random_limits
from tests.support.random_databases import Store, World
from tests.support.random_queries import random_query

QUERIES_PER_WORLD = 10


def attack_worlds(make: Callable[[random.Random], World], seeds: Iterable[int]) -> Tally:
    """Attack one world per seed with random queries."""
    store, tally = Store(), Tally()
    for seed in seeds:
        rng = random.Random(seed)
        world = make(rng)
        store.load(world)
        facts = FactStore(store)
        for number in range(QUERIES_PER_WORLD):
            sql, limits = random_query(rng, world), random_limits(rng)
            try:
                attack(store, facts, world, sql, tally, limits)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, query {number}: {error}") from error
    store.close()
    return tally


def assert_worthwhile(tally: Tally) -> None:
    """Most queries are planned, many pairs differ, and some claims are reached."""
    assert tally.planned > 0.8 * tally.queries, tally
    assert tally.changed > 0.15 * tally.pairs, tally
    assert tally.equal > 0.02 * tally.pairs, tally
