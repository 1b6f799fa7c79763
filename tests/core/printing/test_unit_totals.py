"""Limits on what an id adds: the engine's integers are those of the definition, for every limit, and fail for nothing.

The definition is computed with Python's integers, which have no end (`tests/support/unit_totals.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

import pytest

from dpsql.core.ir.components import Component, RowCount
from dpsql.core.ir.contributions import SATURATED, UnitTotal, Weighing
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.release.planned import PlannedRelease
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Vector, change, exact, plan_of, violations
from tests.support.random_databases import Column, Store, Table, World, world_of
from tests.support.unit_totals import added_up, grid_integer, limited, parts

Cell = tuple[str | None, str | None, bool | None]
"""Group, value as text, and whether the FILTER holds, of one row of an id."""
GROUPS = ("a", "b", "c", None)
ROW_LIMIT = {"max_rows_per_unit": 3}


@dataclass(frozen=True)
class Ids:
    """Ids in one database each, number 0 without any; and what their rows are."""

    type: str
    ids: tuple[tuple[Cell, ...], ...]
    bounds: tuple[float, float] = (-2, 3)
    neighbours: str = "add_remove"

    @property
    def world(self) -> World:
        def row(cell: Cell) -> tuple[str, ...]:
            group, value, chosen = cell
            texts = ["1", "NULL" if group is None else f"'{group}'"]
            texts.append("NULL" if value is None else f"CAST('{value}' AS {self.type})")
            return (*texts, "NULL" if chosen is None else str(chosen))

        rows = tuple((row(cell), 1 << db) for db, cells in enumerate(self.ids, 1) for cell in cells)
        columns = (
            Column("pid", "BIGINT", (), {"nullable": False}),
            Column("g", "VARCHAR", (), {"domain": ["a", "b", "c"]}),
            Column("x", self.type, (), {"bounds": list(self.bounds)}),
            Column("f", "BOOLEAN", ()),
        )
        unit = {"of": "person", "column": "pid", "neighbours": self.neighbours}
        return world_of([Table("t", columns, {"unit": unit, **ROW_LIMIT}, rows)], len(self.ids), "unit totals")


def vectors(ids: Ids, sql: str, limit: UnitTotal, **form: Any) -> tuple[PlannedRelease, list[Vector]]:
    """The rebuilt release, and its integers in every database."""
    store, world = Store(), ids.world
    store.load(world)
    plan = plan_of(store, FactStore(store), world, sql)
    release = limited(plan, world.policy, store.table_sql, lambda c: limit, **form)
    found = []
    for db in range(world.neighbours + 1):
        store.show(db)
        found.append(exact(release, store))
    store.close()
    return release, found


def by_definition(c: Component, cells: tuple[Cell, ...], grouped: bool) -> dict[tuple[str | None, ...], int]:
    """What one id adds to a component."""
    totals: dict[str | None, int] = {}
    for group, value, chosen in cells:
        if grouped and group not in GROUPS:
            continue
        one = 0
        if c.filter is None or chosen:
            number = None if value is None or value in ("nan", "inf", "-inf") else Fraction(value)
            one = (c.arg is None or number is not None) if isinstance(c, RowCount) else grid_integer(c, number)
        key = group if grouped else None
        totals[key] = totals.get(key, 0) + one
    found = added_up([parts(c, totals, len(GROUPS), one_group=not grouped)])
    return {((group,) if grouped else ()): n for group, n in found.items()}


def agrees(ids: Ids, release: PlannedRelease, found: list[Vector]) -> PlannedRelease:
    """Compare every id of every database with the definition."""
    grouped = bool(release.measured.node.keys)
    keys = [(g,) for g in GROUPS] if grouped else [()]
    for i, m in enumerate(release.measured.measurements):
        for cells, vector in zip(((), *ids.ids), found, strict=True):
            wanted = by_definition(m.component, cells, grouped)
            for key in keys:
                assert _same(vector[key][i], wanted.get(key, 0), m.component), (cells, key, m.component)
    return release


def _same(found: int, wanted: int, c: Component) -> bool:
    """Equal; where a root had to be found, at most that: a DOUBLE's may be larger by its rounding."""
    if c.of_unit is not None and c.of_unit.norm == "l2" and abs(wanted) > 2**40:
        return found * wanted >= 0 and abs(wanted) - abs(wanted) // 2**44 <= abs(found) <= abs(wanted)
    return found == wanted


BY_G = "SELECT g, COUNT(*), COUNT(x) FILTER (WHERE f), SUM(x), SUM(x) FILTER (WHERE f) FROM t GROUP BY g"
ALL = "SELECT COUNT(*), COUNT(x) FILTER (WHERE f), SUM(x), SUM(x) FILTER (WHERE f) FROM t"
SMALL: tuple[Cell, ...] = (
    ("a", "-7", True), ("a", "2", False), ("b", "1", True), ("b", None, True), (None, "5", None), ("z", "3", True),
)  # fmt: skip
NORMS: tuple[Literal["l1", "l2"], ...] = ("l1", "l2")


def some_rows(cells: tuple[Cell, ...], most: int) -> Iterator[tuple[Cell, ...]]:
    """Every choice of at most so many different rows."""
    for height in range(1, most + 1):
        yield from combinations(cells, height)


FEW = (*some_rows(SMALL, 1), (SMALL[0], SMALL[2], SMALL[4]), (SMALL[1], SMALL[2]), SMALL[2:5], SMALL)


@pytest.mark.parametrize(
    ("bare", "sql", "norm", "neighbours"),
    [
        (False, BY_G, "l1", "add_remove"),
        (False, ALL, "l1", "replace_one"),
        (True, BY_G, "l2", "add_remove"),
        (True, BY_G, "l1", "replace_one"),
    ],
)
def test_no_id_adds_more_than_its_limit(bare: bool, sql: str, norm: Literal["l1", "l2"], neighbours: str) -> None:
    never_more(Ids("BIGINT", FEW, neighbours=neighbours), sql, norm, bare, (1, 2, 3, 6, 40))


def never_more(ids: Ids, sql: str, norm: Literal["l1", "l2"], bare: bool, limits: Sequence[int]) -> None:
    """On all neighbours, for every limit up to one that takes nothing away: as defined, and no further than claimed."""
    reached = set()
    for most in limits:
        release, found = vectors(ids, sql, UnitTotal(most, norm), bare=bare)
        pairs = combinations(found, 2) if ids.neighbours == "replace_one" else ((found[0], one) for one in found[1:])
        for one, other in pairs:
            wrong = list(violations(release, one, other))
            assert not wrong, wrong
            for i, m in enumerate(release.measured.measurements):
                if change(one, other, i).l2_squared == m.sensitivity.l2_squared:
                    reached.add(i)
        agrees(ids, release, found)
    if ids.neighbours == "add_remove":
        assert reached == {0, 1, 2, 3}  # so that a claim of less would be found


EDGES = [0, 1, 2, 5, 2**31, 2**31 - 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 10**37]
HELD = {"BIGINT": 2**63 - 1, "INTEGER": 2**31 - 1, "UBIGINT": 2**64 - 1, "HUGEINT": 2**127 - 1}


DECIMALS = ("DECIMAL(18,3)", "DECIMAL(38,0)", "DECIMAL(38,10)", "DECIMAL(38,30)")


@pytest.mark.parametrize(("type_", "norm"), [("DECIMAL(38,30)", "l1"), ("HUGEINT", "l2")])
def test_no_value_is_too_large_to_be_counted(type_: str, norm: Literal["l1", "l2"]) -> None:
    never_too_large(BY_G, type_, norm)


def never_too_large(sql: str, type_: str, norm: Literal["l1", "l2"]) -> None:
    """Sums without bounds: rows and totals are saturated, and the statements are the same and never fail."""
    if type_ in HELD:
        values = [str(s * n) for n in EDGES for s in (1, -1) if s * n <= HELD[type_] and (s > 0 or type_ != "UBIGINT")]
        values += [str(HELD[type_]), *([] if type_ == "UBIGINT" else [str(-HELD[type_] - 1)])]
        values = [v for v in values if -HELD[type_] - 1 <= int(v) <= HELD[type_]]
    else:
        digits, places = map(int, type_[8:-1].split(","))
        top = "9" * (digits - places) or "0"
        values = ["0", "0.0004", "-0.5", "0.123456789", f"{top}.{'9' * places}", f"-{top}.{'9' * places}"]
        values = [v for v in values if "e" not in v]
    planted = [tuple(("a" if i % 3 else "b", v, bool(i % 2)) for i in range(4)) for v in values]
    mixed = tuple((GROUPS[i % 3], v, bool(i % 2)) for i, v in enumerate(values))
    nothing = tuple((g, None, None) for g in GROUPS)
    ids = Ids(type_, (*planted, mixed, nothing), {"UBIGINT": (0, 1), "DECIMAL(38,30)": (0, 1e-25)}.get(type_, (-2, 3)))
    texts = set()
    for most in (1, 2**40, SATURATED):
        release = agrees(ids, *vectors(ids, sql, UnitTotal(most, norm), bare=True))
        texts.add(release.statements[0].sql.count("CASE"))
        for m in release.measured.measurements:
            assert m.component.weight * most <= SATURATED
    assert len(texts) == 1


def test_without_groups_a_total_is_clipped_and_not_divided() -> None:
    ids = Ids("BIGINT", ((("a", "9", True), ("a", "-2", True)), (("b", "-100", None),)))
    release, found = vectors(ids, ALL, UnitTotal(5), bare=True)
    assert [m.component.weight for m in release.measured.measurements] == [1] * 4
    assert [v[()][2] for v in found] == [0, 5, -5]
    assert "JOIN" not in release.statements[0].sql


KEPT = "SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g"


def test_totals_are_those_of_the_groups_that_are_kept() -> None:
    ids = Ids("BIGINT", (*FEW, SMALL[:2], SMALL[:4], SMALL[1:5]))
    release, found = vectors(ids, KEPT, UnitTotal(4), bare=True, groups=2)
    for vector in found:
        for i, m in enumerate(release.measured.measurements):
            assert sum(abs(row[i]) for row in vector.values()) <= 4 * m.component.weight
        assert sum(any(row) for row in vector.values()) <= 2
    tight = [
        sum(abs(row[1]) for row in v.values()) == 4 * release.measured.measurements[1].component.weight for v in found
    ]
    assert any(tight)


def test_different_values_are_limited_too() -> None:
    ids = Ids("BIGINT", (*FEW, SMALL[:2], SMALL[:4], SMALL[1:5]))
    sql = "SELECT g, COUNT(DISTINCT x), COUNT(*) FROM t GROUP BY g"
    for most in (1, 2, 9):
        release, found = vectors(ids, sql, UnitTotal(most), bare=True)
        assert release.measured.measurements[0].sensitivity.l1 == most
        for vector, cells in zip(found[1:], ids.ids, strict=True):
            different = len({(g, x) for g, x, _ in cells if g in GROUPS and x is not None})
            assert sum(row[0] for row in vector.values()) == min(most, different)


def test_the_root_is_never_too_small() -> None:
    """Of squares that a DOUBLE rounds down, too."""
    near = [2**53 + 1, 2**55 + 2**26, 3037000500, 2**61 - 1, 94906267, 94906265]
    ids = Ids(
        "HUGEINT",
        tuple((("a", str(n), True), ("b", str(n + d), True), ("c", "1", True)) for n in near for d in (0, 1, -3)),
    )
    for most in (2**31, 2**53, 2**60):
        release, found = vectors(ids, KEPT, UnitTotal(most, "l2"), bare=True)
        weight = release.measured.measurements[1].component.weight
        for vector in found:
            squares = sum(row[1] ** 2 for row in vector.values())
            assert squares <= (weight * most) ** 2
        biggest = max(sum(row[1] ** 2 for row in vector.values()) for vector in found)
        assert biggest > (weight * most) ** 2 * Fraction(99, 100)


def test_two_limits_are_two_questions() -> None:
    """Stored answers lie under the fingerprint of what they are of; a label of the search has no part in it."""
    made = [UnitTotal(4), UnitTotal(8), UnitTotal(4, "l2")]
    prints = {fingerprint(RowCount(contribution=limit)) for limit in [*made, Weighing.BY_ROW]}
    assert len(prints) == 4
    assert fingerprint(UnitTotal(4, label="a")) == fingerprint(made[0])
