"""What a login may still spend, from the entries of a ledger and the time."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Entry, Receipt
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.server.statements import Ceilings
from dpsql.server.workers.ceilings import left_of, spent_since
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
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
    receipt(2, {"u": "0.25", "v": "0.125"}),
    receipt(0.5, {}, received="0.0625"),
    receipt(0.5, {"u": "9"}, account="ben"),
    receipt(-1, {"v": "0.03125"}),  # by a clock that was put back since
]


@pytest.mark.parametrize(("hours", "spent"), [(24, "0.8125"), (1, "0.0625"), (3, "0.3125"), (0.1, "0.03125")])
def test_what_an_account_was_charged_in_a_time_counts_and_nothing_else(hours: float, spent: str) -> None:
    """Of the unit that lost most; what it received counts as well."""
    assert spent_since(HISTORY, "ana", NOW - dt.timedelta(hours=hours)) == loss(spent)


@pytest.mark.parametrize("at", ["", "yesterday"])
def test_an_entry_whose_time_cannot_be_read_counts(at: str) -> None:
    odd = Receipt(Entry("id", "ana", {"u": loss("1")}, "", ""), 1, "", at)
    assert spent_since([odd], "ana", NOW) == loss("1")


def test_ceilings_are_in_the_ledgers_terms(tmp_path: Path) -> None:
    """Under zCDP an ε is ρ = ε²/2, as in a query; and δ is never limited here."""
    shop = make_shop(tmp_path / "shop")
    text = shop.policy.read_text().replace("tables:", "privacy: {accountant: zcdp}\ntables:", 1)
    shop.policy.write_text(text.replace("epsilon: 1000000", "rho: 1000"))
    with Service(*open_data(shop.policy, None, None, None, None)) as service:
        now = dt.datetime.now(dt.UTC)
        ceilings = Ceilings(per_query="1", per_day="2")
        whole = {
            "per_query": PrivacyLoss(delta=Fraction(1), rho=Fraction(1, 2)),
            "per_day": PrivacyLoss(delta=Fraction(1), rho=Fraction(2)),
        }
        assert left_of(service, "ana", ceilings, now) == whole
        session = service.session("ana")
        session.run(session.plan(COUNT, epsilon=1))
        left = left_of(service, "ana", ceilings, now)
        assert left["per_query"] == whole["per_query"] and left["per_day"].rho == Fraction(3, 2)
        assert left_of(service, "ben", ceilings, now) == whole
        assert left_of(service, "ana", ceilings, now + dt.timedelta(days=2)) == whole


def test_no_ceiling_reads_no_ledger(tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")
    with Service(*open_data(shop.policy, None, None, None, None)) as service:
        assert left_of(service, "ana", Ceilings(), NOW) == {}
        assert len(left_of(service, "ana", Ceilings(per_query="1"), NOW)) == 1
        assert not service.has_ledger
