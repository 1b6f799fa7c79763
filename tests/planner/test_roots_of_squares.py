"""Limits on the root of the sum of squares of an id's totals by group: which are searched, and every integer of them.

The definition is computed with Python's integers, which have no end. Nothing here needs a root: b is the least octave
with Σ total² ≤ 4^b.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from dpsql.answers.stored.address import Addresses
from dpsql.core.ir.components import Component, RowCount
from dpsql.core.ir.contributions import SATURATED
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.functions.domains.octaves import LAST
from dpsql.planner.compile import compile_query
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.searches.octaves import Octaves, SearchResult
from dpsql.planner.postprocessing.searches.told import search_notes
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.core.printing.test_unit_totals import BY_G, GROUPS, SMALL, Cell, Ids, some_rows
from tests.support.neighbour_oracle import Vector, change, exact, violations
from tests.support.random_databases import Store, Table, World

DELTA = {"defaults": {"delta": 1e-6}}
ZCDP = {"privacy": {"accountant": "zcdp"}, "budgets": {"total": {"rho": 10, "delta": 1e-6}}, **DELTA}
PURE = {"privacy": {"accountant": "pure_dp"}, "budgets": {"total": {"epsilon": 10}}}
APPROX = {"privacy": {"accountant": "approx_dp"}, "budgets": {"total": {"epsilon": 10, "delta": 1e-6}}, **DELTA}


@dataclass(frozen=True)
class Open(Ids):
    """Ids of whom no policy says how much they have."""

    ledger: Mapping[str, Any] = field(default_factory=lambda: ZCDP)
    limit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def world(self) -> World:
        bounded = super().world
        (table,) = bounded.tables
        columns = tuple(replace(c, policy={k: v for k, v in c.policy.items() if k != "bounds"}) for c in table.columns)
        limits = {k: v for k, v in table.policy.items() if k != "max_rows_per_unit"} | dict(self.limit)
        made = Table(table.name, columns, limits, table.rows)
        policy = Policy.model_validate({"version": 1, "name": "open", "tables": {"t": made.entry}, **self.ledger})
        return World(policy, (made,), bounded.neighbours, "roots of squares")


def compiled(store: Store, world: World, sql: str, **settings: Any) -> Plan:
    wanted = QuerySettings(Fraction(1), search=True, **settings)
    return FactStore(store).compile(
        lambda public: compile_query(Source(sql), world.policy, public, wanted, (), store.table_sql)
    )


def planned(ids: Open, sql: str, **settings: Any) -> Plan:
    store, world = Store(), ids.world
    store.load(world)
    try:
        return compiled(store, world, sql, **settings)
    finally:
        store.close()


def vectors(store: Store, world: World, release: PlannedRelease) -> list[Vector]:
    """Its integers in every database."""
    found = []
    for db in range(world.neighbours + 1):
        store.show(db)
        found.append(exact(release, store))
    return found


def limited(store: Store, world: World, sql: str, most: int) -> Plan:
    """The plan with this limit, or the largest that can be measured, in place of all that are searched."""
    first = compiled(store, world, sql)
    assert first.searches is not None
    found = {s.limit.label: min(most, 2**s.largest) for s in first.searches.limits}
    return compiled(store, world, sql, found=found, family=first.searches.settings.family)


# --- which limits ----------------------------------------------------------------------------------------------------


def norms(plan: Plan) -> list[str]:
    return [m.component.of_unit.norm for r in plan.releases for m in r.measured.measurements if m.component.of_unit]


MANY = "SELECT pid, COUNT(*) > 1 AS m FROM t GROUP BY pid"
ONE = Open("BIGINT", ((("a", "1", True),),))


@pytest.mark.parametrize(
    ("ids", "sql", "expected"),
    [
        (ONE, BY_G, ["l2"] * 4),
        (ONE, "SELECT COUNT(*), SUM(x) FROM t", ["l1", "l1"]),
        (ONE, f"SELECT m, COUNT(*) FROM t JOIN ({MANY}) AS a USING (pid) GROUP BY m", ["l1"]),
        (ONE, "SELECT g, COUNT(DISTINCT x), SUM(x) FROM t GROUP BY g", ["l1", "l2"]),
        (ONE, "SELECT x, COUNT(*) FROM t GROUP BY x", ["l1"]),
        (replace(ONE, limit={"max_rows_per_unit": {"search": True, "at_most": 9}}), BY_G, ["l1", "l1", "l2", "l2"]),
        (replace(ONE, limit={"max_rows_per_unit": 9}), BY_G, ["l1", "l1", "l2", "l2"]),
        (replace(ONE, ledger=PURE), BY_G, ["l1"] * 4),
        (replace(ONE, ledger=APPROX), BY_G, ["l1"] * 4),
    ],
    ids=["groups", "none", "by id", "values", "private", "cap", "declared", "pure_dp", "approx_dp"],
)
def test_where_gaussian_noise_follows_the_root_that_is_what_is_searched(
    ids: Open, sql: str, expected: list[str]
) -> None:
    plan = planned(ids, sql)
    assert plan.searches is not None and norms(plan) == expected
    noise = {m.mechanism.name for r in plan.releases for m in r.measured.measurements}
    assert noise == {"gaussian"} or "l2" not in expected, "Laplace noise would be √groups times as large"
    assert [s.limit.norm for s in plan.searches.limits if s.limit.what != "groups"] == expected


@pytest.mark.parametrize(("groups", "noise"), [(3, "laplace"), (50, "laplace"), (400, "gaussian"), (2000, "gaussian")])
def test_of_many_groups_the_root_is_worth_its_noise(groups: int, noise: str) -> None:
    """In a ledger of ε and δ the noise is chosen by the number of public groups; without a δ there is no choice."""
    sql = f"SELECT CLIP(x, 0, 10000) % {groups} AS r, COUNT(*) FROM t GROUP BY r"
    ids = replace(ONE, ledger=APPROX)
    plan = planned(ids, sql)
    (measured,) = plan.releases[0].measured.measurements
    assert measured.mechanism.name == noise
    assert norms(plan) == ["l2" if noise == "gaussian" else "l1"]
    assert plan.searches is not None and plan.searches.settings.family == noise
    without = {key: value for key, value in APPROX.items() if key != "defaults"}
    plan = planned(replace(ids, ledger=without), sql)
    assert norms(plan) == ["l1"] and plan.bid.delta == 0


def test_noise_that_follows_the_sum_is_priced_as_such() -> None:
    """The core derives both norms from the plan, whoever chose the noise."""
    plan = planned(ONE, BY_G)
    for m in plan.releases[0].measured.measurements:
        s, F = m.sensitivity, m.component.weight
        assert (s.l1, s.l2_squared) == (2 * F, F * F), "four groups: √4 in all"
        assert isinstance(m.mechanism, DiscreteGaussian)
        assert m.loss.rho == s.l2_squared / (2 * m.mechanism.sigma_squared)


# --- integers --------------------------------------------------------------------------------------------------------


def integer(component: Component, cell: Cell) -> int:
    """What a row adds, saturated."""
    _, value, chosen = cell
    if component.filter is not None and not chosen:
        return 0
    if isinstance(component, RowCount):
        return int(component.arg is None or value is not None)
    return 0 if value is None else max(-SATURATED, min(SATURATED, int(value)))


def octave(component: Component, cells: Sequence[Cell]) -> int | None:
    totals = {g: sum(integer(component, cell) for cell in cells if cell[0] == g) for g in GROUPS}
    squares = sum(max(-SATURATED, min(SATURATED, n)) ** 2 for n in totals.values())
    return next((b for b in range(LAST) if squares <= 4**b), LAST) if squares else None


def edges() -> Iterator[tuple[Cell, ...]]:
    """Sums of squares at and around powers of four, from one, two and four groups, and beyond all octaves."""
    for b in (0, 1, 2, 15, 16, 30, 31, 32, 33, 45, 60, 61, 62):
        for d in (-1, 0, 1):
            yield (("a", str(2**b + d), True), ("b", "0", True))
        yield ("a", str(2**b), True), ("b", "-1", True)
    for b in (0, 1, 31, 60, 61, 62):
        yield tuple((g, str(-(2**b)), None) for g in GROUPS)  # 4·4^b: the next octave exactly
        yield tuple((g, str(2**b - 1), None) for g in GROUPS)
    top = str(2**127 - 1), str(-(2**127)), str(10**38), str(-(2**63)), str(2**63)
    yield tuple((g, x, True) for g in GROUPS for x in top)
    for x in top:
        yield (("a", x, True),)
        yield (("a", x, True), ("b", x, False), ("z", x, True), (None, "1", True))


PLANTED = Open("HUGEINT", tuple(edges()))


@pytest.mark.parametrize(("half", "neighbours"), [(0, "add_remove"), (1, "replace_one")])
def test_each_id_is_in_the_octave_of_its_root(half: int, neighbours: str) -> None:
    octaves_of_roots(half, neighbours)


def octaves_of_roots(half: int, neighbours: str) -> None:
    """A database holds one id each, and their number has 62 bits."""
    cells = (*PLANTED.ids, *some_rows(SMALL, 2))[half::2]
    ids = replace(PLANTED, ids=cells, neighbours=neighbours)
    store, world = Store(), ids.world
    store.load(world)
    plan = compiled(store, world, BY_G)
    assert plan.searches is not None
    seen = set()
    for searched in plan.searches.limits:
        histogram = plan.first.releases[searched.release]
        ((release, at), *_) = searched.follow
        component, found = plan.releases[release].measured.node.components[at], vectors(store, world, histogram)
        claim = histogram.measured.measurements[0].sensitivity
        both = 2 if neighbours == "replace_one" else 1
        assert (claim.l1, claim.l2_squared) == (both, both)
        for rows, vector in zip(cells, found[1:], strict=True):
            b = octave(component, rows)
            seen.add(b)
            assert {key[0]: n for key, (n,) in vector.items() if n} == ({} if b is None else {b: 1}), (rows, b)
        pairs = combinations(found, 2) if neighbours == "replace_one" else ((found[0], one) for one in found[1:])
        assert not [wrong for one, other in pairs for wrong in violations(histogram, one, other)]
    store.close()
    assert {None, 0, 1, 2, 31, 32, 61, 62} <= seen


def test_more_is_kept_at_the_same_noise() -> None:
    """An id with as much in each of four groups: half of it is kept by a limit on the sum, all by one on the root."""
    ids = Open("BIGINT", (tuple((g, "8", True) for g in GROUPS),))
    store, world = Store(), ids.world
    store.load(world)
    (release,) = limited(store, world, "SELECT g, SUM(x) FROM t GROUP BY g", 16).releases
    _, one = vectors(store, world, release)
    assert [n for (n,) in one.values()] == [8 * release.measured.measurements[0].component.weight] * 4
    store.close()


# --- what both tell --------------------------------------------------------------------------------------------------


def told(release: PlannedRelease, one: Vector, other: Vector) -> Fraction:
    """ρ of a pair of neighbours."""
    return sum(
        (
            m.mechanism.loss(Fraction(moved.l1), Fraction(moved.l2_squared)).rho
            for i, m in enumerate(release.measured.measurements)
            if (moved := change(one, other, i)).l1
        ),
        Fraction(0),
    )


# --- stored octaves, and words ---------------------------------------------------------------------------------------


def test_octaves_of_sums_never_serve_a_limit_on_roots() -> None:
    """Neither by the label, under which a limit is handed on, nor by the address, under which octaves are stored."""
    sums, roots = (planned(ONE, BY_G, family=family) for family in ("laplace", "gaussian"))
    labels, addresses = [], []
    for plan in (sums, roots):
        assert plan.searches is not None
        labels.append({s.limit.label for s in plan.searches.limits})
        each, releases = Addresses(plan.first, ONE.world.policy), plan.first.releases
        addresses.append(
            {each.of(i).address(c) for i, r in enumerate(releases) for c in r.measured.node.components}
        )  # fmt: skip
    for one, other in (labels, addresses):
        assert len(one) == len(other) == 4 and not one & other


def test_words() -> None:
    told = as_text(planned(ONE, "SELECT g, COUNT(*) FROM t GROUP BY g"))
    assert "search of the limit of COUNT(*) (root of the sum of squares over groups) · keys: octaves 0…62" in told
    assert "limit 2^k from release 1" in told
    store, world = Store(), ONE.world
    store.load(world)
    known = limited(store, world, "SELECT g, COUNT(*) FROM t GROUP BY g", 64)
    store.close()
    assert "rows per person and group counted up to 64: the root of their squares' sum over all groups" in known.notes
    assert "COUNT(*) ≤ 64 per id (root of squares)" in as_text(known)


def test_notes_do_not_tell_a_part_that_is_not_known() -> None:
    """What is cut of a root is no part of the answer's totals."""
    plan = planned(ONE, "SELECT g, COUNT(*) FROM t GROUP BY g")
    (measured,) = plan.first.releases[0].measured.measurements
    counts = [0] * 63
    counts[3], counts[9] = 10**7, 10**6
    for roots in (True, False):
        octaves = Octaves("s", "COUNT(*)", "person", tuple(counts), measured.mechanism, 63, roots=roots)
        notes = list(search_notes([SearchResult(octaves, 8)]))
        assert any("lie above the limit of COUNT(*)" in note for note in notes)
        assert any("it is not in the answer" in note for note in notes) is not roots
