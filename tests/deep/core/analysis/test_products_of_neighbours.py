"""Sums of products: no neighbour moves a component of CORR by more than its claim, and some neighbour moves it as far.

Every set of a few rows of one id, beside another id's rows, under each form of bounding; any two of them where ids are
replaced; and every two tiny databases of which one row is added, removed or replaced. Rows hold values beyond the
bounds, NULL, NaN and infinite ones, in one argument or both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import pytest

from dpsql.core.ir.components import Component, ProductSum
from dpsql.core.release.planned import PlannedRelease
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Change, Vector, change, exact, plan_of, violations
from tests.support.random_databases import Column, Row, Store, Table, World, world_of

WIDE = (("-9", "-7"), ("-9", "8"), ("9", "8"), ("NULL", "8"), ("-9", "NULL"), ("1", "'nan'"), ("1", "1e308"))
SURE = (("-9", "-7"), ("-9", "8"), ("9", "-7"), ("9", "8"), ("1", "2"))
OTHERS = (("'a'", "-9", "-7"), ("'a'", "9", "8"), ("'b'", "0", "1"))
ALL = "CORR(y, x), REGR_COUNT(y, x)"
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "C, no groups": ({"max_rows_per_unit": 2}, f"SELECT {ALL} FROM t"),
    "C, groups": ({"max_rows_per_unit": 2}, f"SELECT g, {ALL} FROM t GROUP BY g"),
    "M and G": ({"max_rows_per_group": 1, "max_groups_per_unit": 2}, f"SELECT g, {ALL} FROM t GROUP BY g"),
    "truncated": ({"max_rows_per_group": 2, "max_groups_per_unit": 1}, f"SELECT g, {ALL} FROM t GROUP BY g"),
    "promised": ({"max_rows_per_unit": {"rows": 3, "enforce": "assume"}}, f"SELECT g, {ALL} FROM t GROUP BY g"),
}


class Listed(Table):
    """A table of which every row says the number of the one database that holds it."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        return super().shown.replace("((dbs >> CAST($db AS INTEGER)) & 1) = 1", "dbs IN (-1, CAST($db AS INTEGER))")


def _columns(sure: bool) -> tuple[Column, ...]:
    there = {"nullable": False} if sure else {}
    return (
        Column("pid", "BIGINT", ()),
        Column("g", "VARCHAR", (), {"nullable": False, "domain": ["a", "b"]}),
        Column("y", "INTEGER", (), {"bounds": [-2, 4], **there}),
        Column("x", "INTEGER" if sure else "DOUBLE", (), {"bounds": [-1, 5], **there}),
    )


def _world(unit: dict[str, Any], databases: Sequence[Sequence[Row]], sure: bool = False) -> World:
    """The first database has the others' rows alone."""
    rows: list[tuple[Row, int]] = [(("2", *row), -1) for row in OTHERS] if "max" in str(unit) else []
    rows += [(("1", *row), i) for i, held in enumerate(databases) for row in held]
    return world_of([Listed("t", _columns(sure), unit, tuple(rows))], len(databases) - 1, str(unit))


def _vectors(world: World, sql: str) -> tuple[PlannedRelease, list[Vector]]:
    store, found = Store(), []
    store.load(world)
    (planned,) = plan_of(store, FactStore(store), world, sql).releases
    for db in range(world.neighbours + 1):
        store.show(db)
        found.append(exact(planned, store))
    store.close()
    return planned, found


def _compared(planned: PlannedRelease, pairs: Iterator[tuple[Vector, Vector]]) -> list[Change]:
    best = [Change(0, 0, 0, 0) for _ in planned.measured.measurements]
    for a, b in pairs:
        assert not list(violations(planned, a, b)), (a, b)
        for i, known in enumerate(best):
            moved = change(a, b, i)
            best[i] = Change(*(max(getattr(known, n), getattr(moved, n)) for n in Change.__slots__))
    return best


def _sets(kinds: Sequence[Row], most: int) -> list[tuple[Row, ...]]:
    return [s for n in range(most + 1) for s in combinations_with_replacement(kinds, n)]


def _kinds(values: Sequence[tuple[str, str]]) -> list[Row]:
    return [(g, *pair) for g, pair in product(("'a'", "'b'"), values)]


@pytest.mark.parametrize("form", FORMS)
def test_every_row_set_of_one_id(form: str) -> None:
    limits, sql = FORMS[form]
    of_one_group = [("'a'", *pair) for pair in WIDE]
    sets = [*_sets(_kinds(WIDE[:2]), 3), *_sets(of_one_group, 2), *_sets(_kinds(WIDE), 1)]
    world = _world({"unit": {"column": "pid"}, **limits}, sets)
    planned, vectors = _vectors(world, sql)
    best = _compared(planned, ((vectors[0], v) for v in vectors[1:]))
    assert any((isinstance(c, ProductSum) and c.times is not None) for c in planned.measured.node.components)
    for m, seen in zip(planned.measured.measurements, best, strict=True):
        assert (seen.l1, seen.linf) == (m.sensitivity.l1, m.sensitivity.linf), m.component


@pytest.mark.parametrize("form", ["C, no groups", "C, groups", "M and G"])
def test_replaced_ids(form: str) -> None:
    limits, sql = FORMS[form]
    unit = {"unit": {"column": "pid", "neighbours": "replace_one"}, **limits}
    planned, vectors = _vectors(_world(unit, _sets(_kinds(WIDE[:4]), 2)), sql)
    assert planned.measured.contribution.ids == 2
    different = list({str(v): v for v in vectors[1:]}.values())
    _compared(planned, combinations(different, 2))


@pytest.mark.parametrize("sql", [f"SELECT {ALL} FROM t", f"SELECT g, {ALL} FROM t GROUP BY g"])
@pytest.mark.parametrize("sized", [False, True], ids=["any number", "a public number"])
def test_replaced_rows(sql: str, sized: bool) -> None:
    unit: dict[str, Any] = {"unit": {"rows": 1, "neighbours": "replace_one"}}
    if sized:
        unit["size"] = {"exact": 2}
    databases = list(combinations_with_replacement(_kinds(SURE if sized else WIDE[:5]), 2))
    planned, vectors = _vectors(_world(unit, databases, sure=sized), sql)
    counted = [Counter(d) for d in databases]
    near = (
        (vectors[i], vectors[j])
        for i, j in combinations(range(len(databases)), 2)
        if sum((counted[i] - counted[j]).values()) == 1
    )
    best = _compared(planned, near)
    products = [
        i for i, c in enumerate(planned.measured.node.components) if (isinstance(c, ProductSum) and c.times is not None)
    ]
    assert [best[i].linf for i in products] == [planned.measured.measurements[i].sensitivity.linf for i in products]


@pytest.mark.parametrize(("rows", "slots"), [(2, 1), (3, 1), (4, 1), (3, 2)])
def test_all_rows_of_a_public_number(rows: int, slots: int) -> None:
    """One number for all rows; some neighbours move it as far as is claimed."""
    unit: dict[str, Any] = {"unit": {"rows": slots, "neighbours": "replace_one"}, "size": {"exact": rows}}
    values = SURE if rows < 4 else SURE[:4]
    databases = list(combinations_with_replacement([("'a'", *pair) for pair in values], rows))
    planned, vectors = _vectors(_world(unit, databases, sure=True), "SELECT COVAR_POP(y, x) FROM t")
    assert [c.rows for c in planned.measured.node.components] == [rows]
    counted = [Counter(d) for d in databases]
    near = (
        (vectors[i], vectors[j])
        for i, j in combinations(range(len(databases)), 2)
        if sum((counted[i] - counted[j]).values()) <= slots
    )
    best = _compared(planned, near)
    claim = planned.measured.measurements[0].sensitivity.linf
    assert best[0].linf == claim if slots == 1 else 0 < best[0].linf <= claim


@pytest.mark.parametrize("sql", [f"SELECT {ALL} FROM t", f"SELECT g, {ALL} FROM t GROUP BY g"])
def test_added_rows(sql: str) -> None:
    planned, vectors = _vectors(_world({"unit": {"rows": 1}}, _sets(_kinds(WIDE), 1)), sql)
    best = _compared(planned, ((vectors[0], v) for v in vectors[1:]))
    assert [b.l1 for b in best] == [m.sensitivity.l1 for m in planned.measured.measurements]


def test_a_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a product thought to be no larger than half of what two centred factors make, it would be seen."""
    halved = property(
        lambda c: max(map(abs, c.ends)) // (2 if (isinstance(c, ProductSum) and c.times is not None) else 1)
    )
    monkeypatch.setattr(Component, "magnitude", halved)
    with pytest.raises(AssertionError):
        test_every_row_set_of_one_id("C, groups")
