"""SUM from a centred sum and a count gives what SUM gives: in every type, with NULLs, filters, groups, odd bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, RowCount
from dpsql.core.ir.expressions import Expr
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.frontend.aggregates.sum import Sum
from dpsql.planner.rewrites.releases import share_sums as module

POLICY = """
version: 1
name: shared
database: data.duckdb
tables:
  t:
    unit: {rows: 1}
    columns:
      g: {type: varchar, domain: [a, b, empty], nullable: false}
      i: {type: integer, bounds: [0, 7], nullable: false}
      n: {type: integer, bounds: [-3, 10]}
      d: {type: 'decimal(8,3)', bounds: [0, 99.999]}
      x: {type: double, bounds: [0, 16]}
budgets: {total: {epsilon: 1e15, delta: 1e-3}}
"""
ROWS = """
SELECT ['a', 'b'][1 + k % 2] AS g, CAST(k * 7 % 11 - 1 AS INTEGER) AS i,
       CASE WHEN k % 5 > 0 THEN CAST(k * 13 % 17 - 5 AS INTEGER) END AS n,
       CASE WHEN k % 7 > 0 THEN CAST(k * 1.237 AS DECIMAL(8,3)) END AS d,
       CASE WHEN k % 11 = 0 THEN 'nan'::DOUBLE WHEN k % 3 > 0 THEN k / 8.0 END AS x
FROM range(1, 150) t(k)
"""
CLIPPED = {
    "i": "least(7, greatest(0, i))",
    "n": "CASE WHEN n IS NOT NULL THEN least(10, greatest(-3, n)) END",
    "d": "CASE WHEN d IS NOT NULL THEN least(99.999, greatest(0, d)) END",
    "x": "CASE WHEN isfinite(x) THEN least(16, greatest(0, x)) END",
}
QUERIES = [
    "SELECT g, {sum} AS s, COUNT({c}) AS n FROM t GROUP BY g ORDER BY g",
    "SELECT {sum} AS s, AVG({c}) AS a FROM t",
    "SELECT {sum} FILTER (WHERE i > 2) AS s, COUNT({c}) FILTER (WHERE i > 2) AS n, COUNT(*) AS m FROM t",
    "SELECT {sum} AS s, COUNT({c}) AS n FROM t WHERE g = 'a'",
]
NOISELESS = 10**13  # every scale is below 1e-2: noise other than 0 has a probability below e^-100


@pytest.fixture
def con(tmp_path: Path) -> Iterator[dpsql.Connection]:
    with duckdb.connect(str(tmp_path / "data.duckdb")) as own:
        own.execute(f"CREATE TABLE t AS {ROWS}")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    with dpsql.connect(tmp_path / "policy.yaml", ledger=MemoryLedger("shared")) as found:
        yield found


def sums(con: dpsql.Connection, sql: str, column: str) -> list[Any]:
    """The released sums, which must have been made of two parts; keys without rows left out."""
    query = con.sql(sql.format(sum=f"SUM({column})", c=column))
    recipes = [o.recipe for o in query.plan(epsilon=NOISELESS).releases[0].measured.node.outputs]
    assert any(isinstance(r, Sum) and r.count is not None for r in recipes)
    found = query.run(epsilon=NOISELESS).to_dict()
    return [s for s, g in zip(found["s"], found.get("g", ["a"] * len(found["s"])), strict=True) if g != "empty"]


def truth(sql: str, column: str) -> list[Any]:
    own = duckdb.connect()
    own.execute(f"CREATE TABLE t AS {ROWS}")
    exact = sql.format(sum=f"SUM({CLIPPED[column]})", c=column)
    relation = own.sql(exact)
    at = relation.columns.index("s")
    return [row[at] for row in relation.fetchall()]


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("column", list(CLIPPED))
def test_shared_sums_are_sums(con: dpsql.Connection, sql: str, column: str) -> None:
    found, expected = sums(con, sql, column), truth(sql, column)
    assert [type(v) for v in found] == [type(v) for v in expected]
    if column == "x":  # a grid of 16/2³⁰, and 149 rows
        assert found == pytest.approx(expected, abs=1e-4)
    else:
        assert found == expected


@pytest.mark.parametrize("column", ["n", "d", "x"])
def test_a_count_of_other_rows_is_found(con: dpsql.Connection, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: COUNT(*) in place of COUNT(x), where x may be NULL."""

    def every_row(arg: Expr | None, where: Expr | None, facts: Facts) -> Component:
        return RowCount(None, where)

    monkeypatch.setattr(module, "count_of", every_row)
    sql = QUERIES[0].replace("COUNT({c})", "COUNT(*)")
    found, expected = ([float(v) for v in values] for values in (sums(con, sql, column), truth(sql, column)))
    assert found != pytest.approx(expected, abs=1e-3)


def test_a_lost_filter_is_found(con: dpsql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: the count of a filtered sum counts all rows."""
    original = module.count_of
    monkeypatch.setattr(module, "count_of", lambda arg, where, facts: replace(original(arg, where, facts), filter=None))
    sql = "SELECT {sum} FILTER (WHERE i > 2) AS s, COUNT(*) AS n FROM t"
    assert sums(con, sql, "i") != truth(sql, "i")
