"""Public keys and finite images bound what one unit can change: on all tiny databases never exceeded, and reached.

For each form every small set of rows of one unit is enumerated. Where units are added or removed, each is compared with
none; where they are replaced, each with each. The claims stand here once more as numbers of rows: the plan has to make
exactly these, some pair has to reach each of them, and none may go beyond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import pytest

from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.planner.plan import Plan
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Change, Vector, change, exact, plan_of, violations
from tests.support.random_databases import Column, Row, Store, Table, World, world_of


class Numbered(Table):
    """A table each row of which says the number of the one database that holds it."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        if self.public:
            return super().shown
        return super().shown.replace("((dbs >> CAST($db AS INTEGER)) & 1) = 1", "dbs = CAST($db AS INTEGER)")


Held = Mapping[str, Sequence[Row]]
"""Table → the rows of one unit there, without its id."""
Norms = tuple[int, int, int]
"""l1, l2² and l∞ in rows (in units of the argument, of a sum)."""

VISITS = {
    "g": Column("g", "VARCHAR", (), {"domain": {"values": ["a", "b"], "null": True}}),
    "k": Column("k", "VARCHAR", (), {"domain": ["a", "b"], "nullable": False}),
    "h": Column("h", "VARCHAR", ()),
    "b": Column("b", "BOOLEAN", ()),
    "x": Column("x", "INTEGER", (), {"bounds": [-2, 3]}),
    "w": Column("w", "VARCHAR", (), {"domain": ["p", "q"]}),
    "s": Column("s", "INTEGER", ()),
    "d": Column("d", "DATE", (), {"bounds": ["2024-01-15", "2024-03-15"]}),
}
PUBLIC = (
    Table(
        "nations", (Column("area", "INTEGER", (), {"nullable": False}), Column("name", "VARCHAR", ())),
        {"public": True, "unique": [["area"]]}, ((("1", "'x'"), -1), (("2", "'y'"), -1)),
    ),
    Table(
        "tongues", (Column("area", "INTEGER", ()), Column("tongue", "VARCHAR", ())),
        {"public": True}, ((("1", "'x'"), -1), (("1", "'y'"), -1), (("2", "'y'"), -1)),
    ),
    Table(
        "shops", (Column("s", "INTEGER", (), {"nullable": False}), Column("area", "INTEGER", ())),
        {"public": True, "unique": [["s"]]}, ((("1", "1"), -1), (("2", "2"), -1), (("3", "1"), -1)),
    ),
)  # fmt: skip
G, B, X, W = ("'a'", "'b'", "NULL"), ("true", "false"), ("-9", "1", "9"), ("'p'", "'q'", "'other'")


@dataclass(frozen=True, slots=True)
class Form:
    """A query over the visits of people, and what it claims where ids are added or removed, and where replaced.

    kinds: what a row may be, as values of `columns`; at most `most` of them, without repetition if `once`, and with
    another first column each if `alone`.
    people: what the unit's row in the table of people may be; none if empty.
    """

    sql: str
    limits: Mapping[str, Any]
    columns: str
    kinds: tuple[Row, ...]
    most: int
    added: tuple[Norms, ...]
    replaced: tuple[Norms, ...]
    once: bool = False
    alone: bool = False
    people: tuple[Row, ...] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def units(self) -> Iterator[Held]:
        """Every unit that there can be, the first without any rows."""
        choose = combinations if self.once else combinations_with_replacement
        for height in range(self.most + 1):
            for rows in choose(self.kinds, height):
                if self.alone and len({row[0] for row in rows}) < len(rows):
                    continue
                for person in self.people or (None,):
                    yield {"visits": rows, "people": () if person is None else (person,)}

    def world(self, neighbours: str) -> tuple[World, int]:
        """All of them, beside the rows of somebody who is always there."""
        unit = {"of": "person", "column": "pid", "neighbours": neighbours}
        columns = tuple(VISITS[c] for c in self.columns)
        rows: dict[str, list[tuple[Row, int]]] = {"visits": [], "people": []}
        units = [{"visits": (), "people": ()}, *self.units]
        for db, held in enumerate(units):
            for table, found in held.items():
                rows[table] += [(("1", *row), db) for row in found]
            # Others have no value of their own that is counted, so that none is counted for them.
            rows["visits"].append((("2", *(_nothing(c) for c in self.columns)), db))
            rows["people"].append((("2", "'f'", "1"), db))
        pid = Column("pid", "BIGINT", (), {"nullable": False})
        sex = Column("sex", "VARCHAR", (), {"domain": ["f", "m"], "nullable": False})
        area = Column("area", "INTEGER", (), {"nullable": False})
        tables = [
            Numbered("visits", (pid, *columns), {"unit": unit, **self.limits, **self.keys}, tuple(rows["visits"])),
            Numbered("people", (pid, sex, area), {"unit": unit, "primary_key": ["pid"]}, tuple(rows["people"])),
            *PUBLIC,
        ]
        return world_of(tables, len(units) - 1, self.sql, **self.defaults), len(units)


def _nothing(column: str) -> str:
    return "'a'" if column == "k" else "NULL"


def rows(*values: Sequence[str]) -> tuple[Row, ...]:
    return tuple(product(*values))


PEOPLE = (("'f'", "1"), ("'m'", "2"))
OF_PEOPLE = "FROM visits JOIN people ON visits.pid = people.pid"
LEAST = "(SELECT pid, MIN(x) AS m FROM visits GROUP BY pid) AS f"
BY_G = "SELECT g, COUNT(DISTINCT pid), COUNT(*) FROM visits GROUP BY g"
FORMS = {
    "C above the keys": Form(
        BY_G, {"max_rows_per_unit": 4}, "g", rows(G), 4,
        ((3, 3, 1), (4, 16, 4)), ((3, 3, 1), (8, 32, 4)),
    ),
    "C below the keys": Form(
        BY_G, {"max_rows_per_unit": 2}, "g", rows(G), 4,
        ((2, 2, 1), (2, 4, 2)), ((3, 3, 1), (4, 8, 2)),
    ),
    "M and G below the keys": Form(
        BY_G, {"max_rows_per_group": 2, "max_groups_per_unit": 2}, "g", rows(G), 5,
        ((2, 2, 1), (4, 8, 2)), ((3, 3, 1), (6, 12, 2)),
    ),
    "M and G above the keys": Form(
        BY_G, {"max_rows_per_group": 2, "max_groups_per_unit": 5}, "g", rows(G), 6,
        ((3, 3, 1), (6, 12, 2)), ((3, 3, 1), (6, 12, 2)),
    ),
    "promised rows": Form(
        BY_G, {"max_rows_per_unit": {"rows": 4, "enforce": "assume"}}, "g", rows(G), 4,
        ((3, 3, 1), (4, 16, 4)), ((3, 3, 1), (8, 32, 4)),
    ),
    "one row in each group": Form(
        "SELECT k, COUNT(*), SUM(x) FROM visits GROUP BY k", {}, "kx", rows(("'a'", "'b'"), X), 2,
        ((2, 2, 1), (6, 18, 3)), ((2, 2, 1), (10, 50, 5)),
        alone=True, keys={"unique": [["pid", "k"]]},
    ),
    "one row in each group, of one kind": Form(
        "SELECT k, COUNT(*) FILTER (WHERE x < 0), COUNT(*) FILTER (WHERE x > 5) FROM visits GROUP BY k", {}, "kx",
        rows(("'a'", "'b'"), X), 2, ((2, 2, 1), (2, 2, 1)), ((2, 2, 1), (2, 2, 1)),
        alone=True, keys={"unique": [["pid", "k"]]},
    ),
    "more groups asked for than there are": Form(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 3) "
        "g, COUNT(DISTINCT pid) FROM visits GROUP BY g", {"max_rows_per_unit": 9}, "g", rows(G), 3,
        ((3, 3, 1),), ((3, 3, 1),),
    ),
    "fewer groups asked for": Form(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) "
        "g, COUNT(DISTINCT pid), COUNT(DISTINCT b) FROM visits GROUP BY g",
        {"max_rows_per_unit": 9}, "gb", rows(G, B), 6,
        ((2, 2, 1), (4, 8, 2)), ((3, 3, 1), (6, 12, 2)), once=True,
    ),
    "a key that is a function of the id": Form(
        "SELECT sex, g, COUNT(DISTINCT visits.pid) FROM visits JOIN people ON visits.pid = people.pid GROUP BY sex, g",
        {"max_rows_per_unit": 9}, "g", rows(G), 3,
        ((3, 3, 1),), ((6, 6, 1),), people=PEOPLE,
    ),
    "a function of a key that is a function of the id": Form(
        "SELECT sex = 'f' AS is_f, g, COUNT(DISTINCT visits.pid) "
        "FROM visits JOIN people ON visits.pid = people.pid GROUP BY is_f, g",
        {"max_rows_per_unit": 9}, "g", rows(G), 3,
        ((3, 3, 1),), ((6, 6, 1),), people=PEOPLE,
    ),
    "found through a unique key": Form(
        f"SELECT name, g, COUNT(DISTINCT visits.pid) {OF_PEOPLE} JOIN nations ON people.area = nations.area "
        "GROUP BY name, g", {"max_rows_per_unit": 9}, "g", rows(G), 3, ((3, 3, 1),), ((6, 6, 1),), people=PEOPLE,
    ),
    "found through a column that equals a function of the id": Form(
        f"SELECT name, g, COUNT(DISTINCT visits.pid) {OF_PEOPLE} "
        "JOIN shops ON visits.s = shops.s AND people.area = shops.area JOIN nations ON shops.area = nations.area "
        "GROUP BY name, g", {"max_rows_per_unit": 9}, "gs", rows(G, ("1", "2")), 6,
        ((3, 3, 1),), ((6, 6, 1),), once=True, people=PEOPLE,
    ),
    "found through a key that repeats": Form(
        f"SELECT tongue, g, COUNT(DISTINCT visits.pid) {OF_PEOPLE} JOIN tongues ON people.area = tongues.area "
        "GROUP BY tongue, g", {"max_rows_per_unit": 9}, "g", rows(G), 3, ((6, 6, 1),), ((6, 6, 1),), people=PEOPLE,
    ),
    "found through a column that differs among an id's rows": Form(
        "SELECT name, g, COUNT(DISTINCT visits.pid) FROM visits JOIN shops ON visits.s = shops.s "
        "JOIN nations ON shops.area = nations.area GROUP BY name, g",
        {"max_rows_per_unit": 9}, "gs", rows(G, ("1", "2")), 6, ((6, 6, 1),), ((6, 6, 1),), once=True,
    ),
    "the least of each id": Form(
        f"SELECT g, m, COUNT(DISTINCT visits.pid) FROM visits JOIN {LEAST} ON visits.pid = f.pid GROUP BY g, m",
        {"max_rows_per_unit": 9}, "gx", rows(G, X), 3, ((3, 3, 1),), ((6, 6, 1),), once=True,
    ),
    "the least of each id, where there is one": Form(
        f"SELECT g, m, COUNT(DISTINCT visits.pid) FROM visits LEFT JOIN {LEAST} ON visits.pid = f.pid GROUP BY g, m",
        {"max_rows_per_unit": 9}, "gx", rows(G, X), 3, ((3, 3, 1),), ((6, 6, 1),), once=True,
    ),
    "the least of each id and group": Form(
        "SELECT visits.g, m, COUNT(DISTINCT visits.pid) FROM visits "
        "JOIN (SELECT pid, g, MIN(x) AS m FROM visits GROUP BY pid, g) AS f ON visits.pid = f.pid GROUP BY visits.g, m",
        {"max_rows_per_unit": 5}, "gx", rows(G, X), 3, ((5, 5, 1),), ((8, 8, 1),), once=True,
    ),
    "a condition that pads some rows of an id": Form(
        f"SELECT m, COUNT(DISTINCT visits.pid) FROM visits LEFT JOIN {LEAST} ON visits.pid = f.pid AND g = 'a' "
        "GROUP BY m", {"max_rows_per_unit": 2}, "gx", rows(G, X), 2, ((2, 2, 1),), ((3, 3, 1),), once=True,
    ),
    "the month of a first day": Form(
        "SELECT month(f) AS m, COUNT(*) FROM (SELECT pid, MIN(d) AS f FROM visits GROUP BY pid) AS v GROUP BY m",
        {"max_rows_per_unit": 9}, "d", rows(("'2024-01-20'", "'2024-02-10'", "'1999-01-01'", "'infinity'", "NULL")), 2,
        ((1, 1, 1),), ((2, 2, 1),),
    ),
    "too many listed, so private": Form(
        "SELECT g, COUNT(DISTINCT pid), COUNT(DISTINCT b) FROM visits GROUP BY g", {"max_rows_per_unit": 2}, "gb",
        rows((*G, "'z'"), B), 3, ((2, 2, 1), (2, 4, 2)), ((3, 3, 1), (4, 8, 2)), once=True,
        defaults={"private_keys": "auto", "max_keys": 2},
    ),
    "a key that is none": Form(
        "SELECT k, g, COUNT(DISTINCT pid) FROM visits GROUP BY k, g",
        {"max_rows_per_unit": 9}, "kg", rows(("'a'", "'b'"), G), 6,
        ((6, 6, 1),), ((6, 6, 1),), once=True,
    ),
    "each set of a rollup": Form(
        "SELECT k, g, COUNT(DISTINCT pid) FROM visits GROUP BY ROLLUP(k, g)",
        {"max_rows_per_unit": 5}, "kg", rows(("'a'", "'b'"), G), 6,
        ((5, 5, 1), (2, 2, 1), (1, 1, 1)), ((6, 6, 1), (2, 2, 1), (1, 1, 1)), once=True,
    ),
    "private beside public keys": Form(
        "SELECT k, h, COUNT(DISTINCT pid) FROM visits GROUP BY k, h",
        {"max_rows_per_unit": 3}, "kh", rows(("'a'", "'b'"), ("'u'", "'v'")), 4,
        ((3, 3, 1),), ((4, 4, 1),), once=True,  # replaced: 6, of which two units have 4 groups here
    ),
    "totals clipped per group": Form(
        "SELECT g, COUNT(*, contribution_bounds_per_group => (0, 1)), SUM(x, contribution_bounds_per_group => (-1, 2)) "
        "FROM visits GROUP BY g", {"max_rows_per_unit": 4}, "gx", rows(G, X), 3,
        ((3, 3, 1), (6, 12, 2)), ((3, 3, 1), (9, 27, 3)),
    ),
    "distinct truth values": Form(
        "SELECT COUNT(DISTINCT b) FROM visits", {"max_rows_per_unit": 4}, "b", rows((*B, "NULL")), 3,
        ((2, 4, 2),), ((2, 4, 2),),
    ),
    "distinct truth values by group, C between": Form(
        "SELECT g, COUNT(DISTINCT b) FROM visits GROUP BY g", {"max_rows_per_unit": 4}, "gb", rows(G, B), 4,
        ((4, 8, 2),), ((6, 12, 2),),
    ),
    "distinct truth values by group, C above": Form(
        "SELECT g, COUNT(DISTINCT b) FROM visits GROUP BY g", {"max_rows_per_unit": 9}, "gb", rows(G, B), 6,
        ((6, 12, 2),), ((6, 12, 2),), once=True,
    ),
    "distinct truth values by group, C below the image": Form(
        "SELECT g, COUNT(DISTINCT b) FROM visits GROUP BY g", {"max_rows_per_unit": 1}, "gb", rows(G, B), 3,
        ((1, 1, 1),), ((2, 2, 1),),
    ),
    "distinct truth values, M and G below": Form(
        "SELECT g, COUNT(DISTINCT b) FROM visits GROUP BY g",
        {"max_rows_per_group": 3, "max_groups_per_unit": 2}, "gb", rows(G, B), 6,
        ((4, 8, 2),), ((6, 12, 2),), once=True,
    ),
    "distinct truth values, promised rows": Form(
        "SELECT g, COUNT(DISTINCT b) FROM visits GROUP BY g",
        {"max_rows_per_unit": {"rows": 6, "enforce": "assume"}}, "gb", rows(G, B), 6,
        ((6, 12, 2),), ((6, 12, 2),), once=True,
    ),
    "distinct truth values of a private key": Form(
        "SELECT h, COUNT(DISTINCT b) FROM visits GROUP BY h", {"max_rows_per_unit": 3}, "hb", rows(G, B), 4,
        ((3, 5, 2), (3, 3, 1)), ((5, 9, 2), (3, 3, 1)), once=True,
    ),
    "distinct remainders": Form(
        "SELECT COUNT(DISTINCT x % 2) FROM visits", {"max_rows_per_unit": 9}, "x", rows(("-9", "-2", "1", "8")), 4,
        ((3, 9, 3),), ((3, 9, 3),), once=True,
    ),
    "distinct clipped numbers": Form(
        "SELECT COUNT(DISTINCT CLIP(x, 0, 1)) FROM visits", {"max_rows_per_unit": 9}, "x", rows(X), 3,
        ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "distinct values of a list in WHERE": Form(
        "SELECT COUNT(DISTINCT w) FROM visits WHERE w IN ('p', 'q')", {"max_rows_per_unit": 9}, "w", rows(W), 3,
        ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "distinct values of a list in FILTER": Form(
        "SELECT COUNT(DISTINCT UPPER(w)) FILTER (WHERE w = 'p' OR w = 'other') FROM visits",
        {"max_rows_per_unit": 9}, "w", rows(W), 3, ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "distinct values of a declared domain, which is no image": Form(
        "SELECT COUNT(DISTINCT w) FROM visits", {"max_rows_per_unit": 3}, "w", rows(W), 3,
        ((3, 9, 3),), ((3, 9, 3),), once=True,
    ),
    "distinct values of declared bounds, which are no image": Form(
        "SELECT COUNT(DISTINCT x) FROM visits", {"max_rows_per_unit": 7}, "x", rows(tuple(map(str, range(5, 12)))), 7,
        ((7, 49, 7),), ((7, 49, 7),), once=True,
    ),
    "distinct branches": Form(
        "SELECT COUNT(DISTINCT CASE WHEN x < 0 THEN 'low' WHEN x > 5 THEN 'high' END) FROM visits",
        {"max_rows_per_unit": 9}, "x", rows(X), 3, ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "distinct values of a column that has few": Form(
        "SELECT COUNT(DISTINCT s) FROM (SELECT pid, COALESCE(b, x > 5) AS s FROM visits) AS v",
        {"max_rows_per_unit": 9}, "bx", rows((*B, "NULL"), ("1", "9")), 3, ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "two columns in one text": Form(
        "SELECT COUNT(DISTINCT CAST(b AS VARCHAR) || COALESCE(w, '-')) FROM visits WHERE w = 'p' OR w IS NULL",
        {"max_rows_per_unit": 9}, "bw", rows(B, ("'p'", "NULL")), 4, ((4, 16, 4),), ((4, 16, 4),), once=True,
    ),
    "rows of DISTINCT in a slice of two values": Form(
        "SELECT COUNT(*) FILTER (WHERE w IN ('p', 'other')) FROM (SELECT DISTINCT pid, w FROM visits) AS v",
        {"max_rows_per_unit": 9}, "w", rows(W), 3, ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "rows of DISTINCT by a declared domain, which rows may break": Form(
        "SELECT COUNT(*) FROM (SELECT DISTINCT pid, w FROM visits WHERE w IS NOT NULL) AS v",
        {"max_rows_per_unit": 9}, "w", rows(W), 3, ((2, 4, 2),), ((2, 4, 2),), once=True,
    ),
    "a FULL join of one row each": Form(
        f"SELECT COUNT(*), SUM(m) FROM people FULL JOIN {LEAST} ON people.pid = f.pid", {"max_rows_per_unit": 9}, "x",
        rows(("-9", "9")), 2, ((1, 1, 1), (3, 9, 3)), ((1, 1, 1), (5, 25, 5)),
        people=PEOPLE,
    ),
    "a FULL join of one row each, by group": Form(
        f"SELECT sex, COUNT(*) FROM people FULL JOIN {LEAST} ON people.pid = f.pid GROUP BY sex",
        {"max_rows_per_unit": 9}, "x", rows(("-1", "3")), 2, ((1, 1, 1),), ((2, 2, 1),), people=PEOPLE,
    ),
}  # fmt: skip
LOOSE = {
    "private beside public keys", "distinct truth values of a private key", "too many listed, so private",
    "the least of each id and group", "a condition that pads some rows of an id",
}  # fmt: skip
"""Replaced units have too few groups in these databases to reach what is claimed for any number of them."""


@dataclass(frozen=True, slots=True)
class Slots:
    """A query over a table of which k rows come or go, or are replaced, and its claims.

    kinds: what a row may be; databases have up to `height` rows, or exactly so many where rows are replaced.
    """

    sql: str
    k: int
    columns: str
    kinds: tuple[Row, ...]
    height: int
    added: tuple[Norms, ...]
    replaced: tuple[Norms, ...]

    def databases(self, neighbours: str) -> list[tuple[Row, ...]]:
        heights = [self.height] if neighbours == "replace_one" else range(self.height + 1)
        return [rows for height in heights for rows in combinations_with_replacement(self.kinds, height)]

    def pairs(self, neighbours: str) -> Iterator[tuple[int, int]]:
        counted = [Counter(rows) for rows in self.databases(neighbours)]
        for i, j in combinations(range(len(counted)), 2):
            gone, come = (counted[i] - counted[j]).total(), (counted[j] - counted[i]).total()
            if (gone if neighbours == "replace_one" else gone + come) <= self.k:
                yield i, j

    def world(self, neighbours: str) -> tuple[World, int]:
        databases = self.databases(neighbours)
        stored = tuple((row, db) for db, held in enumerate(databases) for row in held)
        unit = {"rows": self.k, "neighbours": neighbours}
        visits = Numbered("visits", tuple(VISITS[c] for c in self.columns), {"unit": unit}, stored)
        return world_of([visits], len(databases) - 1, self.sql), len(databases)


SLOTS = {
    "distinct truth values": Slots(
        "SELECT COUNT(DISTINCT b) FROM visits", 3, "b", rows((*B, "NULL")), 4, ((2, 4, 2),), ((2, 4, 2),),
    ),
    "distinct truth values by group": Slots(
        "SELECT g, COUNT(DISTINCT b), COUNT(*) FROM visits GROUP BY g", 2, "gb", rows(G, B), 2,
        ((2, 4, 2), (2, 4, 2)), ((4, 8, 2), (4, 8, 2)),
    ),
    "one key": Slots(
        "SELECT g, COUNT(DISTINCT b), COUNT(*) FROM visits WHERE g IN ('a') GROUP BY g", 3, "gb", rows(G, B), 3,
        ((2, 4, 2), (3, 9, 3)), ((2, 4, 2), (3, 9, 3)),
    ),
    "sums of one key": Slots(
        "SELECT g, SUM(x) FROM visits WHERE g IN ('a') GROUP BY g", 1, "gx", rows(G, X), 2,
        ((3, 9, 3),), ((5, 25, 5),),
    ),
}  # fmt: skip


def seen(form: Form | Slots, neighbours: str) -> tuple[Plan, list[list[Vector]]]:
    """The plan, and the vectors of each of its releases: without the unit, then for every unit."""
    world, count = form.world(neighbours)
    store = Store()
    store.load(world)
    plan = plan_of(store, FactStore(store), world, form.sql)
    found: list[list[Vector]] = [[] for _ in plan.releases]
    for db in range(count):
        store.show(db)
        for at, planned in enumerate(plan.releases):
            found[at].append(exact(planned, store))
    store.close()
    return plan, found


def neighbouring(vectors: list[Vector], neighbours: str) -> Iterator[tuple[Vector, Vector]]:
    """What an id's coming changes, or what changes where one's rows replace another's; nothing twice."""
    each = [vectors[0], *(v for i, v in enumerate(vectors[1:], 1) if v not in vectors[:i])]
    return combinations(each, 2) if neighbours == "replace_one" else ((each[0], v) for v in each[1:])


def furthest(plan: Plan, releases: Iterable[Iterable[tuple[Vector, Vector]]]) -> tuple[list[Norms], list[str]]:
    """The largest norms of each component over all pairs of neighbours, in rows; and claims that a pair breaks."""
    best, wrong = [], []
    for planned, pairs in zip(plan.releases, releases, strict=True):
        most = [Change(0, 0, 0, 0) for _ in planned.measured.measurements]
        for one, other in pairs:
            wrong += violations(planned, one, other)
            for i, known in enumerate(most):
                now = change(one, other, i)
                most[i] = Change(*(max(getattr(known, n), getattr(now, n)) for n in Change.__slots__))
        for m, found in zip(planned.measured.measurements, most, strict=True):
            weight = m.component.weight
            best.append((-(-found.l1 // weight), -(-found.l2_squared // weight**2), -(-found.linf // weight)))
    return best, wrong


def claims(plan: Plan) -> list[Norms]:
    """What the plan claims, in rows."""

    def rows_of(s: Sensitivity, weight: int) -> Norms:
        l2_squared = s.l2_squared / weight**2
        assert s.l1 % weight == s.linf % weight == 0 and l2_squared.denominator == 1
        return s.l1 // weight, int(l2_squared), s.linf // weight

    return [rows_of(m.sensitivity, m.component.weight) for r in plan.releases for m in r.measured.measurements]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", FORMS)
def test_claims_of_ids(name: str, neighbours: str) -> None:
    form = FORMS[name]
    plan, vectors = seen(form, neighbours)
    wanted = form.added if neighbours == "add_remove" else form.replaced
    best, wrong = furthest(plan, [neighbouring(each, neighbours) for each in vectors])
    assert not wrong, wrong[:3]
    assert sorted(best) == sorted(wanted)
    if neighbours == "add_remove" or name not in LOOSE:
        assert sorted(claims(plan)) == sorted(wanted)


def test_private_keys_are_among_those_listed() -> None:
    """As many units as there are may have another: a public list that is too long forbids it all the same."""
    form = FORMS["too many listed, so private"]
    plan, (vectors,) = seen(form, "add_remove")
    assert plan.releases[0].measured.threshold is not None
    assert {key for vector in vectors for key in vector} == {("a",), ("b",), (None,)}


def test_every_id_has_a_first_month() -> None:
    """What lies outside of the declared bounds is clipped, and an id without any day is in the group of NULL."""
    _, (vectors,) = seen(FORMS["the month of a first day"], "add_remove")
    assert {key for vector in vectors for key in vector} == {(1,), (2,), (3,), (None,)}
    assert {sum(row[0] for row in vector.values()) for vector in vectors[2:]} == {2}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", SLOTS)
def test_claims_of_rows(name: str, neighbours: str) -> None:
    form = SLOTS[name]
    plan, (vectors,) = seen(form, neighbours)
    wanted = form.added if neighbours == "add_remove" else form.replaced
    best, wrong = furthest(plan, [[(vectors[i], vectors[j]) for i, j in form.pairs(neighbours)]])
    assert not wrong, wrong[:3]
    assert best == list(wanted) == claims(plan)
