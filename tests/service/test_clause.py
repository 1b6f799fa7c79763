"""A privacy clause against the other ways of setting things, and the interval columns, in a session."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.api.connection import Connection
from dpsql.diagnostics.errors import BudgetExceeded, Rejected

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25) "


def test_the_clause_is_stronger_than_keywords(shared: Connection) -> None:
    assert shared.sql(CLAUSE + "COUNT(*) AS n FROM members").cost(epsilon=3).epsilon == Fraction(1, 4)
    assert shared.sql("SELECT COUNT(*) AS n FROM members").cost(epsilon=3).epsilon == 3
    assert shared.sql(CLAUSE + "COUNT(*) AS n FROM members").cost().epsilon == Fraction(1, 4)
    assert "0.25" in shared.sql(CLAUSE + "COUNT(*) AS n FROM members").explain()


def test_delta_of_the_clause(shared: Connection) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-7) note, COUNT(*) AS n FROM members GROUP BY note"
    assert Fraction(1, 10**8) < shared.sql(sql).cost(epsilon=1, delta="1e-5").delta <= Fraction(1, 10**7)


def test_the_budget_is_above_the_clause(shared: Connection) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 20000) COUNT(*) AS n FROM members"
    with pytest.raises(BudgetExceeded):
        shared.sql(sql).run()


def test_the_smallest_number_of_units_is_the_largest_asked_for(shared: Connection) -> None:
    def least(options: str) -> int:
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) note, COUNT(*) AS n FROM members GROUP BY note"
        threshold = shared.sql(sql).plan(1, "1e-9").releases[0].measured.threshold
        assert threshold is not None
        return threshold.threshold

    assert least("min_privacy_units_per_group = 500") == 500 > least("epsilon = 1")
    assert least("min_privacy_units_per_group = 2") == least("epsilon = 1")


def test_interval_columns_are_the_intervals(shared: Connection) -> None:
    sql = (
        "SELECT city, COUNT(*) AS n, SUM(fee) AS s, AVG(age) AS a, "
        "DP_INTERVAL_LOW(n) AS nl, DP_INTERVAL_HIGH(n) AS nh, "
        "DP_INTERVAL_LOW(s) AS sl, DP_INTERVAL_HIGH(s) AS sh, DP_INTERVAL_LOW(a) AS al, DP_INTERVAL_HIGH(a) AS ah "
        "FROM members GROUP BY city"
    )
    plain = "SELECT city, COUNT(*) AS n, SUM(fee) AS s, AVG(age) AS a FROM members GROUP BY city"
    assert shared.sql(sql).cost(epsilon=1) == shared.sql(plain).cost(epsilon=1)  # post-processing costs nothing
    measured = [shared.sql(q).plan(1).releases[0].measured.node.components for q in (sql, plain)]
    assert measured[0] == measured[1]
    found = shared.sql(sql).run(epsilon=1)
    assert len(found) == 3
    for row, bounds in zip(found.rows, found.intervals(0.95), strict=True):
        _, _, _, _, nl, nh, sl, sh, al, ah = row
        assert bounds["n"] == (nl, nh) and bounds["s"] == (sl, sh) and bounds["a"] == (al, ah)
        assert bounds["nl"] is bounds["ah"] is None  # ends of intervals have none themselves


def test_interval_columns_through_sql(shared: Connection) -> None:
    """Filtered, sorted and computed with, in the scratch database."""
    sql = (
        "SELECT city, DP_INTERVAL_HIGH(COUNT(*)) - DP_INTERVAL_LOW(COUNT(*)) AS width FROM members GROUP BY city "
        "HAVING DP_INTERVAL_HIGH(COUNT(*)) > -100000 ORDER BY DP_INTERVAL_LOW(COUNT(*))"
    )
    found = shared.sql(sql).run(epsilon=1)
    assert len(found) == 3 and len({width for _, width in found.rows}) == 1 and found.rows[0][1] > 0


def test_no_groups_no_rows(shared: Connection) -> None:
    sql = "SELECT note, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS l FROM members WHERE age > 1000 GROUP BY note"
    assert shared.sql(sql).run(epsilon=1, delta="1e-9").rows == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(n) AS s, DP_INTERVAL_LOW(s) AS l FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY city) AS x",
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS l FROM cities",
    ],
)
def test_sums_of_noisy_numbers_have_no_interval_of_width_zero(shared: Connection, sql: str) -> None:
    with pytest.raises(Rejected) as refusal:
        shared.sql(sql).plan(1)
    assert refusal.value.diagnostics[0].code == "DP014"


def test_bounds_change_the_answer_as_they_say(shared: Connection) -> None:
    """At an ε that drowns the noise: totals of each id are clipped, each row of an average is."""
    sql = (
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, "
        "SUM(hours, contribution_bounds_per_group => (0, 5)) AS s, "
        "AVG(hours, contribution_bounds_per_row => (0, 4)) AS a, COUNT(*) AS every FROM visits"
    )
    n, s, a, every = shared.sql(sql).run(epsilon=2000).rows[0]
    exact = [
        [(i, float(i % 10)) for i in range(5000) if i % 1000 == unit] for unit in range(1000)
    ]  # five rows each: as built
    assert n == pytest.approx(sum(min(len(rows), 2) for rows in exact), abs=30)
    assert s == pytest.approx(sum(min(sum(h for _, h in rows), 5) for rows in exact), abs=60)
    assert every == pytest.approx(sum(min(len(rows), 4) for rows in exact), abs=60)
    assert a == pytest.approx(sum(min(h, 4) for rows in exact for _, h in rows) / 5000, abs=0.1)
