"""Which stored answers are paid for, and by whom: the ledger's entries decide, whatever is handed over."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.losses.regions import LossSpan, Region
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.paid import Paid, Terms, named, paid, unchanged
from dpsql.core.ledger.released import ShownKeys, StoredAnswer
from dpsql.core.privacy_loss import PrivacyLoss

KEYS = ShownKeys((("a",),), 7, 1, 1, Fraction(1, 10**6))


def loss(epsilon: object) -> PrivacyLoss:
    return PrivacyLoss(Fraction(str(epsilon)))


def answer(draw: str, epsilon: object = 1, shown: ShownKeys | None = None, days: Region = ()) -> StoredAnswer:
    by_period = {"patient": days} if days else {}
    threshold = None if shown is None else (shown.threshold, shown.r, shown.g, shown.delta)
    terms = Terms("laplace", 1 / Fraction(str(epsilon)), {"patient": loss(epsilon)}, Fraction(0), threshold, by_period)
    made_at = datetime(2026, 1, 1, tzinfo=UTC)
    return StoredAnswer(
        named(draw, 0, terms), "address", (5,), "laplace", terms.parameter, terms.losses, Fraction(0), made_at, shown,
        by_period,
    )  # fmt: skip


BOUGHT, KEPT = answer("one"), answer("two", "0.5", KEYS)


@pytest.fixture
def ledger() -> MemoryLedger:
    """ana has bought both."""
    made = MemoryLedger("clinic")
    made.reserve(Entry("e", "ana", {"patient": loss("1.5")}, "", "", answers=(BOUGHT.id, KEPT.id)), Caps())
    return made


def test_who_has_an_answer_holds_it_and_who_has_not_receives_it(ledger: MemoryLedger) -> None:
    assert paid(ledger, "ana", [BOUGHT, KEPT]) == Paid(held=(BOUGHT, KEPT))
    assert paid(ledger, "ben", [BOUGHT, KEPT]) == Paid(received=(BOUGHT, KEPT))
    ledger.reserve(Entry("f", "ben", {}, "", "", received={"patient": loss(1)}, answers=(BOUGHT.id,)), Caps())
    assert paid(ledger, "ben", [BOUGHT, KEPT]) == Paid(held=(BOUGHT,), received=(KEPT,))


def test_an_answer_that_serves_twice_is_one(ledger: MemoryLedger) -> None:
    assert paid(ledger, "ben", [BOUGHT, BOUGHT]) == Paid(received=(BOUGHT,))


def test_nothing_is_asked_about_nothing() -> None:
    assert paid(None, "ana", []) == Paid()  # type: ignore[arg-type]


@pytest.mark.parametrize("analyst", ["ana", "ben"])
def test_an_id_that_no_entry_names_is_not_paid_for(ledger: MemoryLedger, analyst: str) -> None:
    """Right in itself, and beside one that is paid for."""
    forged = answer("three")
    assert unchanged(forged)
    for answers in ([forged], [BOUGHT, forged]):
        with pytest.raises(AssertionError, match="no entry of the ledger names"):
            paid(ledger, analyst, answers)


def test_answers_of_another_ledger_are_not_paid_for_here(ledger: MemoryLedger) -> None:
    with pytest.raises(AssertionError):
        paid(MemoryLedger("clinic"), "ana", [BOUGHT])


FORGED: dict[str, Callable[[StoredAnswer], StoredAnswer]] = {
    "a smaller loss": lambda a: replace(a, losses={"patient": loss("0.001")}),
    "no loss": lambda a: replace(a, losses={}),
    "the loss of another unit": lambda a: replace(a, losses={"nobody": loss(1)}),
    "more noise": lambda a: replace(a, parameter=Fraction(1000)),
    "other noise": lambda a: replace(a, mechanism="gaussian"),
    "another conversion": lambda a: replace(a, conversion=Fraction(1, 10)),
    "another threshold": lambda a: replace(a, shown=replace(KEYS, threshold=6)),
    "a smaller δ of keys": lambda a: replace(a, shown=replace(KEYS, delta=Fraction(0))),
}


@pytest.mark.parametrize("analyst", ["ana", "ben"])
@pytest.mark.parametrize("how", FORGED)
def test_other_terms_than_the_entry_names_are_refused(ledger: MemoryLedger, how: str, analyst: str) -> None:
    """Whoever hands them over, the account that holds the true one included."""
    for true in (BOUGHT, KEPT):
        with pytest.raises(AssertionError, match="whose price is not the one"):
            paid(ledger, analyst, [FORGED[how](true)])


@pytest.mark.parametrize(
    "id", ["", "one", "one.0", "one.0.", "one.x.1", f"{BOUGHT.id}0", BOUGHT.id.replace(".0.", ".1.")]
)
def test_ids_of_another_form_state_no_price(id: str) -> None:
    assert unchanged(BOUGHT) and not unchanged(replace(BOUGHT, id=id))


DAY = dt.date(2026, 11, 1)


def test_what_each_period_lost_is_part_of_the_name_and_nothing_where_that_is_not_said() -> None:
    plain, by_day = answer("one"), answer("one", days=(LossSpan(DAY, DAY, loss(1)),))
    assert unchanged(plain) and unchanged(by_day) and plain.id != by_day.id
    assert plain.id == "one.0.6ec7a7c7a586f7e3bc6edc82730105d2"
    other = {"patient": (LossSpan(DAY, None, loss(1)),)}
    for forged in (
        replace(by_day, regions=other), replace(by_day, regions={}), replace(plain, regions=other),
        replace(by_day, losses={"patient": loss("0.001")}), replace(by_day, losses={}),
    ):  # fmt: skip
        assert not unchanged(forged)
