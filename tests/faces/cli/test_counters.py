"""Counters on the command line and in the shell: made, counted when periods are closed, read, and told of."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql as api
from tests.support.command_line import Call
from tests.support.counted_trips import RIDES, Trips, make_trips

MADE = RIDES.format(rho="0.02")


@pytest.fixture
def trips(tmp_path: Path) -> Trips:
    return make_trips(tmp_path)


def test_it_is_made_and_counts_when_periods_are_closed(dpsql: Call, trips: Trips) -> None:
    explained = dpsql("explain", trips.policy, MADE, "--analyst", "ana")
    assert "cost: ρ 0.02 of each row of trips" in explained.out
    made = dpsql("query", trips.policy, MADE, "--analyst", "ana")
    assert made.out == "counter rides: spent ρ 0.02 of each period; no closed period is counted yet\n"
    closed = dpsql("close", trips.policy, "--through", "2026-01-05")
    assert "counter rides: counted through 2026-01-05\n" in closed.err and closed.status == 0
    read = dpsql(
        "query", trips.policy, "SELECT COUNT(*) AS rows FROM dpsql.rides", "--analyst", "ana", "--format", "csv"
    )
    assert read.out.splitlines() == ["rows", "8"]
    history = dpsql("budget", trips.policy, "--history").out
    assert "CREATE DP COUNTER rides AS SELECT station" in history and "TICK 2026-01-05 of counter" in history
    assert "CLOSE DP PERIODS OF trips THROUGH 2026-01-05" in history


def test_where_the_data_is_not_there_it_is_counted_later(dpsql: Call, trips: Trips) -> None:
    dpsql("query", trips.policy, MADE, "--analyst", "ana")
    (trips.folder / "trips.duckdb").rename(trips.folder / "elsewhere")
    closed = dpsql("close", trips.policy, "--through", "2026-01-05")
    assert (
        "counters rides are not counted: " in closed.err
        and "TICK DP COUNTER rides" in closed.err
        and closed.status == 0
    )
    (trips.folder / "elsewhere").rename(trips.folder / "trips.duckdb")
    ticked = dpsql("query", trips.policy, "TICK DP COUNTER rides", "--analyst", "ana")
    assert ticked.out == "counter rides: counted through 2026-01-05\n"


def test_in_the_shell_and_by_a_cursor(dpsql: Call, trips: Trips) -> None:
    trips.close(3)
    typed = f"EXPLAIN {MADE};", f"{MADE};", "SHOW dpsql.counters;", "SELECT SUM(n) > 0 AS some FROM dpsql.rides;"
    shown = dpsql("shell", trips.policy, "--analyst", "ana", *[word for each in typed for word in ("-c", each)])
    assert "cost: ρ 0.02" in shown.out and "counted through 2026-01-03" in shown.out and "goes on" in shown.out
    assert "true" in shown.out
    with api.connect(trips.policy, analyst="ben") as con:
        cursor = con.cursor()
        with pytest.raises(api.Error, match="has not got counter rides"):
            cursor.execute("SELECT * FROM dpsql.rides")
        assert cursor.execute("RECEIVE DP COUNTER rides").fetchone()[:2] == ("rides", "ρ 0.02")  # type: ignore[index]
        assert len(cursor.execute("SELECT * FROM dpsql.rides").fetchall()) == 4
        assert cursor.execute("SHOW dpsql.counters").fetchone()[0] == "rides"  # type: ignore[index]
        with pytest.raises(api.Error, match="dropping a counter is free"):
            cursor.execute("EXPLAIN DROP DP COUNTER rides")
    with api.connect(trips.policy, analyst="ana") as con:
        assert con.execute("DROP DP COUNTER rides").fetchone()[0] == "rides"  # type: ignore[index]
        assert con.execute("SHOW dpsql.counters").fetchall() == []


def test_in_a_ledger_that_counts_epsilon_alone_it_is_refused_by_name(dpsql: Call, tmp_path: Path) -> None:
    trips = make_trips(tmp_path, accountant="pure_dp", each="{epsilon: 1}")
    refused = dpsql("query", trips.policy, MADE.replace("rho = 0.02", "epsilon = 0.5"), "--analyst", "ana")
    assert refused.status == 1 and "a counter needs Gaussian noise" in refused.err
