"""Subqueries over public tables, through the whole pipeline: row by row what DuckDB says to the user's text.

A scalar subquery neither multiplies nor drops rows; IN, NOT IN and ANY follow SQL's logic of NULL; of no rows COUNT is
0 and every other aggregate NULL. The tables are tiny, full of NULLs and repeated values, and sometimes empty.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.planner.postprocessing.run import post_process
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import plan_of
from tests.support.random_databases import Column, Store, Table, World, world_of

TABLES = ("a", "b", "c")
NUMBERS = ("k", "x", "n")


def _world(rng: random.Random) -> World:
    columns = (
        Column("k", "INTEGER", ("1", "2", "3", "NULL")),
        Column("x", "INTEGER", ("0", "1", "2", "NULL", "NULL")),
        Column("n", "INTEGER", ("1", "2", "4"), {"nullable": False}),
        Column("s", "VARCHAR", ("'p'", "'q'", "NULL")),
    )

    def rows(height: int) -> tuple[tuple[tuple[str, ...], int], ...]:
        return tuple((tuple(c.value(rng) for c in columns), -1) for _ in range(height))

    tables = [Table(t, columns, {"public": True}, rows(rng.choice((0, 1, 3, 6)))) for t in TABLES[1:]]
    tables.append(Table("a", columns, {"public": True}, rows(rng.randint(1, 7))))
    return world_of(tables, 0, "subqueries")


class Queries:
    """Random queries; `depth` bounds the nesting, aliases are unique in a query."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.used = rng, 0

    def alias(self) -> str:
        self.used += 1
        return f"t{self.used}"

    def number(self, t: str) -> str:
        return self.rng.choice((f"{t}.k", f"{t}.x", f"{t}.n", f"{t}.n", f"({t}.x + {t}.n)", f"({t}.k - 1)"))

    def local(self, t: str) -> str:
        """A condition on one table."""
        n = self.number(t)
        return self.rng.choice(
            (f"{n} > 1", f"{n} IS NOT NULL", f"{n} <> 2", f"({n} = 1 OR {t}.s = 'p')", f"{t}.s = 'q'", f"{n} IN (1, 4)")
        )

    def correlated(self, t: str, outer: str) -> str:
        """An equality between an inner and an outer expression of the same type."""
        pair = [f"{t}.s", f"{outer}.s"] if self.rng.random() < 0.2 else [self.number(t), self.number(outer)]
        self.rng.shuffle(pair)
        return " = ".join(pair)

    def where(self, terms: list[str]) -> str:
        self.rng.shuffle(terms)
        return f" WHERE {' AND '.join(terms)}" if terms else ""

    def source(self, t: str) -> str:
        table = self.rng.choice(TABLES)
        shape = self.rng.random()
        if shape < 0.1:
            return f"(SELECT k, x, n, s FROM {table} WHERE {self.local(table)}) AS {t}"
        if shape < 0.15:
            return f"(SELECT DISTINCT * FROM {table}) AS {t}"
        return f"{table} AS {t}"

    def inner_terms(self, t: str, depth: int) -> list[str]:
        terms = [self.local(t)] if self.rng.random() < 0.4 else []
        return [*terms, self.condition(t, depth - 1)] if depth > 0 and self.rng.random() < 0.25 else terms

    def condition(self, outer: str, depth: int) -> str:
        """IN, EXISTS or ANY over a subquery, negated or not, correlated or not."""
        t, rng = self.alias(), self.rng
        source, terms = self.source(t), self.inner_terms(t, depth)
        if rng.random() < 0.45:
            terms.append(self.correlated(t, outer))
            if rng.random() < 0.4:
                terms.append(f"{self.number(t)} {rng.choice(('<', '<>', '>='))} {self.number(outer)}")
        where = self.where(terms)
        tail = rng.choice(("", "", "", " ORDER BY 1"))
        shape = rng.random()
        if shape < 0.3:
            listed = rng.choice(("1", "*", f"{t}.x", f"DISTINCT {t}.k", f"{outer}.n"))
            core = f"EXISTS (SELECT {listed} FROM {source}{where}{rng.choice(('', ' LIMIT 1'))})"
            return rng.choice((core, f"NOT {core}", f"NOT ({core})"))
        x = rng.choice((self.number(outer), self.number(outer), "1", "NULL"))
        if shape < 0.4:
            pair = f"({x}, {outer}.s) {rng.choice(('IN', 'NOT IN'))}"
            alone = self.where(self.inner_terms(t, 0))  # DuckDB knows no correlated IN of several columns
            return f"{pair} (SELECT {self.number(t)}, {t}.s FROM {source}{alone}{tail})"
        if shape < 0.5 and "<" not in where and ">=" not in where:
            inner = f"SELECT {rng.choice(('MAX', 'MIN', 'COUNT'))}({t}.x) FROM {source}{where} GROUP BY {t}.n"
        elif shape < 0.55:
            other = rng.choice(TABLES)
            inner = f"SELECT {t}.k FROM {source}{self.where(self.inner_terms(t, 0))} UNION SELECT x FROM {other}"
        else:
            inner = f"SELECT {rng.choice(('', '', 'DISTINCT '))}{self.number(t)} FROM {source}{where}{tail}"
        if shape < 0.85:
            core = f"{x} {rng.choice(('IN', 'NOT IN'))} ({inner})"
        else:
            core = f"{x} {rng.choice(('=', '<>', '<', '>='))} ANY ({inner})"
        return rng.choice((core, core, f"NOT ({core})"))

    def scalar(self, outer: str, depth: int) -> str:
        """One aggregate, or arithmetic over several."""
        t, rng = self.alias(), self.rng
        source, terms = self.source(t), self.inner_terms(t, depth)
        if rng.random() < 0.6 and outer:
            terms += [self.correlated(t, outer) for _ in range(rng.choice((1, 1, 2)))]
        if depth > 0 and rng.random() < 0.2:
            terms.append(f"{self.number(t)} <= {self.scalar(t, depth - 1)}")
        x = self.number(t)
        call = rng.choice(
            (
                "COUNT(*)", f"COUNT({x})", f"SUM({x})", f"MAX({x})", f"MIN({x})", f"COUNT(DISTINCT {x})",
                f"COUNT(*) + COALESCE(MAX({x}), 9)", f"SUM({x}) * 2 - COUNT({x})", f"COUNT(*) FILTER (WHERE {x} > 1)",
                f"CASE WHEN COUNT(*) = 0 THEN 7 ELSE MIN({x}) END",
            )
        )  # fmt: skip
        if depth > 0 and rng.random() < 0.2:
            call = f"{call} + {self.scalar('', depth - 1)}"
        return f"(SELECT {call} FROM {source}{self.where(terms)})"

    def query(self) -> tuple[str, bool]:
        """(query, whether its rows are in order)."""
        rng, o = self.rng, "o"
        depth = rng.choice((0, 1, 1, 2))
        source = rng.choice(("a AS o", "a AS o", "b AS o", "(SELECT * FROM a) AS o"))
        terms = [self.local(o)] if rng.random() < 0.4 else []
        terms += [self.condition(o, depth) for _ in range(rng.choice((0, 1, 1, 2)))]
        if rng.random() < 0.4:
            terms.append(f"{self.number(o)} {rng.choice(('<', '>=', '<>'))} {self.scalar(o, depth)}")
        where = self.where(terms)
        shape = rng.random()
        if shape < 0.5:
            listed = ["o.k", "o.x", "o.n", "o.s"] + [self.scalar(o, depth) for _ in range(rng.choice((0, 1, 2)))]
            return f"SELECT {', '.join(listed)} FROM {source}{where}", False
        if shape < 0.6:
            order = f"{self.scalar(o, depth)} DESC NULLS LAST, o.k NULLS FIRST, o.x NULLS FIRST, o.n, o.s NULLS LAST"
            return f"SELECT o.k, o.x, o.n, o.s FROM {source}{where} ORDER BY {order}", True
        if shape < 0.8:
            inside, beside = self.scalar(o, depth), self.scalar("", depth)
            having = f" HAVING COUNT(*) >= {self.scalar('', depth)}" if rng.random() < 0.4 else ""
            return f"SELECT COUNT(*), SUM(o.n + {inside}), {beside} FROM {source}{where}{having}", True
        grouped = [f"o.k = {self.rng.choice(('t0.k', 't0.n'))}" if rng.random() < 0.6 else "t0.n > 1"]
        value = f"(SELECT SUM(t0.x) + COUNT(*) FROM b AS t0 WHERE {' AND '.join(grouped)})"
        test = rng.choice((f"{value} IS NOT NULL", "o.k NOT IN (SELECT x FROM c)", "o.k IN (SELECT k FROM b)", "TRUE"))
        return f"SELECT o.k, COUNT(*), {value} FROM {source}{where} GROUP BY o.k HAVING {test}", False


def _ours(store: Store, world: World, sql: str) -> list[tuple[Any, ...]]:
    plan = plan_of(store, FactStore(store), world, sql)
    scratch = Scratch()
    rows = post_process(plan.post, [], store, scratch).rows
    scratch.close()
    return list(rows)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return a is b or bool(a == b)
    return math.isclose(float(a), float(b), rel_tol=1e-9)


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(v is None, str(v) if isinstance(v, str) else float(v or 0)) for v in row])


def _compare(store: Store, world: World, sql: str, ordered: bool = False) -> int:
    """The number of rows, equal to DuckDB's."""
    theirs = store.connection.execute(sql).fetchall()
    ours = _ours(store, world, sql)
    if not ordered:
        ours, theirs = _sorted(ours), _sorted(theirs)
    same = len(ours) == len(theirs) and all(
        _same(a, b) for mine, yours in zip(ours, theirs, strict=True) for a, b in zip(mine, yours, strict=True)
    )
    assert same, f"{sql}\nours:   {ours}\ntheirs: {theirs}"
    return len(theirs)


@pytest.mark.parametrize("seed", range(4))
def test_random_subqueries_mean_what_duckdb_says(seed: int) -> None:
    rng, store, compared, refused = random.Random(seed), Store(), 0, 0
    for _ in range(4):
        world = _world(rng)
        store.load(world)
        for _ in range(15):
            sql, ordered = Queries(rng).query()
            try:
                compared += _compare(store, world, sql, ordered) > 0
            except Rejected as refusal:
                assert {d.code for d in refusal.diagnostics} <= {"DP111"}, (sql, str(refusal))
                refused += 1
    store.close()
    assert compared > 12 and refused < 6, (compared, refused)


CASES = (
    "SELECT COUNT(*) FROM a WHERE k NOT IN (SELECT x FROM b)",
    "SELECT COUNT(*) FROM a WHERE k NOT IN (SELECT x FROM b WHERE x IS NOT NULL)",
    "SELECT COUNT(*) FROM a WHERE k NOT IN (SELECT x FROM b WHERE n > 99)",
    "SELECT COUNT(*) FROM a WHERE n NOT IN (SELECT n FROM b)",
    "SELECT COUNT(*) FROM a WHERE NULL NOT IN (SELECT n FROM b)",
    "SELECT COUNT(*) FROM a WHERE 1 NOT IN (SELECT x FROM b WHERE b.k = a.k)",
    "SELECT COUNT(*) FROM a WHERE (k, x) NOT IN (SELECT k, x FROM b)",
    "SELECT COUNT(*) FROM a WHERE (n, x) NOT IN (SELECT n, x FROM b WHERE b.s = 'p')",
    "SELECT k, (SELECT COUNT(*) FROM b WHERE b.k = a.k) FROM a",
    "SELECT k, (SELECT COUNT(*) FROM b WHERE b.k = a.k AND b.n = a.x) FROM a",
    "SELECT k, (SELECT SUM(x) FROM b WHERE b.k = a.k) FROM a",
    "SELECT k, (SELECT MAX(x) FROM b WHERE n > 99) FROM a",
    "SELECT (SELECT COUNT(*) FROM a), (SELECT SUM(n) FROM b), (SELECT MAX(k) - (SELECT MIN(k) FROM a) FROM c)",
)


@pytest.mark.parametrize("sql", CASES)
def test_null_and_nothing(sql: str) -> None:
    """Each over tables that are empty, of NULLs alone, and full."""
    store = Store()
    for seed in range(6):
        world = _world(random.Random(seed))
        store.load(world)
        _compare(store, world, sql)
    store.close()


def test_the_comparison_sees_a_lost_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """NOT IN as a plain ANTI join, as if nothing were ever NULL, is found out."""
    monkeypatch.setattr("dpsql.frontend.bind.subqueries.subqueries.never_null", lambda *_: True)
    with pytest.raises(AssertionError, match="theirs"):
        test_null_and_nothing(CASES[0])
