"""Noisy rows of one release inside the statement of another: the same values, of exactly the planned types."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql

POLICY = """
version: 1
name: small
database: small.duckdb
ledger_head: head
tables:
  t:
    unit: {rows: 1}
    columns:
      word: {type: varchar, domain: {values: ["a", "it's", ""], null: true}}
      day: {type: date, bounds: [2024-01-01, 2024-01-03]}
      x: {type: double, bounds: [-2, 2], nullable: false}
      d: {type: 'decimal(9,2)', bounds: [0, 5], nullable: false}
budgets: {total: {epsilon: 1e12}}
"""


@pytest.fixture
def con(tmp_path: Path) -> dpsql.Connection:
    with duckdb.connect(str(tmp_path / "small.duckdb")) as made:
        made.execute("CREATE TABLE t (word VARCHAR, day DATE, x DOUBLE, d DECIMAL(9, 2))")
        made.execute(
            "INSERT INTO t SELECT CASE i % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'it''s' WHEN 2 THEN '' END, "
            "DATE '2024-01-01' + CAST(i % 3 AS INTEGER), (i % 5) - 2.0, i % 6 FROM range(240) r(i)"
        )
    (tmp_path / "small.yaml").write_text(POLICY, encoding="utf-8")
    return dpsql.connect(tmp_path / "small.yaml")


def test_no_statement_holds_the_place_of_a_release_when_it_is_shown(con: dpsql.Connection) -> None:
    sql = "SELECT COUNT(*) FROM t WHERE x > (SELECT AVG(x) FROM t)"
    with con:
        text = con.sql(sql).explain(epsilon=1, engine_sql=True)
    assert "\0" not in text and "r0 AS t" in text
