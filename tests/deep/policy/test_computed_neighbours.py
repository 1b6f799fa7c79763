"""Columns that the policy computes, in random worlds: no neighbour moves an answer by more than the plan claims.

Half of the worlds of ids have ids that are computed, too, each spelled in several ways. What reads other rows is
caught.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.printing.computed import computed_columns, with_columns
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.frontend.bind.expressions.computed import with_computed
from dpsql.service.planning.public_facts import FactStore
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.attacked_worlds import assert_worthwhile
from tests.support.neighbour_oracle import Tally, Violation, attack, random_limits
from tests.support.random_databases import Column, Row, Store, Table, World, id_world, row_world, world_of
from tests.support.random_queries import Name, condition, key, number, random_query

QUERIES = 10
FORMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("DOUBLE", {}), ("DOUBLE", {"bounds": [-2, 5]}), ("INTEGER", {"bounds": [0, 3]}), ("INTEGER", {}),
    ("DECIMAL(9,2)", {"bounds": [0, 2.5]}), ("VARCHAR", {"domain": ["a", "1", "in"]}), ("VARCHAR", {}),
    ("BOOLEAN", {}), ("TINYINT", {"domain": {"values": [0, 1, 7], "null": True}}),
)  # fmt: skip


class Computing(Store):
    """A store whose tables are read with what the policy computes. sql: changes what is printed of it."""

    sql: Callable[[str], str] = staticmethod(lambda sql: sql)

    def load(self, world: World) -> None:
        tables = [replace(t, columns=tuple(c for c in t.columns if "from" not in c.policy)) for t in world.tables]
        super().load(replace(world, tables=tuple(tables)))
        self.computed = computed_columns(with_computed(world.policy, DUCKDB), DUCKDB)

    def table_sql(self, name: str) -> str:
        selected = self.computed.get(name)
        return with_columns(super().table_sql(name), None if selected is None else self.sql(selected))


def computing(rng: random.Random, world: World) -> World:
    """The same world with computed columns, some of them ids."""
    tables, spelled = [], all("column" in t.policy["unit"] for t in world.private) and rng.random() < 0.5
    for table in world.tables:
        if spelled and not table.public:
            table = _with_made_ids(rng, table)
        made = [
            Column(f"made{i}", type_, _POOL, _entry(rng, table, type_, said))
            for i, (type_, said) in enumerate(rng.sample(FORMS, 3))
        ]
        for column in made:
            wider = replace(table, columns=(*table.columns, column))
            try:
                with_computed(world_of([wider], 0, "").policy, DUCKDB)
            except CannotOpen:  # too large, or of a type that is not converted
                continue
            table = wider
        tables.append(table)
    defaults = {"max_keys": 10_000}
    return world_of(tables, world.neighbours, f"{world.description}, computed ids={spelled}", **defaults)


_POOL = ("0",)


def _entry(rng: random.Random, table: Table, type_: str, said: dict[str, Any]) -> dict[str, Any]:
    names = [Name(c.name, c.type, c.bounded, not table.public) for c in table.columns if "from" not in c.policy]
    if type_ == "BOOLEAN":
        text = condition(rng, names)
    elif type_ == "VARCHAR":
        text = key(rng, names)
    else:
        text = number(rng, names)
    return {"from": f"({text})", **said}


def _with_made_ids(rng: random.Random, table: Table) -> Table:
    """Its ids are texts in the data, each in several forms; the policy makes them what they were."""
    column = table.columns[0]
    assert column.name == "pid"
    others = [c for c in table.columns[1:] if c.name != "raw"]
    raw = Column("raw", "VARCHAR", ("'1'",))
    made = Column("pid", column.type, column.pool, {**column.policy, "from": f"CAST(trim(raw) AS {column.type})"})
    rows: list[tuple[Row, int]] = []
    for (one, *rest), mask in table.rows:
        spelled = one
        if one != "NULL":
            (plain,) = [part for part in one.split("'") if part.isdigit()]
            spelled = "'" + rng.choice(("{}", " {}", "{} ", " {} ")).format(plain) + "'"
        rows.append(((spelled, *rest), mask))
    return replace(table, columns=(raw, *others, made), rows=tuple(rows))


def attacked(
    make: Callable[[random.Random], World], seeds: Iterable[int], sql: Callable[[str], str] | None = None
) -> Tally:
    store, tally = Computing(), Tally()
    if sql is not None:
        store.sql = sql  # type: ignore[method-assign]
    for seed in seeds:
        rng = random.Random(seed)
        world = computing(rng, make(rng))
        store.load(world)
        facts = FactStore(store)
        for n in range(QUERIES):
            query, limits = random_query(rng, world), random_limits(rng)
            try:
                attack(store, facts, world, query, tally, limits)
            except AssertionError as error:
                raise type(error)(f"seed {seed}, query {n}: {error}") from error
    store.close()
    return tally


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("make", [id_world, row_world])
def test_no_neighbour_moves_an_answer_by_more_than_is_claimed(
    make: Callable[[random.Random], World], part: int
) -> None:
    tally = attacked(make, range(part * 6, part * 6 + 6))
    assert tally.planned > 0.6 * tally.queries, tally
    assert tally.changed > 0.1 * tally.pairs, tally


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("make", [id_world, row_world])
def test_no_neighbour_moves_an_answer_thoroughly(make: Callable[[random.Random], World], part: int) -> None:
    attacked(make, range(9_000 + part * 30, 9_030 + part * 30))


# --- ids, keys and hops that are computed ----------------------------------------------------------------------------

HOPS = (
    "SELECT COUNT(*), SUM(q) FROM lines", "SELECT kind, COUNT(*) FROM lines GROUP BY kind",
    "SELECT COUNT(*), SUM(q) FROM lines JOIN orders ON ref = code WHERE size > 1",
    "SELECT COUNT(DISTINCT who), COUNT(*) FROM orders", "SELECT SUM(q) FROM orders JOIN lines ON code = ref",
    "SELECT COUNT(DISTINCT who) FROM lines JOIN orders ON ref = code", "SELECT SUM(size) FROM orders",
)  # fmt: skip


ORDERS = tuple(
    Column(name, type_, _POOL, said)
    for name, type_, said in (
        ("raw", "VARCHAR", {}), ("nr", "BIGINT", {}), ("n", "INTEGER", {"bounds": [0, 3]}),
        ("who", "VARCHAR", {"from": "lower(trim(raw))"}), ("code", "VARCHAR", {"from": "'o' || CAST(nr AS varchar)"}),
        ("size", "BIGINT", {"from": "n + 1"}),
    )
)  # fmt: skip
LINES = tuple(
    Column(name, type_, _POOL, said)
    for name, type_, said in (
        ("o", "VARCHAR", {}), ("q", "INTEGER", {"bounds": [0, 3]}), ("ref", "VARCHAR", {"from": "lower(o)"}),
        ("kind", "BOOLEAN", {"from": "q > 1 IS TRUE"}),
    )
)  # fmt: skip


def path_world(rng: random.Random) -> World:
    """Orders of three people, each spelled in several ways, and their lines, which name an order in either case."""
    whole = 0b1111
    orders: list[tuple[Row, int]] = []
    lines: list[tuple[Row, int]] = []
    owner: dict[int, int] = {}
    for nr in range(rng.randrange(8)):
        person = rng.randrange(4)  # the fourth is nobody
        owner[nr] = whole & ~(1 << (person + 1)) if person < 3 else whole
        name = rng.choice((" p{}", "p{} ", "P{}")).format(person)
        orders.append(((f"'{name}'" if person < 3 else "NULL", str(nr), str(rng.randrange(4))), owner[nr]))
    for _ in range(rng.randrange(14)):
        nr = rng.randrange(9)
        lines.append(((f"'{rng.choice('oO')}{nr}'", str(rng.randrange(5))), owner.get(nr, whole)))
    hop = [{"column": "ref", "references": "orders(code)"}]
    tables = [
        Table(
            "orders",
            ORDERS,
            {"unit": {"of": "person", "column": "who"}, "unique": [["code"]], "max_rows_per_unit": rng.randint(1, 3)},
            tuple(orders),
        ),
        Table(
            "lines",
            LINES,
            {"unit": {"of": "person", "path": hop}, "max_rows_per_unit": rng.randint(1, 4)},
            tuple(lines),
        ),
    ]
    return world_of(tables, 3, "a path")


def test_ids_keys_and_hops_may_be_computed() -> None:
    store, tally = Computing(), Tally()
    for seed in range(25):
        world = path_world(random.Random(seed))
        store.load(world)
        for query in HOPS:
            attack(store, FactStore(store), world, query, tally)
    store.close()
    assert not tally.refused and tally.changed > 0.3 * tally.pairs and tally.equal > 0.02 * tally.pairs


# --- broken twins ----------------------------------------------------------------------------------------------------


def small(text: str, said: dict[str, Any], type_: str = "INTEGER") -> Callable[[random.Random], World]:
    """One table, of which one person with five different values comes and goes, beside five others of one row."""

    def make(rng: random.Random) -> World:
        columns = (
            Column("pid", "BIGINT", ("0",)),
            Column("x", "INTEGER", ("0",), {"bounds": [0, 9]}),
            Column("made", type_, ("0",), {"from": text, **said}),
        )
        rows = [(("1", str(x)), 1) for x in range(5)] + [((str(pid), "8"), 3) for pid in range(2, 7)]
        unit = {"unit": {"column": "pid"}, "max_rows_per_unit": 2}
        return world_of([Table("t", columns, unit, tuple(rows))], 1, "small")

    return make


def broken(make: Callable[[random.Random], World], query: str, sql: Callable[[str], str] = lambda sql: sql) -> None:
    store, world = Computing(), make(random.Random(1))
    store.sql = sql  # type: ignore[method-assign]
    store.load(world)
    attack(store, FactStore(store), world, query, Tally())


BARE = ', own."x" AS "made"'
TWINS: dict[str, tuple[Callable[[random.Random], World], str, Callable[[str], str]]] = {
    "it counts other rows": (
        small("x + 0", {"bounds": [0, 9]}), "SELECT COUNT(*) FROM t WHERE made < 6",
        lambda sql: 'own."pid", own."x", CAST(COUNT(*) OVER () AS INTEGER) AS "made"',
    ),
    "it is the number of its row": (
        small("x + 0", {"bounds": [0, 9]}), "SELECT SUM(made) FROM t",
        lambda sql: 'own."pid", own."x", CAST(row_number() OVER (ORDER BY own."pid", own."x") AS INTEGER) AS "made"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_what_is_computed_otherwise_is_caught(name: str) -> None:
    make, query, sql = TWINS[name]
    broken(make, query)
    with pytest.raises(Violation):
        broken(make, query, sql)


@pytest.mark.parametrize("said", [{}, {"bounds": [0, 1]}, {"domain": [0, 1]}])
@pytest.mark.parametrize("query", ["COUNT(DISTINCT made)", "SUM(made)", "made, COUNT(*)", "AVG(made)"])
def test_no_sensitivity_rests_on_what_is_declared_or_analysed_of_it(said: dict[str, Any], query: str) -> None:
    """Also of values that lie outside of what is known of them: sums are clipped, lists of keys and values are cut."""
    group = " GROUP BY made" if query.startswith("made") else ""
    with suppress(Rejected):  # a sum without any bounds
        broken(
            small("CLIP(x, 0, 1)", said), f"SELECT {query} FROM t{group}", lambda sql: sql.rpartition(", ")[0] + BARE
        )


def test_the_worlds_are_worth_an_attack() -> None:
    assert_worthwhile(attacked(id_world, range(70, 76)))
