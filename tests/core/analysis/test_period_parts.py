"""Which releases fall into parts of days of their own, and which do not."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from dpsql.core.analysis.period_parts import period_parts, row_scan
from dpsql.core.ir.nodes import BoundContributions, Join, JoinKind, Scan, keyed_by
from dpsql.core.ir.periods import Closed, words
from tests.support.growing_town import Town, town_policy
from tests.support.rider_town import RiderTown, rider_policy

EACH = "budgets: {each_period: {epsilon: 1000, delta: 1e-3}}"


def town(every: str = "day", through: dt.date = dt.date(2026, 1, 4), budgets: str = EACH) -> Town:
    return Town(town_policy(budgets, every=every), Closed(through))


def parts(sql: str, of: Town | None = None) -> list[str] | None:
    (planned,) = (of or town()).plan(sql).releases
    found = planned.measured.parts
    return None if found is None else [f"{words(p.days)}{'' if p.constant else f' {len(p.keys)}'}" for p in found.parts]


DAYS = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT day, COUNT(*) FROM trips GROUP BY day", DAYS),
        ("SELECT station, day, COUNT(*), SUM(minutes) FROM trips WHERE minutes > 3 GROUP BY ALL", DAYS),
        ("SELECT day, COUNT(DISTINCT station) FROM trips WHERE day > DATE '2026-01-02' GROUP BY day", DAYS[2:]),
        ("SELECT day, name, COUNT(*) FROM trips JOIN stations USING (station) GROUP BY ALL", DAYS),
        ("SELECT tag, COUNT(*) FROM (SELECT day AS tag FROM trips) t GROUP BY tag", DAYS),
        ("SELECT date_trunc('month', day) AS m, COUNT(*) FROM trips GROUP BY m", ["2026-01-01 … 2026-01-04"]),
        ("SELECT day, COUNT(*) FROM trips WHERE station IN (SELECT station FROM stations WHERE name = 'a') GROUP BY "
         "day", DAYS),
    ],
)  # fmt: skip
def test_groups_of_days(sql: str, expected: list[str]) -> None:
    assert parts(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM trips",
        "SELECT station, COUNT(*) FROM trips GROUP BY station",
        "SELECT day, COUNT(*) FROM (SELECT DISTINCT day, minutes FROM trips) t GROUP BY day",
        "SELECT day, COUNT(*) FROM (SELECT * FROM trips UNION ALL SELECT * FROM trips) t GROUP BY day",
        "SELECT day + 1 AS next, COUNT(*) FROM trips WHERE day + 1 = DATE '2026-01-02' GROUP BY 1",
    ],
)
def test_others_are_one(sql: str) -> None:
    assert parts(sql) is None


def test_where_nothing_has_accounts_by_period_nothing_falls_apart() -> None:
    everything = town(budgets="budgets: {total: {epsilon: 1000, delta: 1e-3}}")
    assert parts("SELECT day, COUNT(*) FROM trips GROUP BY day", everything) is None


def test_a_part_has_whole_periods() -> None:
    """Within a month a row may change its day: what is told of one day is paid for by all of them."""
    months = town("month", dt.date(2026, 2, 28))
    by_day = "SELECT day, COUNT(*) FROM trips WHERE day < DATE '2026-02-03' GROUP BY day"
    assert parts(by_day, months) == ["2026-01-01 … 2026-01-31 31", "2026-02-01 … 2026-02-28 2"]
    by_month = "SELECT date_trunc('month', day) AS m, COUNT(*) FROM trips GROUP BY m"
    assert parts(by_month, months) == ["2026-01-01 … 2026-01-31", "2026-02-01 … 2026-02-28"]
    by_week = "SELECT date_trunc('week', day) AS w, COUNT(*) FROM trips GROUP BY w"
    assert parts(by_week, months) is None  # a week lies in two months


def test_nor_do_releases_of_limited_ids_or_private_keys() -> None:
    """Found of the node alone: what another row does decides there what a row counts for."""
    (planned,) = town().plan("SELECT day, COUNT(*) FROM trips GROUP BY day").releases
    node = planned.measured.node
    assert period_parts(node, {}) is not None
    assert period_parts(replace(node, threshold=0), {}) is None
    scan = keyed_by(node).input
    assert isinstance(scan, Scan)
    for id_ in scan.columns:
        limited = replace(node, input=BoundContributions(node.input, id_, node.keys, rows=1))
        for ids, apart in (({}, False), ({"trips": "rider of each day"}, False), ({"trips": id_.name}, True)):
            assert (period_parts(limited, ids) is not None) == apart  # what the policy calls an id in one period, alone
        assert period_parts(limited, {"stations": id_.name}) is None
        assert period_parts(replace(limited, threshold=0), {"trips": id_.name}) is None


@pytest.mark.parametrize(("per", "found"), [(True, ["2026-01-05", "2026-01-06", "2026-01-07"]), (False, None)])
def test_a_limit_of_one_riders_day_is_of_one_day(per: bool, found: list[str] | None) -> None:
    of = RiderTown(rider_policy(per, limit=2))
    (planned,) = of.plan("SELECT day, station, COUNT(*), COUNT(DISTINCT rider) FROM trips GROUP BY ALL").releases
    split = planned.measured.parts
    assert isinstance(planned.measured.node.input, BoundContributions)
    assert (None if split is None else [words(p.days) for p in split.parts]) == found
    of.close()


def test_nor_do_rows_that_another_scan_of_them_decides() -> None:
    (planned,) = town().plan("SELECT day, COUNT(*) FROM trips GROUP BY day").releases
    scan = keyed_by(planned.measured.node).input
    assert isinstance(scan, Scan) and row_scan(scan) is scan
    public = replace(scan, periods=None)
    for kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.LEFT):
        assert row_scan(Join(kind, scan, scan)) is None
        assert row_scan(Join(kind, scan, public)) is scan
    assert row_scan(Join(JoinKind.LEFT, public, scan)) is row_scan(Join(JoinKind.FULL, scan, public)) is None
    assert row_scan(Join(JoinKind.INNER, public, scan)) is scan
