"""Quantiles end to end: what is charged and written down, under each accountant; extremes that somebody plants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.engine import RawTable
from dpsql.engines.duckdb.engine import DuckDBEngine

DATA = """
CREATE TABLE t AS
  SELECT CAST(i AS BIGINT) AS id, CASE i % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END AS g, 'w' || i % 2 AS w,
         CAST(40 + i % 21 AS DOUBLE) AS x, TIMESTAMP '2024-03-01' + i * INTERVAL 1 HOUR AS at
  FROM range(600) r(i)
"""
PLANTED = """
INSERT INTO t SELECT 10_000, CASE i % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END, 'w' || i % 2,
  [1e300, -1e300, 'nan', 'inf', '-inf', 90][1 + i % 6]::DOUBLE, TIMESTAMP '1900-01-01'
FROM range(ROWS) r(i);
INSERT INTO t VALUES (NULL, 'a', 'w0', 77, NULL), (20_000, NULL, NULL, NULL, NULL), (20_001, 'zz', 'w9', 1e308, NULL);
"""
POLICY = """
version: 1
name: planted
database: p.duckdb
units: {person: {}}
privacy: {accountant: ACCOUNTANT}
tables:
  t:
    unit: {column: id}
    LIMITS
    columns:
      id: {type: bigint}
      g:  {type: varchar, domain: {values: [a, b], null: true}}
      w:  {type: varchar}
      x:  {type: double, bounds: [0, 100]}
      at: {type: timestamp, bounds: [2024-01-01, 2024-12-31]}
budgets: {total: TOTAL}
"""
C, M_AND_G = "max_rows_per_unit: 2", "max_rows_per_group: 2\n    max_groups_per_unit: 2"
TOTALS = {"pure_dp": "{epsilon: 1e12}", "approx_dp": "{epsilon: 1e12, delta: 0.5}", "zcdp": "{rho: 1e24, delta: 0.5}"}
Open = Callable[..., dpsql.Connection]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[dpsql.Connection] = []

    def open_one(accountant: str = "approx_dp", limits: str = C, planted: int | None = None) -> dpsql.Connection:
        folder = tmp_path / f"{len(made)}"
        folder.mkdir()
        with duckdb.connect(str(folder / "p.duckdb")) as database:
            database.execute(DATA)
            if planted is not None:
                database.execute(PLANTED.replace("ROWS", str(planted)))
        text = POLICY.replace("ACCOUNTANT", accountant).replace("TOTAL", TOTALS[accountant]).replace("LIMITS", limits)
        (folder / "p.yaml").write_text(text, encoding="utf-8")
        made.append(dpsql.connect(folder / "p.yaml"))
        return made[-1]

    yield open_one
    for con in made:
        con.close()


QUERIES = (
    "SELECT MEDIAN(x) AS m FROM t",
    "SELECT g, MEDIAN(x) AS m, QUANTILE_DISC(x, 0.9) AS h, COUNT(*) AS n FROM t GROUP BY g",
    "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY at DESC) AS late FROM t WHERE x > 45",
    "SELECT g, QUANTILE_DISC(x, 0.75) - QUANTILE_DISC(x, 0.25) AS spread FROM t GROUP BY g "
    "HAVING MEDIAN(x) > 10 ORDER BY spread",
)


@pytest.mark.parametrize("accountant", TOTALS)
def test_what_is_planned_is_shown_charged_and_written_down(accountant: str, opened: Open) -> None:
    con, spent = opened(accountant), Fraction(0)
    for sql in QUERIES:
        query = con.sql(sql)
        told = json.loads(query.explain(epsilon=1, format="json"))["cost"]["person"]
        cost = query.cost(epsilon=1)
        answer = query.run(epsilon=1)
        assert answer.spent == cost and query.cost(epsilon=1) == dpsql.PrivacyLoss()
        part = answer.spent.rho if accountant == "zcdp" else answer.spent.epsilon
        # Of the last query one quantile is held already.
        assert 0 < part <= (Fraction(1, 2) if accountant == "zcdp" else 1) and answer.spent.delta == 0
        assert sql == QUERIES[3] or part > Fraction(999, 2000)
        assert told["rho" if accountant == "zcdp" else "epsilon"] == pytest.approx(float(part))
        spent += part
        held = con.budget.spent
        assert (held.rho if accountant == "zcdp" else held.epsilon) == spent
    again = con.sql(QUERIES[0]).run(epsilon=1)
    assert again.spent == dpsql.PrivacyLoss()


def test_private_keys_come_first_and_share_the_price(opened: Open) -> None:
    con = opened(limits=M_AND_G)
    answer = con.sql("SELECT w, MEDIAN(x) AS m FROM t GROUP BY w").run(epsilon=10**6, delta="1e-6")
    assert answer.to_dict() == {"w": ["w0", "w1"], "m": [pytest.approx(50, abs=0.6)] * 2}
    assert answer.spent.epsilon <= 10**6 and 0 < answer.spent.delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("limits", [C, M_AND_G], ids=["C", "M, G"])
@pytest.mark.parametrize("planted", [0, 10**6])
def test_planted_extremes_move_nothing_and_fail_nothing(
    planted: int, limits: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person of a million rows, values that are none or beyond the bounds, NULL keys and ids; at an ε at which chance
    has no part. Statements and notes are those of the data without them."""
    asked: list[str] = []
    fetch = DuckDBEngine.fetch

    def watched(self: DuckDBEngine, sql: str) -> RawTable:
        asked.append(sql)
        return fetch(self, sql)

    monkeypatch.setattr(DuckDBEngine, "fetch", watched)
    told = []
    for con in (opened(limits=limits), opened(limits=limits, planted=planted)):
        asked.clear()
        answer = con.sql(
            "SELECT g, QUANTILE_DISC(x, 0.1) AS low, MEDIAN(x) AS m, QUANTILE_DISC(x, 0.9) AS high, MEDIAN(at) AS mid "
            "FROM t GROUP BY g"
        ).run(epsilon=10**9)
        values = answer.to_dict()
        assert values["g"] == ["a", "b", None]
        assert values["low"] == pytest.approx([40, 41, 42], abs=0.01), values
        assert values["m"] == pytest.approx([49, 50, 51], abs=0.01), values
        assert values["high"] == pytest.approx([58, 59, 60], abs=0.01), values
        assert {(moment.year, moment.month, moment.day) for moment in values["mid"]} <= {(2024, 3, 13)}
        told.append((len(asked), answer.notes, answer.spent))
    assert told[0] == told[1]
