"""Limits on what an id adds, on all small neighbours: each by itself, and behind the octaves that they are read from.

A pair of neighbours and a limit decide how far the probabilities of all pairs of noisy outputs can differ: Laplace
noise loses exactly what moved, so the loss of the chain is a rational, and is compared with what both were priced at.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Literal

import pytest

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.components import Component
from dpsql.core.ir.contributions import SATURATED, UnitTotal
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.service.planning.public_facts import FactStore
from tests.core.analysis.test_octaves_of_ids import octaves_of
from tests.core.printing.test_unit_totals import ALL, BY_G, NORMS, SMALL, Ids, never_more, some_rows
from tests.support.neighbour_oracle import Vector, change, exact, plan_of
from tests.support.random_databases import Store
from tests.support.unit_totals import limited, planned


def at_most(most: int) -> Callable[[Component], UnitTotal]:
    return lambda component: UnitTotal(most)


MANY = tuple(some_rows(SMALL, 3))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("sql", [BY_G, ALL])
@pytest.mark.parametrize("bare", [False, True])
def test_no_id_adds_more_than_any_limit(bare: bool, sql: str, norm: Literal["l1", "l2"], neighbours: str) -> None:
    never_more(Ids("BIGINT", MANY, neighbours=neighbours), sql, norm, bare, (1, 2, 4, 5, 17))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("sql", [BY_G, ALL])
def test_octaves_and_what_follows_lose_together_what_they_are_priced_at(sql: str, place: int, neighbours: str) -> None:
    """For every limit that can be read from the octaves, whatever they are: noise can make any of them."""
    ids = Ids("BIGINT", tuple(some_rows(SMALL, 2)), neighbours=neighbours)
    store, world = Store(), ids.world
    store.load(world)
    plan = plan_of(store, FactStore(store), world, sql)

    def seen(release: object) -> list[Vector]:
        found = []
        for db in range(world.neighbours + 1):
            store.show(db)
            found.append(exact(release, store))  # type: ignore[arg-type]
        return found

    node = limited(plan, world.policy, store.table_sql, at_most(SATURATED)).measured.node
    first = planned(
        derive(octaves_of(node, node.components[place]), Context(world.policy, PublicFacts())), store.table_sql
    )
    octaves, worst = seen(first), Fraction(0)
    (counted,) = first.measured.measurements
    for k in range(5):
        then = limited(plan, world.policy, store.table_sql, at_most(2**k))
        m, numbers = then.measured.measurements[place], seen(then)
        price = counted.loss.epsilon + m.loss.epsilon
        assert price == Fraction(2**20) * Fraction(5, 4)  # the whole ε to the octaves, a quarter to one of four numbers
        pairs = combinations(range(len(numbers)), 2)
        for i, j in pairs if neighbours == "replace_one" else ((0, j) for j in range(1, len(numbers))):
            lost = [
                m.mechanism.loss(Fraction(change(v[i], v[j], at).l1), Fraction(0)).epsilon
                for m, v, at in ((counted, octaves, 0), (m, numbers, place))
            ]
            assert sum(lost) <= price
            worst = max(worst, sum(lost, Fraction(0)) / price)
    # Tight: whoever charged less would charge too little. Few of these ids are replaced in other groups alone.
    assert worst == 1 if neighbours == "add_remove" else worst > Fraction(4, 5)
    store.close()
