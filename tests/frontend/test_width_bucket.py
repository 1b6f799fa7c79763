"""width_bucket counts equal parts as PostgreSQL does, and is a group key."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger

POLICY = """
version: 1
name: buckets
tables:
  t:
    unit: {rows: 1}
    columns:
      d: {type: "decimal(10,2)"}
      x: {type: double}
budgets:
  total: {epsilon: 1e18}
"""
SURE = 10**9


def bucket(x: Decimal, lo: Fraction, hi: Fraction, n: int) -> int:
    """As PostgreSQL defines it, exactly."""
    if x < lo:
        return 0
    return n + 1 if x >= hi else int((Fraction(x) - lo) * n // (hi - lo)) + 1


@pytest.mark.parametrize(("lo", "hi", "n"), [("0", "1", 100), ("-1.5", "2.25", 7), ("0.01", "0.02", 1)])
def test_decimals_are_counted_exactly_and_parts_without_rows_are_there(
    tmp_path: Path, lo: str, hi: str, n: int
) -> None:
    (tmp_path / "p.yaml").write_text(POLICY, encoding="utf-8")
    values = [Decimal(i) / 100 for i in range(-200, 300)]
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (d DECIMAL(10, 2), x DOUBLE)")
        listed = [number for v in values for number in (v, float(v))]
        plain.execute(f"INSERT INTO t VALUES {', '.join(['(?, ?)'] * len(values))}", listed)
        plain.execute("INSERT INTO t VALUES (NULL, 'nan'), (NULL, 'inf'), (NULL, '-inf')")
        with dpsql.connect(plain, policy=tmp_path / "p.yaml", ledger=MemoryLedger(), optimizers="ours") as con:
            sql = f"SELECT width_bucket(d, {lo}, {hi}, {n}) AS b, COUNT(*) AS n FROM t GROUP BY b"
            found = dict(con.sql(sql).run(epsilon=SURE).rows)
            far = dict(con.sql(f"SELECT width_bucket(x, {lo}, 9, 1) AS b, COUNT(*) FROM t GROUP BY b").run(SURE).rows)
    true = Counter(bucket(v, Fraction(lo), Fraction(hi), n) for v in values)
    assert found == {**{b: true[b] for b in range(n + 2)}, None: 3}
    below = sum(v < Fraction(lo) for v in values)
    assert far == {0: below + 1, 1: len(values) - below, 2: 2, None: 0}, "NaN lies above all numbers"


@pytest.mark.parametrize("parts", ["10, 10, 2", "0, d, 2", "0, 1, 0", "0, 1, 2.5", "NULL, 1, 2", "0, 1, 10000000"])
def test_others_are_refused(tmp_path: Path, parts: str) -> None:
    (tmp_path / "p.yaml").write_text(POLICY, encoding="utf-8")
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (d DECIMAL(10, 2), x DOUBLE)")
        con = dpsql.connect(plain, policy=tmp_path / "p.yaml", ledger=MemoryLedger(), optimizers="ours")
        with con, pytest.raises(dpsql.Rejected, match="DP106"):
            con.sql(f"SELECT width_bucket(x, {parts}) AS b, COUNT(*) FROM t GROUP BY b").plan(epsilon=1)
