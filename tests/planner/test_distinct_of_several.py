"""COUNT(DISTINCT (a, b)): combinations, NULLs among them, told apart whatever the texts hold."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from tests.support.planning import planned, policy

ROWS = (
    "('a', 1), ('a', 1), ('a', NULL), (NULL, 1), (NULL, NULL), ('', 11), ('1:', 1), (':1', 1), ('-', NULL), ('1', 11)"
)
TABLE = """
version: 1
name: test
database: test.duckdb
budgets: {total: {epsilon: 1e9}}
tables:
  log:
    unit: {rows: 1}
    columns: {s: {type: varchar}, n: {type: integer}, x: {type: double}}
"""


def test_the_combinations_are_duckdbs(tmp_path: Path) -> None:
    asked = (
        "SELECT COUNT(DISTINCT (s, n)) AS a, COUNT(DISTINCT (n, s)) AS b, COUNT(DISTINCT (s, s, n > 1)) AS c FROM log"
    )
    with duckdb.connect(tmp_path / "test.duckdb") as db:
        db.execute(f"CREATE TABLE log AS SELECT *, 1.5::DOUBLE AS x FROM (VALUES {ROWS}) t(s, n)")
        theirs = db.execute(asked).fetchall()
    (tmp_path / "test.yaml").write_text(TABLE)
    with dpsql.connect(tmp_path / "test.yaml", ledger=":memory:") as con:
        assert list(con.sql(asked).run(epsilon=1e6).rows) == theirs


def test_what_has_no_text_of_its_own_is_refused() -> None:
    tables = policy("log:\n  unit: {rows: 1}\n  columns: {s: {type: varchar}, x: {type: double}}\n")
    for sql in ("SELECT COUNT(DISTINCT (s, x)) FROM log", "SELECT SUM(DISTINCT (s, s)) FROM log"):
        with pytest.raises(Rejected) as refusal:
            planned(sql, tables)
        assert refusal.value.diagnostics[0].code in ("DP101", "DP106")
