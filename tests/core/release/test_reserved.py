"""Releases that are made after others were drawn: charged before the first, named when they are known, and once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.answers.stored.resolve import resolve
from dpsql.api.connection import Connection
from dpsql.core.ledger.ledger import Caps, Ledger
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.noise.mechanisms.gaussian import DiscreteGaussian
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.core.release.charge import Charged, ChargeRequest, charge, charge_reserved, price
from dpsql.core.release.noisy import GivenAnswers, draw_release
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.faces.cli.commands.budgets.budget import history_rows, queries_of
from dpsql.planner.plan import Plan
from tests.core.release.conftest import Members
from tests.core.release.test_charge import POLICY

FIRST, THEN = "SELECT COUNT(*) AS n FROM members", "SELECT SUM(age) AS s FROM members"
Planned = Callable[[str, str], Plan]
NO_CAPS = Caps()
Releases = Sequence[PlannedRelease]


@pytest.fixture(params=["approx_dp", "zcdp"])
def accountant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def policy_of(accountant: str) -> dict[str, object]:
    total = {"rho": 100} if accountant == "zcdp" else {"epsilon": 100}
    total |= {"delta": 0.001} if accountant != "pure_dp" else {}
    return {**POLICY, "privacy": {"accountant": accountant}, "budgets": {"total": total}}


@pytest.fixture
def ledger(accountant: str) -> MemoryLedger:
    return MemoryLedger("club", accountant)


@pytest.fixture
def con(members: Members, accountant: str, ledger: MemoryLedger) -> Iterator[Connection]:
    with Connection(*members(policy_of(accountant)), "ana", ledger) as found:
        yield found


@pytest.fixture
def asked(con: Connection) -> Planned:
    return lambda sql, epsilon: con.plan(sql, epsilon=epsilon)


def request_of(plan: Plan, accountant: str, caps: Caps = NO_CAPS, analyst: str = "ana") -> ChargeRequest:
    return ChargeRequest(analyst, accountant, caps, plan.hash, plan.basis.policy_hash, plan.source.text)  # type: ignore[arg-type]


def nothing(releases: Releases) -> list[GivenAnswers]:
    return [GivenAnswers() for _ in releases]


def begun(asked: Planned, ledger: Ledger, accountant: str, *later: Plan, caps: Caps = NO_CAPS) -> tuple[Plan, Charged]:
    """A run whose first release is charged together with what follows."""
    first = asked(FIRST, "1/4")
    follows = [r for plan in later for r in plan.releases]
    return first, charge(ledger, request_of(first, accountant, caps), first.releases, nothing(first.releases), follows)


def test_all_is_charged_first_and_what_follows_is_only_named(
    asked: Planned, ledger: MemoryLedger, accountant: str
) -> None:
    then = asked(THEN, "3/4")
    first, charged = begun(asked, ledger, accountant, then)
    whole = (*first.releases, *then.releases)
    wanted = price(whole, nothing(whole), (), accountant).new  # type: ignore[arg-type]
    assert charged.receipt is not None and dict(charged.receipt.entry.charges) == dict(wanted)
    assert charged.receipt.entry.answers == tuple(charged.ids.values()) and len(charged.ids) == 1
    named = charge_reserved(ledger, request_of(then, accountant), charged, then.releases)
    assert named.receipt is not None and named.receipt != charged.receipt and named.reserved is None
    entry = named.receipt.entry
    assert (dict(entry.charges), dict(entry.received), entry.plan_hash) == ({}, {}, then.hash)
    assert entry.answers == tuple(named.ids.values()) and len(named.ids) == 1 and named.spent == NO_LOSS
    assert ledger.spent("unit") == wanted["unit"] == ledger.spent("unit", "ana")
    assert ledger.received("ana") == {*charged.ids.values(), *named.ids.values()}


def test_a_run_in_two_entries_is_one_query(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    then = asked(THEN, "3/4")
    _, charged = begun(asked, ledger, accountant, then)
    charge_reserved(ledger, request_of(then, accountant), charged, then.releases)
    assert queries_of(ledger.history()) == 1
    _, (first, second) = history_rows(ledger.history())
    assert "unit" in first[3].text and second[3].text == "in an earlier entry"


def test_what_was_reserved_is_used_once(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    then = asked(THEN, "3/4")
    _, charged = begun(asked, ledger, accountant, then)
    refused: list[BaseException] = []

    def use() -> None:
        try:
            charge_reserved(ledger, request_of(then, accountant), replace(charged), then.releases)
        except AssertionError as refusal:
            refused.append(refusal)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3 and all("once" in str(one) for one in refused)
    assert len(ledger.history()) == 2


@pytest.mark.parametrize("more", ["4/5", "7/8", "1"])
def test_what_costs_more_than_was_reserved_is_refused_and_the_reservation_is_gone(
    asked: Planned, ledger: MemoryLedger, accountant: str, more: str
) -> None:
    then, dearer = asked(THEN, "3/4"), asked(THEN, more)
    _, charged = begun(asked, ledger, accountant, then)
    with pytest.raises(AssertionError, match="cost more"):
        charge_reserved(ledger, request_of(dearer, accountant), charged, dearer.releases)
    with pytest.raises(AssertionError, match="once"):
        charge_reserved(ledger, request_of(then, accountant), charged, then.releases)
    assert len(ledger.history()) == 1


def test_two_releases_do_not_fit_where_one_was_reserved(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    then = asked(THEN, "3/4")
    _, charged = begun(asked, ledger, accountant, then)
    with pytest.raises(AssertionError, match="cost more"):
        charge_reserved(ledger, request_of(then, accountant), charged, (*then.releases, *then.releases))


@pytest.mark.parametrize("accountant", ["approx_dp"], indirect=True)
def test_a_delta_that_was_not_reserved_is_refused(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    """However little ε its noise costs."""
    then = asked(THEN, "3/4")
    (release,) = then.releases
    (m,) = release.measured.measurements
    wide = replace(m, mechanism=DiscreteGaussian.calibrate(m.sensitivity.l2_squared, Fraction(1, 10**6)))
    for delta, refused in ((Fraction(1, 10**9), True), (Fraction(0), False)):
        measured = replace(release.measured, measurements=(wide if delta else m,), conversion_delta=delta)
        _, charged = begun(asked, ledger, accountant, then)
        with pytest.raises(AssertionError, match="cost more") if refused else nullcontext():
            charge_reserved(ledger, request_of(then, accountant), charged, (replace(release, measured=measured),))


def test_steps_follow_each_other_within_one_charge(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    second, third = asked("SELECT COUNT(age) AS m FROM members", "1/4"), asked(THEN, "1/2")
    _, charged = begun(asked, ledger, accountant, second, third)
    spent = ledger.spent("unit")
    more = charge_reserved(ledger, request_of(second, accountant), charged, second.releases, third.releases)
    last = charge_reserved(ledger, request_of(third, accountant), more, third.releases)
    assert last.reserved is None and len(ledger.history()) == 3 and ledger.spent("unit") == spent
    with pytest.raises(AssertionError, match="nothing was reserved"):
        charge_reserved(ledger, request_of(third, accountant), last, third.releases)


def test_a_step_counts_what_came_before_and_what_comes_after(
    asked: Planned, ledger: MemoryLedger, accountant: str
) -> None:
    second, third = asked("SELECT COUNT(age) AS m FROM members", "1/4"), asked(THEN, "1/2")
    _, charged = begun(asked, ledger, accountant, second, third)
    with pytest.raises(AssertionError, match="cost more"):  # the third would have nothing left
        charge_reserved(ledger, request_of(third, accountant), charged, third.releases, third.releases)
    _, charged = begun(asked, ledger, accountant, second, third)
    more = charge_reserved(ledger, request_of(second, accountant), charged, second.releases, third.releases)
    whole = asked(THEN, "3/4")
    with pytest.raises(AssertionError, match="cost more"):
        charge_reserved(ledger, request_of(whole, accountant), more, whole.releases)


def test_a_reservation_is_of_one_account(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    then = asked(THEN, "3/4")
    for other in (request_of(then, accountant, analyst="ben"), request_of(then, "no accountant")):
        _, charged = begun(asked, ledger, accountant, then)
        with pytest.raises(AssertionError, match="another account"):
            charge_reserved(ledger, other, charged, then.releases)
    _, charged = begun(asked, ledger, accountant, then)
    with pytest.raises(AssertionError, match="another account"):
        charge_reserved(MemoryLedger("club", accountant), request_of(then, accountant), charged, then.releases)


def test_caps_are_asked_once_for_the_whole(asked: Planned, ledger: MemoryLedger, accountant: str) -> None:
    then = asked(THEN, "3/4")
    _, charged = begun(asked, ledger, accountant, then)
    spent = ledger.spent("unit")
    full = Caps({"unit": spent}, {"unit": spent}, spent)
    charge_reserved(ledger, request_of(then, accountant, full), charged, then.releases)  # they are full, and it fits
    with pytest.raises(BudgetExceeded):
        begun(asked, ledger, accountant, then, caps=full)
    short = PrivacyLoss(Fraction(1, 2)) if accountant != "zcdp" else PrivacyLoss(rho=Fraction(1, 8))
    with pytest.raises(BudgetExceeded):  # the first alone would fit
        begun(asked, ledger, accountant, then, caps=Caps(per_query=short))


def test_a_first_release_that_is_received_is_paid_beside_what_follows(
    asked: Planned, con: Connection, ledger: MemoryLedger, accountant: str
) -> None:
    first, then = asked(FIRST, "1/4"), asked(THEN, "3/4")
    con.execute(FIRST, epsilon=Fraction(1, 4))
    (given,) = resolve(first, con.service.account("ana")).given
    charged = charge(ledger, request_of(first, accountant, analyst="ben"), first.releases, (given,), then.releases)
    assert charged.receipt is not None and not charged.ids
    entry = charged.receipt.entry
    assert entry.charges == price(then.releases, nothing(then.releases), (), accountant).new  # type: ignore[arg-type]
    assert entry.received["unit"] != NO_LOSS
    named = charge_reserved(ledger, request_of(then, accountant, analyst="ben"), charged, then.releases)
    assert len(named.ids) == 1 and ledger.received("ben") == {
        *(a.id for a in given.answers.values()),
        *named.ids.values(),
    }


def test_what_was_drawn_first_is_kept_where_the_run_ends_between(
    con: Connection, asked: Planned, ledger: MemoryLedger, accountant: str
) -> None:
    """All is charged; the first answer is named and may be stored; of what follows there is no name, so no noise."""
    then = asked(THEN, "3/4")
    first, charged = begun(asked, ledger, accountant, then)
    released = draw_release(first.releases[0], con.service.engine, charged.receipt, ledger.salt, {}, charged.given[0])
    assert len(released.keys) == 1
    assert ledger.received("ana") == set(charged.ids.values()) and len(ledger.history()) == 1
    assert resolve(then, con.service.account("ana"), fresh=True).draws
    assert not resolve(then, con.service.account("ana")).is_held


def test_an_entry_that_only_names_is_kept_by_every_ledger(asked: Planned, tmp_path: Path, accountant: str) -> None:
    then = asked(THEN, "3/4")
    file, head = tmp_path / "a.sqlite", tmp_path / "heads" / "a"
    with SqliteLedger.open(file, head, "club", accountant) as book:
        _, charged = begun(asked, book, accountant, then)
        named = charge_reserved(book, request_of(then, accountant), charged, then.releases)
        spent = book.spent("unit")
    with SqliteLedger.open(file, head, "club", accountant) as book:
        assert book.verify() == 2 and book.spent("unit") == spent
        assert book.received("ana") == {*charged.ids.values(), *named.ids.values()}
        assert [dict(r.entry.charges) for r in book.history()][1] == {}
