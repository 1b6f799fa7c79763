"""Quantiles of public and of released rows: computed by the engine, as it answers the same text."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import dpsql
from dpsql.core.ir.components import RowCount
from dpsql.core.ledger.memory import MemoryLedger

POLICY = """
version: 1
name: exact-quantiles
tables:
  p:
    public: true
    columns:
      k: {type: bigint}
      i: {type: bigint}
      n: {type: "decimal(10,2)"}
      f: {type: double}
      d: {type: date}
      t: {type: timestamp}
  r:
    unit: {rows: 1}
    columns:
      k: {type: bigint, domain: [0, 1, 2, 3, 4], nullable: false}
      x: {type: bigint, bounds: [0, 10]}
budgets:
  total: {epsilon: 1e18}
"""
ROWS = """
CREATE TABLE p AS
SELECT i % 3 AS k, i, (i * 1.5)::DECIMAL(10, 2) AS n, i / 4 AS f, DATE '2020-01-01' + i::INT AS d,
       TIMESTAMP '2020-01-01' + INTERVAL (i) HOUR AS t
FROM range(10) AS r(i);
INSERT INTO p VALUES (2, NULL, NULL, NULL, NULL, NULL), (7, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE r AS SELECT i % 5 AS k, 1::BIGINT AS x FROM range(100) AS r(i) WHERE i % 7 < i % 5 + 1
"""
SPELLINGS = (
    "MEDIAN({})",
    "QUANTILE({}, 0.25)",
    "QUANTILE_DISC({}, 0.9)",
    "QUANTILE_CONT({}, 0.123456)",
    "QUANTILE_DISC({}, 0.3) FILTER (WHERE k > 0)",
    "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY {})",
    "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY {} DESC)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {} DESC)",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {} DESC)",
)
MOST = 10**9
"""An ε at which no noise is drawn in as many draws as all tests of the world make: e^(-10^9) each."""


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        yield connection


@pytest.fixture(scope="module")
def con(plain: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    file = tmp_path_factory.mktemp("exact") / "policy.yaml"
    file.write_text(POLICY, encoding="utf-8")
    with dpsql.connect(plain, policy=file, ledger=MemoryLedger(), optimizers="ours") as connection:
        yield connection


def same(con: dpsql.Connection, plain: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert con.sql(sql).run(epsilon=MOST, fresh=True).rows == tuple(plain.execute(sql).fetchall())


@pytest.mark.parametrize("column", ["i", "n", "f", "d", "t"])
def test_public_rows(con: dpsql.Connection, plain: duckdb.DuckDBPyConnection, column: str) -> None:
    """Ten values: p·N is an integer for 0.9 and 0.5, where DESC gives another value than 1 - p does."""
    spellings = [s for s in SPELLINGS if column != "d" or ("CONT" not in s and "MEDIAN" not in s)]
    listed = ", ".join(f"{s.format(column)} AS q{i}" for i, s in enumerate(spellings))
    same(con, plain, f"SELECT {listed} FROM p")
    same(con, plain, f"SELECT k, {listed} FROM p GROUP BY k ORDER BY k")


def test_the_border_behind_desc_is_the_upper_value(con: dpsql.Connection) -> None:
    rows = con.sql(
        "SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY i DESC) AS a, QUANTILE_DISC(i, 0.1) AS b FROM p"
    ).run(epsilon=1)
    assert rows.rows == ((1, 0),)


def test_a_third_is_exact(con: dpsql.Connection) -> None:
    """5/7 lies below its nearest DOUBLE: rounded up, the fifth of seven values would become the sixth."""
    sql = "SELECT APPROX_QUANTILES(i, 7)[OFFSET(5)] AS q FROM p WHERE i < 7"
    assert con.sql(sql, dialect="bigquery").run(epsilon=1).rows == ((4,),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(n) AS m, QUANTILE_DISC(n, 0.8) AS h FROM (SELECT k, COUNT(*) AS n FROM r GROUP BY k)",
        "SELECT PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY n DESC) AS m "
        "FROM (SELECT k, COUNT(*) AS n FROM r GROUP BY k)",
        "SELECT k < 2 AS low, MEDIAN(n) AS m FROM (SELECT k, SUM(x) AS n FROM r GROUP BY k) GROUP BY ALL ORDER BY low",
        "SELECT k, COUNT(*) AS n FROM r GROUP BY k HAVING COUNT(*) > (SELECT MEDIAN(i) FROM p) ORDER BY k",
    ],
)
def test_released_rows(con: dpsql.Connection, plain: duckdb.DuckDBPyConnection, sql: str) -> None:
    same(con, plain, sql)


def test_what_quantiles_read_is_released(con: dpsql.Connection) -> None:
    """And paid for once: the quantiles cost nothing."""
    plan = con.sql("SELECT MEDIAN(n) AS m, QUANTILE_DISC(n, 0.9) AS h FROM (SELECT k, COUNT(*) AS n FROM r GROUP BY k)")
    (release,) = plan.plan(epsilon=1).releases
    assert [type(m.component) for m in release.measured.measurements] == [RowCount]


def test_no_day_lies_between_two(con: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        con.sql("SELECT MEDIAN(d) AS m FROM p").run(epsilon=1)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP101" and found.help == ("a day that is there:  QUANTILE_DISC(d, 0.5)",)
    assert con.sql("SELECT QUANTILE_DISC(d, 0.5) AS m FROM p").run(epsilon=1).rows
