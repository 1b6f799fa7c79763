"""Components of which a row counts in one at most: together they move by no more than one of them may alone.

`violations` compares what neighbours do with the claims of every parallel group, and with the price of the whole
release; here are queries that have some: random pivots, and every row set of a tiny unit for every form of bounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.ir.components import Component, RowCount, UnitCount
from dpsql.core.noise import calibration, measurement, parallel_composition
from dpsql.core.printing.forms import sliced
from dpsql.core.printing.shapes import direct, weighted
from dpsql.planner.rewrites.releases import cut_slices
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.service.planning.public_facts import FactStore
from tests.deep.core.analysis.test_contribution_bounding import _worlds
from tests.support.neighbour_oracle import Tally, attack, change, exact, plan_of, violations
from tests.support.random_databases import Store, World, id_world, row_world
from tests.support.random_queries import Name, comparison, names_of, number

SLICES: dict[str, tuple[str, ...]] = {
    "city": ("{} = 'a'", "{} IN ('b', 'B')", "{} = ''", "{} NOT IN ('a', 'b', 'B', '')", "{} IS NULL"),
    "flag": ("{}", "NOT {}", "{} IS NULL"),
    "age": ("{} < 1", "{} >= 1 AND {} < 2", "{} BETWEEN 2 AND 3", "{} > 3", "{} IS NULL"),
    "code": ("{} = 1", "{} = 2", "{} IN (3, 4)", "{} IS NULL"),
    "day": ("{} < '2024-01-31'", "{} >= '2024-01-31' AND {} < '2024-02-29'", "{} = '2024-02-29'", "{} IS NULL"),
    "at": ("{} < TIMESTAMP '2024-02-01'", "{} >= DATE '2024-02-01'", "{} IS NULL"),
    "x": ("{} > 1", "{} <= 1", "{} IS NULL"),
}


def pivot(rng: random.Random, world: World) -> str:
    """One query with an aggregate for each of several slices of a column."""
    table = rng.choice([t.name for t in world.private])
    names = names_of(world, table, "t")
    column = rng.choice([n for n in names if n.sql[2:] in SLICES])
    slices = [s.replace("{}", column.sql) for s in SLICES[column.sql[2:]]]
    calls = [call(rng, names, rng.choice(slices)) for _ in range(rng.choice((2, 3, 5)))]
    if rng.random() < 0.3:
        calls.append("COUNT(*)")
    key = rng.choice(("", "", "t.flag", "t.city", "t.code % 2"))
    group = f" GROUP BY {key}" if key else ""
    where = f" WHERE {comparison(rng, names)}" if rng.random() < 0.2 else ""
    return f"SELECT {', '.join(calls)} FROM {table} AS t{where}{group}"


def call(rng: random.Random, names: list[Name], where: str) -> str:
    """An aggregate of the rows that satisfy a condition, in one of the ways to write that."""
    x, y = rng.choice(names).sql, number(rng, names, 1)
    if rng.random() < 0.2:
        return rng.choice(
            (f"SUM(CASE WHEN {where} THEN {y} ELSE 0 END)", f"COUNT(CASE WHEN {where} THEN 1 END)",
             f"SUM(CASE WHEN {where} THEN {y} END)", f"COUNT_IF({where})",
             f"AVG(CASE WHEN {where} THEN {y} ELSE 0 END)")
        )  # fmt: skip
    if rng.random() < 0.2:
        where += f" AND {comparison(rng, names)}"
    name = rng.choice(
        ("COUNT(*)", "COUNT(*)", f"COUNT({x})", f"SUM({y})", f"SUM({y})", f"AVG({y})", f"VAR_POP({y})",
         f"COUNT(DISTINCT {x})", "COUNT(DISTINCT t.pid)")
    )  # fmt: skip
    return f"{name} FILTER (WHERE {where})"


def attacked(make: Callable[[random.Random], World], seeds: range, queries: int = 6) -> Tally:
    store, tally = Store(), Tally()
    try:
        for seed in seeds:
            rng = random.Random(seed)
            world = make(rng)
            store.load(world)
            facts = FactStore(store)
            for number_ in range(queries):
                sql = pivot(rng, world)
                try:
                    attack(store, facts, world, sql, tally)
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}, query {number_}: {error}") from error
    finally:
        store.close()
    return tally


def promised(rng: random.Random) -> World:
    """Ids of which a frequency is promised: the only ones whose rows count as they are."""
    while True:
        world = id_world(rng, replace_one=False)
        if isinstance(world.table("visits").policy.get("max_rows_per_unit"), dict):
            return world


WORLDS: dict[str, Callable[[random.Random], World]] = {"rows": row_world, "ids": id_world, "promised ids": promised}


@pytest.mark.parametrize("kind", WORLDS)
def test_pivots_of_neighbours_stay_within_the_joint_claims(kind: str) -> None:
    tally = attacked(WORLDS[kind], range(15 if kind == "promised ids" else 10))
    assert tally.planned > 0.8 * tally.queries, tally
    if kind != "ids":
        assert tally.in_parallel > 30 and tally.in_parallel_equal > 5 and tally.in_parallel_mixed, tally


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("part", range(3))
def test_pivots_of_neighbours_stay_within_the_joint_claims_thoroughly(kind: str, part: int) -> None:
    attacked(WORLDS[kind], range(3_000 + part * 40, 3_040 + part * 40), 10)


# --- exhaustive ------------------------------------------------------------------------------------------------------

MANY = (
    "COUNT(*) FILTER (WHERE g = 'a') AS n1, SUM(x) FILTER (WHERE g = 'b') AS s, COUNT(x) FILTER (WHERE g IS NULL) AS n2"
)
DISTINCT = "COUNT(DISTINCT x) FILTER (WHERE g = 'a') AS n1, COUNT(DISTINCT x) FILTER (WHERE g IN ('b', 'c')) AS n2"
CASES = (
    "SUM(CASE WHEN g = 'a' THEN x ELSE 0 END) AS s, COUNT(CASE WHEN g = 'b' THEN 1 END) AS n, "
    "AVG(x) FILTER (WHERE g = 'b') AS a"
)
PAIRS = (
    "AVG(x) FILTER (WHERE g = 'a') AS m1, AVG(x) FILTER (WHERE g = 'b') AS m2, COUNT(*) FILTER (WHERE g IS NULL) AS n"
)
PARTS = "COUNT(*) FILTER (WHERE x < 0) AS n1, AVG(x) FILTER (WHERE x > 0) AS m, COUNT(*) FILTER (WHERE x IS NULL) AS n2"
IDS = "COUNT(DISTINCT pid) FILTER (WHERE g = 'a') AS n, COUNT(DISTINCT pid) FILTER (WHERE g = 'b') AS m"
IDS_AND_ROWS = "COUNT(DISTINCT pid) FILTER (WHERE g = 'a') AS n, COUNT(*) FILTER (WHERE g = 'b') AS m"
OWN = ", ".join(
    f"COUNT(*, contribution_bounds_per_group => (0, 1)) FILTER (WHERE {f}) AS n{i}"
    for i, f in enumerate(("x < 0", "x > 0", "x IS NULL"))
)
M_AND_G: dict[str, Any] = {"max_rows_per_group": 1, "max_groups_per_unit": 2}
PROMISED: dict[str, Any] = {"max_rows_per_unit": {"rows": 3, "enforce": "assume"}}
TWO: dict[str, Any] = {"max_rows_per_unit": {"rows": 2, "enforce": "assume"}}
C: dict[str, Any] = {"max_rows_per_unit": 2}
FORMS: dict[str, tuple[dict[str, Any], str, list[int]]] = {
    # name: (table's limits, query, sizes of the parallel groups)
    "promised": (PROMISED, f"SELECT {MANY} FROM t", [3]),
    "promised, groups": (PROMISED, f"SELECT h, {MANY} FROM t GROUP BY h", [1, 3]),
    "promised, distinct": (TWO, f"SELECT {DISTINCT} FROM t", [2]),
    "promised, cases": (PROMISED, f"SELECT {CASES} FROM t", [1, 1, 2]),
    "promised, ids": (PROMISED, f"SELECT {IDS} FROM t", [1, 1]),
    "promised, own bounds": (
        PROMISED,
        "SELECT SUM(x, contribution_bounds_per_group => (-1, 2)) FILTER (WHERE g = 'a') AS s, "
        "SUM(x, contribution_bounds_per_group => (-1, 2)) FILTER (WHERE g = 'b') AS t FROM t",
        [1, 1],
    ),
    "C": (C, f"SELECT {MANY} FROM t", [3]),
    "C, pairs": (C, f"SELECT {PAIRS} FROM t", [2, 3]),
    "C, groups": (C, f"SELECT g, {PARTS} FROM t GROUP BY g", [1, 3]),
    "C, private groups": (C, f"SELECT h, {PARTS} FROM t GROUP BY h", [1, 1, 3]),
    "C, the query's G": (
        {"max_rows_per_unit": 3},
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) g, {PARTS} FROM t GROUP BY g",
        [1, 3],
    ),
    "C, cases": (C, f"SELECT {CASES} FROM t", [1, 1, 2]),
    "C, distinct": (C, f"SELECT {DISTINCT} FROM t", [1, 1]),
    "C, ids": (C, f"SELECT {IDS} FROM t", [1, 1]),
    "C, ids and rows": (C, f"SELECT {IDS_AND_ROWS} FROM t", [1, 1]),
    "C, own bounds": ({"max_rows_per_unit": 3}, f"SELECT {OWN} FROM t", [1, 1, 1]),
    "C, own bounds, the query's G": (
        {"max_rows_per_unit": 3},
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) g, {OWN} FROM t GROUP BY g",
        [1, 1, 1],
    ),
    "M and G": (M_AND_G, f"SELECT h, {PARTS} FROM t GROUP BY h", [1, 1, 3]),
    "M and G, public": (
        {"max_rows_per_group": 1, "max_groups_per_unit": 2},
        f"SELECT g, {PARTS} FROM t GROUP BY g",
        [1, 3],
    ),
    "M and G, few": (
        {"max_rows_per_group": 1, "max_groups_per_unit": 3},
        f"SELECT g, {PARTS} FROM t GROUP BY g",
        [1, 3],
    ),
    "M and G, one": ({"max_rows_per_group": 2, "max_groups_per_unit": 1}, f"SELECT {PARTS} FROM t", [1, 3]),
    "M and G, sums": (
        M_AND_G,
        "SELECT h, SUM(x) FILTER (WHERE x < 0) AS s, SUM(x) FILTER (WHERE x > 0) AS t, "
        "COUNT(*) FILTER (WHERE x IS NULL) AS n FROM t GROUP BY h",
        [1, 3],
    ),
}  # fmt: skip


def enumerated(form: str, most: int = 3, **unit: str) -> tuple[list[str], list[Any]]:
    """(what two neighbours say against the claims, the parallel groups) over all row sets of one id."""
    limits, sql, _ = FORMS[form]
    store, found, seen = Store(), [], []
    for world, count in _worlds(limits, most, **unit):
        store.load(world)
        (planned,) = plan_of(store, FactStore(store), world, sql, ContributionLimits()).releases
        vectors = []
        for db in range(count + 1):
            store.show(db)
            vectors.append(exact(planned, store))
        pairs = [(vectors[0], vector) for vector in vectors[1:]]
        if unit:  # any two row sets of the id are neighbours
            pairs = [(a, b) for i, a in enumerate(vectors[1:]) for b in vectors[i + 2 :]]
        for a, b in pairs:
            found += violations(planned, a, b)
            for parallel in planned.measured.parallel_groups:
                if len(parallel) > 1:
                    moved = [(change(a, b, i).l1, planned.measured.measurements[i].sensitivity.l1) for i in parallel]
                    seen.append((sum(one / most for one, most in moved), sum(one > 0 for one, _ in moved)))
        sizes = sorted(map(len, planned.measured.parallel_groups))
    store.close()
    return found, [sizes, seen]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS)
def test_every_row_set_of_one_id(form: str) -> None:
    """No row set moves a parallel group further than claimed; rows in one member reach it, and rows in several do."""
    found, (sizes, seen) = enumerated(form, 2 if "distinct" in form else 3)
    assert not found, found[:3]
    assert sizes == FORMS[form][2]
    if max(sizes) > 1:
        assert any(moved > 0.999 and members == 1 for moved, members in seen)
        assert any(moved == 1 and members > 1 for moved, members in seen)


@pytest.mark.parametrize(
    "form", ["promised", "promised, groups", "promised, distinct", "C", "C, pairs", "C, groups", "M and G, public"]
)
def test_replaced_ids_have_no_parallel_groups(form: str) -> None:
    found, (sizes, _) = enumerated(form, 2, neighbours="replace_one")
    assert not found and max(sizes) == 1


def _ids_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner guesses of every column that it is one of the id: ids are counted in slices, too."""
    monkeypatch.setattr(cut_slices, "functions_of_the_id", lambda rows: frozenset(range(10**6)))


@pytest.mark.parametrize(("form", "sizes"), [("C, ids", [2]), ("C, ids and rows", [1, 1]), ("promised, ids", [1, 1])])
def test_ids_in_slices_move_together_by_no_more_than_one(
    form: str, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a limit ids that are counted are as one, if their slices are of one set; ids and rows are not.

    Nor are ids whose rows count as they are: each row may be in another slice.
    """
    _ids_in_slices(monkeypatch)
    found, (sizes_, seen) = enumerated(form)
    assert not found, found[:3]
    assert sizes_ == sizes
    assert max(sizes) == 1 or {moved for moved, _ in seen} == {0, 1}


def test_ids_that_count_in_each_of_their_slices_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the statement without the earlier slices, in which an id counts wherever it has a row."""
    _ids_in_slices(monkeypatch)
    real = sliced.is_present

    def is_present(i: int, sets: sliced.Sets, components: Any) -> str:
        """As if each slice were the first of its set."""
        return real(i, (), components)

    monkeypatch.setattr(sliced, "is_present", is_present)
    found, (sizes, _) = enumerated("C, ids")
    assert max(sizes) > 1 and any("together" in line for line in found)


# --- mutants ---------------------------------------------------------------------------------------------------------


def _joined(component: Any) -> bool:
    return True


def _without(**named: Any) -> Callable[[Any], Any]:
    """`_counts_rows` that does not look at these."""
    real = parallel_composition._counts_rows

    def by_rows(c: Any) -> bool:
        rows = c.rows if c.by_rows is None and c.per_group is not None else c.by_rows
        return real(replace(c, by_rows=rows, **named))

    return by_rows


@pytest.mark.parametrize(
    ("form", "owner", "name", "wrong", "unit"),
    [
        ("promised", parallel_composition, "_counts_rows", _without(ids=1), {"neighbours": "replace_one"}),
        ("C", parallel_composition, "_counts_rows", _without(scaled=False, scaled_over_groups=False), {}),
        ("C, pairs", parallel_composition, "_weighs_rows", lambda c: c.scaled, {"neighbours": "replace_one"}),
        ("M and G, one", parallel_composition, "_weighs_rows", lambda c: c.scaled, {"neighbours": "replace_one"}),
        ("M and G, sums", parallel_composition, "_counts_rows", _without(scaled=False, scaled_over_groups=False), {}),
        ("promised, ids", parallel_composition, "_bounded_by_each_row", _joined, {}),
        ("C, ids and rows", parallel_composition, "_counts_ids", _joined, {}),
        ("C", parallel_composition, "_weighed_by_all_rows", parallel_composition._bounded_by_each_row, {}),
        ("C, cases", parallel_composition, "_weighed_by_all_rows", parallel_composition._bounded_by_each_row, {}),
        ("C, distinct", parallel_composition, "_weighed_by_all_rows", parallel_composition._bounded_by_each_row, {}),
        ("C, own bounds, the query's G", parallel_composition, "_weighed_by_all_rows", _joined, {}),
    ],
    ids=[
        "replaced ids",
        "C as rows",
        "replaced ids, C",
        "replaced ids, M and G",
        "sums as rows",
        "presence of ids",
        "ids and rows",
        "a sum alone",
        "cases of a sum alone",
        "distinct values",
        "own bounds",
    ],
)
def test_parallel_groups_where_there_must_be_none_are_noticed(
    form: str, owner: Any, name: str, wrong: Any, unit: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ids_in_slices(monkeypatch)
    monkeypatch.setattr(owner, name, wrong)
    found, (sizes, _) = enumerated(form, **unit)
    assert max(sizes) > 1 and any("together" in line for line in found)


def test_parallel_ids_without_slices_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No set has them: an id may count in both."""
    for owner in (calibration, measurement):
        monkeypatch.setattr(owner, "parallel_groups", lambda node, units: (tuple(range(len(node.components))),))
    found, (sizes, _) = enumerated("C, ids")
    assert max(sizes) > 1 and any("together" in line for line in found)


@pytest.mark.parametrize("form", ["C", "C, groups"])
def test_weights_that_divide_by_the_rows_of_a_filter_are_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a limit has it that a search found: each member would reach its own claim."""
    monkeypatch.setattr(weighted, "_weighted", _own_divisor)
    found, (sizes, _) = enumerated(form)
    assert max(sizes) > 1 and any("together" in line for line in found)


def _own_divisor(c: Component, i: int, parts: Any, sets: sliced.Sets) -> weighted.WeightedTerm:
    limit = parts.bounding.rows or parts.bounding.per_group
    if not isinstance(c, RowCount) or c.filter is None:
        return _TERM(c, i, parts, sets)
    own = f"({c.weight * limit} * m{i}) // CASE WHEN m{i} > {limit} THEN m{i} ELSE {limit} END"
    return weighted.WeightedTerm(own, columns={f"m{i}": f"m{i}"})


_TERM = weighted._weighted


def test_parallel_totals_per_id_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        parallel_composition, "_bounded_by_each_row", lambda component: not isinstance(component, UnitCount)
    )
    monkeypatch.setattr(parallel_composition, "_counts_rows", _without(scaled=False, scaled_over_groups=False))
    found, (sizes, _) = enumerated("promised, own bounds")
    assert max(sizes) > 1 and any("together" in line for line in found)


def test_parallel_replaced_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_composition, "_counts_rows", _without(replaces_rows=False))
    with pytest.raises(AssertionError, match="together"):
        attacked(lambda rng: row_world(rng, replace_one=True), range(40))


OVERLAPS = [("g IN ('a', 'b')", "g IN ('b', 'c')"), ("x <= 9", "x >= 9"), ("g = 'a'", "x > 0")]
"""Pairs of conditions that rows satisfy both."""


def _overlapping(limits: dict[str, Any], pair: tuple[str, str]) -> tuple[dict[str, Any], str, list[int]]:
    one, other = pair
    return limits, f"SELECT COUNT(*) FILTER (WHERE {one}) AS n, COUNT(x) FILTER (WHERE {other}) AS m FROM t", []


def _filters_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: conditions are read where components are printed, as if they were slices."""
    monkeypatch.setattr(direct, "divided", lambda node, plain: [((), tuple(plain))])
    monkeypatch.setattr(weighted, "sliced_sets", lambda node, components: ())


@pytest.mark.parametrize("pair", OVERLAPS)
@pytest.mark.parametrize("limits", [PROMISED, C], ids=["rows", "weighed"])
def test_a_wrong_guess_moves_no_neighbour_beyond_the_price(
    limits: dict[str, Any], pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the planner thinks of conditions: a row counts in one slice. The twin with FILTERs counts it twice."""
    monkeypatch.setitem(FORMS, "overlap", _overlapping(limits, pair))
    found, (sizes, _) = enumerated("overlap")
    assert not found and max(sizes) == 1
    monkeypatch.setattr(cut_slices, "are_disjoint", lambda a, b: True)
    found, (sizes, _) = enumerated("overlap")
    assert not found and max(sizes) == 2
    _filters_back(monkeypatch)
    found, (sizes, _) = enumerated("overlap")
    assert max(sizes) > 1 and any("together" in line for line in found)


@pytest.mark.parametrize("kind", WORLDS)
def test_pivots_with_random_guesses_stay_within_the_joint_claims(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(kind)
    monkeypatch.setattr(cut_slices, "are_disjoint", lambda a, b: rng.random() < 0.8)
    tally = attacked(WORLDS[kind], range(500, 506))
    assert tally.planned > 0.8 * tally.queries, tally
