"""NOT IN of values that may be NULL: printed so that the engine can look values up instead of comparing all pairs."""

from __future__ import annotations

import itertools
import re

import duckdb
import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.service.checks.check import static_plan
from tests.support.planning import policy

POLICY = policy("""
t:
  unit: {rows: 1}
  columns:
    x: {type: integer}
    y: {type: integer}
p:
  public: true
  columns:
    c: {type: integer}
    d: {type: integer}
""")


def printed(sql: str) -> str:
    (release,) = static_plan(Source(sql), POLICY).releases
    (statement,) = release.statements
    return statement.sql


ONE = "SELECT COUNT(*) FROM t WHERE x NOT IN (SELECT c FROM p WHERE d > 0)"
JOINED = "SELECT COUNT(*) FROM t WHERE x NOT IN (SELECT a.c FROM p a LEFT JOIN p b ON a.c = b.d WHERE b.d IS NULL)"
SUM = "SELECT COUNT(*) FROM t WHERE x + y NOT IN (SELECT c + d FROM p)"
SAME = "SELECT COUNT(*) FROM t WHERE x NOT IN (SELECT DISTINCT c FROM p)"


@pytest.mark.parametrize("sql", [ONE, JOINED, SUM, SAME])
def test_it_means_the_same_for_all_small_tables(sql: str) -> None:
    text = printed(sql)
    assert text.count("ANTI JOIN") == 1 and "coalesce" not in text.lower()
    # Whether there is a value at all, and whether one is NULL, are counts: conditions of one side make no anti join.
    assert len(re.findall(r"JOIN \(SELECT COUNT\(\*\) AS n\b", text)) == 2
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (NULL, 1), (1, 1), (2, 0), (3, NULL)) v(x, y)")
    rows = [(None, 1), (1, 1), (2, None), (2, 0), (1, 2)]
    seen = set()
    for size in range(4):
        for chosen in itertools.combinations(rows, size):
            con.execute("CREATE OR REPLACE TABLE p (c INTEGER, d INTEGER)")
            for row in chosen:
                con.execute("INSERT INTO p VALUES (?, ?)", row)
            found, expected = con.execute(text).fetchall(), con.execute(sql).fetchall()
            assert found == expected, (chosen, text)
            seen.add(found[0][0])
    assert len(seen) > 2 and {0, 4} <= seen


def test_further_conditions_keep_the_one_comparison() -> None:
    for condition in (
        "x NOT IN (SELECT c FROM p WHERE p.d < t.y)",
        "(x, y) NOT IN (SELECT c, d FROM p)",
        "x <= ALL (SELECT c FROM p)",
        "x NOT IN (SELECT t.y FROM p)",
    ):
        try:
            text = printed(f"SELECT COUNT(*) FROM t WHERE {condition}")
        except Exception as refusal:
            assert "DP111" in str(refusal), condition
        else:
            assert text.count("ANTI JOIN") == 1, condition


def test_nested_ones_do_not_multiply_without_end() -> None:
    inner = "SELECT c FROM p"
    lengths = []
    for _ in range(9):
        inner = f"SELECT c FROM p WHERE d NOT IN ({inner})"
        lengths.append(len(printed(f"SELECT COUNT(*) FROM t WHERE x NOT IN ({inner})")))
    assert lengths[-1] < 60_000
