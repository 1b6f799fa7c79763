"""UNION ALL without the id, and FULL joins on it: releases over random plans, in neighbouring databases."""

from __future__ import annotations

import random

from dpsql.core.ir.expressions import Call
from dpsql.core.ir.nodes import Equality, Join, JoinKind, Node, SetColumn, SetKind, SetOperation, output_columns
from tests.support.neighbour_oracle import Tally
from tests.support.operator_databases import operator_world
from tests.support.operator_oracle import Bench, random_root
from tests.support.random_databases import Store
from tests.support.random_plans import IDS, Plans


def joined(plans: Plans, left: Node, right: Node) -> Node | None:
    """A FULL join on an id of either side, sometimes with another condition."""
    rng = plans.rng
    pairs = [
        Equality(a, b)
        for a in output_columns(left)
        for b in output_columns(right)
        if a.name in IDS and b.name in IDS and a.type == b.type
    ]
    if not pairs:
        return None
    both = [*output_columns(left), *output_columns(right)]
    residual = plans.predicate(plans.plain(both)) if rng.random() < 0.3 else None
    return Join(JoinKind.FULL, left, right, (rng.choice(pairs),), residual)


def united(plans: Plans, left: Node, right: Node) -> Node | None:
    """A UNION ALL that selects no id."""
    pairs = [
        (a, b)
        for a in plans.plain(output_columns(left))
        for b in plans.plain(output_columns(right))
        if a.type == b.type and not {a.name, b.name} & set(IDS)
    ]
    if not pairs:
        return None
    chosen = plans.rng.sample(pairs, min(len(pairs), 2))
    columns = tuple(SetColumn(plans.new(f"u{i}", a.type), a, b) for i, (a, b) in enumerate(chosen))
    return SetOperation(SetKind.UNION, True, left, right, columns)


def test_what_is_released_moves_by_what_is_claimed() -> None:
    store, counted = Store(), {joined: Tally(), united: Tally()}
    for seed in range(24):
        rng = random.Random(seed)
        databases = operator_world(rng)
        bench, plans = Bench(store, databases), Plans(rng, databases)
        plans.focus = ("people", "orders", "jobs", "items")
        for make, tally in counted.items():
            for _ in range(4):
                left, right = (plans.tree(rng.randint(0, 1), bench.accepts) for _ in "ab")
                node = make(plans, left, right)
                if node is not None:
                    bench.check_release(random_root(rng, plans, node), tally)
    store.close()
    assert all(tally.planned > 10 for tally in counted.values()), counted


def chained(plans: Plans, sides: list[Node]) -> Node | None:
    """Three sides in a row: a FULL join on an id, and another one on COALESCE of the two ids."""
    first, second, third = ([c for c in output_columns(n) if c.name in IDS] for n in sides)
    triples = [(a, b, c) for a in first for b in second for c in third if a.name == b.name == c.name]
    if not triples:
        return None
    a, b, c = plans.rng.choice(triples)
    either = Call("coalesce", tuple(plans.rng.sample((a, b), 2)), a.type)
    two = Join(JoinKind.FULL, sides[0], sides[1], (Equality(a, b),))
    return Join(JoinKind.FULL, two, sides[2], (Equality(either, c),))


def test_three_sides_in_a_row_move_by_what_is_claimed() -> None:
    store, tally = Store(), Tally()
    for seed in range(100, 120):
        rng = random.Random(seed)
        databases = operator_world(rng)
        bench, plans = Bench(store, databases), Plans(rng, databases)
        plans.focus = ("people", "orders")
        for _ in range(4):
            node = chained(plans, [plans.tree(rng.choice((0, 0, 1)), bench.accepts) for _ in "abc"])
            if node is not None:
                bench.check_release(random_root(rng, plans, node), tally)
    store.close()
    assert tally.planned > 10 and tally.changed, tally
