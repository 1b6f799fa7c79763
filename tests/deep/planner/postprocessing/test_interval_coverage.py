"""Intervals at 95 % cover the bounded truth in at least 95 % of all releases, and in at most 97 % where noise is fine.

The exact integers come once from the real engine; everything after it is repeated: noise, columns, intervals. Exact
binomial tests: too_few() rejects "at least 95 %", too_many() rejects "at most 97 %", each with a false alarm of
probability ALPHA, seven standard errors from what is claimed. Twins show that the tests can fail: intervals 10 to 20 %
too narrow (93.2 to 90.9 % coverage of one Laplace variable) are too few, and 35 to 50 % too wide (98.2 to 98.9 %) too
many. Each twin lies another seven of its standard errors beyond, so that it is missed with probability below 1e-11.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scipy import stats

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.release.drawing import NoiseDraws
from dpsql.core.release.noisy import GivenAnswers, exact_totals, noised
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.frontend.aggregates.formula import output_intervals
from dpsql.planner.postprocessing.noisy_rows import released_columns
from dpsql.policy.load import load_policy
from dpsql.policy.resolve.from_catalogue import complete
from tests.deep.examples.test_flights import JULY, LIMITS, TRUTHS, sql_of
from tests.support.bounded_truth import base, generous

ALPHA = 1e-12
LEVEL = Fraction(95, 100)
DRAWS = 30_000
FEWER = 6_000
"""Enough where the upper limit is not asked for, or where many groups are taken together."""


@dataclass(frozen=True)
class Draws:
    """All draws of one number of one group: the released values and their intervals."""

    values: list[float]
    bounds: list[tuple[float, float]]

    def hits(self, truth: float, stretch: float = 1) -> int:
        """How many intervals hold the truth, each stretched around its value by this factor."""
        found = 0
        for v, (low, high) in zip(self.values, self.bounds, strict=True):
            found += v + (low - v) * stretch <= truth <= v + (high - v) * stretch
        return found


def too_few(hits: int, draws: int) -> bool:
    """Whether a coverage of at least 95 % is refuted."""
    return bool(stats.binom.cdf(hits, draws, 0.95) < ALPHA)


def too_many(hits: int, draws: int) -> bool:
    """Whether a coverage of at most 97 % is refuted."""
    return bool(stats.binom.sf(hits - 1, draws, 0.97) < ALPHA)


class Laboratory:
    """A session whose releases can be drawn again and again."""

    def __init__(self, engine: DuckDBEngine, policy: Path) -> None:
        self.engine, self.ledger = engine, MemoryLedger()
        self.con = dpsql.Connection(complete(load_policy(policy), engine.describe()), engine, None, self.ledger)

    @classmethod
    def over_files(cls, policy: Path) -> Laboratory:
        loaded = load_policy(policy)
        sources = {t.name: t.source for t in loaded.tables.values() if t.source is not None}
        return cls(DuckDBEngine.open(None, sources, loaded.directory), policy)

    def draws(self, sql: str, epsilon: float, times: int = DRAWS) -> dict[tuple[Any, ...], dict[str, Draws]]:
        """Group → column → this many independent releases of a query with one release over public keys."""
        plan = self.con.plan(sql, epsilon=epsilon)
        (planned,) = plan.releases
        exact = exact_totals(planned, self.engine, self.ledger.salt)
        keys = list(exact)
        repeated = [Integers.of(column * times) for column in zip(*exact.values(), strict=True)]
        long = noised(planned, GivenAnswers(), keys * times, repeated, NoiseDraws(planned.measured.measurements))
        outputs, columns = planned.measured.node.outputs, released_columns(long)
        found: dict[tuple[Any, ...], dict[str, Draws]] = {key: {} for key in keys}
        for column, source in zip(plan.columns, plan.post.branches[0], strict=True):
            if source is None:
                continue  # a key, or arithmetic over released numbers
            bounds = output_intervals(long, outputs[source[1]], LEVEL)
            for at, key in enumerate(keys):
                own = slice(at, None, len(keys))
                found[key][column.name] = Draws([float(v) for v in columns[source[1]][own]], bounds[own])
        return found


@pytest.fixture(scope="module")
def july(flights_folder: Path, flights_tables: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Draws, float]]]:
    """Column → (draws, bounded truth) of each airport: the question of the README, an aircraft as the unit, ε = 1."""
    lab = Laboratory.over_files(generous(flights_folder / "flights.yaml"))
    found = lab.draws(sql_of("02-july-by-origin"), 1)
    truth = {row[0]: row[1:] for row in base(flights_tables, JULY, LIMITS["flights"]).fetchall()}
    assert len(found) == len(truth) == 3
    return {
        column: [(found[origin,][column], truth[origin][at]) for origin in sorted(truth)]
        for at, column in enumerate(("n", "d"))
    }


def total(cases: list[tuple[Draws, float]], stretch: float = 1) -> tuple[int, int]:
    """Hits and draws of several groups together."""
    return sum(d.hits(t, stretch) for d, t in cases), sum(len(d.values) for d, _ in cases)


@pytest.mark.parametrize("column", ["n", "d"])
def test_july_by_origin(column: str, july: dict[str, list[tuple[Draws, float]]]) -> None:
    for draws, truth in july[column]:
        assert not too_few(draws.hits(truth), DRAWS)
    assert not too_few(*total(july[column]))
    assert not too_many(*total(july[column]))


@pytest.mark.parametrize("column", ["n", "d"])
def test_twins_of_july_are_refuted(column: str, july: dict[str, list[tuple[Draws, float]]]) -> None:
    assert too_few(*total(july[column], 0.9))
    assert too_many(*total(july[column], 1.35))


@pytest.mark.parametrize("column", ["n", "d"])
def test_intervals_around_another_truth_are_refuted(column: str, july: dict[str, list[tuple[Draws, float]]]) -> None:
    """The truth is the bounded one: a count without limits (3 % larger), or an average two minutes off, is not held."""
    shift = {"n": 1.03, "d": 1.1}[column]
    assert too_few(*total([(draws, truth * shift) for draws, truth in july[column]]))


def test_flights_as_units(flights_folder: Path, flights_tables: duckdb.DuckDBPyConnection) -> None:
    """Counts, sums and averages of a row unit, in groups and alone."""
    lab = Laboratory.over_files(generous(flights_folder / "flights-rows.yaml"))
    for name in ("09-by-month", "06-short-and-long", "10-rain", "04-late-and-cancelled"):
        found = lab.draws(sql_of(name), 0.1, FEWER)
        b = base(flights_tables, TRUTHS[name], None)
        keys = len(TRUTHS[name].keys)
        cases: dict[str, list[tuple[Draws, float]]] = {}
        for row in b.fetchall():
            for column, truth in list(zip(b.columns, row, strict=True))[keys:]:
                if column in found[row[:keys]]:
                    cases.setdefault(column, []).append((found[row[:keys]][column], truth))
        assert cases
        for column in cases.values():
            assert not too_few(*total(column))
            assert not too_many(*total(column))


def test_standard_deviations_of_flights(flights_folder: Path, flights_tables: duckdb.DuckDBPyConnection) -> None:
    """Departure delays by origin: skewed, thousands of flights in each group."""
    lab = Laboratory.over_files(generous(flights_folder / "flights-rows.yaml"))
    select = (
        "SELECT origin, STDDEV({0}) AS s, VAR_POP({0}) AS v, AVG({0}) AS a FROM flights WHERE month = 7 GROUP BY ALL"
    )
    found = lab.draws(select.format("dep_delay"), 1, FEWER)
    truths = flights_tables.execute(select.format("clip(dep_delay, -30, 180)")).fetchall()
    assert len(found) == len(truths) == 3
    for at, column in enumerate("sva", start=1):
        cases = [(found[row[:1]][column], row[at]) for row in truths]
        assert not too_few(*total(cases)) and not too_many(*total(cases))
        assert too_few(*total(cases, 0.8)) and too_many(*total(cases, 1.5))


POLICY = """
version: 1
name: small
units: {row: {}, person: {}}
tables:
  small:
    unit: {of: row, rows: 1}
    columns:
      g: {type: integer, domain: [0, 1, 3, 10], nullable: false}
      x: {type: integer, bounds: [-20, 81]}
      y: {type: double, bounds: [0, 1000]}
      b: {type: integer, bounds: [0, 1]}
  visits:
    unit: {of: person, column: id}
    max_rows_per_unit: 17179869184
    columns:
      id: {type: integer, nullable: false}
      y:  {type: double, bounds: [0, 1000]}
budgets:
  total: {epsilon: 1000000}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """Groups of 0, 1, 3 and 10 rows, each group g having exactly g of them; and a few visits."""
    policy = tmp_path_factory.mktemp("small") / "small.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with duckdb.connect() as con:
        con.execute("""
            CREATE TABLE small AS
            SELECT CAST(g AS INTEGER) AS g, CAST((37 * g + 11 * i) % 102 - 20 AS INTEGER) AS x,
                   CAST(4 * i AS DOUBLE) AS y, CAST(i % 2 AS INTEGER) AS b
            FROM (VALUES (1), (3), (10)) AS groups(g), range(g) AS rows(i);
            CREATE TABLE visits AS
            SELECT CAST(i % 3 AS INTEGER) AS id, CAST(64 * i AS DOUBLE) AS y FROM range(9) AS r(i);
        """)
        yield Laboratory(DuckDBEngine.wrap(con, optimizers="ours"), policy)


@pytest.mark.parametrize("epsilon", [2, *(pytest.param(e, marks=pytest.mark.exhaustive) for e in (0.2, 40))])
def test_averages_of_small_groups(epsilon: float, small: Laboratory) -> None:
    """Where noise dominates, down to empty groups, the interval of an average covers at least as often as it says."""
    found = small.draws("SELECT g, AVG(x) AS a FROM small GROUP BY g", epsilon, FEWER)
    rows = {g: [(37 * g + 11 * i) % 102 - 20 for i in range(g)] for g in (1, 3, 10)}
    truth = {0: 30.5} | {g: sum(x) / g for g, x in rows.items()}
    for g, expected in truth.items():
        assert not too_few(found[g,]["a"].hits(expected), FEWER)
    if epsilon == 2:
        assert too_few(found[10,]["a"].hits(truth[10] + 25), FEWER)


@pytest.mark.parametrize("epsilon", [40, *(pytest.param(e, marks=pytest.mark.exhaustive) for e in (0.2, 2))])
def test_variances_of_small_groups(epsilon: float, small: Laboratory) -> None:
    """Down to groups of one row; a sample of one row has no variance, and an empty group none at all."""
    sql = "SELECT g, VAR_POP(x) AS v, STDDEV(x) AS s FROM small GROUP BY g"
    found = small.draws(sql, epsilon, FEWER)
    rows = {g: [(37 * g + 11 * i) % 102 - 20 for i in range(g)] for g in (1, 3, 10)}
    for g, x in rows.items():
        assert not too_few(found[g,]["v"].hits(statistics.pvariance(x)), FEWER)
        assert g == 1 or not too_few(found[g,]["s"].hits(statistics.stdev(x)), FEWER)
    assert all(0 <= v <= 50.5**2 for v in found[0,]["v"].values)
    if epsilon == 40:
        assert too_few(found[10,]["v"].hits(statistics.pvariance(rows[10]) + 500), FEWER)


@pytest.mark.parametrize("epsilon", [0.2, 40, *(pytest.param(e, marks=pytest.mark.exhaustive) for e in (1, 5))])
def test_counts_and_sums_on_a_coarse_grid(epsilon: float, small: Laboratory) -> None:
    """Noise of a few units, or hardly any: the quantile is a whole number, so coverage is at least the level."""
    found = small.draws("SELECT g, COUNT(*) AS n, SUM(b) AS s, SUM(x) AS x FROM small GROUP BY g", epsilon, FEWER)
    for g in (0, 1, 3, 10):
        x = sum((37 * g + 11 * i) % 102 - 20 for i in range(g))
        for column, truth in (("n", g), ("s", g // 2), ("x", x)):
            assert not too_few(found[g,][column].hits(truth), FEWER)
    assert too_few(found[10,]["n"].hits(10 + 20 / epsilon), FEWER)


def test_sums_with_few_grid_units(small: Laboratory) -> None:
    """A limit of 2^34 rows leaves 64 grid units between the bounds; noise is large against one of them."""
    sql = "SELECT SUM(y) AS s FROM visits"
    (found,) = small.draws(sql, 1, 90_000).values()
    (measured,) = small.con.plan(sql, epsilon=1).releases[0].measured.measurements
    assert measured.component.grid == 16
    truth = sum(64 * i for i in range(9))
    assert not too_few(found["s"].hits(truth), 90_000)
    assert not too_many(found["s"].hits(truth), 90_000)
    assert too_few(found["s"].hits(truth, 0.9), 90_000)
    assert too_many(found["s"].hits(truth, 1.35), 90_000)
