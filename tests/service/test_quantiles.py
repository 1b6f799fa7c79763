"""Quantiles in a session: what is charged, what is served again, what needs no data."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.core.release.noisy import exact_totals

SLICES = (
    "SELECT MEDIAN(age) FILTER (WHERE city = 'Bonn'), MEDIAN(age) FILTER (WHERE city = 'Lyon') FROM members",
    "SELECT MEDIAN(hours) FILTER (WHERE hours < 5), MEDIAN(hours) FILTER (WHERE hours >= 5) FROM visits",
    "SELECT MEDIAN(amount) FILTER (WHERE amount < 10), MEDIAN(amount) FILTER (WHERE amount >= 10) FROM tills",
)


@pytest.mark.parametrize("sql", SLICES)
def test_quantiles_of_disjoint_rows_pay_once(con: Connection, sql: str, ledger: MemoryLedger) -> None:
    """One statement counts each row in one of them, as each is counted alone; what was paid for is given again."""
    plan = con.sql(sql).plan(epsilon=1)
    (release,) = plan.releases
    assert [m.loss.epsilon for m in release.measured.measurements] == [1, 1] and plan.loss.epsilon == 1
    (unit,) = plan.cost
    assert con.sql(sql).run(epsilon=1).spent == ledger.spent(unit) == plan.loss
    calls, table = sql.removeprefix("SELECT ").split(" FROM ")
    engine, apart = (
        con.service.engine,
        [con.sql(f"SELECT {call} FROM {table}") for call in calls.replace("), ", ")\n").splitlines()],
    )
    one = [exact_totals(each.plan(epsilon=1).releases[0], engine, 7)[()][0] for each in apart]
    assert exact_totals(release, engine, 7) == {(): one}
    assert apart[0].run(epsilon=1).spent == NO_LOSS == con.sql(sql).run(epsilon=1).spent


def test_shares_of_quantiles_and_numbers_add_up(con: Connection, ledger: MemoryLedger) -> None:
    query = con.sql("SELECT MEDIAN(age), QUANTILE_DISC(age, 0.9), COUNT(*), SUM(fee) FROM members")
    cost = query.cost(epsilon=1)
    result = query.run(epsilon=1)
    assert cost == result.spent == ledger.spent("member")
    assert result.spent.epsilon == 1 and result.spent.delta == 0


def test_an_answer_is_served_again_and_no_other(con: Connection, ledger: MemoryLedger) -> None:
    first = con.sql("SELECT QUANTILE_DISC(age, 0.9) FROM members").run(epsilon=1)
    for same in (
        "SELECT QUANTILE_DISC(age, 0.90) FROM members",
        "SELECT PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY age DESC) FROM members",
    ):
        again = con.sql(same).run(epsilon=1)
        assert again.spent.epsilon == 0 and again.fetchall() == first.fetchall(), same
    for number, other in enumerate(
        (
            "SELECT QUANTILE_DISC(age, 0.8) FROM members",
            "SELECT QUANTILE_DISC(age, 0.1) FROM members",
            "SELECT QUANTILE_DISC(CLIP(age, 0, 90), 0.9) FROM members",
            "SELECT QUANTILE_DISC(age, 0.9) FILTER (WHERE city = 'Bonn') FROM members",
            "SELECT city, QUANTILE_DISC(age, 0.9) FROM members GROUP BY city",
        ),
        2,
    ):
        assert con.sql(other).run(epsilon=1).spent.epsilon == 1, other
        assert ledger.spent("member").epsilon == number


def test_no_rows_and_empty_groups(con: Connection) -> None:
    """Of rows that nobody has NULL, for nothing; of a group that happens to be empty some value, for its price."""
    none = con.sql("SELECT MEDIAN(age) FROM members WHERE FALSE").run(epsilon=1)
    assert none.fetchall() == [(None,)] and none.spent.epsilon == 0
    empty = con.sql("SELECT city, MEDIAN(age) AS m FROM members WHERE age > 90 GROUP BY city").run(epsilon=1)
    rows = empty.fetchall()
    assert [city for city, _ in rows] == ["Bonn", "Lyon", "Oslo"] and empty.spent.epsilon == 1
    assert all(0 <= value <= 100 for _, value in rows)


def test_several_quantiles_are_in_order(con: Connection) -> None:
    listed = ", ".join(f"QUANTILE_DISC(age, {p})" for p in ("0.9", "0.1", "0.5", "0.3", "0.7"))
    for _, *found in (
        con.sql(f"SELECT city, {listed} FROM members WHERE age > 90 GROUP BY city").run(epsilon=1).fetchall()
    ):
        high, low, middle, third, seventh = found
        assert low <= third <= middle <= seventh <= high


def test_a_stored_answer_serves_what_is_no_more_accurate(con: Connection) -> None:
    sql = "SELECT MEDIAN(age) FROM members"
    first = con.sql(sql).run(epsilon=1)
    worse = con.sql(sql).run(epsilon=Fraction(1, 2))
    assert worse.spent.epsilon == 0 and worse.fetchall() == first.fetchall()
    assert con.sql(sql).run(epsilon=2).spent.epsilon == 2


def test_weights_divide_between_quantiles_and_numbers(con: Connection) -> None:
    """A quantile is named like any column."""
    query = con.sql("SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM members")
    (release,) = query.plan(epsilon=1, weights={"m": 3}).releases
    assert [m.loss.epsilon for m in release.measured.measurements] == [Fraction(3, 4), Fraction(1, 4)]
