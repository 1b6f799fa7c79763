"""Branches of a UNION that are read as one: they have the rows of the UNION, and neighbours move as far as is paid for,
whatever their conditions are."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

import dpsql.core.analysis.rules.set_operation as set_rule
from dpsql.core.ir.nodes import SetOperation
from dpsql.core.ir.walk import walk
from dpsql.core.numbers.cap import larger
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.rewrites.releases import gather_branches, inline_projections
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.noise.test_parallel_composition import SLICES, promised
from tests.deep.planner.test_split_counts import numbers
from tests.support.neighbour_oracle import Tally, Violation, attack, exact, plan_of
from tests.support.random_databases import Store, World, id_world, row_world
from tests.support.random_queries import comparison, names_of

COLUMNS = ("t.city", "t.flag", "t.code", "t.age", "'one'", "t.code + 1")


def unioned(rng: random.Random, world: World) -> str:
    """Counts and distinct values of a UNION of branches of one table, each a slice of a column; some overlap."""
    table = rng.choice([t.name for t in world.private])
    names = names_of(world, table, "t")
    known = {n.sql for n in names}
    column = rng.choice([n for n in names if n.sql[2:] in SLICES])
    slices = [s.replace("{}", column.sql) for s in SLICES[column.sql[2:]]]
    chosen = rng.sample(slices, rng.randint(2, min(4, len(slices))))
    chosen += [comparison(rng, names)] * (rng.random() < 0.2)
    pid = "t.pid" if "t.pid" in known else "1"
    usable = [c for c in COLUMNS if not c.startswith("t.") or c.split()[0] in known]
    texts = [c for c in usable if c in ("t.city", "'one'")]
    whole = [c for c in usable if c not in ("t.city", "'one'", "t.flag")] or ["1"]
    branches = [
        f"SELECT {pid} AS pid, {rng.choice(texts)} AS a, {rng.choice(whole)} AS b FROM {table} AS t WHERE {where}"
        for where in chosen
    ]
    both = rng.choice((" UNION ALL ", " UNION ALL ", " UNION "))
    key = rng.choice(("", "", "a", "b % 2"))
    calls = rng.choice(
        ("COUNT(*)", "COUNT(b)", "COUNT(*), COUNT(a) FILTER (WHERE b > 1)", "COUNT(*), COUNT(DISTINCT a)")
    )
    return f"SELECT {f'{key}, ' * bool(key)}{calls} FROM ({both.join(branches)}){f' GROUP BY {key}' if key else ''}"


def joined(rng: random.Random, world: World) -> str:
    """Two slices of one table, of which one meets partners in a public one; both may have a row, now and then."""
    table = rng.choice([t.name for t in world.private])
    names = names_of(world, table, "t")
    known = {n.sql for n in names}
    column = rng.choice([n for n in names if n.sql[2:] in SLICES])
    one, other = rng.sample([s.replace("{}", column.sql) for s in SLICES[column.sql[2:]]], 2)
    other = comparison(rng, names) if rng.random() < 0.3 else other
    public, on = rng.choice(
        [(f"{name} AS p", f"p.{key} = t.{key}") for name, key in (("codes", "code"), ("kinds", "code"))]
        if "t.code" in known
        else [("towns AS p", "p.city = t.city")]
    )
    more = " AND p.code > 1" if "code" in on and rng.random() < 0.3 else ""
    pid = "t.pid" if "t.pid" in known else "1"
    text = "t.city" if "t.city" in known else "'one'"
    partner = {"codes": "p.label", "kinds": "p.title", "towns": "p.zone"}[public.split()[0]]
    sides = rng.sample((f"{public} JOIN {table} AS t", f"{table} AS t JOIN {public}"), 2)
    first = rng.choice((text, partner, "'two'"))
    branches = [
        f"SELECT {pid} AS pid, {first} AS a FROM {sides[0]} ON {on} WHERE {one}{more}",
        f"SELECT {pid} AS pid, {text} AS a FROM {table} AS t WHERE {other}",
    ]
    rng.shuffle(branches)
    key = rng.choice(("", "", "a"))
    calls = rng.choice(("COUNT(*)", "COUNT(a)", "COUNT(*), COUNT(DISTINCT a)"))
    union = " UNION ALL ".join(branches)
    return f"SELECT {f'{key}, ' * bool(key)}{calls} FROM ({union}){f' GROUP BY {key}' if key else ''}"


Made = Callable[[random.Random, World], str]


def differences(seeds: range, make: Made = unioned) -> tuple[list[str], int]:
    """(statements whose counts are others than those of the UNION, statements that are read as one)."""
    store, found, gathered = Store(), [], 0
    for seed in seeds:
        rng = random.Random(seed)
        world = row_world(rng)
        store.load(world)
        facts = FactStore(store)
        for sql in [make(rng, world) for _ in range(6)]:
            try:
                made = plan_of(store, facts, world, sql)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(inline_projections, "gathered", lambda *_: None)
                    plain = plan_of(store, facts, world, sql)
            except Rejected:
                continue
            unions = [sum(isinstance(n, SetOperation) for n in walk(p.tree.node)) for p in (made, plain)]
            if unions[0] == unions[1]:
                continue
            gathered += 1
            for db in range(world.neighbours + 1):
                store.show(db)
                one, other = (numbers(p.releases[0], exact(p.releases[0], store)) for p in (made, plain))
                for a, b in zip(one, other, strict=True):
                    if any(a.get(k, Fraction(0)) != b.get(k, Fraction(0)) for k in {*a, *b}):
                        found.append(f"seed {seed}, database {db}: {sql}")
            store.show(0)
    store.close()
    return found, gathered


def attacked(make: Callable[[random.Random], World], seeds: range, asked: Made = unioned) -> Tally:
    store, tally = Store(), Tally()
    try:
        for seed in seeds:
            rng = random.Random(seed)
            world = make(rng)
            store.load(world)
            facts = FactStore(store)
            for _ in range(6):
                attack(store, facts, world, asked(rng, world), tally)
    finally:
        store.close()
    return tally


@pytest.mark.parametrize("make", [unioned, joined])
def test_the_rows_are_those_of_the_union(make: Made) -> None:
    found, gathered = differences(range(40), make)
    assert not found, found[:3]
    assert gathered > 60


@pytest.mark.parametrize("make", [unioned, joined])
def test_branches_that_overlap_would_be_noticed(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather_branches, "are_disjoint", lambda a, b: True)
    assert differences(range(40), make)[0]


WORLDS: dict[str, Callable[[random.Random], World]] = {"rows": row_world, "ids": id_world, "promised ids": promised}


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("guess", [True, False])
@pytest.mark.parametrize("asked", [unioned, joined])
def test_neighbours_stay_within_the_price_whatever_is_guessed(
    kind: str, guess: bool, asked: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    if guess:
        monkeypatch.setattr(gather_branches, "are_disjoint", lambda a, b: True)
        monkeypatch.setattr(gather_branches, "ANY", None)
    tally = attacked(WORLDS[kind], range(10), asked)
    assert tally.planned > 20 and tally.changed and tally.equal, tally


def test_a_union_that_is_believed_to_be_one_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: branches stay, and change by the larger of their changes."""
    monkeypatch.setattr(inline_projections, "gathered", lambda *_: None)
    monkeypatch.setattr(
        set_rule,
        "sums",
        lambda a, b: {unit: larger(a.get(unit, b.get(unit)), b.get(unit, a.get(unit))) for unit in {**a, **b}},
    )
    with pytest.raises(Violation):
        attacked(row_world, range(60))
