"""The note about rows with another key than those listed: it stands where such rows can be, and nowhere else.

Every query is asked of rows that keep nothing of what the policy declares but types and NULL: if no note stands, each
of their groups is listed; and of a column that is listed as it is, a note stands and rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import dpsql
from dpsql.core.ir.nodes import key_sources

POLICY = {
    "version": 1,
    "name": "p",
    "tables": {
        "t": {
            "unit": {"rows": 1},
            "columns": {
                "region": {"type": "varchar", "domain": ["north", "south"], "nullable": False},
                "maybe": {"type": "varchar", "domain": {"values": ["a", "b"], "null": True}},
                "smoker": {"type": "boolean", "nullable": False},
                "yes": {"type": "boolean", "domain": [True], "nullable": False},
                "age": {"type": "integer", "bounds": [0, 110], "nullable": False},
                "day": {"type": "date", "bounds": ["2025-01-01", "2025-12-31"], "nullable": False},
            },
        }
    },
    "budgets": {"total": {"epsilon": 100, "delta": 1e-6}},
}
ROWS = """
    SELECT region, maybe, smoker, yes, age, day FROM
    (SELECT unnest(['north', 'south', 'elsewhere', '']) AS region), (SELECT unnest(['a', 'b', 'c', NULL]) AS maybe),
    (SELECT unnest([true, false]) AS smoker), (SELECT unnest([true, false]) AS yes),
    (SELECT unnest([-7, 0, 17, 18, 25, 39, 40, 110, 200]) AS age),
    (SELECT unnest([DATE '1999-12-31', '2025-01-01', '2025-06-15', '2025-07-01', '2030-02-28']) AS day)
"""
OPEN = [
    ("region", ""), ("maybe", ""), ("yes", ""), ("age", ""), ("day", ""), ("age // 10", ""), ("age % 10", ""),
    ("upper(region)", ""), ("region", "WHERE region <> 'north'"), ("region", "WHERE smoker"),
    ("date_trunc('month', day)", ""), ("coalesce(maybe, 'a')", ""), ("maybe", "WHERE maybe IS NOT NULL"),
    ("age", "WHERE age >= 18"), ("CASE WHEN smoker THEN region ELSE 'no' END", ""),
    ("CASE WHEN region IN ('north', 'south') THEN region ELSE 'rest' END", ""),
]  # fmt: skip
CLOSED = [
    ("smoker", ""), ("smoker", "WHERE smoker"), ("age >= 18", ""), ("region = 'north'", ""), ("maybe IS NULL", ""),
    ("CASE WHEN age < 18 THEN 'child' ELSE 'adult' END", ""), ("month(day)", ""), ("dayofweek(day)", ""),
    ("sign(age - 20)", ""), ("region", "WHERE region IN ('north', 'south')"), ("region", "WHERE region = 'north'"),
    ("region", "WHERE age > 3 AND (region = 'north' OR region = 'south')"),
    ("age // 10", "WHERE age BETWEEN 20 AND 39"), ("upper(region)", "WHERE region = 'north'"),
    ("CASE WHEN region IN ('north') THEN region ELSE 'rest' END", ""), ("yes", "WHERE yes"),
    ("month(day)", "WHERE day >= DATE '2025-06-01' AND day < DATE '2025-08-01'"),
    ("maybe", "WHERE maybe IN ('a', 'b')"), ("region IS NULL", ""), ("quarter(day)", ""),
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[dpsql.Connection]:
    rows = duckdb.connect()
    rows.execute(f"CREATE TABLE t AS {ROWS}")
    with dpsql.connect(rows, policy=dpsql.Policy.from_dict(POLICY), ledger=":memory:", optimizers="ours") as connection:
        yield connection


def planned(con: dpsql.Connection, key: str, where: str) -> tuple[bool, set[object], set[object]]:
    """Whether the note stands; the keys that are listed; those that rows have."""
    plan = con.plan(f"SELECT {key} AS k, COUNT(*) AS n FROM t {where} GROUP BY 1", epsilon=1)
    (release,) = plan.releases
    sources = key_sources(release.measured.node)
    assert sources is not None and len(sources) == 1
    found = duckdb.execute(f"WITH t AS ({ROWS}) SELECT DISTINCT {key} FROM t {where}").fetchall()
    return any("are left out" in note for note in plan.notes), {k for (k,) in sources[0].keys}, {k for (k,) in found}


@pytest.mark.parametrize(("key", "where"), OPEN)
def test_it_stands_where_rows_are_left_out(con: dpsql.Connection, key: str, where: str) -> None:
    told, listed, there = planned(con, key, where)
    assert told
    # The twin: without a note, a row would be left out and nobody told.
    assert there - listed or (key, where) in [("coalesce(maybe, 'a')", "")]


@pytest.mark.parametrize(("key", "where"), CLOSED)
def test_it_does_not_stand_where_none_can_be(con: dpsql.Connection, key: str, where: str) -> None:
    told, listed, there = planned(con, key, where)
    assert not told and there <= listed


def test_a_plan_that_only_tells_more_is_the_same_plan(con: dpsql.Connection) -> None:
    """What is told is no part of what was measured: stored answers are found by that."""
    one, other = (
        con.plan(f"SELECT {k} AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1) for k in ("month(day)", "day")
    )
    source = key_sources(one.releases[0].measured.node)
    assert source is not None and source[0].closed and one.hash != other.hash
    from dataclasses import replace

    assert replace(source[0], closed=False) == source[0]
