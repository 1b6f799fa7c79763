"""Stored days, attacked: what an account has seen of each day is charged to it there, whatever was asked before.

Two claims are enumerated. A row of one day moves no number of another part of a release by days (the real planner and
engine). And over all sequences of questions by two accounts, each has paid, in each day, for every draw that it was
shown; the total has paid for all (the real pipeline, ledger and store). Each has twins that break it.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dpsql.answers.stored import day_numbers
from dpsql.answers.stored.address import Addresses
from dpsql.core.analysis import period_parts
from dpsql.core.analysis.period_parts import PeriodPart, PeriodParts
from dpsql.core.ir.periods import DAY, Closed
from dpsql.core.ledger.closings import close
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise import measurement
from dpsql.diagnostics.errors import BudgetExceeded, Rejected
from dpsql.planner.plan import Plan
from dpsql.service.stages_of_a_run import StagesOfARun
from tests.service.test_budgets_by_period import Desk, day, policy
from tests.support.growing_town import DAYS, LAST, Town, condition, reads, some_trips, town_policy, trip
from tests.support.rider_town import DAYS as RIDER_DAYS
from tests.support.rider_town import RiderTown, Row, rider_policy

EACH = "budgets: {each_period: {epsilon: 1000, delta: 1e-3}}"


# --- a part of a release reads its own days ---------------------------------------------------------------------------


def by_days(draw: random.Random) -> str:
    c, d = condition(draw), condition(draw)
    return draw.choice(
        [
            f"SELECT day, COUNT(*), SUM(minutes) FROM trips WHERE {c} GROUP BY day",
            f"SELECT station, day, COUNT(DISTINCT minutes), COUNT(*) FROM trips WHERE {c} GROUP BY ALL",
            f"SELECT day, name, COUNT(*) FILTER (WHERE {d}) FROM trips JOIN stations USING (station) WHERE {c} GROUP "
            "BY ALL",
            f"SELECT tag, AVG(minutes) FROM (SELECT day AS tag, minutes FROM trips WHERE {c}) t GROUP BY tag",
            f"SELECT date_trunc('week', day) AS w, COUNT(*) FROM trips WHERE {c} GROUP BY w",
            f"SELECT day, MEDIAN(minutes) FROM trips WHERE {c} GROUP BY day",
            f"SELECT day, COUNT(*) FROM trips WHERE station IN (SELECT station FROM stations WHERE name = 'a') AND {c} "
            "GROUP BY day",
        ]
    )


def moved(seeds: range, of: Callable[[], Town]) -> tuple[int, int, int]:
    """Of how many (part, row outside of its days) a number moves, how many there are, and how many move inside."""
    outside = inside = wrong = 0
    for seed in seeds:
        draw, town = random.Random(seed), of()
        rows = some_trips(draw)
        town.put(0, rows)
        for db, each in enumerate(DAYS, 1):
            town.put(db, [*rows, trip(draw, each)])
        for _ in range(5):
            try:
                plan = town.plan(by_days(draw))
            except Rejected:
                continue
            split = plan.releases[0].measured.parts
            if split is None:
                continue
            whole = town.integers(plan, 0)[0]
            for db, each in enumerate(DAYS, 1):
                found = town.integers(plan, db)[0]
                changed = {k[split.place] for k in {*whole, *found} if whole.get(k) != found.get(k)}
                for part in split.parts:
                    differs = bool(changed & set(part.keys))
                    if reads(part.days, each):
                        inside += differs
                    else:
                        outside, wrong = outside + 1, wrong + differs
        town.close()
    return wrong, outside, inside


def towns(every: str) -> Callable[[], Town]:
    first = {"day": dt.date(2026, 1, 1), "week": dt.date(2025, 12, 29), "month": dt.date(2026, 1, 1)}[every]
    closed = {"day": LAST, "week": dt.date(2026, 1, 11), "month": dt.date(2026, 1, 31)}[every]
    return lambda: Town(town_policy(EACH, every=every, first=first), Closed(closed))


@pytest.mark.parametrize(("every", "least"), [("day", 1000), ("week", 30), ("month", 0)])
def test_no_row_of_another_day_moves_a_number_of_a_part(every: str, least: int) -> None:
    wrong, outside, inside = moved(range(14 if every == "day" else 8), towns(every))
    assert wrong == 0 and outside >= least and inside > 20


def shifted(found: PeriodParts | None) -> PeriodParts | None:
    if found is None:
        return None
    parts = [replace(p, days=((p.days[0][0] + DAY, p.days[-1][1] and p.days[-1][1] + DAY),)) for p in found.parts]
    return replace(found, parts=tuple(parts))


def test_parts_of_other_days_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true = period_parts.period_parts
    monkeypatch.setattr(measurement, "period_parts", lambda node, ids: shifted(true(node, ids)))
    assert moved(range(4), towns("day"))[0] > 20


def test_so_is_a_key_that_is_taken_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A week for its Monday."""
    first = dt.date(2026, 1, 1)
    monkeypatch.setattr(period_parts, "last_of", lambda subject, column: lambda at: max(at, first))
    wrong, *_ = moved(range(10), towns("day"))
    assert wrong > 0


# --- the same of one rider's day, whose limits look at the rows of one day alone --------------------------------------

RIDDEN = (
    "SELECT day, station, COUNT(*), COUNT(DISTINCT rider) FROM trips GROUP BY ALL",
    "SELECT day, COUNT(*), SUM(CLIP(station, 1, 2)) FROM trips WHERE station < 3 GROUP BY day",
    "SELECT on_day, SUM(km), AVG(km) FROM walks GROUP BY on_day",
    "SELECT date_trunc('week', on_day) AS w, COUNT(*) FROM walks GROUP BY w",
)


def of_riders(per: bool, limit: int, ids: dict[str, str] | None = None) -> tuple[int, int, int]:
    """Of how many (part, rider's day outside of its days) a number moves, how many there are, and how many move inside.

    ids: the columns that are taken for ids in one period, in place of the policy's.
    """
    town, wrong, outside, inside = RiderTown(rider_policy(per, limit=limit)), 0, 0, 0
    for at, sql in enumerate(RIDDEN):
        (planned,) = (plan := town.plan(sql)).releases
        split = period_parts.period_parts(planned.measured.node, planned.measured.ids if ids is None else ids)
        assert split is not None and (ids is not None or split == planned.measured.parts)
        for seed in range(8):
            draw = random.Random(seed)
            rows = [[(draw.choice([1, 2, None]), draw.choice(RIDER_DAYS), draw.choice((1, 2, 3))) for _ in range(9)]
                    for _ in "tw"]  # fmt: skip
            neighbours = [rows, *([[r for r in part if r[:2] != (rider, each)] for part in rows]
                                  for rider in (1, 2) for each in RIDER_DAYS)]  # fmt: skip
            days = [(rider, each) for rider in (1, 2) for each in RIDER_DAYS]
            for n, (trips, walks) in enumerate(neighbours):
                town.put(1000 * at + 10 * seed + n, trips, walks)
            first = town.integers(plan, 1000 * at + 10 * seed)[0]
            for n, (_, each) in enumerate(days, 1):
                found = town.integers(plan, 1000 * at + 10 * seed + n)[0]
                changed = {k[split.place] for k in {*first, *found} if first.get(k) != found.get(k)}
                for part in split.parts:
                    differs = bool(changed & set(part.keys))
                    if reads(part.days, each):
                        inside += differs
                    else:
                        outside, wrong = outside + 1, wrong + differs
    town.close()
    return wrong, outside, inside


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")
@pytest.mark.parametrize("limit", [1, 2])
def test_no_riders_day_moves_a_number_of_another_day(limit: int) -> None:
    wrong, outside, inside = of_riders(True, limit)
    assert wrong == 0 and outside > 200 and inside > 60


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")
def test_a_limit_of_all_of_a_riders_days_is_noticed() -> None:
    """One day less lifts his others: where a rider is taken for an id in one period, parts read other days."""
    assert of_riders(False, 1, {"trips": "rider", "walks": "rider"})[0] > 20


@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")
def test_a_riders_day_of_many_has_the_numbers_and_the_address_of_the_day_alone() -> None:
    """Under limits, too; and a range that is added up has those of its days."""
    town = RiderTown(rider_policy(limit=2))
    trips: list[Row] = [(rider, each, station) for rider in (1, 2, 3) for each in RIDER_DAYS for station in (1, 1, 2)]
    town.put(0, trips, [])
    many = town.plan("SELECT day, station, COUNT(*), COUNT(station) FROM trips GROUP BY ALL")
    alone = town.plan("SELECT station, COUNT(*), COUNT(station) FROM trips WHERE day = DATE '2026-01-06' GROUP BY ALL")
    split = many.releases[0].measured.parts
    assert split is not None
    part = next(p for p in split.parts if p.days[0][0] == RIDER_DAYS[1])
    base, days = Addresses(many, town.policy).of_part(0, part.days, part)
    own = Addresses(alone, town.policy).of(0)
    components = [each.releases[0].measured.node.components for each in (many, alone)]
    assert [base.on(days, c) for c in components[0]] == [own.address(c) for c in components[1]]
    of_many, of_one = (town.integers(plan, 0)[0] for plan in (many, alone))
    assert {k[1:]: v for k, v in of_many.items() if k[0] == RIDER_DAYS[1]} == of_one and len(of_one) == 2
    town.close()


# --- what an account has seen, it has paid for ------------------------------------------------------------------------

BUDGETS = "{each_period: {epsilon: 3}, analysts: {ann: {epsilon: 2}, bob: {epsilon: 2}}}"
QUESTIONS = (
    ("SELECT day, COUNT(*) AS n FROM trips WHERE day <= DATE '2026-01-03' GROUP BY day", 1),
    ("SELECT day, COUNT(*) AS n FROM trips WHERE day IN (DATE '2026-01-02', DATE '2026-01-04') GROUP BY day", 1),
    ("SELECT COUNT(*) AS n FROM trips WHERE day = DATE '2026-01-02'", 2),
    ("SELECT COUNT(*) AS n FROM trips WHERE day <= DATE '2026-01-02'", Fraction(1, 2)),
)


class Watched:
    """What each account was shown: ids of noise, with the days of each and what it loses there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: dict[str, dict[str, tuple[set[dt.date], Fraction]]] = {}
        self.now, answer, watched = "", StagesOfARun.answer, self

        def shown(run: StagesOfARun) -> Any:
            found = answer(run)
            watched.note(run)
            return found

        monkeypatch.setattr(StagesOfARun, "answer", shown)

    def note(self, run: StagesOfARun) -> None:
        own = self.seen.setdefault(self.now, {})
        for given in run.charged.given:
            answers: list[StoredAnswer] = [*given.answers.values()]
            for several in (given.estimate, given.beside):
                if isinstance(several, day_numbers.DayNumbers):
                    answers += [a for _, found in several.parts for a in found.values()]
                elif isinstance(several, day_numbers.SummedDays):
                    answers += [a for found in several.days for a in found.values()]
            for each in answers:
                own[each.id] = true_days(each.id, self.seen), each.losses["trips"].epsilon
        drawn = run._resolution.to_draw
        for (at, i, *part), name in run.charged.ids.items():
            own[name] = days_of(drawn, at, part), drawn.releases[at].measured.loss_of(i, "trips").epsilon


def true_days(id: str, seen: dict[str, dict[str, tuple[set[dt.date], Fraction]]]) -> set[dt.date]:
    """As they were when it was drawn, by whomever."""
    return next(own[id][0] for own in seen.values() if id in own)


def days_of(plan: Plan, at: int, part: list[int]) -> set[dt.date]:
    """The days that a number is of, by its group keys alone."""
    measured = plan.releases[at].measured
    if part:
        from dpsql.core.ir.nodes import key_sources

        (source,) = key_sources(measured.node) or ()
        return {list(source.keys)[part[0]][0]}
    (span,) = measured.days("trips") or ()
    return {span[0] + n * DAY for n in range((span[1] - span[0]).days + 1)}  # type: ignore[operator]


def sequences(folder: Path, watched: Watched, length: int) -> Iterator[tuple[Desk, Watched]]:
    """All questions of two accounts, one after the other; what is refused is left out."""
    desk = Desk(folder, policy(BUDGETS))
    for asked in product(product(QUESTIONS, ("ann", "bob")), repeat=length):
        if asked[0][1] == "bob":  # the same with their names exchanged
            continue
        desk.ledger = desk.service._ledger = MemoryLedger("town", "approx_dp")
        desk.service._store = None
        close(desk.ledger, desk.service.policy, desk.service.policy.tables["trips"], day(10))
        watched.seen.clear()
        for (sql, epsilon), analyst in asked:
            watched.now = analyst
            try:
                desk.session(analyst).sql(sql).run(epsilon=epsilon)
            except BudgetExceeded:
                continue
        yield desk, watched


def unpaid(folder: Path, monkeypatch: pytest.MonkeyPatch, length: int = 3) -> tuple[int, Fraction]:
    """How often more was seen of a day than was paid for it, and the most that an account was shown of one."""
    wrong, most = 0, Fraction(0)
    for desk, watched in sequences(folder, Watched(monkeypatch), length):
        for n in (1, 2, 3, 4):
            every: dict[str, Fraction] = {}
            for analyst, own in watched.seen.items():
                shown = {id: epsilon for id, (days, epsilon) in own.items() if day(n) in days}
                every |= shown
                lost = sum(shown.values(), Fraction(0))
                wrong += lost > desk.spent(n, analyst) or lost > 2
                most = max(most, lost)
            wrong += sum(every.values(), Fraction(0)) > desk.spent(n)
    return wrong, most


def test_all_that_an_account_was_shown_is_paid_for_day_by_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, most = unpaid(tmp_path, monkeypatch)
    assert wrong == 0 and most == 2  # the cap is reached


def test_days_that_are_given_without_being_received_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_numbers.DayNumbers, "answers", property(lambda self: ()))
    assert unpaid(tmp_path, monkeypatch, 2)[0] > 0


def test_so_are_ids_whose_price_is_of_other_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = period_parts.period_parts

    def of_the_first(node: Any, ids: Any) -> PeriodParts | None:
        found = true(node, ids)
        first = None if found is None else found.parts[0].days
        return found and replace(found, parts=tuple(PeriodPart(first or (), p.keys, p.constant) for p in found.parts))

    monkeypatch.setattr(measurement, "period_parts", of_the_first)
    assert unpaid(tmp_path, monkeypatch, 2)[0] > 0
