"""Grouped answers over public keys, without noise, are DuckDB's own: no list loses a group that the data has.

The data lie inside all declared domains and bounds, so that a key which DuckDB finds and we do not is one that a
condition, a join or a function's rule took away wrongly. Keys that only we have must count nothing.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.analysis.context import Context
from dpsql.core.ir.expressions import Call, Expr
from dpsql.core.ir.nodes import Join, JoinKind, key_sources
from dpsql.core.values.meaning import Env
from dpsql.core.values.value import Domain
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.group_keys import compute, key_tables, public, ranges
from dpsql.planner.group_keys import row_origins as rows
from dpsql.planner.group_keys.compute import Row
from dpsql.planner.group_keys.key_tables import KeyTable
from dpsql.planner.group_keys.row_origins import Padding, RelationRows
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import exact, plan_of
from tests.support.random_databases import Column, Store, Table, World, world_of

DAYS = ("DATE '2024-01-05'", "DATE '2024-02-29'", "DATE '2024-03-31'", "DATE '2024-01-01'")
TIMES = ("TIMESTAMP '2024-01-05 10:30:00'", "TIMESTAMP '2024-03-01 00:00:00'", "TIMESTAMP '2024-02-29 23:59:59.999999'")

PRIVATE = (
    Column("city", "VARCHAR", ("'a'", "'b'", "'c'"), {"domain": ["a", "b", "c"]}),
    Column("town", "VARCHAR", ("'a'", "'b'", "'d'", "'e'")),
    Column("phone", "VARCHAR", ("'13-1'", "'31-2'", "'13-9'", "'44-0'", "''")),
    Column("age", "INTEGER", ("0", "1", "2", "3"), {"bounds": [0, 3]}),
    Column("big", "BIGINT", ("0", "5", "9", "10", "1000000"), {"bounds": [0, 10**9]}),
    Column("open", "BIGINT", ("-7", "0", "3", "4", "10", "9000000000")),
    Column("flag", "BOOLEAN", ("true", "false")),
    Column("sure", "BOOLEAN", ("true", "false"), {"nullable": False}),
    Column("day", "DATE", DAYS, {"bounds": ["2024-01-01", "2024-03-31"]}),
    Column("free", "DATE", (*DAYS, "DATE '1900-01-01'")),
    Column("at", "TIMESTAMP", TIMES, {"bounds": ["2024-01-01", "2024-03-31"]}),
    Column("fee", "DECIMAL(9,2)", ("0", "1.25", "3.00", "10.50")),
)  # fmt: skip
MEMBERS = (Column("pid", "INTEGER", ("1", "2", "3"), {"nullable": False}), *PRIVATE)
LIMIT = {"max_rows_per_unit": 1_000}
TOWNS = (
    Column("town", "VARCHAR", ("'a'", "'b'", "'c'", "'z'")),
    Column("zone", "INTEGER", ("1", "2", "3")),
    Column("size", "VARCHAR", ("'big'", "'small'")),
)
ZONES = (Column("zone", "INTEGER", ("1", "2", "4")), Column("land", "VARCHAR", ("'x'", "'y'")))

OWN = (
    "t.city", "t.town", "t.age", "t.big", "t.open", "t.flag", "t.sure", "t.day", "t.free", "t.fee", "t.age % 2",
    "t.age * 2 + 1", "t.city = 'a'", "CASE WHEN t.age > 1 THEN 'old' WHEN t.age = 0 THEN 'new' END",
    "COALESCE(t.city, 'none')", "NULLIF(t.city, 'a')", "UPPER(t.city)", "substring(t.phone, 1, 2)",
    "LENGTH(t.phone)", "t.open % 3", "t.open + 1", "year(t.day)", "month(t.day)", "month(t.free)", "year(t.free)",
    "date_trunc('month', t.day)", "date_trunc('month', t.free)", "date_trunc('day', t.at)", "hour(t.at)",
    "strftime(t.day, '%Y-%m')", "CAST(t.at AS DATE)", "CAST(t.age AS VARCHAR)", "t.flag AND t.sure", "t.city || '!'",
    "t.city || CAST(t.age AS VARCHAR)", "t.age + month(t.day)", "CASE WHEN t.flag THEN t.city ELSE t.town END",
    "t.town IN ('a', 'e')", "t.free - DATE '2024-01-01'",
    "dayofweek(t.free)", "CLIP(t.open, 0, 3)", "t.big // 100000", "extract(quarter FROM t.at)",
    "GREATEST(t.age, 2)", "if(t.sure, t.age, NULL)", "CAST(strftime(t.day, '%m') AS INTEGER)",
    "t.day > DATE '2024-02-01'",
)  # fmt: skip
OWN_CONDITIONS = (
    "t.city IN ('a', 'b')", "t.town = 'a'", "t.town IN ('a', 'd', 'q')", "substring(t.phone, 1, 2) IN ('13', '31')",
    "t.age BETWEEN 1 AND 2", "t.big BETWEEN 5 AND 10", "t.open BETWEEN 0 AND 10", "t.open > -8 AND 4 > t.open",
    "t.open >= 2.5 AND t.open <= 4.5", "t.flag", "NOT t.flag", "t.sure OR t.age = 1",
    "t.day >= DATE '2024-02-01'", "t.free BETWEEN DATE '2024-01-02' AND DATE '2024-02-29'",
    "t.free >= DATE '2024-01-01' AND t.free < DATE '2024-03-31'", "year(t.free) = 2024",
    "year(t.free) BETWEEN 2023 AND 2024 AND month(t.free) IN (1, 2)", "t.at < TIMESTAMP '2024-03-01 00:00:00'",
    "(t.town = 'a' AND t.age = 1) OR (t.town = 'b' AND t.age = 2)", "t.town = 'a' OR t.town IS NULL",
    "t.city IS NOT NULL", "t.town IS NULL", "t.city <> 'a'", "t.fee IN (1.25, 3, 7.777)", "t.age = t.open",
    "t.city = t.town", "LENGTH(t.phone) < 4", "t.open % 3 = 1", "t.age > 1 OR t.city = 'c'", "t.open IN (3, 4, NULL)",
    "t.city LIKE 'a%'", "COALESCE(t.town, 'e') = 'e'", "t.town IS NOT DISTINCT FROM 'a'",
    "t.city = 'a' AND t.city = 'b'",
    "t.open = 3.0", "NOT (t.town = 'a')", "t.town IN ('a', 'b') AND t.town IN ('b', 'c', 'd')",
    "t.open = 4 OR t.open < 3", "t.open BETWEEN 0 AND 3 OR t.open BETWEEN 4 AND 10", "year(t.free) IN (2024, 1900)",
)  # fmt: skip
PUBLIC = {
    "p": ("p.town", "p.zone", "p.size", "UPPER(p.size)", "p.zone * 2", "COALESCE(p.size, 'none')", "p.town || p.size"),
    "q": ("q.town", "q.zone", "q.size"),
    "z": ("z.zone", "z.land", "z.land || CAST(z.zone AS VARCHAR)"),
    "k": ("k.town", "k.word"),
    "s": ("s.town", "s.n", "s.n % 2"),
    "d": ("d.town", "d.one"),
    "w": ("w.a", "w.b", "UPPER(w.a)"),
}
PUBLIC_CONDITIONS = {
    "p": ("p.size = 'big'", "p.zone < 3", "p.town IS NOT NULL", "p.size IS NULL", "p.size = 'big' OR t.age = 1"),
    "q": ("q.size = 'small'", "q.zone = p.zone",
        "(p.size = 'big' AND q.size = 'small') OR (p.zone = 1 AND q.zone = 2)"),
    "z": ("z.land = 'x'", "z.land IS NULL"),
    "k": ("k.word = 'u'",),
    "d": ("d.town <> 'a'",),
    "w": ("w.a = 'a'", "w.b > 1", "w.a IS NULL"),
}  # fmt: skip
VALUES = "(VALUES ('a', 'u'), ('b', 'v'), ('q', 'u'), (NULL, 'u')) AS k(town, word)"
SOURCES = (
    ("visits AS t", ""),
    ("visits AS t JOIN towns AS p ON t.town = p.town", "p"),
    ("visits AS t JOIN towns AS p ON t.town = p.town AND p.size = 'big'", "p"),
    ("visits AS t LEFT JOIN towns AS p ON t.town = p.town", "p"),
    ("visits AS t LEFT JOIN towns AS p ON t.town = p.town AND p.size = 'big' AND t.age > 0", "p"),
    ("towns AS p LEFT JOIN visits AS t ON t.town = p.town", "p"),
    ("towns AS p LEFT JOIN visits AS t ON t.town = p.town AND p.size = 'big' AND t.town IN ('a', 'b')", "p"),
    ("visits AS t RIGHT JOIN towns AS p ON t.town = p.town", "p"),
    ("visits AS t FULL JOIN towns AS p ON t.town = p.town", "p"),
    ("visits AS t JOIN towns AS p ON t.town = p.town JOIN zones AS z ON p.zone = z.zone", "pz"),
    ("visits AS t, towns AS p, zones AS z WHERE t.town = p.town AND p.zone = z.zone", "pz"),
    ("visits AS t LEFT JOIN towns AS p ON t.town = p.town LEFT JOIN zones AS z ON p.zone = z.zone", "pz"),
    ("visits AS t LEFT JOIN (towns AS p JOIN zones AS z ON p.zone = z.zone) ON t.town = p.town", "pz"),
    ("visits AS t JOIN towns AS p ON t.town = p.town LEFT JOIN zones AS z ON p.zone = z.zone AND z.land = 'x'", "pz"),
    ("visits AS t JOIN towns AS p ON t.town = p.town JOIN towns AS q ON t.city = q.town", "pq"),
    ("visits AS t JOIN towns AS p ON t.town = p.town LEFT JOIN towns AS q ON p.zone = q.zone", "pq"),
    (f"visits AS t JOIN {VALUES} ON t.town = k.town", "k"),
    (f"visits AS t RIGHT JOIN {VALUES} ON t.town = k.town", "k"),
    (f"visits AS t CROSS JOIN {VALUES}", "k"),
    (f"visits AS t LEFT JOIN {VALUES} ON t.town = k.town AND k.word = 'u'", "k"),
    ("visits AS t SEMI JOIN towns AS p ON t.town = p.town AND t.age > 0", ""),
    ("visits AS t ANTI JOIN towns AS p ON t.town = p.town AND t.age > 0", ""),
    ("(SELECT * FROM visits WHERE town IN (SELECT town FROM towns WHERE size = 'big')) AS t", ""),
    ("(SELECT * FROM visits WHERE EXISTS (SELECT 1 FROM towns WHERE towns.town = visits.town AND zone = 1)) AS t", ""),
    ("(SELECT * FROM visits WHERE age = 1 UNION ALL SELECT * FROM visits WHERE city = 'a') AS t", ""),
    ("(SELECT * FROM visits UNION SELECT * FROM visits WHERE town = 'a') AS t", ""),
    ("(SELECT * FROM visits EXCEPT SELECT * FROM visits WHERE town = 'a') AS t", ""),
    ("(SELECT town AS a, age AS b FROM visits WHERE town = 'a' UNION ALL SELECT city, zone FROM visits JOIN zones"
     " ON age = zone) AS w", "w"),
    ("(SELECT city AS a, age AS b FROM visits WHERE age > 1 INTERSECT SELECT town, zone FROM towns) AS w", "w"),
    ("(SELECT 'a' AS a, 1 AS b FROM visits UNION ALL SELECT size, 7 FROM visits JOIN towns USING (town)) AS w", "w"),
    ("(SELECT DISTINCT * FROM visits WHERE open BETWEEN 0 AND 4) AS t", ""),
    ("visits AS t JOIN (SELECT DISTINCT town, 1 AS one FROM towns WHERE size = 'big') AS d ON t.town = d.town", "d"),
    ("visits AS t LEFT JOIN (SELECT DISTINCT town, 1 AS one FROM towns) AS d ON t.town = d.town", "d"),
    ("visits AS t LEFT JOIN (SELECT town, COALESCE(size, 'none') AS one FROM towns) AS d ON t.town = d.town", "d"),
)  # fmt: skip


OUTSIDE = {
    "city": "'z'", "age": "77", "big": "-1", "day": "DATE '2030-05-05'", "at": "TIMESTAMP '1999-12-31 12:00:00'",
}  # fmt: skip


def tables(rng: random.Random, strange: bool = False) -> list[Table]:
    """Data with NULLs, inside all bounds and domains unless they are `strange`."""
    private = tuple(
        replace(c, pool=(*c.pool, OUTSIDE[c.name])) if strange and c.name in OUTSIDE else c for c in PRIVATE
    )

    def rows(of: Sequence[Column], height: int) -> tuple[tuple[tuple[str, ...], int], ...]:
        return tuple((tuple(c.value(rng) for c in of), -1) for _ in range(height))

    return [
        Table("visits", PRIVATE, {"unit": {"rows": 1}}, rows(private, rng.randint(15, 40))),
        Table("members", MEMBERS, {"unit": {"of": "member", "column": "pid"}, **LIMIT}, rows(MEMBERS, 30)),
        Table("towns", TOWNS, {"public": True}, rows(TOWNS, rng.randint(1, 7))),
        Table("zones", ZONES, {"public": True}, rows(ZONES, rng.randint(1, 5))),
    ]


def random_query(rng: random.Random) -> str:
    """A grouped count over one of the sources."""
    source, aliases = rng.choice(SOURCES)
    own = " t" in source or source.startswith("visits")
    mine = "w" not in aliases
    keys = [*(OWN if mine else ()), *(k for a in aliases for k in PUBLIC[a] * 4)]
    chosen = list(dict.fromkeys(rng.sample(keys, rng.choice((1, 1, 1, 2, 2, 3)))))
    conditions = [*(OWN_CONDITIONS if mine else ()), *(c for a in aliases for c in PUBLIC_CONDITIONS[a] * 3)]
    picked = rng.sample(conditions, min(len(conditions), rng.choice((0, 0, 1, 1, 2, 3))))
    where = " AND ".join(f"({c})" for c in picked)
    assert own or aliases
    if where:
        source += f" AND {where}" if " WHERE t." in source else f" WHERE {where}"
    listed = ", ".join(f"{k} AS k{i}" for i, k in enumerate(chosen))
    count, by = "COUNT(*)", ", ".join(str(i + 1) for i in range(len(chosen)))
    if " AS t" in source and mine and rng.random() < 0.3:
        source, count = source.replace("visits", "members"), "COUNT(t.pid)"
    return f"SELECT {listed}, {count} AS n FROM {source} GROUP BY {by}"


def compare(store: Store, facts: FactStore, world: World, sql: str, strange: bool = False) -> str | None:
    """What kind of keys the plan has, after comparing its exact answer with the engine's; None if it was refused."""
    try:
        plan = plan_of(store, facts, world, sql)
    except Rejected as refusal:
        codes = {d.code for d in refusal.diagnostics}
        assert codes <= {"DP101", "DP106", "DP110", "DP117", "DP210", "DP220", "DP301", "DP302"}, (sql, refusal)
        return None
    (planned,) = plan.releases
    ours = {_plain(key): numbers[0] for key, numbers in exact(planned, store).items()}
    theirs = {_plain(row[:-1]): row[-1] for row in store.connection.execute(sql).fetchall()}
    sources = key_sources(planned.measured.node)
    weight = planned.measured.node.components[0].weight
    found = {key: n / weight for key, n in ours.items() if n}
    wanted = {key: n for key, n in theirs.items() if n}
    if strange:  # rows outside are left out, and no other
        wanted = {key: n for key, n in wanted.items() if key in ours}
    shown = f"{sql}\nours:   {found}\ntheirs: {theirs}\nlist:   {list(ours)[:50]}"
    assert found == wanted, shown
    assert strange or sources is None or theirs.keys() <= ours.keys(), f"an empty group is not shown: {shown}"
    return "private" if sources is None else "covered" if all(s.covers for s in sources) else "listed"


def _plain(key: Sequence[Any]) -> tuple[Any, ...]:
    """date_trunc of a DATE is a DATE here and a TIMESTAMP in the engine."""
    return tuple(
        v.date() if isinstance(v, dt.datetime) and v.time() == dt.time() else int(v) if type(v) is bool else v
        for v in key
    )


def run(seed: int, worlds: int, strange: bool = False) -> Counter[str | None]:
    """Compare random queries over random worlds; count what kinds of keys there were."""
    rng = random.Random(seed)
    store = Store()
    store.connection.execute("CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END")
    seen: Counter[str | None] = Counter()
    try:
        for _ in range(worlds):
            world = world_of(tables(rng, strange), 0, "keys")
            store.load(world)
            facts = FactStore(store)
            for _ in range(40):
                seen[compare(store, facts, world, random_query(rng), strange)] += 1
    finally:
        store.close()
    return seen


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in (3, 4))])
def test_no_group_is_lost(seed: int) -> None:
    seen = run(seed, 4)
    assert seen["covered"] > 10 and seen["listed"] > 10 and seen["private"] > 3, seen


def test_rows_outside_of_the_domains_are_left_out() -> None:
    """And whatever shares a group with others is counted in it."""
    assert run(99, 4, strange=True)["listed"] > 20


def _like_semi(node: Join, ctx: Context) -> RelationRows:
    return JOIN(replace(node, kind=JoinKind.SEMI) if node.kind is JoinKind.ANTI else node, ctx)


def _on_for_padded_rows(side: RelationRows) -> tuple[RelationRows, frozenset[Padding]]:
    return side, frozenset()


def _first(found: Sequence[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    return found[0]


def _one_side(a: Domain, b: Domain) -> Domain:
    return a


def _as_and(term: Expr, env: Env, known: frozenset[int]) -> Callable[[Row], bool]:
    return POSSIBLE(
        replace(term, function="and") if isinstance(term, Call) and term.function == "or" else term, env, known
    )


def _first_rows(a: KeyTable, b: KeyTable, most: int) -> KeyTable | None:
    found = JOINED(a, b, most)
    return found if found is None else replace(found, rows=found.rows[:1])


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "anti joins are taken for semi joins": (rows, "_join", _like_semi),
    "padded rows are forgotten": (rows, "_padded", _on_for_padded_rows),
    "only the first alternative counts": (ranges, "_ends_of_any", _first),
    "a union has the keys of its left side": (public, "united", _one_side),
    "OR is taken for AND": (compute, "_possible", _as_and),
    "a join keeps one row": (key_tables, "joined", _first_rows),
}
JOIN, POSSIBLE, JOINED = rows._join, compute._possible, key_tables.joined


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_mistakes_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[name])
    with pytest.raises(AssertionError, match="ours:"):
        for seed in range(12):
            run(seed, 2)
