"""Quantiles of timestamps are chosen from round times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.measures.quantile import cells_of
from dpsql.planner.rewrites.bounds.choose_grids import MOST_ENTRIES

POLICY = """
version: 1
name: round-times
tables:
  t:
    unit: {rows: 1}
    columns:
      at: {type: timestamp, nullable: false}
      far: {type: timestamp, nullable: false}
budgets:
  total: {epsilon: 1e18}
"""
MOST = 10**9
"""An ε at which the cell of the quantile is chosen but for a probability of e^(-10^9) or so."""


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    file = tmp_path_factory.mktemp("times") / "policy.yaml"
    file.write_text(POLICY, encoding="utf-8")
    hours = "TIMESTAMP '2013-05-06' + INTERVAL (i // 7) HOUR"
    far = f"CASE WHEN i < 14 THEN {hours} ELSE TIMESTAMP 'infinity' END"
    with duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE t AS SELECT {hours} AS at, {far} AS far FROM range(97) r(i)")
        with dpsql.connect(plain, policy=file, ledger=MemoryLedger(), optimizers="ours") as connection:
            yield connection


def test_full_hours_are_answered_exactly(con: dpsql.Connection) -> None:
    at = "CLIP(at, TIMESTAMP '2013-01-01', TIMESTAMP '2014-01-01')"
    found = con.sql(f"SELECT QUANTILE_DISC({at}, 0.5) AS m, QUANTILE_DISC({at}, 0.9) AS h FROM t").run(epsilon=MOST)
    assert found.rows[0] == (datetime(2013, 5, 6, 6), datetime(2013, 5, 6, 12))


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        ("2013-01-01", "2014-01-02", timedelta(minutes=5)),
        ("2013-01-01", "2013-02-01", timedelta(seconds=15)),
        ("2013-01-01", "2013-01-02", timedelta(seconds=1)),
        ("2013-01-01 10:00:00", "2013-01-01 10:00:01", timedelta(microseconds=10)),
        ("2013-01-01 10:00:00", "2013-01-01 10:00:00.000123", timedelta(microseconds=1)),
        ("1820-01-01", "2020-01-01", timedelta(minutes=10)),
        ("0001-01-01", "9999-12-31", timedelta(hours=6)),
    ],
)
def test_steps_are_the_least_round_ones(con: dpsql.Connection, low: str, high: str, step: timedelta) -> None:
    sql = f"SELECT MEDIAN(CLIP(at, TIMESTAMP '{low}', TIMESTAMP '{high}')) AS m FROM t"
    (release,) = con.sql(sql).plan(epsilon=1).releases
    (m,) = release.measured.measurements
    cells, epoch = cells_of(m.component), datetime(1970, 1, 1)
    assert cells.width * m.component.grid == step // timedelta(microseconds=1) and len(cells) <= MOST_ENTRIES
    first, last = (epoch + timedelta(microseconds=int(end * m.component.grid)) for end in (cells.lo, cells.hi))
    assert timedelta(0) <= first - datetime.fromisoformat(low) < step
    assert timedelta(0) <= datetime.fromisoformat(high) - last < step


def test_timestamps_that_nobody_bounds_lie_between_1900_and_2075(con: dpsql.Connection) -> None:
    query = con.sql("SELECT MEDIAN(at) AS m, QUANTILE_DISC(CAST(at AS DATE), 0.9) AS day FROM t")
    found = query.run(epsilon=MOST)
    assert found.rows[0] == (datetime(2013, 5, 6, 6), datetime(2013, 5, 6).date())
    assert any("at is clipped to [1900-01-01 00:00:00, 2075-12-31 00:00:00]" in note for note in found.notes)
    (release,) = query.plan(epsilon=1).releases
    times, days = (m.component for m in release.measured.measurements)
    assert (times.grid, days.grid) == (600 * 10**6, 1)
    assert (len(cells_of(times)), len(cells_of(days))) == (9_256_609, 64_283)


def test_what_lies_beyond_counts_as_the_nearest_end(con: dpsql.Connection) -> None:
    found = con.sql("SELECT MEDIAN(far) AS m, QUANTILE_DISC(far, 0.1) AS l FROM t").run(epsilon=MOST)
    assert found.rows[0] == (datetime(2075, 12, 31), datetime(2013, 5, 6, 1))
