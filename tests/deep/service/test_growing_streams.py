"""Tiny streams, enumerated: the real planner's integers, prices and regions, and the real book that admits.

Every sequence of questions is asked, so that whatever an analyst chooses after seeing answers is among them: what is
admitted depends on no data. Neighbours have one row more, from some moment on. What they lose is the sum of ε of the
releases whose integers differ. The right variant reaches the cap and never passes it; each wrong one passes it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from dpsql.core.ir.periods import Closed
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.losses.regions import LossSpan, Region, canonical
from dpsql.core.ledger.privacy_filter import Book
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.charge import price
from dpsql.core.release.noisy import GivenAnswers
from dpsql.diagnostics.errors import BudgetExceeded
from tests.support.growing_town import Town, Trip, town_policy

D = [dt.date(2026, 1, n) for n in (1, 2, 3)]
CAP, BUDGETS = 2, "budgets: {each_period: {epsilon: 2, delta: 1e-3}}"
QUESTIONS = (
    "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-01'",
    "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-02'",
    "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-03'",
    "SELECT COUNT(*) FROM trips",
    "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-01' OR day = DATE '2026-01-03'",
    "SELECT day, COUNT(*) FROM trips WHERE day <= DATE '2026-01-02' GROUP BY day",
)
BASE: list[Trip] = [(D[0], 1, 3), (D[1], 2, 4), (D[2], 3, 5)]
MOST = 5


@dataclass(frozen=True)
class Asked:
    """A question: what it is charged, day by day, and whether one row more on a day moves an integer of it."""

    region: Region
    epsilon: Fraction
    differs: tuple[bool, ...]


def asked(questions: Sequence[str] = QUESTIONS, closed: dt.date = D[2]) -> list[Asked]:
    town = Town(town_policy(BUDGETS), Closed(closed))
    town.put(0, BASE)
    for db, day in enumerate(D, 1):
        town.put(db, [*BASE, (day, 1, 9)])
    found = []
    for sql in questions:
        plan = town.plan(sql)
        cost = price(plan.releases, [GivenAnswers() for _ in plan.releases], (), "approx_dp")
        first = town.integers(plan, 0)
        differs = tuple(town.integers(plan, db) != first for db in range(1, 4))
        found.append(Asked(cost.drawn["trips"], cost.new["trips"].epsilon, differs))
    town.close()
    return found


Charge = Callable[[Region, int], Region]
"""What is charged: of the true region, and of how many questions were asked before."""


def dearest_loss(questions: Sequence[Asked], charge: Charge = lambda region, _: region) -> Fraction:
    """The most that any row loses, over all sequences of questions, all days, and all moments at which it arrives."""
    caps = Caps({"trips": PrivacyLoss(Fraction(CAP), Fraction(1, 1000))})
    worst = Fraction(0)

    @cache
    def entry(at: int, region: Region) -> Entry:
        loss = max((span.loss for span in region), key=lambda loss: loss.epsilon, default=PrivacyLoss())
        return Entry(
            f"{at}", "*", {"trips": loss} if region else {}, "", "", regions={"trips": region} if region else {}
        )

    def goes_on(admitted: tuple[int, ...], charged: tuple[Entry, ...]) -> None:
        nonlocal worst
        for day in range(3):
            worst = max(worst, sum((questions[i].epsilon for i in admitted if questions[i].differs[day]), Fraction(0)))
        if len(admitted) == MOST:
            return
        book = Book("approx_dp")
        for each in charged:
            book.add(each)
        for i, question in enumerate(questions):
            own = entry(len(admitted), charge(question.region, len(admitted)))
            try:
                book.check(own, caps)
            except BudgetExceeded:
                continue
            goes_on((*admitted, i), (*charged, own))

    goes_on((), ())
    return worst


@pytest.fixture(scope="module")
def questions() -> list[Asked]:
    return asked()


def test_each_day_is_charged_what_a_row_of_it_loses(questions: list[Asked]) -> None:
    for question in questions:
        for day, differs in zip(D, question.differs, strict=True):
            read = any(s.bounds[0] <= day.toordinal() < s.bounds[1] for s in question.region)
            assert differs == read  # these questions count every row that they read


def test_the_cap_is_reached_and_never_passed(questions: list[Asked]) -> None:
    assert dearest_loss(questions) == CAP


def test_rows_that_come_late_or_are_corrected_lose_no_more(questions: list[Asked]) -> None:
    """From any question on, or with another value from it on: a part of what a row loses that was always there."""
    for sequence in product(range(len(questions)), repeat=4):
        book, caps = Book("approx_dp"), Caps({"trips": PrivacyLoss(Fraction(CAP), Fraction(1, 1000))})
        admitted = []
        for n, i in enumerate(sequence):
            own = Entry(str(n), "*", {"trips": PrivacyLoss(questions[i].epsilon)}, "", "",
                        regions={"trips": questions[i].region})  # fmt: skip
            try:
                book.check(own, caps)
            except BudgetExceeded:
                continue
            book.add(own)
            admitted.append(i)
        for day in range(3):
            for moment in range(len(admitted) + 1):
                late = sum(questions[i].epsilon for i in admitted[moment:] if questions[i].differs[day])
                assert late <= book.spent("trips", days=(D[day], D[day])).epsilon <= CAP


def test_a_row_that_moves_loses_what_both_its_days_do(questions: list[Asked]) -> None:
    """The promise: a row keeps its period. One that was in two is protected at the sum of their accounts."""
    first = [i for i, q in enumerate(questions) if q.differs == (True, False, False)]
    second = [i for i, q in enumerate(questions) if q.differs == (False, True, False)]
    assert sum(questions[i].epsilon for i in (*first * 2, *second * 2)) == 2 * CAP


def last_day(region: Region, _: int) -> Region:
    span = region[-1]
    return (LossSpan(span.last, span.last, span.loss),)


def day_of_asking(region: Region, asked_before: int) -> Region:
    day = D[2] + dt.timedelta(days=1 + asked_before)
    return (LossSpan(day, day, region[0].loss),)


def divided(region: Region, _: int) -> Region:
    days = sum(span.bounds[1] - span.bounds[0] for span in region)
    return tuple(LossSpan(s.first, s.last, PrivacyLoss(s.loss.epsilon / days, s.loss.delta)) for s in region)


def one_side_of_an_or(region: Region, _: int) -> Region:
    return region[:1]


def nowhere(region: Region, _: int) -> Region:
    return ()


@pytest.mark.parametrize("charge", [last_day, day_of_asking, divided, one_side_of_an_or, nowhere])
def test_a_wrong_shortcut_passes_the_cap(questions: list[Asked], charge: Charge) -> None:
    assert dearest_loss(questions, charge) > CAP


def test_so_does_a_region_that_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query's own conditions do what they say; but a day that is not closed is read and not charged."""
    monkeypatch.setattr(Emitter, "_of_periods", lambda self, node, read, env: self.tables(node.table))
    early = asked(QUESTIONS[3:4], closed=D[1])
    monkeypatch.undo()
    assert dearest_loss([*early, *asked(QUESTIONS[2:3])]) > CAP


def test_a_region_is_the_union_of_all_scans() -> None:
    town = Town(town_policy(BUDGETS), Closed(D[2]))
    plan = town.plan(
        "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-01' AND station IN "
        "(SELECT station FROM stations WHERE station > 1) "
        "UNION ALL SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-03'"
    )
    drawn = price(plan.releases, [GivenAnswers() for _ in plan.releases], (), "approx_dp").drawn["trips"]
    days = [(span.first, span.last) for span in drawn]
    assert days == [(D[0], D[0]), (D[2], D[2])] and canonical(drawn) == drawn
    town.close()
