"""SELECT region, COUNT(*), SUM(income), AVG(age) … GROUP BY region at ε = 1 on a million rows: errors and coverage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from scipy import stats

from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.deep.planner.postprocessing.test_interval_coverage import Draws, Laboratory, too_few, too_many

ROWS, TIMES = 1_000_000, 4_000
SQL = "SELECT region, COUNT(*) AS n, SUM(income) AS s, AVG(age) AS a FROM people GROUP BY region"
POLICY = """
version: 1
name: people
database: people.duckdb
tables:
  people:
    unit: {rows: 1}
    columns:
      region: {type: varchar, domain: [north, south, east, west], nullable: false}
      income: {type: integer, bounds: [0, 200000], nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
budgets: {total: {epsilon: 100}}
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[tuple[Draws, float]]]]:
    """Column → (draws, truth) of each region."""
    folder = tmp_path_factory.mktemp("people")
    with duckdb.connect(str(folder / "people.duckdb")) as con:
        con.execute(
            "CREATE TABLE people AS SELECT ['north', 'south', 'east', 'west'][1 + i % 4] AS region, "
            "CAST((i * 7919) % 200001 AS INTEGER) AS income, CAST((i * 31) % 101 AS INTEGER) AS age "
            f"FROM range({ROWS}) t(i)"
        )
        truth = {row[0]: row[1:] for row in con.execute(SQL).fetchall()}
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    lab = Laboratory(DuckDBEngine.open(Path("people.duckdb"), {}, folder), folder / "policy.yaml")
    plan = lab.con.plan(SQL, epsilon=1)
    assert plan.loss.epsilon == 1
    found = lab.draws(SQL, 1, TIMES)
    yield {
        column: [(found[region,][column], float(truth[region][at])) for region in sorted(truth)]
        for at, column in enumerate("nsa")
    }
    lab.con.close()


def squares(drawn: list[tuple[Draws, float]]) -> float:
    """Root mean square of all errors."""
    errors = [v - truth for draws, truth in drawn for v in draws.values]
    return math.sqrt(sum(e * e for e in errors) / len(errors))


@pytest.mark.parametrize(("column", "most"), [("n", 4.8), ("s", 1.15e6), ("a", 0.016)])
def test_errors_at_epsilon_one(column: str, most: float, drawn: dict[str, list[tuple[Draws, float]]]) -> None:
    """16,000 draws: one standard error of a root mean square is 0.9 %, and 4.8 is 15 % above what is expected of n."""
    assert squares(drawn[column]) <= most


def test_shared_sums_err_as_planned(drawn: dict[str, list[tuple[Draws, float]]]) -> None:
    """Two Laplace variables of scale 300,000: √(2·2)·300,000 = 600,000, where the plain sum has 848,528."""
    assert squares(drawn["s"]) == pytest.approx(600_000, rel=0.08)


def test_shared_sums_have_no_bias(drawn: dict[str, list[tuple[Draws, float]]]) -> None:
    errors = [v - truth for draws, truth in drawn["s"] for v in draws.values]
    z = sum(errors) / math.sqrt(len(errors)) / 600_000
    assert 2 * stats.norm.sf(abs(z)) > 1e-12


def test_shared_sums_are_covered(drawn: dict[str, list[tuple[Draws, float]]]) -> None:
    """And a twin of intervals 30 % too narrow, and one of 90 % too wide, is refuted."""
    draws = sum(len(d.values) for d, _ in drawn["s"])
    hits, narrow, wide = (sum(d.hits(truth, k) for d, truth in drawn["s"]) for k in (1, 0.7, 1.9))
    assert not too_few(hits, draws) and not too_many(hits, draws)
    assert too_few(narrow, draws) and too_many(wide, draws)
