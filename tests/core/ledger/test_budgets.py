"""A budget is fixed by the first charge under it: a later policy makes it smaller, and only an entry larger."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest

from dpsql.core.ledger.ledger import CHARGING, Cap, Caps, Entry, EntryKind
from dpsql.core.ledger.losses.fixed_budgets import Fixed, changed
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded
from tests.core.ledger.conftest import Place

Charge = Callable[[object], Entry]


def eps(epsilon: object) -> PrivacyLoss:
    return PrivacyLoss(Fraction(str(epsilon)))


def caps(total: object, own: object = 10) -> Caps:
    return Caps({"patient": eps(total)}, {"patient": eps(own)})


def adding(number: object, cap: Cap = ("patient", None)) -> Callable[[Fixed], Mapping[Cap, PrivacyLoss]]:
    return lambda fixed: {cap: changed(fixed[cap], Fraction(str(number)), Fraction(0), Fraction(0))}


def reason(name: str) -> Entry:
    return Entry(name, "custodian", {}, "", "policy", "ADD: because", kind=EntryKind.BUDGET)


def test_the_policys_number_alone_raises_nothing(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        first = ledger.reserve(charge("a"), caps("0.3"))
        assert first.fixed == {("patient", None): eps("0.3"), ("patient", "ana"): eps(10)}
        ledger.reserve(charge("b"), caps(5))
    with place.open() as ledger:  # opened anew, it is the same
        assert ledger.fixed() == first.fixed and [bool(r.fixed) for r in ledger.history()] == [True, False]
        ledger.reserve(charge("c"), caps(5))
        with pytest.raises(BudgetExceeded, match=r"total budget of unit 'patient': ε 0\.1 asked") as refusal:
            ledger.reserve(charge("d"), caps(5))
        assert "dpsql budget POLICY --add … --of total --reason …" in str(refusal.value)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("d"), Caps())  # a policy that says nothing raises nothing


def test_a_smaller_number_of_the_policy_holds_at_once_and_may_be_raised_back(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), caps("0.3"))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("b"), caps("0.15"))
        ledger.reserve(charge("b"), caps("0.3"))


def test_an_entry_adds_and_the_policy_has_to_agree(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), caps("0.1"))
        receipt = ledger.fix(reason("r"), adding("0.1"))
        assert receipt.fixed == {("patient", None): eps("0.2")} and receipt.entry.statement == "ADD: because"
        assert ledger.fix(reason("r"), adding("0.1")) == receipt  # once
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("b"), caps("0.1"))
        ledger.reserve(charge("b"), caps(1))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("c"), caps(1))
        assert ledger.spent("patient") == eps("0.2") and ledger.verify() == 3


def test_it_may_take_away_but_nothing_below_nothing(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), caps(1))
        ledger.fix(reason("r"), adding("-0.85"))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("b"), caps(1))
        with pytest.raises(ValueError, match="never negative"):
            ledger.fix(reason("s"), adding("-0.2"))
        assert ledger.fixed()["patient", None] == eps("0.15") and len(ledger.history()) == 2


def test_an_analysts_number_is_fixed_like_the_total(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), caps(1, "0.1"))
        with pytest.raises(BudgetExceeded, match="budget of analyst 'ana'") as refusal:
            ledger.reserve(charge("b"), caps(1, 5))
        assert "--of ana" in str(refusal.value)
        ledger.fix(reason("r"), adding("0.1", ("patient", "ana")))
        ledger.reserve(charge("b"), caps(1, 5))
        other = Entry("o", "ben", {"patient": eps("0.3")}, "plan", "policy")
        ledger.reserve(other, caps(1, "0.3"))  # his own is his
        assert ledger.fixed()["patient", "ben"] == eps("0.3")


def test_what_charges_nobody_fixes_nothing(place: Place) -> None:
    with place.open() as ledger:
        ledger.reserve(Entry("a", "ana", {}, "p", "q", answers=("n",)), caps(1))
        assert ledger.fixed() == {}


def test_two_who_add_at_one_time_both_count(place: Place, charge: Charge) -> None:
    with place.open() as ledger, place.open() as other:
        ledger.reserve(charge("a"), caps(1))

        def add(which: SqliteLedger, name: str) -> None:
            for number in range(5):
                which.fix(reason(f"{name}{number}"), adding("0.1"))

        threads = [threading.Thread(target=add, args=(which, name)) for which, name in ((ledger, "x"), (other, "y"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.fixed()["patient", None] == other.fixed()["patient", None] == eps(2)


def test_a_renamed_unit_keeps_its_number(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), caps("0.1"))
    names = UnitNames(frozenset({"person"}), {"patient": "person"})
    with SqliteLedger.open(place.path, place.head, "clinic", "approx_dp", units=names) as ledger:
        assert ledger.fixed()["person", None] == eps("0.1")
        with pytest.raises(BudgetExceeded):
            ledger.reserve(Entry("b", "ana", {"person": eps("0.1")}, "p", "q"), Caps({"person": eps(9)}))


def test_an_older_ledger_fixes_what_the_policy_says_at_its_next_charge(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge("a"), Caps())  # as older versions did
        assert ledger.fixed() == {}
        ledger.reserve(charge("b"), caps("0.2"))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(charge("c"), caps(1))


@pytest.mark.parametrize("kind", sorted(set(EntryKind) - CHARGING))
def test_few_kinds_charge(place: Place, kind: EntryKind) -> None:
    with place.open() as ledger, pytest.raises(ValueError, match="that charges somebody"):
        ledger.reserve(Entry("a", "ana", {"patient": eps(1)}, "p", "q", kind=kind), Caps())
