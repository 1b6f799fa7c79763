"""Random FROM clauses over public tables: the answer is DuckDB's own, with its names and their order.

Nothing private is read, so that no noise stands between the two. What DuckDB answers and we refuse is counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.engine.scratch import Scratch
from dpsql.release.post import post_process
from dpsql.session.facts import FactStore
from tests.property.databases import Column, Store, Table, World, world_of
from tests.property.neighbours import plan_of

SMALL = ("1", "2", "3")


def _column(name: str, type_: str = "INTEGER") -> Column:
    return Column(name, type_, SMALL if type_ != "VARCHAR" else ("'p'", "'q'"))


SCHEMA = {
    "a": (_column("x"), _column("y"), _column("z")),
    "b": (_column("x"), _column("w"), _column("y", "BIGINT")),
    "c": (_column("x", "BIGINT"), _column("v"), _column("s", "VARCHAR")),
    "d": (_column("k"), _column("s", "VARCHAR")),
    "e": (_column("y"), _column("k")),
}


def _world(rng: random.Random) -> World:
    tables = []
    for name, columns in SCHEMA.items():
        rows = tuple((tuple(c.value(rng) for c in columns), -1) for _ in range(rng.choice((0, 2, 3, 4, 4, 5))))
        tables.append(Table(name, columns, {"public": True}, rows))
    return world_of(tables, 0, "from")


@dataclass(frozen=True, slots=True)
class Item:
    """A FROM item's text, and the names that can be written behind it: (relation, column, is a number)."""

    sql: str
    names: tuple[tuple[str, str, bool], ...]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(c for _, c, _ in self.names))


class Clause:
    """Makes one FROM clause. Most are meaningful: names are written as the generator knows them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def table(self) -> Item:
        name, alias = self.rng.choice(tuple(SCHEMA)), self.alias()
        columns = [(c.name, c.type != "VARCHAR") for c in SCHEMA[name]]
        shape = self.rng.random()
        if shape < 0.1:
            renamed = [(f"n{self.rng.randint(1, 2)}", columns[0][1]), *columns[1:]]
            return self._named(f"{name} AS {alias}({renamed[0][0]})", alias, renamed)
        if shape < 0.2:
            listed = self.rng.sample(columns, self.rng.randint(1, len(columns)))
            select = f"SELECT {', '.join(c for c, _ in listed)} FROM {name}"
            where = self.rng.choice(("", " WHERE x = 1", " WHERE y IS NOT NULL")) if name in ("a", "b") else ""
            return self._named(f"({select}{where}) AS {alias}", alias, listed)
        if shape < 0.3:
            rows = ", ".join(
                f"({self.rng.choice((*SMALL, 'NULL'))}, {self.rng.choice(('1', '5000000000', '-1'))})"
                for _ in range(self.rng.randint(1, 3))
            )
            return self._named(f"(VALUES (1, 2), {rows}) AS {alias}(x, q)", alias, [("x", True), ("q", True)])
        return self._named(f"{name} AS {alias}" if self.rng.random() < 0.5 else f"{name} {alias}", alias, columns)

    def _named(self, sql: str, alias: str, columns: Sequence[tuple[str, bool]]) -> Item:
        return Item(sql, tuple((alias, c, number) for c, number in columns))

    def item(self, depth: int) -> Item:
        if depth <= 0 or self.rng.random() < 0.7:
            return self.table()
        inner = self.joined(depth - 1)
        if self.rng.random() < 0.7:
            return Item(f"({inner.sql})", inner.names)
        alias = self.alias()
        return self._named(f"({inner.sql}) AS {alias}", alias, list({c: (c, n) for _, c, n in inner.names}.values()))

    def joined(self, depth: int) -> Item:
        found = self.item(depth)
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            found = self.join(found, self.item(depth))
        return found

    def join(self, left: Item, right: Item) -> Item:
        kind = self.rng.choice(("", "INNER", "LEFT", "LEFT OUTER", "RIGHT", "FULL", "FULL OUTER", "SEMI", "ANTI"))
        if kind in ("SEMI", "ANTI") and right.sql.startswith("("):
            # After a SEMI join with a bracket that has a USING of its own, DuckDB forgets what USING merged before.
            right = self.table()
        names = left.names if kind in ("SEMI", "ANTI") else left.names + right.names
        common = [c for c in left.columns if c in right.columns]
        shape = self.rng.random()
        if shape < 0.08 and not kind:
            return Item(f"{left.sql} CROSS JOIN {right.sql}", names)
        if shape < 0.25 and common:
            return Item(f"{left.sql} NATURAL {kind} JOIN {right.sql}", names)
        if shape < 0.55 and common:
            using = self.rng.sample(common, self.rng.randint(1, len(common)))
            return Item(f"{left.sql} {kind} JOIN {right.sql} USING ({', '.join(using)})", names)
        return Item(f"{left.sql} {kind} JOIN {right.sql} ON {self.condition(left.names, right.names)}", names)

    def condition(self, left: Sequence[tuple[str, str, bool]], right: Sequence[tuple[str, str, bool]]) -> str:
        def pick(names: Sequence[tuple[str, str, bool]]) -> tuple[str, bool]:
            relation, column, number = self.rng.choice(names)
            return (f"{relation}.{column}" if self.rng.random() < 0.95 else column), number

        terms = []
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            (a, number), (b, other) = pick(left), pick(right)
            roll = self.rng.random()
            if roll < 0.6 and number == other:
                terms.append(f"{a} = {b}" if self.rng.random() < 0.5 else f"{b} = {a}")
            elif roll < 0.7 and number and other:
                terms.append(self.rng.choice((f"{a} < {b}", f"{a} + 1 = {b}", f"{a} <> {b}")))
            elif roll < 0.9:
                side, number = self.rng.choice(((a, number), (b, other)))
                terms.append(f"{side} > 1" if number else f"{side} = 'p'")
            else:
                terms.append(self.rng.choice(("TRUE", f"{a} IS NULL", f"({b} IS NOT NULL OR {a} IS NULL)")))
        return " AND ".join(terms)

    def query(self) -> str:
        groups = [
            self.joined(2) if self.rng.random() < 0.8 else self.table() for _ in range(self.rng.choice((1, 1, 2)))
        ]
        names = [n for g in groups for n in g.names]
        shape, where = self.rng.random(), ""
        if self.rng.random() < 0.3:
            relation, column, number = self.rng.choice(names)
            where = f" WHERE {relation}.{column} {'>= 2' if number else '<> chr(112)'}".replace("chr(112)", "'p'")
        if shape < 0.6:
            listed = "*"
        elif shape < 0.75:
            listed = ", ".join(f"{r}.*" for r in self.rng.sample(sorted({r for r, _, _ in names}), 1))
        else:
            listed = ", ".join(f"{r}.{c}" if self.rng.random() < 0.6 else c for r, c, _ in self.rng.choices(names, k=3))
        return f"SELECT {listed} FROM {', '.join(g.sql for g in groups)}{where}"


def _ours(store: Store, facts: FactStore, world: World, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    plan = plan_of(store, facts, world, sql)
    assert not plan.releases
    scratch = Scratch()
    try:
        return [c.name for c in plan.columns], list(post_process(plan, [], store, scratch).rows)
    finally:
        scratch.close()


def _sorted(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(v is None, str(float(v) if isinstance(v, int | float) else v)) for v in row])


def _loaded(rng: random.Random) -> tuple[Store, World]:
    store, world = Store(), _world(rng)
    store.load(world)
    for name in SCHEMA:
        store.connection.execute(f"ALTER TABLE {name} DROP COLUMN dbs")  # NATURAL and * must not see it
    return store, world


@pytest.mark.parametrize("seed", range(5))
def test_from_means_what_duckdb_says(seed: int) -> None:
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for _ in range(3):
        store, world = _loaded(rng)
        facts = FactStore(store)
        for _ in range(40):
            sql = Clause(rng).query()
            try:
                theirs = store.connection.execute(sql)
                names, rows = [d[0] for d in theirs.description], theirs.fetchmany(5_001)
            except duckdb.Error:
                names, rows = None, []
            if len(rows) > 5_000:
                continue
            try:
                ours = _ours(store, facts, world, sql)
            except Rejected as refusal:
                codes = {d.code for d in refusal.diagnostics}
                assert codes <= {"DP102", "DP103", "DP104", "DP106", "DP116"}, (sql, refusal)
                outcomes["both refuse" if names is None else "only we refuse"] += 1
                continue
            assert names is not None, f"DuckDB refuses {sql}"
            assert ours[0] == names, sql
            assert _sorted(ours[1]) == _sorted(rows), sql
            outcomes["rows" if rows else "no rows"] += 1
            kinds.update(k for k in ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "USING", "NATURAL", "VALUES") if k in sql)
        store.connection.close()
    answered = outcomes["rows"] + outcomes["no rows"]
    assert answered > 60 and outcomes["rows"] > 25, outcomes
    assert outcomes["only we refuse"] < answered / 5, outcomes
    assert min(kinds[k] for k in ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "USING", "NATURAL", "VALUES")) > 2, kinds
