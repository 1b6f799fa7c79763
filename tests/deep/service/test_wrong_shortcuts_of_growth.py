"""Wrong shortcuts of budgets by period and of counters that policies and queries are refused for: each passes its cap.

Neighbours are those of the unit that is meant; integers and regions are the real planner's, and the real book admits.
What a unit would lose, had it accounts by period all the same, is what `why_not_by_period`, DP110 and the counters'
refusals keep away (tests/service/test_what_growing_tables_refuse.py).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.periods import canonical
from dpsql.core.ir.walk import walk
from dpsql.core.ledger.losses.regions import LossSpan, Region, everywhere
from dpsql.core.numbers.counter_weights import squares, weights
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.planner.plan import Plan
from tests.deep.service.test_growing_streams import CAP, Asked, dearest_loss
from tests.support.rider_town import DAYS, RiderTown, Row, rider_policy

LOSS = PrivacyLoss(Fraction(1), Fraction(1, 10**6))
OF_A_DAY = "SELECT COUNT(*) FROM trips WHERE day = DATE '{}'"
FIRST_DAYS = (
    "SELECT COUNT(*) FROM (SELECT rider, MIN(day) AS first FROM trips GROUP BY rider) t WHERE first = DATE '{}'"
)
DAYS_AFTER = (
    "SELECT COUNT(*) FROM (SELECT day, LAG(day) OVER (PARTITION BY rider ORDER BY day) AS before FROM trips) t "
    "WHERE day = DATE '{}' AND before < day"
)
Rows = tuple[list[Row], list[Row]]


def read_by(plan: Plan) -> Region:
    """What is read, each day at the whole price: as of a unit with accounts by period."""
    days = [span for n in walk(plan.tree.node) if isinstance(n, Scan) and n.periods for span in n.periods.days]
    return tuple(LossSpan(first, last, LOSS) for first, last in canonical(days))


def day_alone(day: dt.date) -> Region:
    return (LossSpan(day, day, LOSS),)


def asked(
    queries: Sequence[str], one: Rows, other: Rows, charge: Callable[[Plan, int], Region], *, per: bool = False
) -> list[Asked]:
    """Questions, what each is charged, and whether neighbours differ in an integer of it."""
    town = RiderTown(rider_policy(per, limit=9))
    town.put(0, *one)
    town.put(1, *other)
    found = []
    for n, sql in enumerate(queries):
        plan = town.plan(sql)
        differs = town.integers(plan, 0) != town.integers(plan, 1)
        found.append(Asked(charge(plan, n), LOSS.epsilon, (differs,) * 3))
    town.close()
    return found


EACH_DAY = [OF_A_DAY.format(day) for day in DAYS]
OTHERS: list[Row] = [(7, day, 1) for day in DAYS]
RIDER: list[Row] = [(1, day, 1) for day in DAYS]


def by_region(plan: Plan, _: int) -> Region:
    return read_by(plan)


def in_every_period(_: Plan, __: int) -> Region:
    return everywhere(LOSS)


def test_a_person_each_of_whose_days_has_an_account() -> None:
    """All of one rider's rows come or go."""
    without, with_him = (OTHERS, []), ([*OTHERS, *RIDER], [])
    assert dearest_loss(asked(EACH_DAY, without, with_him, by_region)) == 3 * CAP - 1  # five questions are asked
    assert dearest_loss(asked(EACH_DAY, without, with_him, in_every_period)) == CAP


def test_a_replaced_row_whose_days_have_an_account_each() -> None:
    """It leaves one day, and comes to another."""
    before, after = ([*OTHERS, (1, DAYS[0], 1)], []), ([*OTHERS, (1, DAYS[2], 1)], [])
    assert dearest_loss(asked(EACH_DAY, before, after, by_region)) == 2 * CAP
    assert dearest_loss(asked(EACH_DAY, before, after, in_every_period)) == CAP


def test_a_row_with_a_day_in_each_of_two_tables() -> None:
    """A trip that one table tells by its start and another by its end."""
    queries = [EACH_DAY[0], "SELECT COUNT(*) FROM walks WHERE on_day = DATE '2026-01-07'"]
    before, after = (OTHERS, []), ([*OTHERS, (1, DAYS[0], 1)], [(1, DAYS[2], 1)])
    assert dearest_loss(asked(queries, before, after, by_region)) == 2 * CAP
    assert dearest_loss(asked(queries, before, after, in_every_period)) == CAP


@pytest.mark.parametrize("query", [FIRST_DAYS, DAYS_AFTER])
def test_what_a_person_did_before_is_charged_to_every_day_that_is_read(query: str) -> None:
    """A rider's day decides what is told of the days behind it: to charge the day that is shown is too little."""
    queries = [EACH_DAY[0], *(query.format(day) for day in DAYS[1:])]
    neighbours = (OTHERS + RIDER, []), ([*OTHERS, *RIDER[1:]], [])
    shown = asked(queries, *neighbours, lambda _, n: day_alone(DAYS[n]))
    assert [q.differs[0] for q in shown] == [True, True, False] and dearest_loss(shown) == 2 * CAP
    right = asked(queries, *neighbours, by_region)
    assert all(q.region == (LossSpan(DAYS[0], DAYS[2], LOSS),) for q in right[1:]) and dearest_loss(right) == CAP


# --- counters: what a row would lose, in parts of the price -----------------------------------------------------------


def lost(moved: Sequence[int], length: int) -> Fraction:
    return Fraction(sum(each * each for each in moved), squares(length))


def test_a_row_of_a_joined_table_that_does_not_grow_is_in_every_tick() -> None:
    r = weights(3_650)
    moved = [sum(r[: t + 1]) for t in range(28)]
    assert lost(moved, 3_650) > 100


def test_a_row_that_meets_its_own_row_of_another_day() -> None:
    """In two periods at once: more than twice as much as both by themselves would."""
    r = weights(3_650)
    moved = [r[0], *(r[t] + r[t - 1] for t in range(1, 3_650)), r[-1]]
    assert Fraction(31, 10) < lost(moved, 3_650) < Fraction(33, 10)


def test_a_key_that_is_added_with_a_first_tick_of_its_own() -> None:
    """A row is corrected to it once it lost nearly all of its price elsewhere: a first tick is the price again."""
    length, before = 15_000, 14_000
    assert Fraction(19, 10) < lost(weights(length)[:before], length) + 1 < 2


def test_a_price_of_weights_before_they_are_rounded() -> None:
    """At a first weight of 3 a row loses a seventh more; the price is of the rounded ones, and so exact at any."""
    c = [1.0]
    for k in range(1, 15_000):
        c.append(c[-1] * (k - 0.625) / k)
    rounded = [found for each in c if (found := round(3 * each))]
    assert sum(each * each for each in rounded) / sum((3 * each) ** 2 for each in c[: len(rounded)]) > 1.1
    r = weights(15_000)
    assert squares(15_000) == sum(each * each for each in r) and [round(1024 * each) for each in c[:99]] == list(r[:99])


def test_noise_that_two_ticks_share() -> None:
    """Their difference has none."""
    r, noise = weights(40), 12_345  # whatever was drawn
    exact = [[5, 7], [5 + 1, 7]]  # one row more in the first of two periods
    ticks = [[r[0] * x[0] + noise, r[1] * x[0] + r[0] * x[1] + noise] for x in exact]
    differences = [b - a for a, b in ticks]
    assert differences[1] - differences[0] == r[1] - r[0]
