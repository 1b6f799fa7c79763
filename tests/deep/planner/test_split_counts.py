"""A count that is made of parts is the count: of the same rows, NULL in a filter included, on random tiny databases."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.core.ir.expressions import Call
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.count import Count
from dpsql.planner.rewrites.releases import choose_components, split_counts
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.noise.test_parallel_composition import SLICES
from tests.support.neighbour_oracle import Tally, Vector, attack, exact, plan_of
from tests.support.random_databases import Store, World, id_world, row_world
from tests.support.random_queries import names_of

KEYS = ("", "", "t.flag", "t.city", "t.code % 2")


def query(rng: random.Random, world: World) -> str:
    """COUNT(*) or COUNT(x) beside counts of some slices of a column."""
    table = rng.choice([t.name for t in world.private])
    column = rng.choice([n.sql for n in names_of(world, table, "t") if n.sql[2:] in SLICES])
    slices = [s.replace("{}", column) for s in SLICES[column[2:]]]
    counted = rng.choice(("*", "*", "t.city"))
    chosen = rng.sample(slices, rng.randint(1, len(slices)))
    calls = [f"COUNT({counted})", *(f"COUNT({counted}) FILTER (WHERE {s})" for s in chosen)]
    rng.shuffle(calls)
    key = rng.choice(KEYS)
    return f"SELECT {', '.join(calls)} FROM {table} AS t{f' GROUP BY {key}' if key else ''}"


def numbers(planned: PlannedRelease, vector: Vector) -> list[dict[object, Fraction]]:
    """For each column that is a count, key → its exact number."""
    node = planned.measured.node
    return [
        {
            key: sum((worth * integers[i] for i, worth in o.recipe.terms(node.components)), Fraction(0))
            for key, integers in vector.items()
        }
        for o in node.outputs
        if isinstance(o.recipe, Count)
    ]


def differences(make: Callable[[random.Random], World], seeds: range, most: Fraction) -> tuple[list[str], int]:
    """(columns of split counts that differ from the plain ones by more than this for each part, split columns)."""
    store, found, split = Store(), [], 0
    for seed in seeds:
        rng = random.Random(seed)
        world = make(rng)
        store.load(world)
        facts = FactStore(store)
        for sql in [query(rng, world) for _ in range(6)]:
            try:
                (made,) = plan_of(store, facts, world, sql).releases
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(choose_components, "split_counts", lambda node, facts: node)
                    (plain,) = plan_of(store, facts, world, sql).releases
            except Rejected:
                continue
            recipes = [o.recipe for o in made.measured.node.outputs if isinstance(o.recipe, Count)]
            parts = [1 + len(recipe.others) for recipe in recipes]
            split += sum(n > 1 for n in parts)
            for db in range(world.neighbours + 1):
                store.show(db)
                one, other = (numbers(p, exact(p, store)) for p in (made, plain))
                for n, a, b in zip(parts, one, other, strict=True):
                    ids = len(world.tables[0].rows)
                    off = max((abs(a.get(k, 0) - b.get(k, 0)) for k in {*a, *b}), default=Fraction(0))
                    if off > (n - 1) * most * ids:
                        found.append(f"seed {seed}, database {db}: {sql}: off by {off}")
            store.show(0)
    store.close()
    return found, split


def test_rows_count_exactly_once() -> None:
    found, split = differences(row_world, range(40), Fraction(0))
    assert not found, found[:3]
    assert split > 60


def test_weighed_rows_count_once_but_for_the_rounding_of_weights() -> None:
    """Weights are rounded to 1/F of a row, F ≥ 2^8: for each id above its limit, and each part."""
    found, split = differences(lambda rng: id_world(rng, replace_one=False), range(40), Fraction(1, 2**8))
    assert not found, found[:3]
    assert split > 30


def test_neighbours_of_split_counts_stay_within_the_claims() -> None:
    store, tally = Store(), Tally()
    for seed in range(12):
        rng = random.Random(seed)
        world = (row_world if seed % 2 else lambda r: id_world(r, replace_one=False))(rng)
        store.load(world)
        facts = FactStore(store)
        for sql in [query(rng, world) for _ in range(6)]:
            attack(store, facts, world, sql, tally)
    store.close()
    assert tally.in_parallel > 100 and tally.in_parallel_equal > 20, tally


def test_a_rest_that_leaves_null_out_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: f and NOT f."""

    def negated(name: str, args: tuple[object, ...], *rest: object) -> Call:
        return args[0] if name == "is_not_distinct_from" else Call(name, args, *rest)  # type: ignore[arg-type,return-value]

    monkeypatch.setattr(split_counts, "Call", negated)
    assert differences(row_world, range(40), Fraction(0))[0]


def test_slices_that_overlap_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_counts, "are_disjoint", lambda a, b: True)
    monkeypatch.setitem(SLICES, "age", ("{} < 2", "{} >= 1 AND {} < 2", "{} BETWEEN 2 AND 3", "{} > 2"))
    assert differences(row_world, range(60), Fraction(0))[0]
