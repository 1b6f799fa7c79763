"""Set operations, GROUPING SETS, windows and QUALIFY mean what they mean in DuckDB, over public and released rows.

Noise is off and limits never bind, as in test_meaning.py. Documented differences, kept out of the data here: a text and
a date or number have no common type; public keys show empty groups.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from typing import Any

import pytest

from dpsql.diagnostics.errors import Rejected
from tests.deep.frontend.test_meaning import _ours
from tests.support.random_databases import Column, Store, Table, World, world_of

BOUNDS = {"bounds": [-10, 50]}
SEEDS = pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 6))])


def _tables(rng: random.Random) -> list[Table]:
    columns = (
        Column("pid", "BIGINT", ("1", "2", "3", "4"), {"nullable": False}),
        Column("y", "INTEGER", ("0", "1", "-3", "8", "40"), dict(BOUNDS)),
        Column("x", "DOUBLE", ("0", "1.5", "-2.25", "7"), dict(BOUNDS)),
        Column("d", "DECIMAL(9,2)", ("0", "1.25", "-9.99"), dict(BOUNDS)),
        Column("age", "INTEGER", ("0", "1", "2"), {"bounds": [0, 2]}),
        Column("city", "VARCHAR", ("'a'", "'b'"), {"domain": {"values": ["a", "b"], "null": True}}),
        Column("street", "VARCHAR", ("'p'", "'q'")),
    )
    public = (
        Column("code", "INTEGER", ("1", "2", "3")),
        Column("n", "INTEGER", ("1", "2", "30", "-4")),
        Column("m", "DECIMAL(7,1)", ("1", "2.5", "30.1", "-4")),
        Column("label", "VARCHAR", ("'a'", "'b'", "'z'")),
        Column("day", "DATE", ("DATE '2024-01-05'", "DATE '2024-02-29'")),
    )

    def rows(of: Sequence[Column], height: int) -> tuple[tuple[tuple[str, ...], int], ...]:
        return tuple((tuple(c.value(rng) for c in of), -1) for _ in range(height))

    person = {"unit": {"of": "person", "column": "pid"}, "max_rows_per_unit": 1_000}
    return [
        Table("visits", columns, person, rows(columns, rng.randint(1, 25))),
        Table("calls", columns, person, rows(columns, rng.randint(1, 25))),
        Table("log", columns, {"unit": {"rows": 2}}, rows(columns, rng.randint(1, 25))),
        Table("pa", public, {"public": True}, rows(public, rng.randint(0, 12))),
        Table("pb", public, {"public": True}, rows(public, rng.randint(0, 12))),
    ]


# --- queries with the columns k (text) and v (number) ---------------------------------------------------------------


def _core(rng: random.Random) -> str:
    table, private = rng.choice(("pa", "pb")), rng.choice(("visits", "log"))
    return rng.choice(
        (
            f"SELECT label AS k, n AS v FROM {table}",
            f"SELECT label, m AS v FROM {table} WHERE n > 1",
            f"SELECT label AS k, SUM(n) AS v FROM {table} GROUP BY label",
            f"SELECT DISTINCT label AS k, code AS v FROM {table}",
            f"SELECT city AS k, COUNT(*) AS v FROM {private} GROUP BY city HAVING COUNT(*) > 0",
            f"SELECT street AS k, SUM(COALESCE(y, 0)) AS v FROM {private} GROUP BY street",
            f"SELECT 'all' AS k, COUNT(*) AS v FROM {private}",
            "SELECT 'a' AS k, 2 AS v",
            "SELECT NULL AS k, 2.5 AS v",
            "SELECT 'b' AS k, NULL AS v",
            "VALUES ('a', 2), ('z', 30)",
        )
    )


def _combined(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return _core(rng)
    sides = [_combined(rng, rng.randint(0, depth - 1)) for _ in range(2)]
    written = [f"({s})" if rng.random() < 0.6 or "LIMIT" in s or s.startswith("VALUES") else s for s in sides]
    kind = rng.choice(("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
    return f"{written[0]} {kind} {written[1]}"


ORDERED = "ORDER BY 1 {} NULLS {}, 2 {} NULLS FIRST"


def _order(rng: random.Random) -> str:
    return ORDERED.format(rng.choice(("ASC", "DESC")), rng.choice(("FIRST", "LAST")), rng.choice(("ASC", "DESC")))


def _set_query(rng: random.Random) -> str:
    core = _combined(rng, rng.randint(1, 3))
    shape = rng.random()
    if shape < 0.3:
        return core
    if shape < 0.5:
        return f"{core} {_order(rng)} LIMIT {rng.randint(1, 4)} OFFSET {rng.randint(0, 2)}"
    if shape < 0.6:
        return f"({core} {_order(rng)} LIMIT 3) UNION ALL {_core(rng)}"
    if shape < 0.8:
        return f"WITH q(k, v) AS ({core}) SELECT k, COUNT(*) AS n, MAX(v) AS top FROM q WHERE v IS NOT NULL GROUP BY k"
    return f"SELECT a.k, b.v FROM ({core}) AS a(k, v) JOIN ({_core(rng)}) AS b(k, v) ON a.k = b.k"


def _below(rng: random.Random) -> str:
    """Set operations of private rows below an aggregate."""
    kind = rng.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
    columns = rng.choice(("pid, y, city", "pid, y + 1 AS y, city", "pid, d AS y, street AS city"))
    right = rng.choice(("visits", "calls"))
    rows = f"SELECT pid, y, city FROM visits {kind} SELECT {columns} FROM {right}"
    if rng.random() < 0.3:
        rows = rows.replace("visits", "log").replace("calls", "log")
    group = rng.choice(("", "", " GROUP BY y % 2", " GROUP BY city"))
    key = f"{group[10:]} AS k, " if group else ""
    where = "WHERE y BETWEEN 0 AND 20" if rng.random() < 0.3 else ""
    having = " HAVING COUNT(*) > 0" if group else ""
    return f"SELECT {key}COUNT(*) AS n, COUNT(y) AS m FROM ({rows}) AS t {where}{group}{having}"


# --- grouping sets --------------------------------------------------------------------------------------------------


def _sets_query(rng: random.Random) -> str:
    private = rng.random() < 0.6
    table = rng.choice(("visits", "log")) if private else rng.choice(("pa", "pb"))
    a, b, c = ("city", "age", "street") if private else ("label", "code", "day")
    value = "COALESCE(y, 0)" if private else "n"
    element = rng.choice(
        (
            "ROLLUP ({a}, {b})", "CUBE ({a}, {b})", "GROUPING SETS (({a}), ({b}), ())", "{a}, ROLLUP ({b})",
            "GROUPING SETS (({a}, {b}), {a}, ({a}))", "ROLLUP (({a}, {b}), {c})", "ROLLUP ({a}), CUBE ({b})",
            "GROUPING SETS (ROLLUP ({a}, {b}), ({c}))", "ROLLUP (1, 2)", "CUBE ({a}, {b}, {c})", "({a}, {b})",
            "GROUPING SETS (({b}), ({b}), ({a}, {c}))", "()",
        )
    ).format(a=a, b=b, c=c)  # fmt: skip
    within = lambda *names: all(n in element for n in names)  # noqa: E731
    keys = [k for k in (a, b, c) if k in element] or ([a, b] if "1" in element else [])
    listed = [f"{k} AS k{i}" for i, k in enumerate(keys)]
    if keys and rng.random() < 0.6:
        listed.append(f"GROUPING({', '.join(keys)}) AS g")
    if within(b) and rng.random() < 0.3 and keys:
        listed.append(f"COALESCE(CAST({keys[0]} AS VARCHAR), 'all') AS shown")
    aggregate = rng.choice((f"SUM({value})", f"COUNT({value})", "COUNT(*) * 2", f"SUM({value}) + GROUPING({a})"))
    if "GROUPING(" in aggregate and a not in keys:
        aggregate = "COUNT(*)"
    listed += ["COUNT(*) AS n", f"{aggregate} AS s"]
    where = rng.choice(("", f" WHERE {value} > 0", f" WHERE {a} IS NOT NULL"))
    having = " HAVING COUNT(*) > 0" + (f" AND GROUPING({keys[0]}) = 0" if keys and rng.random() < 0.2 else "")
    distinct = "DISTINCT " if rng.random() < 0.15 else ""
    core = f"SELECT {distinct}{', '.join(listed)} FROM {table}{where} GROUP BY {element}{having}"
    if keys and not distinct and rng.random() < 0.3:
        return f"SELECT SUM(n) AS n, COUNT(*) AS rows FROM ({core}) AS t WHERE k0 IS NULL"
    if rng.random() < 0.3:
        return f"{core} ORDER BY ALL LIMIT 3"
    return core


# --- windows --------------------------------------------------------------------------------------------------------


def _window_query(rng: random.Random) -> str:
    source = f"(SELECT 'a', 2 UNION ALL ({_combined(rng, rng.randint(0, 1))})) AS t(k, v)"  # no column of NULL alone
    order = f"ORDER BY v {rng.choice(('', 'DESC'))} NULLS LAST, k NULLS FIRST"
    frame = rng.choice(
        (
            "", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
            "ROWS 2 PRECEDING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING",
        )
    )  # fmt: skip
    partition = rng.choice(("", "PARTITION BY k ", "PARTITION BY v IS NULL "))
    call = rng.choice(
        (
            "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(3)", "LAG(v)",
            "LEAD(k, 2, 'none')", "LAG(v, 1, 0)", "FIRST_VALUE(v)", "LAST_VALUE(k)", "NTH_VALUE(v, 2)", "SUM(v)",
            "AVG(v)", "COUNT(*)", "COUNT(v)", "MIN(v)", "MAX(k)", "SUM(v) FILTER (WHERE k IS NOT NULL)",
            "COUNT(*) FILTER (WHERE v > 1)", "LAST_VALUE(v IGNORE NULLS)", "LAG(v IGNORE NULLS)", "SUM(v + 1)",
        )
    )  # fmt: skip
    if rng.random() < 0.15:
        order, frame = "ORDER BY v NULLS FIRST", f"RANGE BETWEEN {rng.randint(0, 2)} PRECEDING AND 3 FOLLOWING"
        call = rng.choice(("COUNT(*)", "SUM(v)", "MAX(v)"))
    if rng.random() < 0.2:
        order, frame, call = "", "", rng.choice(("SUM(v)", "COUNT(*)", "MIN(k)"))
    if call.split("(")[0] in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD"):
        frame = ""
    window = f"{partition}{order} {frame}".strip()
    shape = rng.random()
    if shape < 0.4:
        return f"SELECT k, v, {call} OVER ({window}) AS w FROM {source}"
    if shape < 0.55:
        return f"SELECT k, v, {call} OVER w AS a, COUNT(*) OVER (w) AS b FROM {source} WINDOW w AS ({partition}{order})"
    if shape < 0.75:
        return (
            f"SELECT k, v, {call} OVER ({window}) AS w FROM {source} "
            f"QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) <= 2 AND v IS NOT NULL"
        )
    table = rng.choice(("visits", "log", "pa"))
    key, value = ("label", "n") if table == "pa" else ("city", "COALESCE(y, 0)")
    sets = rng.choice((key, f"ROLLUP ({key})"))
    over = rng.choice(("ORDER BY COUNT(*) DESC, {k} NULLS FIRST, s", "ORDER BY SUM({v}), COUNT(*)", "PARTITION BY {k}"))
    over = over.format(k=key, v=value)
    ranked = rng.choice(("RANK()", "SUM(COUNT(*))", f"MAX(SUM({value}) * 2)", "DENSE_RANK()"))
    if "RANK" in ranked and "ORDER" not in over:
        ranked = "SUM(COUNT(*))"
    extra = rng.choice(("", " QUALIFY r > 1", " ORDER BY RANK() OVER (ORDER BY COUNT(*)), 1 NULLS FIRST, 2, 3"))
    return (
        f"SELECT {key} AS k, SUM({value}) AS s, {ranked} OVER ({over}) AS r FROM {table} "
        f"GROUP BY {sets} HAVING COUNT(*) > 0{extra}"
    )


# --- comparison -----------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, dt.date):
        return str(value)[:10]
    return round(float(value), 5) + 0.0


def _bag(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(_plain, row)) for row in rows), key=lambda row: [(v is None, str(v)) for v in row])


def _compare(seed: int, queries: Any, worlds: int, each: int, refusals: frozenset[str] = frozenset()) -> int:
    rng = random.Random(seed)
    store, compared = Store(), 0
    for _ in range(worlds):
        world: World = world_of(_tables(rng), 0, "relations")
        store.load(world)
        for _ in range(each):
            sql = queries(rng)
            try:
                ours = _ours(store, world, sql)
            except Rejected as refusal:
                assert {d.code for d in refusal.diagnostics} <= refusals, (sql, str(refusal))
                continue
            theirs = store.connection.execute(sql).fetchall()
            assert _bag(ours) == _bag(theirs), f"{sql}\nours:   {_bag(ours)}\ntheirs: {_bag(theirs)}"
            compared += 1
    store.close()
    return compared


@SEEDS
def test_set_operations(seed: int) -> None:
    assert _compare(seed, _set_query, 3, 25, frozenset({"DP117"})) > 60


@SEEDS
def test_set_operations_below_an_aggregate(seed: int) -> None:
    assert _compare(seed, _below, 3, 12, frozenset({"DP220"})) > 20


@SEEDS
def test_grouping_sets(seed: int) -> None:
    assert _compare(seed, _sets_query, 3, 15, frozenset({"DP202"})) > 25


@SEEDS
def test_windows(seed: int) -> None:
    assert _compare(seed, _window_query, 3, 25) > 60
