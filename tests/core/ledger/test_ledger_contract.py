"""What every ledger must do. A new ledger inherits LedgerContract and gives `make`."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.failures import look_at, note
from dpsql.core.ledger.ledger import Account, Caps, Ceiling, Entry, EntryKind, FailureCap, Ledger
from dpsql.core.ledger.losses.regions import ALWAYS, LossSpan, Region, canonical, dearest
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import GRID, NO_LOSS, PrivacyLoss, exact, largest, remaining
from dpsql.diagnostics.errors import BudgetExceeded

Make = Callable[..., Ledger]


def loss(epsilon: object = 0, delta: object = 0, rho: object = 0) -> PrivacyLoss:
    return PrivacyLoss(exact(epsilon), exact(delta), exact(rho))


def entry(name: str, epsilon: object = "0.1", *units: str, analyst: str = "ana", delta: object = 0) -> Entry:
    return Entry(name, analyst, {unit: loss(epsilon, delta) for unit in units or ("patient",)}, "plan", "policy", "SQL")


def since(most: int, in_total: int = 99) -> FailureCap:
    return FailureCap(most, in_total, dt.datetime.now(dt.UTC) - dt.timedelta(days=1))


def codes(refusal: pytest.ExceptionInfo[BudgetExceeded]) -> list[str]:
    return [d.code for d in refusal.value.diagnostics]


DAYS = [dt.date(2026, 11, 1) + dt.timedelta(days=n) for n in range(10)]
SPANS = [(a, b) for a in DAYS for b in DAYS if a <= b][::4]


def on_days(made: Entry, first: int | None, last: int | None) -> Entry:
    """An entry that charges some days only; None for an open end."""
    ends = (None if first is None else DAYS[first], None if last is None else DAYS[last])
    return replace(made, regions={unit: (LossSpan(*ends, charged),) for unit, charged in made.charges.items()})


def by_period(draw: random.Random, number: int) -> Entry:
    """An entry of any kind: some units by period, some not, charged or received or both."""

    def losses() -> tuple[dict[str, PrivacyLoss], dict[str, Region]]:
        charges, regions = dict[str, PrivacyLoss](), dict[str, Region]()
        for unit in draw.choice([("trip",), ("trip", "rider"), ("rider",)]):
            spans = []
            for _ in range(draw.randint(1, 3)):
                a, b = sorted(draw.choices(DAYS, k=2))
                ends = draw.choice([(a, b)] * 4 + [(None, b), (a, None)])
                spans.append(
                    LossSpan(*ends, loss(Fraction(draw.randint(1, 3), 10), Fraction(draw.randint(0, 1), 10**9)))
                )
            if draw.random() < 0.8:
                regions[unit] = canonical(spans)
                charges[unit] = dearest(regions[unit])
            else:
                charges[unit] = loss("0.1")
        return charges, regions

    (charges, regions), (received, received_regions) = losses(), losses()
    if number % 3 == 0:
        received, received_regions = {}, {}
    return Entry(
        str(number), draw.choice(["ana", "ben"]), charges, "plan", "policy", "SQL", received, regions=regions,
        received_regions=received_regions,
    )  # fmt: skip


class Dictionary:
    """Day by day what a ledger has to know; the days before and behind all others stand for the open ends."""

    def __init__(self) -> None:
        self.days = [dt.date(1, 1, 1), *DAYS, dt.date(9999, 12, 31)]
        self.lost: dict[tuple[str, str | None, dt.date], PrivacyLoss] = {}
        self.charged: dict[tuple[str, str], PrivacyLoss] = dict.fromkeys(
            ((unit, analyst) for unit in ("trip", "rider") for analyst in ("ana", "ben")), NO_LOSS
        )
        self.regions: list[Mapping[str, Region]] = []

    def of(self, wanted: Entry, unit: str, day: dt.date, *, total: bool) -> PrivacyLoss:
        found = NO_LOSS
        sides = [(wanted.charges, wanted.regions), (wanted.received, wanted.received_regions)]
        for losses, regions in sides[:1] if total else sides:
            if unit in regions:
                for span in regions[unit]:
                    if (span.first is None or span.first <= day) and (span.last is None or day <= span.last):
                        found += span.loss
            elif unit in losses:
                found += losses[unit]
        return found

    def spent(self, unit: str, analyst: str | None, first: dt.date | None, last: dt.date | None) -> PrivacyLoss:
        days = [d for d in self.days if (first is None or first <= d) and (last is None or d <= last)]
        return largest(self.lost.get((unit, analyst, day), NO_LOSS) for day in days)

    def fits(self, wanted: Entry, caps: Caps) -> bool:
        for who, limit in ((None, caps.total), (wanted.analyst, caps.analyst)):
            for unit, cap in limit.items():
                for day in self.days:
                    asked = self.of(wanted, unit, day, total=who is None)
                    if not asked.within(remaining(cap, self.lost.get((unit, who, day), NO_LOSS))):
                        return False
        return True

    def add(self, wanted: Entry) -> None:
        for unit in ("trip", "rider"):
            for who in (None, wanted.analyst):
                for day in self.days:
                    at = (unit, who, day)
                    self.lost[at] = self.lost.get(at, NO_LOSS) + self.of(wanted, unit, day, total=who is None)
            self.charged[unit, wanted.analyst] += largest(self.of(wanted, unit, day, total=False) for day in self.days)
        self.regions.append(wanted.regions)


class LedgerContract:
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        raise AssertionError("a ledger's tests say how to make it")

    @pytest.fixture
    def ledger(self, make: Make) -> Ledger:
        return make()

    def test_a_charge_is_counted_for_the_unit_and_for_the_analyst(self, ledger: Ledger) -> None:
        receipt = ledger.reserve(entry("a", "0.1", delta="1e-9"), Caps())
        ledger.reserve(entry("b", "0.2", analyst="ben"), Caps())
        assert (receipt.sequence, receipt.entry) == (1, entry("a", "0.1", delta="1e-9"))
        assert ledger.spent("patient") == loss("0.3", "1e-9")
        assert ledger.spent("patient", "ana") == loss("0.1", "1e-9")
        assert ledger.spent("patient", "nobody") == ledger.spent("doctor") == NO_LOSS
        assert ledger.accounts() == [
            Account("patient", None, loss("0.3", "1e-9")),
            Account("patient", "ana", loss("0.1", "1e-9")),
            Account("patient", "ben", loss("0.2")),
        ]
        assert [r.entry.id for r in ledger.history()] == ["a", "b"]
        assert ledger.history()[0] == receipt
        assert [r.entry.id for r in ledger.history(receipt)] == ["b"]
        assert ledger.history(ledger.history()[-1]) == []
        assert ledger.history(most=1) == [receipt] and ledger.history(receipt, 1) == ledger.history(receipt)
        assert ledger.find(["b", "nobody", "a"]) == ledger.history() and ledger.find([]) == ledger.find(["c"]) == []

    def test_definitions_are_entries_that_charge_nobody(self, ledger: Ledger) -> None:
        create, drop = "CREATE DP SUMMARY s ON t (a)", "DROP DP SUMMARY s"
        made = Entry("a", "ana", {}, "", "policy", create, answers=("x", "y"), kind=EntryKind.DEFINITION)
        ledger.reserve(entry("b"), Caps())
        ledger.reserve(made, Caps())
        ledger.reserve(replace(entry("c"), statement=create), Caps())
        ledger.reserve(Entry("d", "ben", {}, "", "policy", drop, kind=EntryKind.DEFINITION), Caps())
        assert [e.id for e in ledger.definitions()] == ["a", "d"] and ledger.definitions()[0] == made

    @pytest.mark.parametrize("tenth", ["0.1", 0.1, Fraction(1, 10)])
    def test_ten_tenths_fit_exactly_into_one_and_the_eleventh_is_refused(self, ledger: Ledger, tenth: object) -> None:
        caps = Caps(total={"patient": loss(1)})
        for i in range(10):
            ledger.reserve(entry(str(i), tenth), caps)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("10", tenth), caps)
        assert codes(refusal) == ["DP403"]
        assert ledger.spent("patient") == loss(1)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(entry("11", "1e-30"), caps)

    def test_thirds_are_exact_too(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss(1)})
        for i in range(3):
            ledger.reserve(entry(str(i), "1/3"), caps)
        assert ledger.spent("patient") == loss(1)

    def test_a_charge_is_rounded_up_to_the_grid_never_below_its_loss(self, ledger: Ledger) -> None:
        odd = Fraction(1, 10**70 + 7)
        ledger.reserve(entry("a", odd), Caps())
        ledger.reserve(entry("b", Fraction(1, 10**70 + 9)), Caps())
        spent = ledger.spent("patient").epsilon
        assert 2 * odd <= spent < 2 * odd + Fraction(2, 10**60)
        # Sums stay on the grid: no choice of ε can make the numbers of a ledger grow without end.
        assert (spent * GRID).denominator == 1

    @pytest.mark.parametrize(
        ("caps", "expected"),
        [
            (Caps(total={"patient": loss("0.5")}), ["DP403"]),
            (Caps(analyst={"patient": loss("0.5")}), ["DP404"]),
            (Caps(per_query=loss("0.5")), ["DP405"]),
            (Caps(ceilings={"per_day": Ceiling(loss("0.5")), "per_hour": Ceiling(loss("0.7"))}), ["DP413"]),
            (
                Caps(ceilings={"per_day": Ceiling(loss("0.5")), "per_hour": Ceiling(loss("0.4"), {})}),
                ["DP413", "DP413"],
            ),
            (
                Caps({"patient": loss("0.5")}, {"patient": loss("0.4")}, loss("0.3")),
                ["DP405", "DP404", "DP403"],
            ),
        ],
    )
    def test_each_cap_refuses_with_its_own_code_and_charges_nothing(
        self, ledger: Ledger, caps: Caps, expected: list[str]
    ) -> None:
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("a", "0.6"), caps)
        assert codes(refusal) == expected
        assert ledger.spent("patient") == NO_LOSS
        assert ledger.history() == []
        ledger.reserve(entry("a", "0.3"), caps)

    def test_a_ceiling_counts_what_its_account_spent_since_somebody_looked(self, ledger: Ledger) -> None:
        ledger.reserve(entry("a", "0.3"), Caps())
        caps = Caps(ceilings={"per_day": Ceiling(loss("0.2"), {"patient": loss("0.3")})})
        ledger.reserve(entry("b", "0.15"), caps)
        ledger.reserve(entry("c", "0.2", analyst="ben"), Caps())
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("d", "0.06"), caps)
        assert codes(refusal) == ["DP413"]
        ledger.reserve(entry("d", "0.05"), caps)

    def test_an_analyst_cap_guards_against_that_analyst_alone_and_the_total_against_all(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss("0.5")}, analyst={"patient": loss("0.3")})
        ledger.reserve(entry("a", "0.3"), caps)
        with pytest.raises(BudgetExceeded) as own:
            ledger.reserve(entry("b", "0.1"), caps)
        assert codes(own) == ["DP404"]
        ledger.reserve(entry("c", "0.2", analyst="ben"), caps)
        with pytest.raises(BudgetExceeded) as total:
            ledger.reserve(entry("d", "0.1", analyst="ben"), caps)
        assert codes(total) == ["DP403"]

    def test_a_received_answer_counts_for_its_analyst_and_never_in_total(self, ledger: Ledger) -> None:
        ledger.reserve(replace(entry("a", "0.3"), answers=("n1", "n2")), Caps())
        got = replace(entry("b", analyst="ben"), charges={}, received={"patient": loss("0.3")}, answers=("n1",))
        receipt = ledger.reserve(got, Caps(total={"patient": loss("0.3")}))
        assert receipt.entry == got == ledger.history()[1].entry
        assert ledger.spent("patient") == ledger.spent("patient", "ben") == loss("0.3")
        assert ledger.accounts() == [
            Account("patient", None, loss("0.3")),
            Account("patient", "ana", loss("0.3")),
            Account("patient", "ben", loss("0.3")),
        ]
        assert ledger.received("ana") == {"n1", "n2"}
        assert ledger.received("ben") == {"n1"}
        assert ledger.received("nobody") == frozenset()
        assert ledger.received() == {"n1", "n2"}

    def test_an_entry_may_name_what_an_earlier_one_has_paid_for(self, ledger: Ledger) -> None:
        full = Caps({"patient": loss("0.3")}, {"patient": loss("0.3")}, loss("0.3"))
        ledger.reserve(replace(entry("a", "0.3"), answers=("n1",)), full)
        named = replace(entry("b"), charges={}, answers=("n2",))
        assert ledger.reserve(named, full).entry == named
        assert ledger.received("ana") == {"n1", "n2"} and ledger.spent("patient") == loss("0.3")
        assert [r.entry for r in ledger.history()][1] == named

    def test_new_noise_and_received_answers_count_together_for_the_analyst_and_per_query(self, ledger: Ledger) -> None:
        both = replace(entry("a", "0.2"), received={"patient": loss("0.3"), "doctor": loss("0.1")})
        total = {"patient": loss("0.2"), "doctor": loss(0)}
        for limit, expected in (("0.5", []), ("0.49", ["DP405", "DP404", "DP403"])):
            caps = Caps(total, {"patient": loss(limit), "doctor": loss(1)}, loss(limit))
            if expected:
                with pytest.raises(BudgetExceeded) as refusal:
                    ledger.reserve(replace(both, id="b"), replace(caps, total={}, analyst={"patient": loss("0.99")}))
                assert codes(refusal) == expected
            else:
                ledger.reserve(both, caps)
        assert ledger.spent("patient") == loss("0.2")
        assert ledger.spent("doctor") == NO_LOSS
        assert (ledger.spent("patient", "ana"), ledger.spent("doctor", "ana")) == (loss("0.5"), loss("0.1"))

    def test_a_refused_entry_gives_no_answer_to_its_analyst(self, ledger: Ledger) -> None:
        wanted = replace(entry("a"), charges={}, received={"patient": loss("0.3")}, answers=("n1",))
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(wanted, Caps(analyst={"patient": loss("0.2")}))
        assert codes(refusal) == ["DP404"]
        assert ledger.received("ana") == frozenset()
        assert ledger.history() == []

    def test_the_repair_of_a_received_answer_is_new_noise_that_fits_every_cap(self, ledger: Ledger) -> None:
        wanted = replace(entry("a", "0.1"), received={"patient": loss("0.3")})
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(wanted, Caps({"patient": loss("0.15")}, {"patient": loss("0.2")}))
        (diagnostic,) = refusal.value.diagnostics
        assert diagnostic.message == (
            "budget of analyst 'ana' on unit 'patient': ε 0.4 asked, 0.2 left; stored answers, new to this account, "
            "cost ε 0.3 of it"
        )
        assert diagnostic.help[0].startswith("use epsilon = 0.15 or less with fresh=True (--fresh)")

    @pytest.mark.parametrize(
        "changed", [{"received": {"patient": loss("0.2")}}, {"answers": ("n2",)}, {"answers": ("n1", "n2")}]
    )
    def test_the_same_id_with_other_answers_is_another_entry(self, ledger: Ledger, changed: dict[str, object]) -> None:
        first = replace(entry("a"), received={"patient": loss("0.1")}, answers=("n1",))
        assert ledger.reserve(first, Caps()) == ledger.reserve(first, Caps())
        with pytest.raises(ValueError, match="already belongs"):
            ledger.reserve(replace(first, **changed), Caps())  # type: ignore[arg-type]
        assert ledger.spent("patient", "ana") == loss("0.2")

    def test_received_losses_are_rounded_up_and_checked_like_charges(self, ledger: Ledger) -> None:
        odd = Fraction(1, 10**70 + 7)
        ledger.reserve(replace(entry("a"), charges={}, received={"patient": PrivacyLoss(odd)}), Caps())
        assert odd <= ledger.spent("patient", "ana").epsilon
        with pytest.raises(ValueError, match="not in terms"):
            ledger.reserve(replace(entry("b"), received={"patient": loss(rho=1)}), Caps())
        for bad in ("", "\ud800"):
            with pytest.raises(ValueError, match="not valid text"):
                ledger.reserve(replace(entry("c"), answers=(bad,)), Caps())

    def test_delta_is_capped_like_epsilon(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss(10, "1e-6")})
        ledger.reserve(entry("a", "0.1", delta="6e-7"), caps)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("b", "0.1", delta="5e-7"), caps)
        assert codes(refusal) == ["DP403"]
        assert "δ 5e-7 asked, 4e-7 left" in str(refusal.value)
        assert "ε" not in refusal.value.diagnostics[0].message

    def test_several_units_are_charged_all_or_none(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss(1), "doctor": loss("0.1")})
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("a", "0.2", "patient", "doctor"), caps)
        assert "'doctor'" in refusal.value.diagnostics[0].message
        assert ledger.accounts() == []
        ledger.reserve(entry("b", "0.1", "patient", "doctor"), caps)
        assert ledger.spent("patient") == ledger.spent("doctor") == loss("0.1")

    def test_the_same_id_is_charged_once(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss("0.1")})
        first = ledger.reserve(entry("a"), caps)
        assert ledger.reserve(entry("a"), caps) == first
        assert ledger.spent("patient") == loss("0.1")
        assert len(ledger.history()) == 1

    def test_an_id_cannot_pay_for_another_entry(self, ledger: Ledger) -> None:
        ledger.reserve(entry("a", "0.1"), Caps())
        with pytest.raises(ValueError, match="already belongs"):
            ledger.reserve(entry("a", "5"), Caps())
        with pytest.raises(ValueError, match="already belongs"):
            ledger.reserve(replace(entry("a"), plan_hash="other"), Caps())
        assert ledger.spent("patient") == loss("0.1")

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.1, Fraction(-1)])
    def test_no_loss_is_made_of_nan_infinity_floats_or_negatives(self, bad: Fraction) -> None:
        with pytest.raises(ValueError, match="privacy loss"):
            PrivacyLoss(bad)

    def test_a_unit_without_a_name_is_not_named(self, ledger: Ledger) -> None:
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(
                Entry("a", "ana", {"unit": loss(2)}, "plan", "policy", "SELECT 1"),
                Caps({"unit": loss(1)}, {"unit": loss(1)}, loss(1)),
            )
        assert {d.message for d in refusal.value.diagnostics} == {
            "total budget: ε 2 asked, 1 left",
            "budget of analyst 'ana': ε 2 asked, 1 left",
            "limit per query of analyst 'ana': ε 2 asked, 1 allowed",
        }

    def test_a_refusal_says_what_was_asked_what_is_left_and_what_fits(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss(1)})
        ledger.reserve(entry("a", "1/3"), caps)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("b", "0.7"), caps)
        (diagnostic,) = refusal.value.diagnostics
        assert diagnostic.message == "total budget of unit 'patient': ε 0.7 asked, 0.666666 left"
        assert diagnostic.help[0] == "use epsilon = 0.666666 or less"
        assert "budgets.total" in diagnostic.help[-1]
        assert diagnostic.notes == ("nothing was run and nothing was spent",)
        ledger.reserve(entry("c", "0.666666"), caps)

    def test_the_repair_fits_every_cap_at_once(self, ledger: Ledger) -> None:
        caps = Caps({"patient": loss("0.5")}, {"patient": loss("0.4")}, loss("0.3"))
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("a", "0.6"), caps)
        assert {d.help[0] for d in refusal.value.diagnostics} == {"use epsilon = 0.3 or less"}

    def test_an_empty_account_says_so(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss("0.1")})
        ledger.reserve(entry("a"), caps)
        with pytest.raises(BudgetExceeded, match="nothing is left"):
            ledger.reserve(entry("b"), caps)

    def test_rho_is_counted_in_a_zcdp_ledger_and_epsilon_is_not_accepted(self, make: Make) -> None:
        ledger = make("zcdp")
        caps = Caps(total={"patient": loss(rho="0.5")})
        ledger.reserve(Entry("a", "ana", {"patient": loss(rho="0.1")}, "p", "q"), caps)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(Entry("b", "ana", {"patient": loss(rho="1.6")}, "p", "q"), caps)
        (diagnostic,) = refusal.value.diagnostics
        assert diagnostic.message == "total budget of unit 'patient': ρ 1.6 asked, 0.4 left"
        assert diagnostic.help[0] == "use rho = 0.4 (epsilon = 0.894427) or less"
        with pytest.raises(ValueError, match="not in terms of zcdp"):
            ledger.reserve(entry("c"), caps)

    @pytest.mark.parametrize("accountant", ["pure_dp", "approx_dp"])
    def test_rho_is_not_accepted_elsewhere(self, make: Make, accountant: str) -> None:
        ledger = make(accountant)
        with pytest.raises(ValueError, match="not in terms"):
            ledger.reserve(Entry("a", "ana", {"patient": loss(rho="0.1")}, "p", "q"), Caps())
        assert ledger.accounts() == []

    def test_an_unknown_accountant_is_refused(self, make: Make) -> None:
        with pytest.raises(ValueError, match="accountant must be one of"):
            make("renyi")

    def test_any_text_can_be_stored(self, ledger: Ledger) -> None:
        odd = replace(entry("a", analyst="Zoë '; --"), statement="SELECT 'é\x00\n\U0001f600'")
        assert ledger.reserve(odd, Caps()).entry == odd
        assert ledger.history()[0].entry == odd
        halves = replace(entry("b", analyst="\udcff"), statement="\ud800")
        assert ledger.reserve(halves, Caps()) == ledger.reserve(halves, Caps())
        assert ledger.spent("patient", "\udcff") == loss("0.1")

    def test_finishing_changes_nothing_and_may_be_done_twice(self, ledger: Ledger) -> None:
        ledger.finish()
        receipt = ledger.reserve(entry("a"), Caps())
        ledger.finish()
        ledger.finish()
        assert ledger.history() == [receipt]

    # Losses by period ------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("seed", range(3))
    def test_losses_by_period_are_what_a_dictionary_by_day_says(self, make: Make, seed: int) -> None:
        ledger, draw, days = make(), random.Random(seed), Dictionary()
        cap = Caps({"trip": loss("0.9", "4e-9")}, {"trip": loss("0.7", "4e-9")})
        admitted = 0
        for number in range(60):
            wanted = by_period(draw, number)
            try:
                ledger.reserve(wanted, cap)
            except BudgetExceeded:
                assert not days.fits(wanted, cap)
            else:
                assert days.fits(wanted, cap)
                days.add(wanted)
                admitted += 1
        assert 10 < admitted < 60
        for opened in (ledger, make()) if not isinstance(ledger, MemoryLedger) else (ledger,):
            for unit in ("trip", "rider"):
                for analyst in (None, "ana", "ben"):
                    for first, last in (ALWAYS, *[(draw.choice([None, a]), draw.choice([None, b])) for a, b in SPANS]):
                        found = opened.spent(unit, analyst, (first, last))
                        assert found == days.spent(unit, analyst, first, last), (unit, analyst, first, last)
                    region = opened.by_period(unit, analyst)
                    assert not region or region == canonical(region)
                    for day in DAYS:
                        own = next((s.loss for s in region if s.bounds[0] <= day.toordinal() < s.bounds[1]), NO_LOSS)
                        assert own == days.spent(unit, analyst, day, day)
                for analyst in ("ana", "ben"):
                    assert opened.charged(unit, analyst) == days.charged[unit, analyst]
            assert [r.entry.regions for r in opened.history()] == days.regions

    def test_an_entry_without_a_region_counts_in_every_period_past_and_future(self, ledger: Ledger) -> None:
        cap = Caps(total={"trip": loss(1)})
        ledger.reserve(entry("a", "0.4", "trip"), cap)
        ledger.reserve(on_days(entry("b", "0.6", "trip"), 5, 5), cap)
        for name, first, last in (("c", 5, 5), ("d", 4, 6), ("e", None, 5), ("f", 5, None), ("g", None, None)):
            with pytest.raises(BudgetExceeded):
                ledger.reserve(on_days(entry(name, "0.1", "trip"), first, last), cap)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(entry("h", "0.1", "trip"), cap)
        ledger.reserve(on_days(entry("i", "0.6", "trip"), None, 4), cap)
        ledger.reserve(on_days(entry("j", "0.6", "trip"), 6, None), cap)
        assert ledger.spent("trip", days=(DAYS[0], DAYS[0])) == ledger.spent("trip") == loss(1)

    def test_a_refusal_names_the_periods_that_are_used_up(self, ledger: Ledger) -> None:
        cap = Caps({"trip": loss(1)}, {"trip": loss("0.9")})
        ledger.reserve(on_days(entry("a", "0.8", "trip"), 3, 4), cap)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(on_days(entry("b", "0.3", "trip"), 4, 6), cap)
        assert {d.message for d in refusal.value.diagnostics} == {
            "total budget of unit 'trip', 2026-11-05: ε 0.3 asked, 0.2 left",
            "budget of analyst 'ana' on unit 'trip', 2026-11-05: ε 0.3 asked, 0.1 left",
        }

    def test_the_dearest_period_is_found_part_by_part(self, ledger: Ledger) -> None:
        spans = (LossSpan(DAYS[0], DAYS[0], loss("0.1", "5e-9")), LossSpan(DAYS[1], DAYS[1], loss("0.3", "1e-9")))
        both = replace(entry("a", "0.3", "trip", delta="5e-9"), regions={"trip": spans})
        assert ledger.reserve(both, Caps()).entry == both
        assert ledger.spent("trip") == ledger.charged("trip", "ana") == loss("0.3", "5e-9")
        assert ledger.spent("trip", None, (DAYS[1], None)) == loss("0.3", "1e-9")
        ledger.reserve(replace(both, id="b"), Caps(total={"trip": loss("0.6", "1e-8")}))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(replace(both, id="c"), Caps(total={"trip": loss(1, "1e-8")}))

    @pytest.mark.parametrize("wrong", ["0.2", "0.4"])
    def test_a_charge_that_is_not_its_dearest_period_is_no_entry(self, ledger: Ledger, wrong: str) -> None:
        region = {"trip": (LossSpan(DAYS[0], None, loss("0.1")), LossSpan(None, DAYS[3], loss("0.2")))}
        ledger.reserve(replace(entry("a", "0.3", "trip"), regions=region), Caps())
        for bad in (
            replace(entry("b", wrong, "trip"), regions=region),
            replace(entry("b", "0.3", "rider"), regions=region),
            replace(entry("b", "0.3", "trip"), regions={"trip": ()}),
            replace(entry("b"), received={"trip": loss(wrong)}, received_regions=region),
        ):
            with pytest.raises(ValueError, match="is not what its dearest period loses"):
                ledger.reserve(bad, Caps())
        assert len(ledger.history()) == 1

    def test_an_account_is_charged_in_the_received_answers_own_periods(self, ledger: Ledger) -> None:
        cap = Caps({"trip": loss("0.5")}, {"trip": loss("0.5")})
        new = on_days(entry("a", "0.3", "trip"), 7, 7)
        ledger.reserve(
            replace(
                new,
                received={"trip": loss("0.5")},
                received_regions={"trip": (LossSpan(DAYS[0], DAYS[6], loss("0.5")),)},
            ),
            cap,
        )
        assert ledger.spent("trip", "ana") == ledger.charged("trip", "ana") == loss("0.5")
        assert ledger.spent("trip") == loss("0.3")
        ledger.reserve(on_days(entry("b", "0.2", "trip"), 7, 7), cap)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(on_days(entry("c", "0.1", "trip"), 6, 6), cap)
        assert codes(refusal) == ["DP404"]
        ledger.reserve(on_days(entry("c", "0.1", "trip", analyst="ben"), 6, 6), cap)

    def test_a_ceiling_counts_each_entry_in_its_dearest_period_on_both_sides(self, ledger: Ledger) -> None:
        for number in range(4):  # four days, each of them once
            ledger.reserve(on_days(entry(str(number), "0.1", "trip"), number, number), Caps())
        before = {"trip": ledger.charged("trip", "ana")}
        assert before == {"trip": loss("0.4")} and ledger.spent("trip", "ana") == loss("0.1")
        caps = Caps(ceilings={"per_day": Ceiling(loss("0.2"), before)})
        ledger.reserve(on_days(entry("a", "0.2", "trip"), 9, 9), caps)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(on_days(entry("b", "0.1", "trip"), 8, 8), caps)
        assert codes(refusal) == ["DP413"]

    def test_threads_together_never_exceed_a_days_budget(self, ledger: Ledger) -> None:
        caps, admitted = Caps(total={"trip": loss(1)}), list[int]()

        def work(thread: int) -> None:
            for i in range(5):
                for first, last in ((thread, thread), (2, 3)):
                    with contextlib.suppress(BudgetExceeded):
                        wanted = on_days(entry(f"{thread}-{i}-{first}", "0.25", "trip"), first, last)
                        admitted.append(ledger.reserve(replace(wanted, id=f"{wanted.id}-{last}"), caps).sequence)

        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(ledger.spent("trip", None, (day, day)) == loss(1) for day in DAYS[:4])
        assert len(admitted) == len(ledger.history())

    def test_failures_stop_what_pays_for_noise_and_nothing_else(self, ledger: Ledger) -> None:
        for i in range(2):
            ledger.reserve(entry(f"a{i}"), Caps())
            note(ledger, f"a{i}", "ana", "failed")
            note(ledger, f"a{i}", "ana", "crashed")  # one run fails once
        assert [(f.account, f.entry, f.how) for f in ledger.failures()] == [("ana", f"a{i}", "failed") for i in (0, 1)]
        assert ledger.spent("patient") == loss("0.2") and not ledger.definitions()
        ledger.reserve(entry("b"), Caps(failures=since(3)))
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("c"), Caps(failures=since(2)))
        assert codes(refusal) == ["DP416"] and ledger.spent("patient") == loss("0.3")
        ledger.reserve(entry("d", analyst="ben"), Caps(failures=since(2)))  # others' do not count for him
        ledger.reserve(replace(entry("e"), charges={}, received={"patient": loss("0.1")}), Caps(failures=since(2)))
        assert ledger.reserve(entry("b"), Caps(failures=since(2))).entry.id == "b"  # charged before, charged once

    def test_failures_of_all_together_stop_everybody(self, ledger: Ledger) -> None:
        for name in ("ana", "ben", "cleo"):
            ledger.reserve(entry(name, analyst=name), Caps())
            note(ledger, name, name, "crashed")
        ledger.reserve(entry("a", analyst="dora"), Caps(failures=since(2, 4)))
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(entry("b", analyst="dora"), Caps(failures=since(2, 3)))
        assert codes(refusal) == ["DP416"] and "of all accounts together" in refusal.value.diagnostics[0].message

    def test_failures_count_in_their_time_and_until_a_custodian_looked(self, ledger: Ledger) -> None:
        ledger.reserve(entry("a"), Caps())
        note(ledger, "a", "ana", "failed")
        later = FailureCap(1, 1, dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
        ledger.reserve(entry("b"), Caps(failures=later))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(entry("c"), Caps(failures=since(1)))
        look_at(ledger, "zoe", "the disk was full")
        assert not ledger.failures() and ledger.history()[-1].entry.statement.endswith("by zoe: the disk was full")
        ledger.reserve(entry("c"), Caps(failures=since(1)))
        note(ledger, "c", "ana", "failed")
        assert [f.entry for f in ledger.failures()] == ["c"]

    def test_a_query_is_neither_a_failure_nor_a_look(self, ledger: Ledger) -> None:
        """Whatever its text: only entries that charge nobody are."""
        for i, text in enumerate(("STATEMENT FAILED 2020-01-01T00:00:00+00:00 failed x", "FAILURES LOOKED AT by me")):
            ledger.reserve(entry(f"b{i}"), Caps())
            note(ledger, f"b{i}", "ana", "failed")
            ledger.reserve(replace(entry(f"a{i}"), statement=text), Caps())
        assert [f.entry for f in ledger.failures()] == ["b0", "b1"]

    @pytest.mark.parametrize("said", ["yesterday failed x", "", "2020-01-01T00:00:00 failed x"])
    def test_a_failure_whose_time_cannot_be_read_counts(self, ledger: Ledger, said: str) -> None:
        ledger.reserve(Entry("f", "ana", {}, "", "", f"STATEMENT FAILED {said}", kind=EntryKind.FAILURE), Caps())
        then = dt.datetime(2019, 1, 1, tzinfo=dt.UTC)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(entry("a"), Caps(failures=FailureCap(1, 9, then)))

    def test_there_is_no_way_back(self, ledger: Ledger) -> None:
        public = {name for name in dir(ledger) if not name.startswith("_")}
        looking = {"spent", "charged", "received", "accounts", "history", "salt", "path", "verify", "definitions"}
        looking |= {"failures", "find", "fixed", "closings", "by_period", "counters"}
        assert public <= {"reserve", "fix", "finish", "open", "look", "close", *looking}

    def test_the_salt_is_62_secret_bits(self, ledger: Ledger) -> None:
        assert 0 <= ledger.salt < 2**62
        assert ledger.salt != MemoryLedger().salt

    def test_threads_together_never_exceed_a_cap(self, ledger: Ledger) -> None:
        caps = Caps(total={"patient": loss(2)})
        admitted: list[int] = []
        refused: list[int] = []

        def work(thread: int) -> None:
            for i in range(10):
                try:
                    admitted.append(ledger.reserve(entry(f"{thread}-{i}"), caps).sequence)
                except BudgetExceeded:
                    refused.append(i)

        threads = [threading.Thread(target=work, args=(t,)) for t in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(admitted) == list(range(1, 21))
        assert len(refused) == 60
        assert ledger.spent("patient") == loss(2)


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda accountant="approx_dp": MemoryLedger("clinic", accountant)


class TestSqliteLedger(LedgerContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        def open_ledger(accountant: str = "approx_dp") -> Ledger:
            return SqliteLedger.open(tmp_path / "l.sqlite", tmp_path / "head.json", "clinic", accountant)

        return open_ledger

    def test_a_second_opening_knows_everything(self, make: Make) -> None:
        with_first = make()
        with_first.reserve(entry("a", "0.1", "patient", "doctor", delta="1e-9"), Caps())
        again = make()
        assert again.history() == with_first.history()
        assert again.accounts() == with_first.accounts()
        assert again.salt == with_first.salt
        again.reserve(replace(entry("b", "0.2"), received={"doctor": loss(1)}, answers=("n",)), Caps())
        assert with_first.spent("patient") == loss("0.3", "1e-9")
        assert with_first.received("ana") == {"n"}
        assert with_first.spent("doctor", "ana") == loss("1.1", "1e-9")
