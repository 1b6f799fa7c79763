"""What a login may still spend, from the entries of a ledger and the time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dpsql.core.ledger.ledger import Ceiling, Entry, Receipt
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen
from dpsql.faces.server.statements import Ceilings
from dpsql.faces.server.workers.ceilings import AccountSpending, ceilings_now, spent_since
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.counted_trips import make_trips
from tests.support.small_shop import COUNT, make_shop

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


def loss(epsilon: str) -> PrivacyLoss:
    return PrivacyLoss(Fraction(epsilon))


def receipt(hours: float, charges: dict[str, str], account: str = "ana", received: str = "") -> Receipt:
    at = (NOW - dt.timedelta(hours=hours)).isoformat()
    own = {"u": loss(received)} if received else {}
    return Receipt(Entry("id", account, {u: loss(e) for u, e in charges.items()}, "", "", received=own), 1, "", at)


HISTORY = [
    receipt(30, {"u": "7"}),
    receipt(24.0001, {"u": "5"}),
    receipt(23, {"u": "0.5"}),
    receipt(2, {"u": "0.25", "w": "0.125"}),
    receipt(0.5, {}, received="0.0625"),
    receipt(-1, {"v": "0.03125"}),  # by a clock that was put back since
]


def spending(history: Sequence[Receipt]) -> AccountSpending:
    """Of a ledger with these entries."""
    policy = SimpleNamespace(account=str, unit_names=UnitNames(frozenset({"u", "v"}), {"w": "v"}))
    return AccountSpending(
        cast(
            Service,
            SimpleNamespace(policy=policy, ledger=SimpleNamespace(history=lambda after=None, most=None: history)),
        )
    )


@pytest.mark.parametrize(
    ("hours", "spent"),
    [(24, {"u": "0.8125", "v": "0.15625"}), (1, {"u": "0.0625", "v": "0.03125"}), (3, {"u": "0.3125", "v": "0.15625"}),
     (0.1, {"v": "0.03125"})],
)  # fmt: skip
def test_what_was_charged_in_a_time_counts_and_nothing_else(hours: float, spent: dict[str, str]) -> None:
    """By the units' present names; what was received counts as well."""
    charges, ever = spending(HISTORY).of("ana")
    assert spent_since(charges, NOW - dt.timedelta(hours=hours)) == {unit: loss(e) for unit, e in spent.items()}
    assert ever == {"u": loss("12.8125"), "v": loss("0.15625")}


@pytest.mark.parametrize("at", ["", "yesterday"])
def test_an_entry_whose_time_cannot_be_read_counts(at: str) -> None:
    odd = Receipt(Entry("id", "ana", {"u": loss("1")}, "", ""), 1, "", at)
    assert spent_since(spending([odd]).of("ana")[0], NOW) == {"u": loss("1")}


def test_a_ledger_is_read_on_from_where_it_was_read(tmp_path: Path) -> None:
    """What others charge meanwhile is found; an entry is read once."""
    shop = make_shop(tmp_path / "shop")
    with (
        Service(*open_data(shop.policy, None, None, None, None)) as service,
        Service(*open_data(shop.policy, None, None, None, None)) as other,
    ):
        read, history = list[int](), service.ledger.history

        def counted(after: Receipt | None = None, most: int | None = None) -> Sequence[Receipt]:
            found = history(after, most)
            read.append(len(found))
            return found

        service.ledger.history = counted  # type: ignore[method-assign]
        spending, session = AccountSpending(service), other.session("ana")
        for least in range(3):
            assert len(spending.of("ana")[0]) == least
            session.run(session.plan(f"{COUNT} WHERE amount < {least}", epsilon=1))
        charges, spent = spending.of("ana")
        assert [charge.losses for charge in charges] == [{"customer": loss("1")}] * 3
        assert spent == {"customer": loss("3")} and read == [0, 1, 1, 1]


def test_a_ledger_that_was_put_back_is_read_anew() -> None:
    """Where the last entry that was read is gone for good, a login is refused once, and not until a restart."""
    entries, after = [*HISTORY], list[Receipt | None]()

    def history(last: Receipt | None = None, most: int | None = None) -> Sequence[Receipt]:
        after.append(last)
        if last is not None and last not in entries:
            raise CannotOpen([Diagnostic("DP407", "an entry was removed")])
        return entries[entries.index(last) + 1 if last is not None else 0 :]

    found = spending(())
    found.service.ledger.history = history  # type: ignore[method-assign]
    assert len(found.of("ana")[0]) == 6
    del entries[4:]
    with pytest.raises(CannotOpen):
        found.of("ana")
    charges, ever = found.of("ana")
    assert len(charges) == 4 and ever["u"] == loss("12.75") and after == [None, HISTORY[-1], None]


def test_ceilings_are_in_the_ledgers_terms(tmp_path: Path) -> None:
    """Under zCDP an ε is ρ = ε²/2, as in a query; and δ is never limited here."""
    shop = make_shop(tmp_path / "shop")
    text = shop.policy.read_text().replace("tables:", "privacy: {accountant: zcdp}\ntables:", 1)
    shop.policy.write_text(text.replace("epsilon: 1000000", "rho: 1000"))
    with Service(*open_data(shop.policy, None, None, None, None)) as service:
        now = dt.datetime.now(dt.UTC)
        ceilings = Ceilings(per_query="1", per_day="2")
        one = Ceiling(PrivacyLoss(delta=Fraction(1), rho=Fraction(1, 2)))

        def day(rho: Fraction, **before: Fraction) -> Ceiling:
            spent = {unit: PrivacyLoss(rho=x) for unit, x in before.items()}
            return Ceiling(PrivacyLoss(delta=Fraction(1), rho=rho), spent)

        spending = AccountSpending(service)
        assert ceilings_now(spending, "ana", ceilings, now) == {"per_query": one, "per_day": day(Fraction(2))}
        session = service.session("ana")
        session.run(session.plan(COUNT, epsilon=1))
        spent = Fraction(1, 2)
        assert ceilings_now(spending, "ana", ceilings, now)["per_day"] == day(Fraction(3, 2), customer=spent)
        assert ceilings_now(spending, "ben", ceilings, now)["per_day"] == day(Fraction(2))
        assert ceilings_now(spending, "ana", ceilings, now + dt.timedelta(days=2))["per_day"] == day(
            Fraction(2), customer=spent
        )


def test_no_ceiling_reads_no_ledger(tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")
    with Service(*open_data(shop.policy, None, None, None, None)) as service:
        assert ceilings_now(AccountSpending(service), "ana", Ceilings(), NOW) == {}
        assert len(ceilings_now(AccountSpending(service), "ana", Ceilings(per_query="1"), NOW)) == 1
        assert not service.has_ledger


@pytest.mark.parametrize("name", ["per_hour", "per_day"])
def test_two_statements_that_looked_at_one_time_do_not_exceed_it_together(tmp_path: Path, name: str) -> None:
    """Also where another login of the account, in another process, has no ceiling: what it spends counts."""
    shop = make_shop(tmp_path / "shop")
    with (
        Service(*open_data(shop.policy, None, None, None, None)) as service,
        Service(*open_data(shop.policy, None, None, None, None)) as other,
    ):
        now = dt.datetime.now(dt.UTC)
        first, second = (
            of.session("ana", None, ceilings_now(AccountSpending(of), "ana", Ceilings(**{name: "0.25"}), now))
            for of in (service, other)
        )
        first.run(first.plan(COUNT, epsilon="0.1"))
        free = other.session("ana")
        free.run(free.plan(f"{COUNT} WHERE amount < 5", epsilon="0.1"))
        for session in (first, second):
            with pytest.raises(BudgetExceeded, match=f"DP413.*{name}.*ε 0.1 asked, 0.05 left"):
                session.run(session.plan(f"{COUNT} WHERE amount < 7", epsilon="0.1"))
        second.run(second.plan(f"{COUNT} WHERE amount < 7", epsilon="0.05"))
        assert shop.spent() == Fraction(1, 4)


@pytest.mark.parametrize("jump", [dt.timedelta(days=365), -dt.timedelta(days=365), dt.timedelta(hours=2)])
def test_a_clock_that_jumped_and_was_put_back_frees_nothing(jump: dt.timedelta) -> None:
    """What was charged while it was wrong, ahead or behind, and before, counts as the entries' own times say."""
    before = [receipt(hours, {"u": "1"}) for hours in (3, 2, 0.5)]
    while_wrong = [receipt(0.4 - jump / dt.timedelta(hours=1), {"u": "2"})]
    after = [receipt(hours, {"u": "4"}) for hours in (0.3, 0.1)]
    charges, ever = spending([*before, *while_wrong, *after]).of("ana")
    assert ever == {"u": loss("13")}  # budgets know no clock
    hour = spent_since(charges, NOW - dt.timedelta(hours=1))
    assert hour == {"u": loss("11" if jump > dt.timedelta() else "9")}
    assert [charge.at for charge in charges] == sorted(charge.at for charge in charges if charge.at is not None)


def test_a_day_of_asking_is_no_day_of_rows(tmp_path: Path) -> None:
    """A ceiling counts each entry at its dearest period: what earlier ones cost other periods uses up nothing of it."""
    trips = make_trips(tmp_path, accountant="approx_dp", each="{epsilon: 1}")
    trips.close(9)
    asked = "SELECT COUNT(*) AS n FROM trips WHERE day = DATE '2026-01-0{}'"
    with Service(*open_data(trips.policy, None, None, None, None)) as service:
        free = service.session("ana")
        for n in range(1, 7):  # six days lose 0.5, the account 3 entry by entry
            free.run(free.plan(asked.format(n), epsilon="0.5"))
        later, spending = dt.datetime.now(dt.UTC) + dt.timedelta(days=3), AccountSpending(service)
        assert spending.of("ana")[1] == {"trips": loss("3")}
        ceilings = ceilings_now(spending, "ana", Ceilings(per_day="0.5"), later)
        of_today = service.session("ana", None, ceilings)
        for n in (7, 8):
            of_today.run(of_today.plan(asked.format(n), epsilon="0.25"))
        with pytest.raises(BudgetExceeded, match=r"DP413.*per_day.*ε 0.25 asked, 0 left"):
            of_today.run(of_today.plan(asked.format(9), epsilon="0.25"))
