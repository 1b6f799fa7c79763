"""Members of batches against the same queries alone, at an ε at which noise is nothing: equal integers, equal rows.

Conditions, keys and arguments at random, over rows with NULL, NaN and values outside of lists and bounds, of row units
and of persons. A member is another number than its query alone only where a limit of rows per person binds and WHERE
or keys leave rows out: a batch weighs over all rows. So persons here have few rows, or members count by FILTER, in
groups that have all rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected

HUGE = 10**10
COLUMNS = """
      id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 9]}
      town: {type: varchar, domain: [a, b, c]}
      vip: {type: boolean, nullable: false}
      day: {type: date, bounds: [2025-01-01, 2025-01-09]}
      paid: {type: 'decimal(8,2)', bounds: [0, 100]}
      debt: {type: integer, bounds: [-40, 11]}
      score: {type: double, bounds: [0, 1]}
"""
POLICY = f"""
version: 1
name: shop
database: shop.duckdb
units: {{person: {{}}}}
tables:
  sales:
    unit: {{rows: 1}}
    columns: {COLUMNS}
  visits:
    unit: {{column: id, of: person}}
    max_rows_per_unit: 4
    columns: {COLUMNS}
  crowded:
    unit: {{column: id, of: person}}
    max_rows_per_unit: 2
    columns: {COLUMNS}
  once:
    unit: {{column: id, of: person}}
    primary_key: [id]
    columns: {COLUMNS}
budgets: {{total: {{epsilon: 1e15, delta: 0.1}}}}
ledger: shop.sqlite
"""
ROWS = """
SELECT {id} AS id, CASE WHEN i % 11 = 0 THEN NULL ELSE i % 14 - 2 END::INTEGER AS age,
  CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN 'z' WHEN 2 THEN 'c' WHEN 3 THEN 'b' ELSE 'a' END AS town, i % 3 = 0 AS vip,
  CASE WHEN i % 13 = 0 THEN NULL ELSE DATE '2024-12-30' + (i % 14)::INTEGER END AS day,
  CASE WHEN i % 7 = 0 THEN NULL ELSE i * 1.37 - 20 END::DECIMAL(8, 2) AS paid, (i % 70 - 50)::INTEGER AS debt,
  CASE i % 9 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN NULL WHEN 2 THEN 'inf'::DOUBLE ELSE (i % 8) / 4.0 - 0.5 END AS score
FROM range({n}) t(i)
"""
TABLES = {"sales": "i", "visits": "i % 40", "crowded": "i % 17", "once": "i"}
CALLS = [
    "COUNT(*)", "COUNT(*)", "COUNT(age)", "COUNT(paid)", "COUNT(score)", "SUM(debt)", "SUM(paid)", "SUM(age)",
    "SUM(score)", "SUM(2 * debt - age)", "SUM(CASE WHEN vip THEN paid END)", "SUM(CLIP(debt, -5, 5))", "AVG(debt)",
    "AVG(paid)", "AVG(score)",
]  # fmt: skip
KEYS = ["town", "vip", "age", "day", "age > 4", "town = 'a'", "CASE WHEN debt IS NULL THEN 1 ELSE 0 END"]


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    folder: Path = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(POLICY, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as db:
        for name, id in TABLES.items():
            db.execute(f"CREATE TABLE {name} AS {ROWS.format(id=id, n=150)}")
    with dpsql.connect(folder / "shop.yaml", ledger=":memory:") as found:
        yield found


def condition(rng: random.Random, depth: int = 2) -> str:
    kind = rng.randrange(9 if depth else 7)
    n, other = rng.randint(-3, 12), rng.randint(-3, 12)
    day = f"DATE '2025-01-{rng.randint(1, 12):02}'"
    match kind:
        case 0:
            return f"age {rng.choice(['<', '<=', '=', '>', '<>'])} {n}"
        case 1:
            return f"town {rng.choice(['=', '<>'])} '{rng.choice('abcz')}'"
        case 2:
            return f"town {rng.choice(['IN', 'NOT IN'])} ('a', '{rng.choice('bcz')}')"
        case 3:
            return f"{rng.choice(['age', 'town', 'day'])} IS {rng.choice(['', 'NOT '])}NULL"
        case 4:
            return rng.choice(["vip", "NOT vip"])
        case 5:
            return f"day {rng.choice(['>=', '<', '='])} {day}"
        case 6:
            return f"age BETWEEN {min(n, other)} AND {max(n, other)}"
        case 7:
            return f"({condition(rng, depth - 1)} {rng.choice(['AND', 'OR'])} {condition(rng, depth - 1)})"
    return f"NOT ({condition(rng, depth - 1)})"


def calls_of(table: str) -> list[str]:
    """A sum alone of persons above their limit is clipped, and not weighed."""
    return [call for call in CALLS if table != "crowded" or not call.startswith("SUM")]


def member(rng: random.Random, table: str) -> str:
    keys = rng.sample(KEYS, rng.choice([0, 0, 1, 1, 2])) if table != "crowded" else rng.choice([[], ["vip"]])
    calls = [
        f"{call} FILTER (WHERE {condition(rng)}) AS n{i}" if rng.random() < 0.4 else f"{call} AS n{i}"
        for i, call in enumerate(rng.choices(calls_of(table), k=rng.randint(1, 3)))
    ]
    if table == "once" and rng.random() < 0.3:
        calls.append("COUNT(DISTINCT id) AS ids")
    where = f" WHERE {condition(rng)}" if table != "crowded" and rng.random() < 0.6 else ""
    names = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join([*names, *calls])} FROM {table}{where}{group}"


def differences(mine: Any, alone: Any, keys: int, rough: bool) -> Iterator[str]:
    """rough: weights are rounded, so that numbers may lie to both sides of a half."""
    a, b = ({row[:keys]: row[keys:] for row in answer.rows} for answer in (mine, alone))
    if set(a) != set(b):
        yield f"rows {sorted(map(str, set(a) ^ set(b)))}"
    for key in set(a) & set(b):
        for x, y in zip(a[key], b[key], strict=True):
            if type(x) is not type(y):
                yield f"{key}: {x!r} is no {y!r}"
            elif isinstance(x, float) or rough:
                if abs(float(x) - float(y)) > (1.5 if rough and not isinstance(x, float) else 0.02):
                    yield f"{key}: {x} is not {y}"
            elif x != y:
                yield f"{key}: {x} is not {y}"


def compared(con: dpsql.Connection, rng: random.Random, table: str, found: Counter[str]) -> list[str]:
    """What differs between a batch of twelve members and the queries alone. found: counts what was compared."""
    members = [member(rng, table) for _ in range(12)]
    answers = con.batch(members, skip_refused=True).run(epsilon=HUGE)
    wrong = []
    for place, sql in enumerate(members):
        if place in answers.refused:
            found[f"refused {answers.refused[place].diagnostics[0].code}"] += 1
            continue
        try:
            alone = con.run(con.plan(sql, epsilon=HUGE))
        except Rejected as refusal:
            found[f"alone {refusal.diagnostics[0].code}"] += 1
            continue
        found["members"] += 1
        found["numbers"] += sum(len(row) for row in answers[place].rows)
        keys = sum(name.startswith("k") for name in answers[place].columns)
        wrong += [f"{sql}: {text}" for text in differences(answers[place], alone, keys, table == "crowded")]
    return wrong


@pytest.mark.parametrize("table", TABLES)
def test_members_are_their_queries(con: dpsql.Connection, table: str) -> None:
    found = Counter[str]()
    assert compared(con, random.Random(f"members of {table}"), table, found) == []
    assert found["members"] >= 8


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(40))
def test_many_members_are_their_queries(con: dpsql.Connection, seed: int) -> None:
    for table in TABLES:
        assert compared(con, random.Random(f"{table} {seed}"), table, Counter()) == []


def test_a_difference_is_seen(con: dpsql.Connection) -> None:
    """A twin: other rows, another count, another type."""
    text = "SELECT vip, COUNT(*) AS n FROM sales WHERE age > {} GROUP BY vip"
    one, other = (con.run(con.plan(text.format(age), epsilon=HUGE)) for age in (3, 4))
    assert list(differences(one, other, 1, rough=False))
    assert not list(differences(one, one, 1, rough=False))
