"""What would give a row of a growing table a second budget, or a counter a row of a second day: refused, by name."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from tests.support.counted_trips import RIDES, Trips, day, make_trips

MADE = RIDES.format(rho="0.02")
OFTEN = "    max_frequency: [{columns: [station], rows: 2, enforce: truncate}]\n"
NOTES = f"""\
  notes:
    unit: {{rows: 1, of: note}}
{OFTEN}    columns: {{station: {{type: bigint, nullable: false}}, level: {{type: bigint, nullable: false}}}}
"""


@pytest.fixture
def joined(tmp_path: Path) -> Trips:
    """Beside a private table that does not grow; queries may join it, for a station is on few rows of each."""
    trips = make_trips(tmp_path)
    with duckdb.connect(str(tmp_path / "trips.duckdb")) as con:
        con.execute("CREATE TABLE notes AS SELECT 1::BIGINT AS station, 2::BIGINT AS level FROM range(2)")
    file = tmp_path / "policy.yaml"
    text = file.read_text().replace("budgets:\n", "budgets:\n  total: {rho: 1}\n")
    file.write_text(text.replace("    columns:\n", OFTEN + "    columns:\n", 1) + NOTES)
    trips.close(4)
    return trips


def counter_refused(trips: Trips, sql: str, why: str) -> None:
    with dpsql.connect(trips.policy, analyst="ana") as con:
        with pytest.raises(dpsql.Error, match=why) as refusal:
            con.counter_of(sql).run()
        assert "nothing was spent" in str(refusal.value) and not con.counters
        assert not any(receipt.entry.units for receipt in con.ledger.history())


TWO = """\
version: 1
name: two
database: two.duckdb
budgets: {each_period: {epsilon: 1}}
tables:
  starts:
    unit: {UNIT}
    grows: {by: day, every: day, from: 2026-01-01}
    columns: {day: {type: date}, rider: {type: bigint}}
  ends:SOURCE
    unit: {OTHER}
    grows: {by: day, every: day, from: 2026-01-01}
    columns: {day: {type: date}, rider: {type: bigint}}
"""
ROW, RIDER = "rows: 1", "of: rider_day, column: rider, per: period"


@pytest.mark.parametrize(
    ("unit", "other", "why"),
    [
        (ROW, ROW, "DP004.*the same rows would have two budgets"),
        ("rows: 1, of: trip", "rows: 1, of: trip", "DP003.*a row that two of them read would have two periods"),
        (RIDER, RIDER, "DP004.*a row would have two periods, and two budgets"),
        (RIDER, RIDER.replace("rider_day", "other"), "DP004.*the same rows would have two budgets"),
    ],
)
def test_a_row_that_two_tables_read_by_different_dates_is_refused_by_name(
    tmp_path: Path, unit: str, other: str, why: str
) -> None:
    """Through a view, which calls another date by the same name: the data is looked at when it is opened."""
    with duckdb.connect(str(tmp_path / "two.duckdb")) as con:
        con.execute("CREATE TABLE starts (day DATE, rider BIGINT)")
        con.execute("CREATE VIEW ends AS SELECT day + 1 AS day, rider FROM starts")
    text = TWO.replace("UNIT", unit).replace("OTHER", other).replace("SOURCE", "")
    (tmp_path / "two.yaml").write_text(text)
    with pytest.raises(dpsql.Error, match=why):
        dpsql.connect(str(tmp_path / "two.yaml"))


@pytest.mark.parametrize("pattern", ["starts.parquet", "*.parquet"])
def test_a_file_that_two_tables_read_by_different_dates_is_refused_by_name(tmp_path: Path, pattern: str) -> None:
    duckdb.execute(f"COPY (SELECT DATE '2026-01-01' AS day, 1::BIGINT AS rider) TO '{tmp_path}/starts.parquet'")
    text = TWO.replace("UNIT", ROW).replace("OTHER", ROW).replace("database: two.duckdb\n", "")
    source = "\n    source: read_parquet('{}')"
    text = text.replace("SOURCE", source.format(pattern)).replace(
        "starts:", "starts:" + source.format("starts.parquet")
    )
    later = (
        "{by: later, every: day, from: 2026-01-01}\n    columns: {later: {type: date, from: day + 1}, day: {type: date}"
    )
    before, at, after = text.rpartition("{by: day, every: day, from: 2026-01-01}\n    columns: {day: {type: date}")
    assert at
    (tmp_path / "two.yaml").write_text(before + later + after)
    with pytest.raises(dpsql.Error, match=r"a file's rows have one unit|the same rows would have two budgets"):
        dpsql.connect(str(tmp_path / "two.yaml"))


def test_a_joined_table_that_does_not_grow_is_counted_by_no_counter_and_refused_by_name(joined: Trips) -> None:
    """A row of it would be in every tick. A query may join it: the price says that it costs the note for ever."""
    for sql in (
        MADE.replace("FROM trips", "FROM trips JOIN notes USING (station)"),
        MADE.replace("FROM trips", "FROM trips LEFT JOIN notes USING (station)"),
        MADE.replace("FROM trips", "FROM trips WHERE station IN (SELECT station FROM notes)"),
    ):
        counter_refused(joined, sql, "DP903.*joined to public tables at most")
    with dpsql.connect(joined.policy, analyst="ana") as con:
        query = con.sql(f"SELECT COUNT(*) AS n FROM trips JOIN notes USING (station) WHERE day = DATE '{day(2)}'")
        query.run(rho="0.1")
        assert [con.ledger.spent("note", None, (day(n), day(n))).rho for n in (1, 2)] == [
            con.ledger.spent("note").rho
        ] * 2
        assert [con.ledger.spent("trips", None, (day(n), day(n))).rho > 0 for n in (1, 2, 3)] == [False, True, False]


def test_a_table_that_does_not_grow_is_no_table_of_a_unit_of_one_period(tmp_path: Path) -> None:
    text = TWO.replace("UNIT", RIDER).replace("OTHER", RIDER).replace("SOURCE", "")
    text = text.replace("    grows: {by: day, every: day, from: 2026-01-01}\n", "", 1)
    (tmp_path / "two.yaml").write_text(text)
    with pytest.raises(dpsql.Error, match="needs a table that grows"):
        dpsql.connect(str(tmp_path / "two.yaml"))


def test_a_self_join_with_another_day_is_counted_by_no_counter_and_refused_by_name(joined: Trips) -> None:
    """A row would be in the numbers of two ticks at once."""
    named = MADE.replace("station, COUNT", "t.station, COUNT").replace("GROUP BY station", "GROUP BY t.station")
    pairs = named.replace("SUM(minutes)", "SUM(t.minutes)").replace(
        "FROM trips", "FROM trips t JOIN trips u ON t.station = u.station AND t.day = u.day + 1"
    )
    counter_refused(joined, pairs, "DP903.*a counter reads one growing table, by its name and once")
    before = "FROM trips t WHERE EXISTS (SELECT 1 FROM trips u WHERE u.station = t.station AND u.day = t.day - 1)"
    counter_refused(joined, MADE.replace("FROM trips", before), "DP903.*joined to public tables at most")


def test_of_one_riders_day_a_self_join_with_another_day_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(TWO.replace("UNIT", RIDER).replace("OTHER", RIDER).replace("SOURCE", ""))
    for on in ("a.rider = b.rider AND a.day = b.day + 1", "a.rider = b.rider"):
        found = dpsql.check(f"SELECT COUNT(*) AS n FROM starts a JOIN starts b ON {on}", tmp_path / "two.yaml")
        assert [each.code for each in found if each.severity == "error"] == ["DP230"]


def test_a_key_that_is_added_later_is_counted_by_no_old_counter_and_refused_by_name(tmp_path: Path) -> None:
    """Its first tick would read all earlier days at a price that was paid for the others: another counter is made."""
    trips = make_trips(tmp_path)
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
        spent = con.ledger.by_period("trips")
    file = tmp_path / "policy.yaml"
    file.write_text(file.read_text().replace("domain: [1, 2]", "domain: [1, 2, 3]"))
    trips.close(5)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        found = con.tick_counter("rides")
        assert (found.through, found.lost) == (day(3), day(4)) and "measures it otherwise now" in found.why
        with pytest.raises(dpsql.Error, match="rides is measured otherwise now"):
            con.sql("SELECT * FROM dpsql.rides").run()
        assert con.ledger.by_period("trips") == spent and len(con.ledger.history()) == 2 + 1 + 2 * 2
