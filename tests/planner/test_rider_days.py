"""One rider's day as the unit: what joins by it, what is refused by name, and which words are told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.core.ir.components import UnitCount
from dpsql.core.ledger.closings import close
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, Rejected
from dpsql.faces.audit.report import as_text as audit_text
from dpsql.faces.audit.run_audit import audit
from dpsql.faces.report.sections import whom
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.tools.assumptions import promises
from dpsql.service.accounts.remaining_budgets import lines_by_period
from dpsql.service.made_up.service import made_up
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.rider_town import BY_PERIOD, RIDERS, RiderTown, rider_policy


@pytest.fixture(scope="module")
def town() -> Iterator[RiderTown]:
    town = RiderTown(rider_policy(limit=3))
    yield town
    town.close()


JOIN = "SELECT COUNT(*) FROM trips t JOIN walks w ON "


@pytest.mark.parametrize(
    "on",
    [
        "t.rider = w.rider AND t.day = w.on_day",
        "w.on_day = t.day AND w.rider = t.rider",
        "t.rider = w.rider AND date_trunc('day', t.day) = w.on_day",
        "t.rider = w.rider WHERE t.day = w.on_day",
    ],
)
def test_tables_join_by_the_id_and_the_period(town: RiderTown, on: str) -> None:
    (release,) = town.plan(JOIN + on).releases
    assert set(release.measured.contributions) == {"rider_day"} and "rider of each day" in release.statements[0].sql


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (JOIN + "t.rider = w.rider", "DP230"),
        (JOIN + "t.day = w.on_day", "DP230"),
        (JOIN + "t.rider = w.rider AND date_trunc('month', t.day) = date_trunc('month', w.on_day)", "DP230"),
        # a self-join with another day
        ("SELECT COUNT(*) FROM trips a JOIN trips b ON a.rider = b.rider AND a.day = b.day - 1", "DP230"),
        ("SELECT COUNT(*) FROM trips a JOIN trips b ON a.rider = b.rider AND a.day < b.day", "DP230"),
        ("SELECT COUNT(*) FROM trips t WHERE EXISTS (SELECT 1 FROM walks w WHERE w.rider = t.rider)", "DP230"),
        ("SELECT COUNT(*) FROM trips WHERE rider IN (SELECT rider FROM walks)", "DP230"),
        ("SELECT rider, COUNT(*) FROM trips GROUP BY rider", "DP301"),
        ("SELECT rider, day, COUNT(*) FROM trips GROUP BY rider, day", "DP301"),
        ("SELECT AVG(CLIP(n, 0, 3)) FROM (SELECT rider, COUNT(*) AS n FROM trips GROUP BY rider) t", "DP301"),
        ("SELECT COUNT(*) FROM trips t JOIN (SELECT rider, COUNT(*) AS n FROM walks GROUP BY rider) w "
         "ON t.rider = w.rider", "DP301"),
        ("SELECT COUNT(*) FROM (SELECT LAG(station) OVER (PARTITION BY rider ORDER BY day) AS l FROM trips) t "
         "WHERE l = 1", "DP113"),
        ('SELECT COUNT(*) FROM trips WHERE "rider of each day" > \'\'', "DP103"),
    ],
)  # fmt: skip
def test_the_id_alone_or_the_period_alone_is_refused(town: RiderTown, sql: str, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        town.plan(sql)
    assert code in [d.code for d in refused.value.diagnostics]


def test_the_refusal_says_what_is_to_be_equal(town: RiderTown) -> None:
    with pytest.raises(Rejected) as refused:
        town.plan(JOIN + "t.rider = w.rider")
    assert "join on rider and its day, which are the privacy unit together" in refused.value.diagnostics[0].help


def test_a_week_is_told_by_its_days_and_by_itself() -> None:
    weeks = RiderTown(rider_policy(every="week"), dt.date(2026, 1, 31))
    weeks.plan(JOIN + "t.rider = w.rider AND t.day = w.on_day")
    weeks.plan(JOIN + "t.rider = w.rider AND date_trunc('week', t.day) = date_trunc('week', w.on_day)")
    with pytest.raises(Rejected):
        weeks.plan(JOIN + "t.rider = w.rider AND date_trunc('month', t.day) = date_trunc('month', w.on_day)")
    weeks.close()


@pytest.mark.parametrize(
    ("sql", "units"),
    [
        ("SELECT day, COUNT(DISTINCT rider) FROM trips GROUP BY day", True),
        ("SELECT COUNT(DISTINCT rider) FROM trips WHERE day = DATE '2026-01-06'", True),
        ("SELECT COUNT(DISTINCT rider) FROM trips", False),  # riders, not their days
        ("SELECT station, COUNT(DISTINCT rider) FROM trips GROUP BY station", False),
    ],
)
def test_riders_of_one_day_are_counted_as_units(town: RiderTown, sql: str, units: bool) -> None:
    plan = town.plan(sql)
    assert units == any(isinstance(m.component, UnitCount) for r in plan.releases for m in r.measured.measurements)
    rows = [(rider, day, 1) for rider in (1, 2, None) for day in (dt.date(2026, 1, 6), dt.date(2026, 1, 7))]
    town.connection.execute("DELETE FROM trips")
    town.put(3, rows)
    (found,) = town.integers(plan, 3)
    assert max(max(numbers) for numbers in found.values()) == 2


def test_one_rider_s_day_in_words() -> None:
    town = RiderTown(rider_policy(limit=3))
    told = as_text(town.plan("SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-06'"))
    assert "cost: ε 1 of each rider_day of 2026-01-06, nothing of other days" in told
    assert (
        "rider_day: one rider's day; over d days of one rider the loss may be d times this: 7 days: ε 7, 28 days: "
        "ε 28, 365 days: ε 365"
    ) in told
    text = "\n".join(lines_by_period(town.policy, None))
    assert "rider_day, one rider's day" in text and "A rider of many days is protected less: 7 days: " in text
    assert "One rider&#x27;s day is protected. A rider of many days is protected less" in whom(town.policy)
    effects = [p.when_false for p in promises(town.policy) if p.kind == "unit"]
    assert all("The unit is one rider's day: over d days of a rider the loss may be d times it" in e for e in effects)
    town.close()


def test_its_claims_can_be_attacked() -> None:
    """By databases that differ in one rider's day."""
    from dpsql.diagnostics.diagnostic import Source

    found = audit(
        Source("SELECT day, COUNT(*) FROM trips GROUP BY day"), rider_policy(limit=2), QuerySettings(1), runs=100,
        most_pairs=12,
    )  # type: ignore[arg-type]  # fmt: skip
    assert not found.refuted and "of each rider_day (one rider's day), added or removed" in audit_text(found)
    assert not found.unmoved


def test_rows_can_be_made_up() -> None:
    service, _ = made_up(rider_policy(limit=2))
    (row,) = service.session().sql("SELECT COUNT(*), COUNT(DISTINCT rider) FROM trips").run(epsilon=2).rows
    assert len(row) == 2
    service.close()


def day(n: int) -> dt.date:
    return dt.date(2026, 1, n)


def opened(folder: Path, view: bool = False, by: str = "on_day") -> Service:
    with duckdb.connect(str(folder / "town.duckdb")) as con:
        con.execute(
            "CREATE TABLE trips AS SELECT i % 9 AS rider, DATE '2026-01-05' + (i % 9)::INT AS day, 1::BIGINT AS "
            "station FROM range(90) t(i)"
        )
        source = "trips" if view else "range(0) r(i), trips"
        con.execute(f"CREATE VIEW walks AS SELECT rider, day + 1 AS {by}, station AS km FROM {source}")
        if not view:
            con.execute("DROP VIEW walks; CREATE TABLE walks (rider BIGINT, on_day DATE, km BIGINT)")
    text = RIDERS.format(per=", per: period", every="day", limit=2, type="bigint", budgets=BY_PERIOD)
    text = text.replace("on_day", by)
    (folder / "town.yaml").write_text(text.replace("name: town", "name: town\ndatabase: town.duckdb"))
    service = Service(*open_data(str(folder / "town.yaml"), None, None, None, None), MemoryLedger("town", "approx_dp"))
    for table in service.policy.tables.values():
        close(service.ledger, service.policy, table, day(10))
    return service


def test_days_are_charged_and_refused_each_by_itself(tmp_path: Path) -> None:
    service = opened(tmp_path)
    session = service.session()
    ask = "SELECT COUNT(*) AS n FROM {} WHERE {} = DATE '2026-01-0{}'"
    session.sql(ask.format("trips", "day", 6)).run(epsilon=2)
    session.sql(ask.format("walks", "on_day", 7)).run(epsilon=1)
    spent = [service.ledger.spent("rider_day", days=(day(n), day(n))).epsilon for n in (5, 6, 7, 8)]
    assert spent == [0, 2, 1, 0]
    with pytest.raises(BudgetExceeded) as refused:
        session.sql(ask.format("walks", "on_day", 6)).run(epsilon=1)
    assert "budget of each period of unit 'rider_day', 2026-01-06: ε 1 asked, 0 left" in str(refused.value)
    assert "WHERE on_day >= DATE '2026-01-07'" not in str(refused.value)  # it asks for this day
    with pytest.raises(BudgetExceeded) as refused:
        session.sql("SELECT COUNT(*) AS n FROM walks").run(epsilon="1.5")
    assert "WHERE on_day >= DATE '2026-01-08': these have ε 2" in str(refused.value)
    # of both tables in one query: the days of either
    both = JOIN + "t.rider = w.rider AND t.day = w.on_day WHERE t.day = DATE '2026-01-08'"
    session.sql(both.replace("COUNT(*)", "COUNT(*) AS n")).run(epsilon=1)
    assert service.ledger.spent("rider_day", days=(day(8), day(8))).epsilon == 1
    service.close()


@pytest.mark.parametrize("by", ["on_day", "day"])
def test_a_row_that_two_tables_read_by_different_dates_is_refused(tmp_path: Path, by: str) -> None:
    """Through a view a date is another one, though it has the same name."""
    with pytest.raises(CannotOpen, match="a row would have two periods, and two budgets"):
        opened(tmp_path, view=True, by=by)


def test_a_table_of_the_unit_that_is_renamed_tells_its_periods_as_before() -> None:
    from dpsql.core.ledger.closings import closed_periods

    ledger, policy = MemoryLedger(), rider_policy()
    close(ledger, policy, policy.tables["trips"], day(9))
    text = RIDERS.format(per=", per: period", every="day", limit=1, type="bigint", budgets=BY_PERIOD)
    other = text.replace("  trips:", "  rides:").replace("{by: day", "{by: begun").replace("      day:", "      begun:")
    later = parse_policy(other, "town.yaml")
    with pytest.raises(CannotOpen, match="a row would have a second period"):
        closed_periods(ledger.closings(), later, later.tables["rides"])
    same = parse_policy(text.replace("  trips:", "  rides:"), "town.yaml")
    assert closed_periods(ledger.closings(), same, same.tables["rides"]).through == day(9)
    assert closed_periods(ledger.closings(), policy, policy.tables["walks"]).through is None
