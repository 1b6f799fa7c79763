"""One day has one address, whatever asked for it; and no other question has it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from dpsql.answers.stored.address import Addresses
from dpsql.core.ir.periods import Closed
from dpsql.planner.plan import Plan
from tests.support.growing_town import Town, town_policy

EACH = "budgets: {each_period: {epsilon: 1000, delta: 1e-3}}"
D = [dt.date(2026, 1, n) for n in range(1, 11)]


@pytest.fixture(scope="module")
def town() -> Town:
    return Town(town_policy(EACH), Closed(D[9]))


def whole(plan: Plan, town: Town) -> list[str]:
    base = Addresses(plan, town.policy).of(0)
    return [base.address(c) for c in plan.releases[0].measured.node.components]


def by_day(plan: Plan, town: Town) -> dict[dt.date, list[str]]:
    addresses, measured = Addresses(plan, town.policy), plan.releases[0].measured
    assert measured.parts is not None
    found = {}
    for part in measured.parts.parts:
        base, days = addresses.of_part(0, part.days, part)
        found[part.days[0][0]] = [base.on(days, c) for c in measured.node.components]
    return found


MEASURES = "COUNT(*), SUM(minutes)"
OF_ONE = f"SELECT station, {MEASURES} FROM trips WHERE day = DATE '2026-01-03' AND minutes > 2 GROUP BY station"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT day, station, {MEASURES} FROM trips WHERE minutes > 2 GROUP BY ALL",
        f"SELECT station, day, {MEASURES} FROM trips WHERE minutes > 2 GROUP BY ALL",
        f"SELECT day, station, {MEASURES} FROM trips WHERE day BETWEEN DATE '2026-01-02' AND '2026-01-04' AND minutes "
        "> 2 GROUP BY ALL",
        f"SELECT day, station, {MEASURES} FROM trips WHERE minutes > 2 AND day > last_closed('trips') - 9 GROUP BY ALL",
        f"SELECT d, station, {MEASURES} FROM (SELECT day AS d, station, minutes FROM trips) t WHERE minutes > 2 GROUP "
        "BY ALL",
    ],
)
def test_a_day_of_many_is_the_day_alone(town: Town, sql: str) -> None:
    plan = town.plan(sql)
    found = by_day(plan, town)
    assert found[D[2]] == whole(town.plan(OF_ONE), town)
    assert len({address for each in found.values() for address in each}) == 2 * len(found)
    assert not {*whole(plan, town)} & {address for each in found.values() for address in each}


def test_a_range_is_one_however_it_is_written(town: Town) -> None:
    said = ("day >= DATE '2026-01-02' AND day <= DATE '2026-01-04'", "day BETWEEN DATE '2026-01-02' AND '2026-01-04'",
            "day IN (DATE '2026-01-02', DATE '2026-01-03', DATE '2026-01-04')", "day < DATE '2026-01-05' AND day > "
            "DATE '2026-01-01'")  # fmt: skip
    assert len({whole(town.plan(f"SELECT COUNT(*) FROM trips WHERE {each}"), town)[0] for each in said}) == 1


@pytest.mark.parametrize(
    ("some", "others"),
    [
        ("day = DATE '2026-01-03'", "day = DATE '2026-01-04'"),
        ("day = DATE '2026-01-03'", "day <= DATE '2026-01-03'"),
        ("day <= DATE '2026-01-03'", "day <= DATE '2026-01-03' AND dayofweek(day) = 1"),
        ("day <= DATE '2026-01-03'", "day <= DATE '2026-01-03' AND minutes > 2"),
        ("day <= DATE '2026-01-03'", "(day <= DATE '2026-01-03' OR minutes > 2) AND day <= DATE '2026-01-04'"),
        ("TRUE", "day <> DATE '2026-01-03'"),
    ],
)
def test_other_rows_have_other_addresses(town: Town, some: str, others: str) -> None:
    assert whole(town.plan(f"SELECT COUNT(*) FROM trips WHERE {some}"), town) != whole(
        town.plan(f"SELECT COUNT(*) FROM trips WHERE {others}"), town
    )


def test_a_condition_within_a_period_stays() -> None:
    """Of a month that is read in part: the part is another question than the month."""
    months = Town(town_policy(EACH, every="month"), Closed(dt.date(2026, 2, 28)))
    m = "SELECT date_trunc('month', day) AS m, COUNT(*) FROM trips{} GROUP BY m"
    all_of_them, some = (by_day(months.plan(m.format(w)), months) for w in ("", " WHERE day >= DATE '2026-01-15'"))
    assert all_of_them[D[0]] != some[D[0]]
    assert all_of_them[dt.date(2026, 2, 1)] == some[dt.date(2026, 2, 1)]
    january = months.plan("SELECT COUNT(*) FROM trips WHERE date_trunc('month', day) = DATE '2026-01-01'")
    assert all_of_them[D[0]] == whole(january, months)
    days = by_day(months.plan("SELECT day, COUNT(*) FROM trips GROUP BY day"), months)
    assert days[D[0]] != all_of_them[D[0]]  # thirty-one numbers are not one


def test_a_day_that_was_opened_again_is_another_one_and_no_other_is() -> None:
    sql = "SELECT day, COUNT(*) FROM trips GROUP BY day"
    before, after = (Town(town_policy(EACH), Closed(D[9], again)) for again in ((), ((D[3], D[4]),)))
    first, then = by_day(before.plan(sql), before), by_day(after.plan(sql), after)
    assert {day for day in first if first[day] != then[day]} == {D[3], D[4]}


def test_what_is_locked_is_one_for_all_days(town: Town) -> None:
    """Whoever draws some days waits for whoever draws others of the same: he may be given them."""
    plans = [town.plan(f"SELECT day, COUNT(*) FROM trips WHERE day >= DATE '{each}' GROUP BY day") for each in D[:3]]
    assert len({Addresses(plan, town.policy).of(0).name for plan in plans}) == 1


def test_a_plan_that_says_nothing_of_its_policy_is_none(town: Town) -> None:
    plan = town.plan("SELECT COUNT(*) FROM trips")
    with pytest.raises(AssertionError):
        Addresses(replace(plan, basis=replace(plan.basis, policy_hash="")), town.policy)
