"""Counters over tiny streams, enumerated: what a row loses by all ticks is the price at most, and reaches it.

The real planner's integers, weighed as a tick weighs them; noise is Gaussian, so the loss is a sum of squares, exactly.
A row may come late, be corrected in value or group, or be deleted, at any tick: what neighbours differ in may depend on
what was seen. Each wrong variant loses more than is charged.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from dpsql.core.ledger.counters import CounterRefused, Frozen
from dpsql.core.numbers.counter_weights import squares, weights
from dpsql.core.release.counting import require_frozen
from dpsql.policy.load import parse_policy
from tests.support.counted_town import BY_PERIOD, COUNTED, counted, frozen_of, integers, lost, town
from tests.support.growing_town import FIRST, TOWN, Trip

KEPT = 4
TICKS = [FIRST + dt.timedelta(days=n) for n in range(7)]
ROWS: list[Trip] = [(TICKS[d], station, minutes) for d, station, minutes in product((0, 2), (1, 2), (0, 25))]
BASE: list[Trip] = [(TICKS[0], 1, 5), (TICKS[1], 3, 7), (TICKS[4], 2, 1)]
Integers = dict[tuple[int | None, int], tuple[tuple[int, ...], ...]]


@pytest.fixture(scope="module")
def stream() -> tuple[Frozen, Integers]:
    """(row of ROWS that is there besides, or None; tick) → the integers."""
    own = town(KEPT)
    own.put(0, BASE)
    for db, row in enumerate(ROWS, 1):
        own.put(db, [*BASE, row])
    made = frozen_of(own)
    found: Integers = {}
    for t, last in enumerate(TICKS):
        for db in range(len(ROWS) + 1):
            found[db - 1 if db else None, t] = integers(own, made, last, db)
    own.close()
    return made, found


def whole(made: Frozen, found: Integers, there: list[int | None]) -> Fraction:
    """What is lost by all ticks where this row is there at each, or none, and a neighbour has none of them."""
    return sum((lost(made, found[row, t], found[None, t]) for t, row in enumerate(there)), Fraction(0))


def test_a_row_that_is_always_there_loses_the_price_and_no_more(stream: tuple[Frozen, Integers]) -> None:
    made, found = stream
    assert made.length == KEPT and made.rho == {"trips": Fraction(1, 50)}
    for at, row in enumerate(ROWS):
        # Values of 0 and above 20 are the ends of the bounds: they move the sum as far as any row.
        assert whole(made, found, [at if day >= row[0] else None for day in TICKS]) == 1, row  # type: ignore[operator]


def within(day: dt.date) -> Iterator[list[int | None]]:
    """Every way in which rows of one period are there, and are corrected to each other, tick by tick."""
    own = [None, *(at for at, row in enumerate(ROWS) if row[0] == day)]
    for there in product(own, repeat=KEPT):
        begins = TICKS.index(day)
        yield [None] * begins + list(there) + [there[-1]] * (len(TICKS) - begins - KEPT)


@pytest.mark.parametrize("day", [TICKS[0], TICKS[2]])
def test_rows_that_come_late_are_corrected_or_deleted_lose_no_more(
    stream: tuple[Frozen, Integers], day: dt.date
) -> None:
    made, found = stream
    losses = {whole(made, found, there) for there in within(day)}
    assert max(losses) == 1 and len(losses) > 10


def test_a_row_that_moves_to_another_period_loses_more(stream: tuple[Frozen, Integers]) -> None:
    """A broken promise: *a row keeps its period*."""
    made, found = stream
    first, second = ROWS.index((TICKS[0], 1, 0)), ROWS.index((TICKS[2], 1, 0))
    assert whole(made, found, [first, first, second, second, second, second, None]) > Fraction(17, 10)


def test_a_tick_that_is_drawn_twice_for_one_price_loses_more(stream: tuple[Frozen, Integers]) -> None:
    made, found = stream
    row = ROWS.index((TICKS[0], 1, 0))
    there = [row] * KEPT + [None] * 3
    again = lost(made, found[row, 0], found[None, 0])
    assert whole(made, found, there) + again > Fraction(3, 2)
    assert again == Fraction(weights(KEPT)[0] ** 2, squares(KEPT))  # what the second one is charged


def test_weights_that_are_not_those_of_the_price_lose_more(stream: tuple[Frozen, Integers]) -> None:
    """S² without its tail, and weights that are longer than charged."""
    own = town(KEPT + 3)
    own.put(0, BASE)
    own.put(1, [*BASE, (TICKS[0], 1, 0)])
    made = frozen_of(own)
    found: Integers = {
        (None if db == 0 else 0, t): integers(own, made, last, db) for t, last in enumerate(TICKS) for db in (0, 1)
    }
    own.close()
    assert whole(made, found, [0] * len(TICKS)) == 1
    assert whole(made, found, [0] * len(TICKS)) * Fraction(squares(KEPT + 3), squares(KEPT)) > 1


def test_under_wider_bounds_a_row_would_lose_more_and_the_tick_is_refused() -> None:
    text = TOWN.format(budgets=BY_PERIOD, every="day", first=FIRST, keep=f", keep: {KEPT}")
    wider = parse_policy(text.replace("bounds: [0, 20]", "bounds: [0, 40]"), "town.yaml")
    own = town(KEPT)
    own.put(0, BASE)
    own.put(1, [*BASE, (TICKS[0], 1, 40)])
    made = frozen_of(own)
    assert require_frozen(counted(own, TICKS[0]), own.policy, made, TICKS[0]) == 0
    with pytest.raises(CounterRefused, match="measured otherwise now than when it was charged"):
        require_frozen(counted(own, TICKS[0], policy=wider), wider, made, TICKS[0])
    own.policy = wider
    moved = sum(
        (lost(made, integers(own, made, last, 1), integers(own, made, last, 0)) for last in TICKS[:KEPT]), Fraction(0)
    )
    own.close()
    assert moved > 2


def test_a_row_that_counts_in_the_cells_of_two_days_loses_more() -> None:
    """What a self-join with another day would do, of which `counted_by` says that it is refused."""
    r = weights(28)
    moved = [(r[t] if t < 28 else 0) + (r[t - 1] if t else 0) for t in range(28)]
    assert Fraction(sum(m * m for m in moved), squares(28)) > 2


@pytest.mark.parametrize("every", ["week", "month"])
def test_of_longer_periods_a_row_counts_in_its_own(every: str) -> None:
    own = town(3, every, first=FIRST - dt.timedelta(days=FIRST.weekday() if every == "week" else 0))
    days = [FIRST + dt.timedelta(days=n) for n in (0, 9)]
    for db, rows in enumerate([[], [(days[0], 1, 0)], [(days[1], 1, 0)]]):
        own.put(db, [*BASE, *rows])
    made = frozen_of(own)
    for db in (1, 2):
        place = made.place(days[db - 1])
        losses = [
            lost(made, integers(own, made, made.ends(t), db), integers(own, made, made.ends(t), 0))
            for t in range(place, place + 3)
        ]
        assert sum(losses) == 1
        assert losses == [Fraction(r * r, squares(3)) for r in weights(3)]
    own.close()


def test_each_release_counts_station_by_station(stream: tuple[Frozen, Integers]) -> None:
    made, found = stream
    assert made.groups == 3 and made.sql == COUNTED
    r = weights(KEPT)
    assert found[None, 1][0] == (r[1], 0, r[0])  # a trip of station 1 the day before, one of station 3
