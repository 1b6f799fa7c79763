"""The stability table, entry by entry, on all tiny databases: never exceeded, and reached.

For each operator every database of a few rows over two or three values is enumerated, and every two that are neighbours
are compared. The table is written down here once more as numbers; a claim above what some pair reaches fails as well.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from dpsql.core.ir.expressions import Column as PlanColumn
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Equality,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    SetColumn,
    SetKind,
    SetOperation,
    Truncate,
    Unnest,
    Values,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, HUGEINT, INTEGER
from dpsql.core.numbers.cap import Finite
from tests.support.operator_databases import Databases
from tests.support.operator_oracle import Bench, _exactly
from tests.support.random_databases import Column, Row, Store, Table, world_of
from tests.support.random_plans import Plans, call, number

Make = Callable[[Plans], Node]
PUBLIC = (("1", "1"), ("1", "2"), ("2", "1"))
"""The public table p (k, w): two rows of one key, and a third one. The table u has the keys once."""


class Numbered(Table):
    """A table of which a stored row says the number of the state of this table that it belongs to."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        if self.public:
            return super().shown
        (part,) = (c.policy["part"] for c in self.columns if "part" in c.policy)
        return super().shown.replace("((dbs >> CAST($db AS INTEGER)) & 1) = 1", f"dbs = {part}")

    @property
    def entry(self) -> dict[str, Any]:
        found = super().entry
        for column in found["columns"].values():
            column.pop("part", None)
        return found


@dataclass(frozen=True, slots=True)
class Side:
    """All states of a table: every multiset of at most `most` of these rows that keeps the promises.

    unit: the id column, or None for single rows. frequency: (columns, rows) promised. policy: what else is declared.
    """

    kinds: tuple[Row, ...]
    most: int
    unit: str | None = None
    frequency: tuple[tuple[tuple[int, ...], int], ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def states(self) -> list[tuple[Row, ...]]:
        return [
            rows
            for height in range(self.most + 1)
            for rows in combinations_with_replacement(self.kinds, height)
            if all(self._kept(rows, columns, most) for columns, most in self.frequency)
        ]

    @staticmethod
    def _kept(rows: tuple[Row, ...], columns: tuple[int, ...], most: int) -> bool:
        counted = Counter(key for row in rows if "NULL" not in (key := tuple(row[c] for c in columns)))
        return max(counted.values(), default=0) <= most

    def near(self, one: tuple[Row, ...], other: tuple[Row, ...]) -> bool:
        """Whether one row, or all rows of one id, make the difference (and the other has none of them)."""
        a, b = Counter(one), Counter(other)
        gone, come = a - b, b - a
        if self.unit is None:
            return gone.total() + come.total() == 1
        ids = {row[0] for row in (*gone, *come)}
        return len(ids) == 1 and (not gone or not come) and not any(r[0] in ids for r in (one if come else other))


def rows_of(keys: str, values: str) -> tuple[Row, ...]:
    """Rows (k, v); `-` is NULL."""
    return tuple(("NULL" if k == "-" else k, v) for k, v in product(keys, values))


def side(keys: str = "12", values: str = "01", most: int = 2, **policy: Any) -> Side:
    promised = tuple(((0,), p["rows"]) for p in policy.get("max_frequency", ()) if p["enforce"] == "assume")
    return Side(rows_of(keys, values), most, None, promised, policy)


def limited(rows: int, enforce: str, keys: str = "1", values: str = "01", most: int = 2) -> Side:
    """At most this many rows per k: promised, or made true."""
    return side(keys, values, most, max_frequency=[{"columns": ["k"], "rows": rows, "enforce": enforce}])


NOTHING = Side((), 0)


@dataclass(frozen=True, slots=True)
class Case:
    """An operator over all states of a and b, and what the table says for one row of either that differs."""

    make: Make
    a: Side
    claims: Mapping[str, int]
    b: Side = NOTHING


def _named(node: Node, name: str) -> PlanColumn:
    return next(c for c in output_columns(node) if c.name == name)


def joined(kind: JoinKind, left: str, right: str) -> Make:
    def make(plans: Plans) -> Node:
        a, b = plans.scan(left), plans.scan(right)
        if kind is JoinKind.CROSS:
            return Join(kind, a, b)
        return Join(kind, a, b, (Equality(_named(a, "k"), _named(b, "k")),))

    return make


def combined(kind: SetKind, every: bool, left: str, right: str) -> Make:
    def make(plans: Plans) -> Node:
        a, b = plans.scan(left), plans.scan(right)
        column = SetColumn(plans.new("k", INTEGER), _named(a, "k"), _named(b, "k"))
        return SetOperation(kind, every, a, b, (column,))

    return make


def grouped(keys: tuple[str, ...], *calls: str, below: Make = lambda plans: plans.scan("a")) -> Make:
    def make(plans: Plans) -> Node:
        node = below(plans)
        v = call("clip", _named(node, "v"), number(0), number(2)) if "sum" in calls else None
        made = {
            "count": AggregateCall("count", None, plans.new("k", BIGINT)),
            "sum": AggregateCall("sum", v, plans.new("s", HUGEINT)),
        }
        items = tuple(Item(plans.new(k, _named(node, k).type), _named(node, k)) for k in keys)
        return Aggregate(node, items, tuple(made[c] for c in calls))

    return make


def cut(rows: int, drop: bool) -> Make:
    def make(plans: Plans) -> Node:
        a = plans.scan("a")
        return Truncate(a, (_named(a, "k"),), rows, drop)

    return make


def filtered(plans: Plans) -> Node:
    a = plans.scan("a")
    return Filter(a, call("gt", _named(a, "v"), number(0)))


def projected(plans: Plans) -> Node:
    a = plans.scan("a")
    return Project(a, (Item(plans.new("e", BIGINT), call("add", _named(a, "v"), number(1))),))


def unnested(plans: Plans) -> Node:
    lists = plans.scan("lists")
    return Unnest(lists, _named(lists, "l"), 2, plans.new("element", INTEGER))


def sliced(*branches: Make, every: bool = True) -> Make:
    """The UNION of these, by their columns k and v."""

    def make(plans: Plans) -> Node:
        found, *others = [branch(plans) for branch in branches]
        for other in others:
            columns = tuple(SetColumn(plans.new(c, INTEGER), _named(found, c), _named(other, c)) for c in "kv")
            found = SetOperation(SetKind.UNION, every, found, other, columns)
        return found

    return make


def where(value: int | None, below: Make = lambda plans: plans.scan("a"), column: str = "v") -> Make:
    """Rows with this value; None: with any other than 0."""

    def make(plans: Plans) -> Node:
        node = below(plans)
        return Filter(node, call("ne" if value is None else "eq", _named(node, column), number(value or 0)))

    return make


def looked_up(*rows: tuple[int, int]) -> Make:
    """a with partners by k that are written in the query: (k, w)."""

    def make(plans: Plans) -> Node:
        a, key, w = plans.scan("a"), plans.new("k", INTEGER), plans.new("w", INTEGER)
        return Join(INNER, a, Values((key, w), rows), (Equality(_named(a, "k"), key),))

    return make


def itself(kind: JoinKind, column: str = "k", *, right: str = "", residual: bool = False) -> Make:
    """a SEMI or ANTI a on k, or `k IN (SELECT column …)`; right: only rows with a positive value there."""

    def make(plans: Plans) -> Node:
        one, other = plans.scan("a"), plans.scan("a")
        on = (Equality(_named(one, "k"), _named(other, column)),)
        smaller = call("lt", _named(one, "v"), _named(other, "v")) if residual else None
        b = Filter(other, call("gt", _named(other, right), number(0))) if right else other
        return Join(kind, one, b, on, smaller)

    return make


def beside_groups(keys: str, *pairs: tuple[str, str], having: bool = False, residual: bool = False) -> Make:
    """a LEFT JOIN b grouped, on these pairs of columns."""

    def make(plans: Plans) -> Node:
        a, groups = plans.scan("a"), grouped(tuple(keys), "count", below=lambda plans: plans.scan("b"))(plans)
        counted = output_columns(groups)[-1]
        names = (
            {c.name: c for c in output_columns(groups)}
            | {"n": counted}
            | {k.column.name: k.column for k in groups.keys}
        )
        some = call("lt", number(1), counted) if having else None
        on = tuple(Equality(_named(a, x), names[y]) for x, y in pairs)
        below = groups if some is None else Filter(groups, some)
        return Join(LEFT, a, below, on, call("lt", _named(a, "v"), counted) if residual else None)

    return make


INNER, LEFT, FULL, SEMI, ANTI, CROSS = (
    JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI, JoinKind.CROSS,
)  # fmt: skip
two, three = limited(2, "assume"), limited(3, "assume", most=3)
two_each = limited(2, "assume", "12", "0", 4)
once = limited(1, "assume")
cut_two, cut_deep = limited(2, "truncate", most=3), limited(2, "truncate", values="012", most=3)
drop_two = limited(2, "drop", most=3)
drop_one = limited(1, "drop", most=2)
cut_one = limited(1, "truncate", most=2)
plain = side("12-", "01", 2)
PEOPLE = Side(
    tuple(product("12", "12")), 3, "pid", (((0,), 2), ((1,), 2)),
    {"max_rows_per_unit": {"rows": 2, "enforce": "assume"},
     "max_frequency": [{"columns": ["k"], "rows": 2, "enforce": "assume"}]},
)  # fmt: skip
alike = side("1", "0", 3)


def pairs_of(rows: int) -> Side:
    return limited(rows, "assume", "12", "123", 4)


PAIRED = Side(
    rows_of("1", "12"), 4, None, (((0, 1), 2),),
    {"max_frequency": [{"columns": ["k", "v"], "rows": 2, "enforce": "assume"}]},
)  # fmt: skip
LISTS = Side((("[1, 2, 3]",), ("[2]",), ("[]",), ("NULL",), ("[NULL, NULL]",)), 2)

CASES: dict[str, Case] = {
    "filter": Case(filtered, plain, {"a": 1}),
    "project": Case(projected, plain, {"a": 1}),
    "inner join public, m = 2": Case(joined(INNER, "a", "p"), plain, {"a": 2}),
    "inner join public, m = 1": Case(joined(INNER, "a", "u"), plain, {"a": 1}),
    "left join public, m = 2": Case(joined(LEFT, "a", "p"), plain, {"a": 2}),
    "left join public, m = 1": Case(joined(LEFT, "a", "u"), plain, {"a": 1}),
    "public left join": Case(joined(LEFT, "p", "a"), plain, {"a": 4}),
    "full join public, m = 2": Case(joined(FULL, "a", "p"), plain, {"a": 4}),
    "full join public, m = 1": Case(joined(FULL, "u", "a"), plain, {"a": 2}),
    "semi join public": Case(joined(SEMI, "a", "p"), plain, {"a": 1}),
    "anti join public": Case(joined(ANTI, "a", "p"), plain, {"a": 1}),
    "public semi join": Case(joined(SEMI, "p", "a"), plain, {"a": 2}),
    "public anti join": Case(joined(ANTI, "p", "a"), plain, {"a": 2}),
    "cross join public": Case(joined(CROSS, "a", "p"), plain, {"a": 3}),
    # promised frequencies
    "inner join, f = 2, 2": Case(joined(INNER, "a", "b"), two, {"a": 2, "b": 2}, two),
    "inner join, f = 1, 3": Case(joined(INNER, "a", "b"), once, {"a": 3, "b": 1}, three),
    "left join, f = 2, 2": Case(joined(LEFT, "a", "b"), two, {"a": 2, "b": 4}, two),
    "left join, f = 3, 1": Case(joined(LEFT, "a", "b"), three, {"a": 1, "b": 6}, once),
    "full join, f = 2, 2": Case(joined(FULL, "a", "b"), two, {"a": 4, "b": 4}, two),
    "full join, f = 1, 3": Case(joined(FULL, "a", "b"), once, {"a": 6, "b": 2}, three),
    "semi join, f = 2": Case(joined(SEMI, "a", "b"), two, {"a": 1, "b": 2}, side(most=2)),
    "anti join, f = 3": Case(joined(ANTI, "a", "b"), three, {"a": 1, "b": 3}, side(most=2)),
    "rows of ids": Case(joined(INNER, "people", "b"), PEOPLE, {"person": 4, "b": 2}, two),
    "left join of rows of ids": Case(joined(LEFT, "b", "people"), PEOPLE, {"person": 8, "b": 2}, two_each),
    # made true by truncation, by dropping
    "inner join, cut to 2": Case(joined(INNER, "a", "b"), cut_two, {"a": 4, "b": 4}, cut_two),
    "left join, cut to 2": Case(joined(LEFT, "a", "b"), cut_two, {"a": 4, "b": 4}, cut_two),
    "left join, cut to 1": Case(joined(LEFT, "a", "b"), cut_one, {"a": 2, "b": 2}, cut_one),
    "inner join, dropped above 2": Case(joined(INNER, "a", "b"), drop_two, {"a": 4, "b": 4}, drop_two),
    "left join, dropped above 2": Case(joined(LEFT, "a", "b"), drop_two, {"a": 4, "b": 6}, drop_two),
    "inner join, dropped above 1": Case(joined(INNER, "a", "b"), drop_one, {"a": 1, "b": 1}, drop_one),
    "left join, dropped above 1": Case(joined(LEFT, "a", "b"), drop_one, {"a": 1, "b": 2}, drop_one),
    "semi join, cut to 2": Case(joined(SEMI, "a", "b"), cut_deep, {"a": 2, "b": 2}, side("1", "0", 2)),
    "truncate to 1": Case(cut(1, False), side("12-", "01", 3), {"a": 2}),
    "truncate to 2": Case(cut(2, False), side("1-", "012", 3), {"a": 2}),
    "drop above 1": Case(cut(1, True), side("12-", "01", 3), {"a": 1}),
    "drop above 3": Case(cut(3, True), side("1-", "01", 4), {"a": 3}),
    # sets
    **{
        f"{kind.value}{' all' if every else ''}{of}": case
        for kind, every in product(SetKind, (False, True))
        for of, case in {
            "": Case(combined(kind, every, "a", "b"), plain, {"a": 1, "b": 1}, plain),
            " public": Case(combined(kind, every, "a", "p"), plain, {"a": 1}),
            ", public first": Case(combined(kind, every, "p", "a"), plain, {"a": 1}),
        }.items()
    },
    "union all with itself": Case(combined(SetKind.UNION, True, "a", "a"), plain, {"a": 2}),
    # aggregates that stay private
    "group by": Case(grouped(("k",), "count", "sum"), plain, {"a": 2}),
    "group by, only a count": Case(grouped(("k",), "count"), plain, {"a": 2}),
    "no keys": Case(grouped((), "count"), plain, {"a": 2}),
    "no keys, after a join": Case(grouped((), "count", below=joined(INNER, "a", "p")), plain, {"a": 2}),
    "distinct": Case(grouped(("k",)), plain, {"a": 1}),
    "distinct, after a join": Case(grouped(("k", "w"), below=joined(INNER, "a", "p")), plain, {"a": 2}),
    "group by, after a join": Case(grouped(("v", "w"), "count", below=joined(INNER, "a", "p")), plain, {"a": 4}),
    "group by twice": Case(grouped(("k",), "count", below=grouped(("v",), "count")), side("1", "012", 5), {"a": 4}),
    "unnest the first 2": Case(unnested, LISTS, {"lists": 2}),
    # a table and itself
    "semi join with itself, f = 2": Case(itself(SEMI, right="v"), two, {"a": 2}),
    "semi join with itself, f = 3": Case(itself(SEMI, right="v"), three, {"a": 3}),
    "anti join with itself, f = 2": Case(itself(ANTI, residual=True), two, {"a": 2}),
    "anti join with itself, f = 3": Case(itself(ANTI, residual=True), three, {"a": 3}),
    "semi join with another column of itself, f = 2": Case(itself(SEMI, "v"), pairs_of(2), {"a": 3}),
    "anti join with another column of itself, f = 3": Case(itself(ANTI, "v"), pairs_of(3), {"a": 4}),
    # a table and groups
    "left join of groups": Case(beside_groups("k", ("k", "k")), two, {"a": 1, "b": 4}, alike),
    "left join of groups, one partner": Case(beside_groups("k", ("k", "k")), once, {"a": 1, "b": 2}, alike),
    "left join of groups, HAVING": Case(beside_groups("k", ("k", "k"), having=True), two, {"a": 1, "b": 4}, alike),
    "left join of groups, with a condition": Case(
        beside_groups("k", ("k", "k"), residual=True), two, {"a": 1, "b": 4}, alike
    ),
    "left join of groups by a part of their keys": Case(beside_groups("kv", ("k", "k")), two, {"a": 2, "b": 4}, two),
    "left join of groups by their number": Case(
        beside_groups("k", ("k", "k"), ("v", "n")), PAIRED, {"a": 1, "b": 8}, alike
    ),
}  # fmt: skip


def _table(name: str, one: Side, part: str) -> Table:
    columns: tuple[Column, ...] = (
        Column("k", "INTEGER", (), {"part": part}),
        Column("v", "INTEGER", (), {"nullable": False, "bounds": [0, 2]}),
    )
    if name == "lists":
        columns = (Column("l", "INTEGER[]", (), {"max_length": 2, "part": part}),)
    unit: dict[str, Any] = {"rows": 1, "of": name}
    if name == "people":
        columns = (Column("pid", "INTEGER", (), {"nullable": False, "part": part}), Column("k", "INTEGER", (), {}))
        unit = {"of": "person", "column": "pid"}
    rows = tuple((row, number) for number, rows in enumerate(one.states) for row in rows)
    return Numbered(name, columns, {"unit": unit, **one.policy}, rows)


def worst(case: Case) -> tuple[dict[str, Any], Counter[str]]:
    """The claimed stability, and per unit the most rows that differ between any two neighbours."""
    first = "people" if case.a is PEOPLE else "lists" if case.a is LISTS else "a"
    states = case.a.states, case.b.states
    many = len(states[1])
    key = Column("k", "INTEGER", (), {}), Column("w", "INTEGER", (), {})
    tables = [
        _table(first, case.a, f"CAST($db AS INTEGER) // {many}"),
        _table("b", case.b, f"CAST($db AS INTEGER) % {many}"),
        Table("p", key, {"public": True}, tuple((row, -1) for row in PUBLIC)),
        Table("u", key, {"public": True, "unique": [["k"]]}, tuple((row, -1) for row in PUBLIC[1:])),
    ]
    databases = Databases(world_of(tables, 0, "all"), (), False)
    store = Store()
    bench = Bench(store, databases)
    tagged = bench.relation(case.make(Plans(random.Random(0), databases)))
    found = [
        [Counter(map(_exactly, bench.rows(tagged, i * many + j))) for j in range(many)] for i in range(len(states[0]))
    ]
    store.close()
    most: Counter[str] = Counter()

    def compare(unit: str, one: Counter[Any], other: Counter[Any]) -> None:
        most[unit] = max(most[unit], (one - other).total() + (other - one).total())

    left, right = first if first != "people" else "person", "b"
    for i, one in enumerate(states[0]):
        for i2 in range(i):
            if case.a.near(one, states[0][i2]):
                for j in range(many):
                    compare(left, found[i][j], found[i2][j])
    for j, one in enumerate(states[1]):
        for j2 in range(j):
            if case.b.near(one, states[1][j2]):
                for i in range(len(states[0])):
                    compare(right, found[i][j], found[i][j2])
    return dict(tagged.fact.stability), most


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_the_table_is_right_and_tight(name: str) -> None:
    case = CASES[name]
    claimed, most = worst(case)
    assert all(isinstance(cap, Finite) for cap in claimed.values()), claimed
    assert {unit: cap.value for unit, cap in claimed.items()} == case.claims
    assert {unit: most[unit] for unit in claimed} == case.claims, "the claim is wrong, or larger than it need be"
