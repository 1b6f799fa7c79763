"""One rider's day as the unit, enumerated: exact integers of the real planner on neighbours that differ in one of them.

What one rider's day moves lies within what was priced, and none of another day moves anything. Weights over the whole
range are the wrong shortcut: one day less lifts the rider's others. Streams of questions reach the cap of each day and
never pass it; a region without one of the unit's tables does.
"""

from __future__ import annotations

import datetime as dt
import random
from fractions import Fraction
from itertools import combinations

import pytest

from dpsql.core.noise import measurement
from dpsql.core.release.charge import price
from dpsql.core.release.noisy import GivenAnswers
from dpsql.diagnostics.errors import Rejected
from tests.deep.service.test_growing_streams import CAP, Asked, dearest_loss
from tests.support.neighbour_oracle import Vector
from tests.support.rider_town import BY_PERIOD, DAYS, QUESTIONS, RiderTown, Row, rider_policy

Rows = tuple[list[Row], list[Row]]


def some_rows(draw: random.Random) -> Rows:
    """A handful of trips and walks; some are of no rider, or of no day."""

    def rows(values: tuple[int, ...]) -> list[Row]:
        return [
            (draw.choice([1, 1, 2, 2, None]), draw.choice([*DAYS, *DAYS, None]), draw.choice(values))
            for _ in range(draw.randint(1, 7))
        ]

    return rows((1, 2, 3)), rows((0, 2, 3, 5))


def without(rows: Rows, rider: int, day: dt.date) -> Rows:
    kept = [[row for row in part if row[:2] != (rider, day)] for part in rows]
    return kept[0], kept[1]


def change(a: list[Vector], b: list[Vector], release: int, place: int) -> int:
    keys = {*a[release], *b[release]}
    return sum(abs(_at(a, release, key, place) - _at(b, release, key, place)) for key in keys)


def _at(of: list[Vector], release: int, key: object, place: int) -> int:
    found = of[release].get(key)  # type: ignore[call-overload]
    return 0 if found is None else found[place]


def most_moved(town: RiderTown, sql: str, seeds: range) -> tuple[Fraction, int]:
    """The largest change over what was priced, over random databases and all their rider-days; and how many moved."""
    plan, worst, moved = town.plan(sql), Fraction(0), 0
    for seed in seeds:
        rows = some_rows(random.Random(seed))
        town.put(base := seed * 100, *rows)
        whole = town.integers(plan, base)
        for n, (rider, day) in enumerate((r, d) for r in (1, 2) for d in DAYS):
            town.put(base + 1 + n, *without(rows, rider, day))
            other = town.integers(plan, base + 1 + n)
            for at, release in enumerate(plan.releases):
                for place, m in enumerate(release.measured.measurements):
                    found = change(whole, other, at, place)
                    moved += found > 0
                    worst = max(worst, Fraction(found, m.sensitivity.l1))
    return worst, moved


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("limit", [1, 2])
def test_one_rider_s_day_moves_no_more_than_was_priced(sql: str, limit: int) -> None:
    town = RiderTown(rider_policy(limit=limit))
    worst, moved = most_moved(town, sql, range(9))
    assert worst <= 1
    assert moved > 2
    town.close()


def test_nor_does_one_rider_s_week() -> None:
    """All of these days are in one: it is all of a rider's rows that differ."""
    town = RiderTown(rider_policy(every="week", limit=2), dt.date(2026, 1, 31))
    worst = Fraction(0)
    for sql in QUESTIONS[:1] + QUESTIONS[3:4] + QUESTIONS[8:10]:
        plan = town.plan(sql)
        for seed in range(12):
            rows = some_rows(random.Random(seed))
            town.put(base := 10_000 + 50 * seed, *rows)
            fewer = rows
            for day in DAYS:
                fewer = without(fewer, 1, day)
            town.put(base + 1, *fewer)
            a, b = town.integers(plan, base), town.integers(plan, base + 1)
            for at, release in enumerate(plan.releases):
                for place, m in enumerate(release.measured.measurements):
                    worst = max(worst, Fraction(change(a, b, at, place), m.sensitivity.l1))
        town.connection.execute("DELETE FROM trips")
        town.connection.execute("DELETE FROM walks")
    assert 0 < worst <= 1
    town.close()


def test_weights_over_the_whole_range_are_passed_by_one_day() -> None:
    """A rider's rows weighed together, and neighbours in one of his days: his other days are lifted."""
    town = RiderTown(rider_policy(per=False, limit=1))
    plan = town.plan("SELECT day, COUNT(*) FROM trips GROUP BY day")
    worst, db = Fraction(0), 0
    for sizes in [(a, b, c) for a in range(4) for b in range(4) for c in range(4) if a + b + c]:
        rows: list[Row] = [(1, day, 1) for day, n in zip(DAYS, sizes, strict=True) for _ in range(n)]
        town.put(db := db + 10, rows)
        whole = town.integers(plan, db)
        for at, day in enumerate(DAYS, 1):
            town.put(db + at, [row for row in rows if row[1] != day])
            found = change(whole, town.integers(plan, db + at), 0, 0)
            worst = max(worst, Fraction(found, plan.releases[0].measured.measurements[0].sensitivity.l1))
    assert worst > Fraction(4, 3)  # nearly twice the price
    town.close()


def asked() -> list[Asked]:
    """The questions, what each is charged day by day, and whether a rider's day more moves an integer of it."""
    town = RiderTown(rider_policy(limit=2, budgets=BY_PERIOD))
    base: Rows = ([(1, DAYS[0], 1), (2, DAYS[1], 2), (1, DAYS[2], 1)], [(1, DAYS[0], 2), (2, DAYS[2], 1)])
    town.put(0, *base)
    for db, day in enumerate(DAYS, 1):
        more: Row = (7, day, 1)
        town.put(db, [*base[0], more], [*base[1], more, more])
    found = []
    last = QUESTIONS[1].replace("2026-01-06", "2026-01-07")
    for sql in (QUESTIONS[1], last, QUESTIONS[0], QUESTIONS[5], QUESTIONS[8], QUESTIONS[11]):
        plan = town.plan(sql)
        cost = price(plan.releases, [GivenAnswers() for _ in plan.releases], (), "approx_dp")
        first = town.integers(plan, 0)
        differs = tuple(town.integers(plan, db) != first for db in range(1, 4))
        found.append(Asked(cost.drawn["rider_day"], cost.new["rider_day"].epsilon, differs))
    town.close()
    return found


def test_streams_reach_the_cap_of_a_day_and_never_pass_it() -> None:
    questions = asked()
    for question in questions:
        for day, differs in zip(DAYS, question.differs, strict=True):
            read = any(s.bounds[0] <= day.toordinal() < s.bounds[1] for s in question.region)
            assert differs == read
    assert max(dearest_loss(list(three)) for three in combinations(questions, 3)) == CAP


def test_a_region_without_one_of_the_tables_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    true = measurement.days_read
    monkeypatch.setattr(measurement, "days_read", lambda release, tables: true(release, ("trips",)))
    questions = [q for q in asked() if q.region[0].first is not None]  # those of walks alone are charged everywhere
    assert max(dearest_loss(list(three)) for three in combinations(questions, 3)) > CAP


@pytest.mark.parametrize("sql", QUESTIONS)
def test_rows_of_other_days_move_nothing(sql: str) -> None:
    """0 neighbours outside of what is read move an integer."""
    town = RiderTown(rider_policy(limit=2), DAYS[1])
    try:
        plan = town.plan(sql)
    except Rejected as refused:  # it asks for the day that is not closed
        assert [d.code for d in refused.diagnostics] == ["DP017"]
        return
    rows = some_rows(random.Random(4))
    town.put(0, *rows)
    first = town.integers(plan, 0)
    for db, day in enumerate((DAYS[2], dt.date(2026, 1, 4), None), 1):
        more: list[Row] = [(rider, day, 1) for rider in (1, 2, 7, None)]
        town.put(db, [*rows[0], *more], [*rows[1], *more])
        assert town.integers(plan, db) == first
    town.close()
