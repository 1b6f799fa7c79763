"""Ids counted by the octave of what they add: a plan of ordinary nodes, whose claims hold on all small neighbours.

`octaves_of` is how such a plan is made: exact saturated totals per (id, group), Σ|total| per id, and COUNT(*) by the
octave of that, which each id is in at most one of. A search builds the like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, count

import pytest

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.components import Component, KeySource, RowCount, ValueSum
from dpsql.core.ir.contributions import SATURATED, UnitTotal, Weighing
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.nodes import Aggregate, AggregateCall, BoundContributions, Filter, GroupKeys, Item, Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import BIGINT, BOOLEAN, HUGEINT, INTEGER, SqlType
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.count import Count
from dpsql.functions.domains.octaves import LAST
from dpsql.service.planning.public_facts import FactStore
from tests.core.printing.test_unit_totals import ALL, BY_G, SMALL, Cell, Ids, by_definition, some_rows
from tests.support.neighbour_oracle import Vector, exact, plan_of, violations
from tests.support.random_databases import Store
from tests.support.unit_totals import limited, planned

_numbers = count(10**6)


def column(name: str, type_: SqlType) -> Column:
    return Column(next(_numbers), name, type_)


def octaves_of(release: Release, component: Component) -> Release:
    """COUNT(*) by the octaves 0 … 62 of what each id adds to a component: Σ over groups of |its total there|."""
    bounding = release.input
    assert isinstance(bounding, BoundContributions)
    owned = Filter(bounding.input, Call("is_not_null", (bounding.id,), BOOLEAN))
    keys = tuple(Item(column(f"k{i}", key.type), key) for i, key in enumerate((bounding.id, *bounding.keys)))
    total = column("s", HUGEINT)
    if isinstance(component, ValueSum):
        summed = replace(component, contribution=Weighing.ALONE, filter=None, weight=1)
        call = AggregateCall("sum", component.arg, total, filter=component.filter, summed=summed)
        size: Expr = Call("abs", (Call("clip", (total, whole(-SATURATED), whole(SATURATED)), HUGEINT),), HUGEINT)
    else:
        total = column("n", BIGINT)
        call = AggregateCall("count", component.arg, total, filter=component.filter)
        size = total
    per_group = Aggregate(owned, keys, (call,), inner=True)
    owner, added = keys[0].column, column("c", HUGEINT)
    per_id = Aggregate(
        per_group, (Item(column("id", owner.type), owner),), (AggregateCall("sum", typed(size), added),), inner=True
    )
    octave = Item(column("octave", INTEGER), Call("octave", (added,), INTEGER))
    listed = KeySource((0,), tuple((b,) for b in range(LAST + 1)), "octaves")
    keyed = GroupKeys(per_id, (octave,), (listed,))
    units = Output(column("units", BIGINT), Count(0), "COUNT(*)")
    return Release(keyed, (octave.column,), (RowCount(),), (units,))


def whole(n: int) -> Literal:
    return Literal(n, BIGINT)


def typed(size: Expr) -> Expr:
    """`abs` and `clip` have the type that holds the bounds."""
    if not isinstance(size, Call):
        return size
    (clipped,) = size.args
    assert isinstance(clipped, Call)
    return Call("abs", (replace(clipped, type=BIGINT),), BIGINT)


def searched(ids: Ids, sql: str, place: int, bare: bool) -> tuple[Component, PlannedRelease, list[Vector]]:
    """A component, the histogram of what ids add to it, and its integers in every database."""
    store, world = Store(), ids.world
    store.load(world)
    plan = plan_of(store, FactStore(store), world, sql)
    release = limited(plan, world.policy, store.table_sql, lambda c: UnitTotal(SATURATED), bare=bare).measured.node
    component = release.components[place]
    node = octaves_of(release, component)
    histogram = planned(derive(node, Context(world.policy, PublicFacts())), store.table_sql)
    found = []
    for db in range(world.neighbours + 1):
        store.show(db)
        found.append(exact(histogram, store))
    store.close()
    return component, histogram, found


def octave(n: int) -> int | None:
    return None if n == 0 else next((b for b in range(LAST) if n <= 2**b), LAST)


def cases(ids: Ids, neighbours: str, found: list[Vector]) -> Iterator[tuple[Vector, Vector]]:
    return combinations(found, 2) if neighbours == "replace_one" else ((found[0], one) for one in found[1:])


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("sql", [BY_G, ALL])
def test_each_id_is_in_the_octave_of_what_it_adds(sql: str, place: int, neighbours: str) -> None:
    ids = Ids("BIGINT", tuple(some_rows(SMALL, 2)), neighbours=neighbours)
    component, histogram, found = searched(ids, sql, place, bare=place == 3)
    claim = histogram.measured.measurements[0].sensitivity
    both = 2 if neighbours == "replace_one" else 1
    assert (claim.l1, claim.l2_squared) == (both, both)
    seen: Counter[int | None] = Counter()
    for cells, vector in zip(ids.ids, found[1:], strict=True):
        added = by_definition(component, cells, sql == BY_G).values()
        b = octave(sum(map(abs, added)) // component.weight)
        seen[b] += 1
        assert {key[0]: row[0] for key, row in vector.items() if row[0]} == ({} if b is None else {b: 1})
    assert len(seen) > 1
    assert not [wrong for one, other in cases(ids, neighbours, found) for wrong in violations(histogram, one, other)]


LARGE: tuple[Cell, ...] = (
    ("a", "170141183460469231731687303715884105727", True), ("b", "-170141183460469231731687303715884105728", True),
    ("a", "4611686018427387904", False), ("b", "1", True), (None, "-4611686018427387905", None), ("c", None, True),
)  # fmt: skip


@pytest.mark.parametrize("sql", [BY_G, ALL])
def test_no_total_is_too_large_for_an_octave(sql: str) -> None:
    ids = Ids("HUGEINT", tuple(some_rows(LARGE, 3)))
    component, _, found = searched(ids, sql, 2, bare=True)
    for cells, vector in zip(ids.ids, found[1:], strict=True):
        added = by_definition(component, cells, sql == BY_G).values()
        b = octave(sum(map(abs, added)))
        assert {key[0] for key, row in vector.items() if row[0]} == ({b} if b is not None else set())


def test_octaves_cannot_be_written() -> None:
    ids = Ids("BIGINT", ((("a", "1", True),),))
    store, world = Store(), ids.world
    store.load(world)
    for name in ("octave", "signed_octave"):
        with pytest.raises(Rejected) as refusal:
            plan_of(store, FactStore(store), world, f"SELECT COUNT(*) FROM t WHERE {name}(x) = 3")
        assert refusal.value.diagnostics[0].code == "DP105"
