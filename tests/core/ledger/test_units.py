"""A unit has one account, whatever it is called: what was spent under its old name counts, or the ledger is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.privacy_filter import Book
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen
from tests.core.ledger.conftest import Place


def eps(amount: int) -> PrivacyLoss:
    return PrivacyLoss(Fraction(amount))


def entry(name: str, analyst: str = "ana", **charges: int) -> Entry:
    losses = {unit: eps(amount) for unit, amount in charges.items()}
    return Entry(name, analyst, losses, "plan", "policy", received={unit: eps(1) for unit in charges})


def names(*now: str, **former: str | None) -> UnitNames:
    return UnitNames(frozenset(now), former)


def opened(place: Place, units: UnitNames | None) -> SqliteLedger:
    return SqliteLedger.open(place.path, place.head, "clinic", "approx_dp", units=units, timeout=300)


@pytest.fixture
def spent(place: Place) -> Place:
    """A ledger that has spent 3 for `patient` and 2 for `visitor`."""
    with opened(place, names("patient", "visitor", "staff")) as ledger:
        ledger.reserve(entry("a", patient=1), Caps())
        ledger.reserve(entry("b", "bob", patient=2, visitor=2), Caps())
    return place


@pytest.mark.parametrize(
    ("units", "lost"),
    [
        (names("person", "visitor"), ["patient"]),
        (names("staff", "visitor"), ["patient"]),
        (names("visitor"), ["patient"]),
        (names(), ["patient", "visitor"]),
        (names("person", patient="person"), ["visitor"]),
        (names("Patient", "visitor"), ["patient"]),
    ],
)
def test_a_unit_that_has_spent_does_not_vanish(spent: Place, units: UnitNames, lost: list[str]) -> None:
    for look in (SqliteLedger.open, SqliteLedger.look):
        with pytest.raises(CannotOpen) as refused:
            look(spent.path, spent.head, "clinic", "approx_dp", units=units)
        told = str(refused.value)
        assert f"has spent for unit {', '.join(map(repr, lost))}, which this policy does not name" in told
        assert (
            f"former_units: {{{', '.join(f'{unit}: NAME' for unit in lost)}}}" in told
            and "null in place of NAME" in told
        )
        assert "nothing was spent" in told


@pytest.mark.parametrize(
    ("units", "person"),
    [
        (names("person", "visitor", patient="person"), 3),
        (names("person", patient="person", visitor="person"), 5),
        (names("person", "visitor", patient=None), 0),
        (names("person", patient=None, visitor="person"), 2),
        (names("patient", "visitor", "person"), 0),
        (names("patient", "visitor", "person", other="person"), 0),
        (None, 0),
    ],
)
def test_what_was_spent_counts_under_the_new_name(spent: Place, units: UnitNames | None, person: int) -> None:
    cap = Caps(total={"person": eps(6)}, analyst={"person": eps(9)})
    with opened(spent, units) as ledger:
        assert ledger.spent("person") == eps(person)
        received = sum(ledger.spent("person", a).epsilon for a in ("ana", "bob")) - person
        assert received == {3: 2, 5: 3, 2: 1, 0: 0}[person]
        with pytest.raises(BudgetExceeded):
            ledger.reserve(entry("c", "cyd", person=7 - person), cap)
        if person < 6:
            ledger.reserve(entry("c", "cyd", person=6 - person), cap)
            assert ledger.spent("person") == eps(6)
        assert [r.entry.charges for r in ledger.history()][:2] == [
            {"patient": eps(1)}, {"patient": eps(2), "visitor": eps(2)},
        ]  # fmt: skip
    with opened(spent, units) as ledger:
        assert ledger.spent("person") == eps(max(6, person)) and ledger.verify() == 3


def test_a_policy_that_is_older_than_the_last_charge_is_refused_when_it_charges(spent: Place) -> None:
    """It was open while somebody charged under a new name. The one that renames counts what the old name is charged."""
    units = names("patient", "visitor")
    with opened(spent, units) as old, opened(spent, names("person", "visitor", patient="person")) as new:
        old.reserve(entry("c", patient=1), Caps())
        assert new.spent("person") == eps(4)
        new.reserve(entry("d", person=1), Caps())
        with pytest.raises(CannotOpen, match="has spent for unit 'person', which this policy does not name"):
            old.reserve(entry("e", patient=1), Caps())
        assert new.spent("person") == eps(5)
        same = old.reserve(entry("c", patient=1), Caps())  # charged before: it is the same charge again
        assert same.sequence == 3 and len(new.history()) == 4


def test_a_unit_that_has_spent_nothing_may_go() -> None:
    book = Book("approx_dp", names("person"))
    book.add(entry("a", person=1))
    book.add(Entry("b", "ana", {"other": NO_LOSS}, "plan", "policy"))
    assert list(book.unnamed) == []
    book.add(Entry("c", "ana", {}, "plan", "policy", received={"other": eps(1)}))
    assert list(book.unnamed) == ["other"]
