"""Replaced rows and replaced ids: every cell of the table in docs/explanation/guarantee.md, on all tiny databases.

All databases of a few rows are enumerated, and every two that differ in at most k replaced rows (in one id's rows, for
id units) are compared. The claims are written down here once more as formulas; none may be exceeded, and where the
rule is tight some pair reaches it. Numbers that are called public are compared with what the data say, every time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import pytest

from dpsql.core.ir.nodes import Release
from dpsql.core.noise.measurement import Measurement
from dpsql.core.printing.shapes.choose import statements
from dpsql.core.release.planned import PlannedRelease
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.service.planning.public_facts import FactStore
from tests.support.attacked_worlds import assert_worthwhile, attack_worlds
from tests.support.neighbour_oracle import Change, Vector, change, exact, plan_of, violations
from tests.support.random_databases import Column, Row, Store, Table, World, id_world, row_world, world_of

TWO_SIGNS, POSITIVE = (-2, 3), (3, 5)


class Listed(Table):
    """A table of which every row says the number of the one database that holds it."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        if self.public:
            return super().shown
        return super().shown.replace("((dbs >> CAST($db AS INTEGER)) & 1) = 1", "dbs = CAST($db AS INTEGER)")


@dataclass(frozen=True, slots=True)
class Tiny:
    """A world of all databases of `height` rows, each out of `kinds`; k rows are replaced between neighbours."""

    height: int
    k: int
    bounds: tuple[int, int] = TWO_SIGNS
    nullable: bool = False
    type: str = "INTEGER"
    sized: bool = True
    outside: tuple[str, str] = ("-9", "9")
    groups: tuple[str, ...] = ("'a'", "'b'")

    @property
    def kinds(self) -> tuple[Row, ...]:
        held = (*self.outside, "1", *(("NULL",) if self.nullable else ()))
        if self.type == "DOUBLE":
            held = (*self.outside, "'nan'")
        return tuple((g, f"CAST({x} AS {self.type})") for g, x in product(self.groups, held))

    @property
    def databases(self) -> list[tuple[Row, ...]]:
        return list(combinations_with_replacement(self.kinds, self.height))

    def world(self, domain: bool = True) -> World:
        columns = (
            Column("g", "VARCHAR", (), {"nullable": False, **({"domain": ["a", "b"]} if domain else {})}),
            Column("x", self.type, (), {"bounds": list(self.bounds), **({} if self.nullable else {"nullable": False})}),
        )
        policy: dict[str, Any] = {"unit": {"rows": self.k, "neighbours": "replace_one"}}
        if self.sized:
            policy["size"] = {"exact": self.height}
        rows = tuple((row, db) for db, held in enumerate(self.databases) for row in held)
        code = (Column("g", "VARCHAR", (), {"nullable": False}), Column("w", "INTEGER", (), {"bounds": [0, 2]}))
        once = Table("once", code, {"public": True, "unique": [["g"]]}, ((("'a'", "1"), -1),))
        twice = tuple(((g, w), -1) for g, w in (("'a'", "1"), ("'a'", "2"), ("'b'", "1")))
        tables = [Listed("t", columns, policy, rows), once, Table("twice", code, {"public": True}, twice)]
        return world_of(tables, len(self.databases) - 1, repr(self))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Every two databases of which one has at most k rows of the other replaced."""
        counted = [Counter(d) for d in self.databases]
        for i, j in combinations(range(len(counted)), 2):
            if sum((counted[i] - counted[j]).values()) <= self.k:
                yield i, j


@dataclass(frozen=True, slots=True)
class Claim:
    """Per replaced slot, in the released number's unit: l1, l2², l∞. `reached`: which of them some pair must reach."""

    l1: int
    l2_squared: int
    linf: int
    reached: tuple[str, ...] = ("l1", "l2_squared", "linf")

    def of(self, slots: int) -> Change:
        return Change(0, self.l1 * slots, self.l2_squared * slots**2, self.linf * slots)


def one(d: int, *reached: str) -> Claim:
    """A single number that moves by d."""
    return Claim(d, d * d, d, reached or ("l1", "l2_squared", "linf"))


def most(d: int) -> Claim:
    """A single number that moves by at most d; whether it does is not asked."""
    return Claim(d, d * d, d, ())


def count_pair() -> Claim:
    return Claim(2, 2, 1)


def grouped_sum(bounds: tuple[int, int]) -> Claim:
    B, R = max(map(abs, bounds)), bounds[1] - bounds[0]
    return Claim(2 * B, max(2 * B * B, R * R), max(B, R))


@dataclass(frozen=True, slots=True)
class Case:
    """A query with one component for each claim, and how many slots one replaced row becomes in it."""

    sql: str
    tiny: Tiny
    claims: tuple[Claim, ...]
    slots: int = 1
    known: tuple[int | None, ...] = field(default=())


def _cases() -> dict[str, Case]:
    found = {}
    for k, height in ((1, 2), (2, 2), (2, 3)):
        for bounds in (TWO_SIGNS, POSITIVE):
            B, R = max(map(abs, bounds)), bounds[1] - bounds[0]
            sure, maybe = Tiny(height, k, bounds), Tiny(height, k, bounds, nullable=True)
            unsized = Tiny(height, k, bounds, sized=False)
            spread = ("l1", "l2_squared", "linf") if (k, height) != (2, 2) else ()
            named = {
                "count": Case("SELECT COUNT(*) FROM t", sure, (one(0),), known=(height,)),
                "count of what is never NULL": Case("SELECT COUNT(x) FROM t", sure, (one(0),), known=(height,)),
                "count, size not public": Case("SELECT COUNT(*) FROM t", unsized, (most(1),)),
                "count of what may be NULL": Case("SELECT COUNT(x) FROM t", maybe, (one(1),)),
                "count of some": Case("SELECT COUNT(*) FILTER (WHERE x > 0) FROM t", sure, (one(1),)),
                "count of a filter": Case("SELECT COUNT(*) FROM t WHERE x > 0", sure, (one(1),)),
                "distinct": Case("SELECT COUNT(DISTINCT x) FROM t", sure, (Claim(1, 1, 1, spread),)),
                "distinct per group": Case("SELECT g, COUNT(DISTINCT x) FROM t GROUP BY g", sure, (count_pair(),)),
                "sum": Case("SELECT SUM(x) FROM t", sure, (one(R),)),
                "sum, size not public": Case("SELECT SUM(x) FROM t", unsized, (most(max(B, R)),)),
                "sum of what may be NULL": Case("SELECT SUM(x) FROM t", maybe, (one(max(B, R)),)),
                "sum of some": Case("SELECT SUM(x) FILTER (WHERE g = 'a') FROM t", sure, (one(max(B, R)),)),
                "sum of a filter": Case("SELECT SUM(x) FROM t WHERE g = 'a'", sure, (one(max(B, R)),)),
                "sum of nulled values": Case(
                    f"SELECT SUM(NULLIF(x, {bounds[0]})) FROM t", sure, (one(max(B, R)) if R < B else most(R),)
                ),
                "average": Case("SELECT AVG(x) FROM t", sure, (one(R), one(0)), known=(None, height)),
                "average of what may be NULL": Case("SELECT AVG(x) FROM t", maybe, (one(R), one(1))),
                "counts per group": Case("SELECT g, COUNT(*) FROM t GROUP BY g", sure, (count_pair(),)),
                "counts of a filter": Case("SELECT g, COUNT(*) FROM t WHERE x > 0 GROUP BY g", sure, (count_pair(),)),
                "sums per group": Case("SELECT g, SUM(x) FROM t GROUP BY g", sure, (grouped_sum(bounds),)),
                "averages per group": Case(
                    "SELECT g, AVG(x) FROM t GROUP BY g", sure, (Claim(R, R * R, R), count_pair())
                ),
                "through a projection": Case("SELECT SUM(y) FROM (SELECT x AS y FROM t)", sure, (one(R),)),
                "left join, m = 1": Case(
                    "SELECT COUNT(*), SUM(x) FROM t LEFT JOIN once USING (g)",
                    sure,
                    (one(0), one(R)),
                    known=(height, None),
                ),
                "left join, m = 1, and a condition": Case(
                    "SELECT COUNT(*) FROM t LEFT JOIN once ON t.g = once.g AND w < x", sure, (one(0),), known=(height,)
                ),
                "left join, m = 1, its column": Case(
                    "SELECT COUNT(w), SUM(w) FROM t LEFT JOIN once USING (g)",
                    sure,
                    (one(1), most(2)),
                ),
                "left join, m = 2": Case("SELECT COUNT(*) FROM t LEFT JOIN twice USING (g)", sure, (most(1),), 2),
                "inner join, m = 2": Case(
                    "SELECT COUNT(*), SUM(x) FROM t JOIN twice ON t.g = twice.g AND twice.w > 0 AND t.x > 0",
                    sure,
                    (one(1), most(max(B, R))),
                    2,
                ),
                "inner join, m = 2, groups": Case(
                    "SELECT twice.w, COUNT(*) FROM t JOIN twice USING (g) WHERE twice.w IN (1, 2) GROUP BY twice.w",
                    sure,
                    (Claim(2, 2, 1, ()),),
                    2,
                ),
                "semi join": Case("SELECT COUNT(*) FROM t WHERE g IN (SELECT g FROM once)", sure, (one(1),)),
                "anti join": Case("SELECT COUNT(*) FROM t WHERE g NOT IN (SELECT g FROM once)", sure, (one(1),)),
                "cross join with a table": Case("SELECT COUNT(*) FROM t CROSS JOIN once", sure, (most(1),)),
                "cross join with rows of the query": Case(
                    "SELECT COUNT(*), SUM(x) FROM t CROSS JOIN (VALUES (1), (2)) AS v(i)",
                    sure,
                    (one(0), one(R)),
                    2,
                    known=(2 * height, None),
                ),
                "union all with itself": Case(
                    "SELECT COUNT(*), SUM(x) FROM (SELECT x FROM t UNION ALL SELECT x FROM t)",
                    sure,
                    (one(0), one(R)),
                    2,
                    known=(2 * height, None),
                ),
                "union all with a filter": Case(
                    "SELECT COUNT(*) FROM (SELECT x FROM t UNION ALL SELECT x FROM t WHERE x > 0)",
                    sure,
                    (most(1),),
                    2,
                ),
                "union all with a public table": Case(
                    "SELECT COUNT(*) FROM (SELECT g FROM t UNION ALL SELECT g FROM once)", sure, (most(1),)
                ),
                "union all with rows of the query": Case(
                    f"SELECT COUNT(*), SUM(CLIP(x, {bounds[0]}, {bounds[1]})) "
                    "FROM (SELECT x FROM t UNION ALL SELECT * FROM (VALUES (3)) AS v(i))",
                    sure,
                    (one(0), one(R)),
                    known=(height + 1, None),
                ),
                "distinct rows": Case("SELECT COUNT(*) FROM (SELECT DISTINCT g, x FROM t)", sure, (most(2),)),
                "union": Case("SELECT COUNT(*) FROM (SELECT x FROM t UNION SELECT x FROM t)", sure, (most(4),)),
            }
            found.update({f"{name}, k={k}, n={height}, {bounds}": case for name, case in named.items()})
            # y² is one of 0, 1, 4; less 2 in the middle, each row adds from -2 to 2.
            even, lost = (
                Tiny(height, k, (-2, 2), nullable=nullable, outside=("-9", "0")) for nullable in (False, True)
            )
            squares = {
                "variance": Case(
                    "SELECT VAR_POP(x) FROM t", even, (most(4), one(4), one(0)), known=(None, None, height)
                ),
                "variance of what may be NULL": Case("SELECT STDDEV(x) FROM t", lost, (most(4), one(4), one(1))),
                "variances per group": Case(
                    "SELECT g, VARIANCE(x) FROM t GROUP BY g",
                    even,
                    (Claim(4, 16, 4, ()), Claim(4, 16, 4, ("linf",)), count_pair()),
                ),
            }
            found.update({f"{name}, k={k}, n={height}": case for name, case in squares.items()})
    nan = Tiny(2, 1, POSITIVE, type="DOUBLE")
    found["NaN is no value"] = Case("SELECT SUM(x), COUNT(x) FROM t", nan, (one(5), one(1)))
    flat = Tiny(2, 1, (2, 4))
    always = "CASE WHEN g = 'a' THEN 3 ELSE 3 END"
    found["one possible value"] = Case(
        f"SELECT SUM({always}), AVG({always}) FROM t", flat, (one(0), one(0), one(0)), known=(6, 0, 2)
    )
    found["a constant"] = Case("SELECT SUM(7), COUNT(*) FROM t", flat, (one(0),), known=(2,))
    return found


CASES = _cases()


def _whole(planned: PlannedRelease, plan: Any, store: Store) -> PlannedRelease:
    """The release with statements for all of its numbers, the public ones included."""
    (tagged,) = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    return replace(planned, statements=statements(tagged, store.dialect, store.table_sql, {}))


def vectors_of(
    store: Store, world: World, sql: str, limits: ContributionLimits | None = None
) -> tuple[PlannedRelease, list[Vector]]:
    """The exact integers of a query on every database."""
    plan = plan_of(store, FactStore(store), world, sql, limits)
    (planned,) = plan.releases
    full = _whole(planned, plan, store)
    found = []
    for db in range(world.neighbours + 1):
        store.show(db)
        found.append(exact(full, store))
    store.show(0)
    return planned, found


def compared(planned: PlannedRelease, pairs: Sequence[tuple[int, int]], vectors: Sequence[Vector]) -> list[Change]:
    """The largest change of each component over all pairs; fails where one exceeds what is claimed."""
    number = range(len(planned.measured.measurements))
    best = [Change(0, 0, 0, 0) for _ in number]
    shown = [tuple(sorted(((str(key), tuple(row)) for key, row in v.items()))) for v in vectors]
    first = {v: i for i, v in reversed(list(enumerate(shown)))}
    for i, j in {(first[shown[i]], first[shown[j]]) for i, j in pairs}:
        a, b = vectors[i], vectors[j]
        problems = [*violations(planned, a, b), *violations(planned, b, a)]
        assert not problems, (problems, a, b)
        for c in number:
            moved, most = change(a, b, c), best[c]
            best[c] = Change(
                max(most.l0, moved.l0), max(most.l1, moved.l1), max(most.l2_squared, moved.l2_squared),
                max(most.linf, moved.linf),
            )  # fmt: skip
    return best


def observed(case: Case) -> tuple[tuple[Measurement, ...], list[Change]]:
    """The plan's claims and what the databases show; fails where they exceed a claim or belie a public number."""
    store, world = Store(), case.tiny.world()
    store.load(world)
    try:
        planned, vectors = vectors_of(store, world, case.sql)
    finally:
        store.close()
    for i, m in enumerate(planned.measured.measurements):
        assert (m.known is None) == (m.sensitivity.l1 > 0)
        if m.known is not None:
            assert {v[i] for vector in vectors for v in vector.values()} == {m.known}
    return planned.measured.measurements, compared(planned, list(case.tiny.pairs()), vectors)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "SUM" in case.sql])
def test_replaced_rows_of_shared_sums(name: str) -> None:
    """Sums in whichever form is chosen: what is claimed of their parts is never exceeded."""
    observed(CASES[name])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CASES)
def test_replaced_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claims are as written above, for the plain form of each sum, never exceeded, and reached."""
    monkeypatch.setattr("dpsql.planner.cheapest_form.total_error", None)
    case = CASES[name]
    measurements, best = observed(case)
    assert case.known in ((), tuple(m.known for m in measurements))
    for m, seen, claim in zip(measurements, best, case.claims, strict=True):
        wanted, s = claim.of(case.slots * case.tiny.k), m.sensitivity
        found = (s.l1 * m.unit, s.l2_squared * m.unit**2, s.linf * m.unit)
        assert found == (wanted.l1, wanted.l2_squared, wanted.linf), (m.component, s, wanted)
        for norm in claim.reached:
            assert getattr(seen, norm) == getattr(s, norm), (norm, m.component, seen, s)


@pytest.mark.parametrize("k", [1, 2])
def test_unnested_lists(k: int) -> None:
    """A list cut to two elements makes two slots of a row, and no size stays public."""
    lists = ("[1, 2, 3]", "[1]", "NULL")
    databases = list(combinations_with_replacement(lists, 2))
    rows = tuple(((f"CAST({one} AS INTEGER[])",), db) for db, held in enumerate(databases) for one in held)
    unit = {"unit": {"rows": k, "neighbours": "replace_one"}, "size": {"exact": 2}}
    world = world_of(
        [Listed("t", (Column("l", "INTEGER[]", (), {"max_length": 2}),), unit, rows)], len(databases) - 1, "lists"
    )
    store = Store()
    store.load(world)
    planned, vectors = vectors_of(store, world, "SELECT COUNT(*) FROM t, UNNEST(t.l) AS u(e)")
    store.close()
    counted = [Counter(d) for d in databases]
    pairs = [(i, j) for i, j in combinations(range(len(databases)), 2) if (counted[i] - counted[j]).total() <= k]
    (best,) = compared(planned, pairs, vectors)
    assert best.l1 == planned.measured.measurements[0].sensitivity.l1 == 2 * k


# --- private keys ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "height"), [(1, 2), (2, 2), (2, 3)])
def test_new_keys_of_replaced_rows(k: int, height: int) -> None:
    """Of 2k groups that change at most k are new, and one of them holds at most k rows; some pair shows both."""
    tiny = Tiny(height, k, groups=("'a'", "'b'", "'c'"))
    store, world = Store(), tiny.world(domain=False)
    store.load(world)
    planned, vectors = vectors_of(store, world, "SELECT g, COUNT(*) FROM t GROUP BY g")
    store.close()
    threshold, node = planned.measured.threshold, planned.measured.node
    assert threshold is not None and node.threshold is not None
    assert (threshold.g, threshold.r) == (k, k)
    pairs = list(tiny.pairs())
    compared(planned, pairs, vectors)
    both = [(vectors[i], vectors[j]) for i, j in pairs]
    new = [
        [b[key][node.threshold] for key in b if key not in a]
        for one, other in both
        for a, b in ((one, other), (other, one))
    ]
    assert max(map(len, new)) == k and max(map(max, filter(None, new))) == k
    s = planned.measured.measurements[node.threshold].sensitivity
    assert (s.l0, s.l1, s.l2_squared, s.linf) == (2 * k, 2 * k, 2 * k * k, k)


# --- ids -------------------------------------------------------------------------------------------------------------

FEW, MANY = ("'a'", "'b'", "NULL"), ("'a'", "'b'", "'c'", "NULL")
OTHERS = (("'a'", "1"), ("'a'", "1"), ("'b'", "1"))


@dataclass(frozen=True, slots=True)
class Form:
    """A way of bounding one id's rows, and the databases: every multiset of at most `most` rows of one id."""

    limits: dict[str, Any]
    sql: str
    groups: tuple[str, ...] = FEW
    most: int = 3
    own: ContributionLimits = field(default_factory=ContributionLimits)
    reached: bool = True

    @property
    def databases(self) -> list[tuple[tuple[str, str], ...]]:
        kinds = tuple(product(self.groups, ("-9", "9", "NULL") if self.groups is FEW else ("-9", "9")))
        return [s for n in range(self.most + 1) for s in combinations_with_replacement(kinds, n)]

    def world(self, bounds: tuple[int, int]) -> World:
        """One table of another id's rows and of the replaced one's."""
        held = self.databases
        columns = (
            Column("pid", "BIGINT", ()),
            Column("g", "VARCHAR", (), {"domain": {"values": [g[1:-1] for g in self.groups[:-1]], "null": True}}),
            Column("h", "VARCHAR", ()),
            Column("x", "INTEGER", (), {"bounds": list(bounds)}),
        )
        rows = [(("2", g, g, x), db) for db in range(len(held)) for g, x in OTHERS]
        rows += [(("1", g, g, x), db) for db, one_id in enumerate(held) for g, x in one_id]
        policy = {"unit": {"column": "pid", "neighbours": "replace_one"}, **self.limits}
        return world_of([Listed("t", columns, policy, tuple(rows))], len(held) - 1, f"{self}, {bounds}")


ALL, GROUPED = "SELECT COUNT(*), SUM(x), AVG(x) FROM t", "SELECT g, COUNT(*), SUM(x), AVG(x) FROM t GROUP BY g"
UNITS = "SELECT g, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY g"
PRIVATE = "SELECT h, COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT pid) FROM t GROUP BY h"
C, PROMISED = {"max_rows_per_unit": 2}, {"max_rows_per_unit": {"rows": 2, "enforce": "assume"}}
FORMS = {
    "C": Form(C, ALL),
    "C, groups": Form(C, GROUPED),
    "M": Form({"max_rows_per_group": 2, "max_groups_per_unit": 1}, ALL),
    "M in one group": Form({"max_rows_per_group": 2, "max_groups_per_unit": 1}, UNITS),
    "M and G": Form({"max_rows_per_group": 1, "max_groups_per_unit": 2}, UNITS, MANY),
    # There are but three groups, of which both ids have all.
    "few groups": Form({"max_rows_per_group": 1, "max_groups_per_unit": 3}, UNITS, reached=False),
    "truncated groups": Form({"max_rows_per_group": 2, "max_groups_per_unit": 1}, PRIVATE),
    "private keys, C rows": Form(C, PRIVATE, MANY),
    "promised": Form(PROMISED, UNITS, MANY, most=2),
    "promised, one number": Form(PROMISED, f"{ALL[:-7]}, COUNT(DISTINCT pid), COUNT(DISTINCT x) FROM t", most=2),
    "tightened": Form({"max_rows_per_unit": {"rows": 3, "enforce": "assume"}}, GROUPED, own=ContributionLimits(rows=2)),
    "totals clipped per group": Form(
        {"max_rows_per_group": 2, "max_groups_per_unit": 1},
        "SELECT g, COUNT(*, contribution_bounds_per_group => (0, 1)) AS a, "
        "SUM(x, contribution_bounds_per_group => (-2, 3)) AS b, "
        "SUM(x, contribution_bounds_per_group => (0, 2)) AS c FROM t GROUP BY g",
        reached=False,
    ),
    "totals clipped under C": Form(
        C,
        "SELECT g, SUM(x, contribution_bounds_per_group => (-2, 3)) AS b, "
        "SUM(x, contribution_bounds_per_group => (0, 2)) AS c FROM t GROUP BY g",
        reached=False,
    ),
    "distinct": Form(C, "SELECT COUNT(DISTINCT x) FROM t"),
    "distinct, groups": Form(C, "SELECT g, COUNT(DISTINCT x) FROM t GROUP BY g"),
}


def observed_ids(form: Form, bounds: tuple[int, int]) -> tuple[tuple[Measurement, ...], list[Change]]:
    """As `observed`, for one id's rows and another's."""
    store, world = Store(), form.world(bounds)
    store.load(world)
    try:
        planned, vectors = vectors_of(store, world, form.sql, form.own)
    finally:
        store.close()
    best = compared(planned, list(combinations(range(len(vectors)), 2)), vectors)
    return planned.measured.measurements, best


@pytest.mark.one_in(2)
@pytest.mark.parametrize("bounds", [TWO_SIGNS, pytest.param(POSITIVE, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", FORMS)
def test_replaced_ids(name: str, bounds: tuple[int, int]) -> None:
    """One id's rows for another's: within the claims, and each norm of each component is reached."""
    form = FORMS[name]
    for m, seen in zip(*observed_ids(form, bounds), strict=True):
        s = m.sensitivity
        assert m.component.per_group is not None or seen.linf == s.linf, (m.component, seen, s)
        assert not form.reached or (seen.l1, seen.l2_squared) == (s.l1, s.l2_squared), (m.component, seen, s)


# --- at random -------------------------------------------------------------------------------------------------------


def sized_world(rng: random.Random) -> World:
    """A random world of replaced rows whose size is public."""
    world = row_world(rng, replace_one=True)
    log = world.table("log")
    height = sum(mask & 1 for _, mask in log.rows)
    tables = [t if t is not log else replace(t, policy={**t.policy, "size": {"exact": height}}) for t in world.tables]
    return world_of(tables, world.neighbours, f"{world.description}, size={height}")


@pytest.mark.parametrize("part", range(2))
def test_random_queries_over_replaced_rows(part: int) -> None:
    assert_worthwhile(attack_worlds(sized_world, range(20_000 + part * 10, 20_010 + part * 10)))


@pytest.mark.parametrize("part", range(2))
def test_random_queries_over_replaced_ids(part: int) -> None:
    tally = attack_worlds(lambda rng: id_world(rng, replace_one=True), range(30_000 + part * 8, 30_008 + part * 8))
    assert tally.planned > 0.8 * tally.queries and tally.changed > 0.15 * tally.pairs, tally


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(6))
def test_random_queries_over_replaced_units_thoroughly(part: int) -> None:
    attack_worlds(sized_world, range(40_000 + part * 40, 40_020 + part * 40))
    attack_worlds(lambda rng: id_world(rng, replace_one=True), range(50_000 + part * 40, 50_020 + part * 40))
