"""A repair of an aggregate's argument, pasted, asks what was asked: both are computed by a plain DuckDB."""

from __future__ import annotations

import itertools
import re

import duckdb
import pytest

import dpsql
from dpsql.frontend.text import written_again
from tests.support.planning import policy

TABLES = """
r:
  unit: {rows: 1}
  columns: {a: {type: integer, bounds: [0, 9]}, b: {type: integer, bounds: [0, 9]}, t: {type: varchar}, d: {type: date}}
"""
CONDITIONS = [
    "NOT a > 3", "NOT (a > 3)", "a IS NULL", "a IS NOT NULL", "NOT a IS NULL", "a IN (1, 2)", "a NOT IN (1, 2)",
    "b > 1", "a > 1 AND b IS NULL", "a IS NULL AND b > 1", "NOT a > 1 AND NOT b > 1", "a > 3 OR b IS NULL",
    "NOT (a > 3 OR b = 1)", "a BETWEEN 1 AND 3", "NOT a BETWEEN 1 AND 3", "a <> b", "a IS DISTINCT FROM b",
    "t LIKE '1%'", "t NOT LIKE '%x'", "(a > 1) = (b > 1)", "CASE WHEN a > 1 THEN b > 1 END", "COALESCE(a > 1, TRUE)",
    "a > 1 AND b IN (1, 2)", "CAST(a AS BOOLEAN)", "a + b > 3 AND NOT t = '1'", "NOT NOT a > 3", "a::boolean",
    "starts_with(t, '1') IS NULL",
]  # fmt: skip
TEXTS = [
    "t", "t || '1'", "upper(t)", "CASE WHEN a > 1 THEN t END", "CASE WHEN a IS NULL THEN '7' ELSE t END",
    "COALESCE(t, '3')", "CAST(a AS VARCHAR)", "a::varchar", "t || CASE WHEN b IS NULL THEN '' ELSE '0' END",
]  # fmt: skip
DATES = [
    "d", "d + 1", "CASE WHEN a > 1 THEN d END", "COALESCE(d, DATE '2024-02-01')", "GREATEST(d, DATE '2024-01-05')",
]  # fmt: skip
ASKED = [
    *((f"{call}({c})", f"{call}(CAST(({c}) AS INTEGER))") for c in CONDITIONS for call in ("AVG", "SUM")),
    *((f"SUM({t})", f"SUM(CLIP(TRY_CAST(({t}) AS DOUBLE), 2, 8))") for t in TEXTS),
    *((f"AVG({d})", f"AVG(CLIP(date_diff('day', DATE '2024-01-01', ({d})), 2, 8))") for d in DATES),
]


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("CREATE MACRO clip(x, low, high) AS GREATEST(LEAST(x, high), low)")
    found.execute("CREATE TABLE r (a INTEGER, b INTEGER, t VARCHAR, d DATE)")
    rows = list(
        itertools.product([None, 0, 1, 5], [None, 1, 4], [None, "1", "12", "x"], [None, "2024-01-03", "2024-03-01"])
    )
    found.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", [list(row) for row in rows[::2] + rows[:40]])
    return found


def repairs(sql: str) -> list[str]:
    (found,) = (d for d in dpsql.check(sql, policy(TABLES)) if d.code == "DP203")
    (told,) = found.help
    return [text.replace("lower, upper", "2, 8") for text in re.split(r":  |, or (?=COUNT)", told)[1:]]


@pytest.mark.parametrize(("asked", "meant"), ASKED, ids=[asked for asked, _ in ASKED])
def test_the_repair_is_accepted_and_means_the_same(asked: str, meant: str, plain: duckdb.DuckDBPyConnection) -> None:
    wanted = plain.execute(f"SELECT {meant} FROM r").fetchone()
    for repair in repairs(f"SELECT {asked} FROM r"):
        assert [d for d in dpsql.check(f"SELECT {repair} FROM r", policy(TABLES)) if d.severity == "error"] == []
        assert plain.execute(f"SELECT {repair} FROM r").fetchone() == wanted, repair


def test_the_place_of_an_expression_is_not_all_of_it(
    monkeypatch: pytest.MonkeyPatch, plain: duckdb.DuckDBPyConnection
) -> None:
    """The twin: repairs of what stands where the mark is say another thing."""
    monkeypatch.setattr(written_again, "_is_all_of", lambda node, text: True)
    asked = [a for a in CONDITIONS if a.startswith("NOT") or a.endswith(")")]
    wrong = 0
    for condition in asked:
        repair = repairs(f"SELECT AVG({condition}) FROM r")[0]
        try:
            found = plain.execute(f"SELECT {repair} FROM r").fetchone()
        except duckdb.Error:
            found = None
        wrong += found != plain.execute(f"SELECT AVG(CAST(({condition}) AS INTEGER)) FROM r").fetchone()
    assert wrong >= 3


@pytest.mark.parametrize("where", ["a IS NULL", "NOT a > 3", "a IN (1, 2)", "b > 1 AND a IS NOT NULL"])
def test_a_window_that_is_computed_first_keeps_the_condition(where: str, plain: duckdb.DuckDBPyConnection) -> None:
    sql = f"SELECT SUM(LAG(b) OVER (ORDER BY a, b, t, d)) FROM r WHERE {where}"
    (repair,) = (t.partition(":  ")[2] for d in dpsql.check(sql, policy(TABLES)) for t in d.help if "first:  " in t)
    within = f"SELECT SUM(w) FROM (SELECT LAG(b) OVER (ORDER BY a, b, t, d) AS w FROM r WHERE {where})"
    assert plain.execute(repair).fetchone() == plain.execute(within).fetchone()
