"""FROM clauses mean what DuckDB says.

Random ones over public tables: the answer is DuckDB's own, with its names and their order. Nothing private is read, so
that no noise stands between the two; what DuckDB answers and we refuse is counted. UNNEST over private rows: without
noise, the answer is DuckDB's to the same text over lists that are cut to the declared length.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pytest

from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.nodes import Filter, JoinKind, Node
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.frontend.bind.from_clause import joins as bind_join
from dpsql.planner.postprocessing.run import post_process
from dpsql.service.planning.public_facts import FactStore
from tests.deep.frontend.test_meaning import _differences
from tests.deep.frontend.test_meaning import _ours as private_answer
from tests.support.neighbour_oracle import plan_of
from tests.support.random_databases import Column, Store, Table, World, world_of

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
        return [c.name for c in plan.columns], list(post_process(plan.post, [], store, scratch).rows)
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


def _as_filter(kind: JoinKind, left: Node, right: Node, terms: Sequence[Expr], span: Any) -> Node:
    joined = JOIN_ON(kind, left, right, terms, span)
    return joined if joined.residual is None else Filter(replace(joined, residual=None), joined.residual)


JOIN_ON = bind_join.join_on
MUTANTS: dict[str, tuple[str, Any, Any, str]] = {
    "a comma binds as tight as a RIGHT JOIN": (
        "keeps_right", bind_join.WrittenJoin, property(lambda written: False),
        "SELECT * FROM c AS p, a AS q RIGHT JOIN b AS r ON q.x = r.x",
    ),
    "USING means the left column under RIGHT JOIN": (
        "_merged", bind_join, lambda entries, meant: entries, "SELECT x FROM a AS q RIGHT JOIN b AS r USING (x)",
    ),
    "a condition of one side is a filter": (
        "join_on", bind_join, _as_filter, "SELECT * FROM a AS q LEFT JOIN b AS r ON q.x = r.x AND q.y > 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_binder_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, owner, wrong, sql = MUTANTS[name]
    data = {
        "a": [("1", "1", "1"), ("2", "2", "2")],
        "b": [("1", "5", "5"), ("3", "6", "6")],
        "c": [("7", "7", "'p'"), ("8", "8", "'q'")],
    }
    tables = [Table(n, SCHEMA[n], {"public": True}, tuple((row, -1) for row in rows)) for n, rows in data.items()]
    store, world = Store(), world_of(tables, 0, "from")
    store.load(world)
    for table in data:
        store.connection.execute(f"ALTER TABLE {table} DROP COLUMN dbs")
    theirs = _sorted(store.connection.execute(sql).fetchall())
    assert _sorted(_ours(store, FactStore(store), world, sql)[1]) == theirs
    monkeypatch.setattr(owner, attribute, wrong)
    assert _sorted(_ours(store, FactStore(store), world, sql)[1]) != theirs
    store.connection.close()


MOST = 3


def _posts(rng: random.Random, unit: dict[str, Any]) -> World:
    def listed(pool: Sequence[str]) -> str:
        return rng.choice(("NULL", "[]", *(f"[{', '.join(rng.choices(pool, k=k))}]" for k in (1, 2, 3, 5, 6))))

    tags, sizes = ("'a'", "'b'", "NULL", "'c'"), ("1", "2", "NULL", "9")
    rows = tuple(
        ((str(rng.randint(1, 4)), rng.choice(tags), listed(tags), listed(sizes)), -1) for _ in range(rng.randint(3, 9))
    )
    columns = (
        Column("author", "BIGINT", (), {"nullable": False}),
        Column("title", "VARCHAR", (), {"domain": {"values": ["a", "b", "c"], "null": True}}),
        Column("tags", "VARCHAR[]", (), {"max_length": MOST}),
        Column("sizes", "INTEGER[]", (), {"max_length": MOST}),
    )
    words = (Column("word", "VARCHAR", ()), Column("topic", "VARCHAR", ()))
    known = tuple(((f"'{w}'", rng.choice(("'p'", "'q'", "NULL"))), -1) for w in "abx")
    policy = {"public": True, "unique": [["word"]]}
    return world_of([Table("posts", columns, {"unit": unit}, rows), Table("words", words, policy, known)], 0, "lists")


LISTS = [
    "SELECT COUNT(*), COUNT(tag), COUNT(*) FILTER (WHERE tag = 'a') FROM posts, UNNEST(tags) AS u(tag)",
    "SELECT SUM(CLIP(size, 0, 5)), AVG(CLIP(size, -1, 9)) FROM posts CROSS JOIN UNNEST(sizes) AS u(size)",
    "SELECT COUNT(*) FROM posts JOIN UNNEST(tags) AS u(tag) ON tag = title",
    "SELECT title, COUNT(*) FROM posts JOIN UNNEST(sizes) ON TRUE GROUP BY title HAVING COUNT(*) > 0",
    "SELECT word, COUNT(tag) FROM posts, UNNEST(tags) AS u(tag) JOIN words ON tag = word "
    "GROUP BY 1 HAVING COUNT(*) > 0",
    "SELECT topic, COUNT(*) FROM posts, UNNEST(tags) AS u(tag) LEFT JOIN words ON tag = word "
    "GROUP BY 1 HAVING COUNT(*) > 0",
    "SELECT COUNT(*) FROM (posts CROSS JOIN UNNEST(tags) AS u(tag)) AS q JOIN words ON q.tag = word AND q.author > 1",
    "SELECT COUNT(*), COUNT(DISTINCT size) FROM posts, UNNEST(tags) AS u(tag), UNNEST(sizes) AS v(size)",
    "SELECT COUNT(size) FROM (SELECT sizes AS s, title AS t FROM posts WHERE author < 4) AS q, UNNEST(s) AS v(size)",
    "SELECT COUNT(tag) FROM (SELECT unnest(tags) AS tag, author FROM posts WHERE author < 4) AS q WHERE tag <> 'b'",
    "SELECT COUNT(*) FROM (SELECT unnest(sizes) AS size, title FROM posts) AS q SEMI JOIN words ON title = word",
    "SELECT unnest(tags) AS tag, COUNT(*) FROM posts GROUP BY tag HAVING COUNT(*) > 0",
    "SELECT COUNT(*) FROM posts ANTI JOIN words ON title = word",
    "SELECT COUNT(*), COUNT(topic) FROM posts LEFT JOIN words ON title = word AND author > 2",
    "SELECT COUNT(*), COUNT(author) FROM words LEFT JOIN posts ON title = word AND author > 2",
    "SELECT COUNT(*), COUNT(author), COUNT(word) FROM posts FULL JOIN words ON title = word AND author > 2",
    "SELECT COUNT(*) FROM posts RIGHT JOIN (VALUES ('a', 1), ('z', 2)) AS v(title, n) USING (title)",
]


@pytest.mark.parametrize("unit", [{"rows": 2}, {"of": "person", "column": "author"}], ids=["rows", "ids"])
def test_private_joins_and_lists_mean_what_duckdb_says(unit: dict[str, Any]) -> None:
    rng, compared, refused = random.Random(11), 0, set()
    limits = {} if "rows" in unit else {"max_rows_per_unit": {"rows": 1_000, "enforce": "assume"}}
    store = Store()
    store.connection.execute("CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END")
    for _ in range(5):
        world = _posts(rng, unit)
        if limits:
            posts, words = world.tables
            posts = Table("posts", posts.columns, {**posts.policy, **limits}, posts.rows)
            world = world_of([posts, words], 0, "lists")
        store.load(world)
        store.connection.execute(
            "CREATE OR REPLACE VIEW cut AS "
            f"SELECT author, title, tags[1:{MOST}] AS tags, sizes[1:{MOST}] AS sizes FROM posts"
        )
        for sql in LISTS:
            try:
                ours = private_answer(store, world, sql)
            except Rejected as refusal:
                refused.add((sql, *(d.code for d in refusal.diagnostics)))
                continue
            theirs = store.connection.execute(sql.replace("posts", "cut")).fetchall()
            assert not list(_differences(ours, theirs, False)), f"{sql}\nours:   {ours}\ntheirs: {theirs}"
            compared += 1
    store.connection.close()
    assert {code for _, *codes in refused for code in codes} <= ({"DP220"} if limits else set()), refused
    assert compared >= 5 * (len(LISTS) - (3 if limits else 0))
