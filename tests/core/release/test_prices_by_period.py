"""The price of received answers is of their own periods: drawn together or apart, composed and converted day by day."""

from __future__ import annotations

import datetime as dt
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from dpsql.core.ledger.accountant import Accountant, cost
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.losses.regions import LossSpan, Region, dearest, everywhere
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.paid import Terms, named, paid
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.charge import Price, price
from dpsql.diagnostics.errors import BudgetExceeded

DAYS = [dt.date(2026, 11, 1) + dt.timedelta(days=n) for n in range(4)]


def stored(draw: str, region: Region | None, rho: object = "0.1") -> StoredAnswer:
    loss = PrivacyLoss(rho=Fraction(str(rho)))
    regions = {} if region is None else {"trip": region}
    terms = Terms("gaussian", Fraction(5), {"trip": loss}, Fraction(1, 10**7), regions=regions)
    made = datetime(2026, 12, 1, tzinfo=UTC)
    return StoredAnswer(
        named(draw, 0, terms), draw, (1,), "gaussian", Fraction(5), terms.losses, Fraction(1, 10**7), made,
        regions=regions,
    )  # fmt: skip


def days(first: int, last: int, rho: object = "0.1") -> Region:
    return (LossSpan(DAYS[first], DAYS[last], PrivacyLoss(rho=Fraction(str(rho)))),)


@pytest.mark.parametrize("accountant", ["approx_dp", "zcdp"])
def test_each_day_costs_what_was_drawn_from_it(accountant: Accountant) -> None:
    found = price((), (), [stored("a", days(0, 1)), stored("b", days(1, 2))], accountant)
    one, two = (cost(accountant, [PrivacyLoss(rho=Fraction(1, 10))] * n, Fraction(1, 10**7)).on_grid() for n in (1, 2))
    spans = (LossSpan(DAYS[0], DAYS[0], one), LossSpan(DAYS[1], DAYS[1], two), LossSpan(DAYS[2], DAYS[2], one))
    assert found.whole == {"trip": spans} and found.drawn == {} and found.new == {}
    assert found.in_account == found.received == {"trip": dearest(spans)} == {"trip": two}
    entry = found.charging(Entry("e", "ben", {}, "", ""))
    assert entry.received_regions == {"trip": spans} and not entry.regions and not entry.charges


def test_what_was_drawn_of_all_counts_on_each_day() -> None:
    found = price((), (), [stored("a", days(0, 1)), stored("b", None)], "zcdp")
    one, two = PrivacyLoss(rho=Fraction(1, 10)), PrivacyLoss(rho=Fraction(1, 5))
    assert found.whole["trip"] == (
        LossSpan(None, dt.date(2026, 10, 31), one),
        LossSpan(DAYS[0], DAYS[1], two),
        LossSpan(DAYS[2], None, one),
    )


def test_a_price_of_every_period_says_none() -> None:
    entry = price((), (), [stored("a", None)], "zcdp").charging(Entry("e", "ben", {}, "", ""))
    assert entry.received and not entry.received_regions


def test_within_is_of_every_day() -> None:
    small, large = Price({}, {"trip": days(0, 1)}), Price({}, {"trip": days(0, 2)})
    assert small.within(large) and not large.within(small)
    assert large.within(Price({}, {"trip": everywhere(PrivacyLoss(rho=Fraction(1, 10)))}))
    assert not Price({"trip": days(0, 0)}, {"trip": days(0, 0)}).within(small)


def test_an_account_pays_for_a_received_answer_on_its_days_alone() -> None:
    ledger, answer = MemoryLedger("city", "zcdp"), stored("a", days(0, 1))
    loss = PrivacyLoss(rho=Fraction(1, 10))
    ledger.reserve(
        Entry("e", "ana", {"trip": loss}, "", "", answers=(answer.id,), regions={"trip": days(0, 1)}), Caps()
    )
    assert paid(ledger, "ben", [answer]).received == (answer,)
    caps = Caps(analyst={"trip": loss})
    got = price((), (), [answer], "zcdp").charging(Entry("f", "ben", {}, "", "", answers=(answer.id,)))
    ledger.reserve(got, caps)
    ledger.reserve(Entry("g", "ben", {"trip": loss}, "", "", regions={"trip": days(2, 3)}), caps)
    with pytest.raises(BudgetExceeded, match="2026-11-02 … 2026-11-03"):
        ledger.reserve(Entry("h", "ben", {"trip": loss}, "", "", regions={"trip": days(1, 2)}), caps)
    assert paid(ledger, "ben", [answer]).held == (answer,)
