"""Entries that say what a summary is made of charge nobody, and give nobody what he has not got."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms import Additive, made_by
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.core.release.charge import ChargeRequest, charge, define, price
from dpsql.core.release.noisy import Estimate, GivenAnswers, NoisySource, Sums, draw_release, wanted
from tests.core.release.conftest import Members
from tests.core.release.test_charge import POLICY

CREATE = "CREATE DP SUMMARY s ON members (age) WITH (k = 1, epsilon = 1)"


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger("club")


@pytest.fixture
def con(members: Members, ledger: MemoryLedger) -> Iterator[Connection]:
    """ana has asked for a count, and for another one."""
    with Connection(*members(POLICY), "ana", ledger) as found:
        found.execute("SELECT COUNT(*) AS n FROM members", epsilon=1)
        found.execute("SELECT COUNT(*) AS n FROM members WHERE age < 40", epsilon=0.5)
        yield found


def stored(con: Connection) -> list[StoredAnswer]:
    store: Any = con.service.account("*").store
    return [answer for answers in store._answers.values() for answer in answers]


def request(ledger: MemoryLedger, analyst: str, statement: str = CREATE) -> ChargeRequest:
    return ChargeRequest(analyst, "approx_dp", Caps(), "", "policy", statement)


def test_it_charges_nobody_and_is_told_in_order(con: Connection, ledger: MemoryLedger) -> None:
    answers = [a for a in stored(con) if a.id in ledger.received("*")]
    before = ledger.accounts()
    define(ledger, request(ledger, "*"), answers)
    define(ledger, request(ledger, "*", "DROP DP SUMMARY s"), ())
    assert ledger.accounts() == before
    told = ledger.definitions()
    assert [e.statement for e in told] == [CREATE, "DROP DP SUMMARY s"]
    assert told[0].answers == tuple(a.id for a in answers) and told[0].units == ()


def test_nobody_defines_what_he_does_not_hold(con: Connection, ledger: MemoryLedger) -> None:
    """Else the entry would make him hold it."""
    with pytest.raises(AssertionError, match="does not hold"):
        define(ledger, request(ledger, "ben"), stored(con))
    assert ledger.received("ben") == frozenset() and ledger.definitions() == ()


def test_an_entry_that_charges_defines_nothing(ledger: MemoryLedger) -> None:
    """Whatever its statement says."""
    cost = {"member": PrivacyLoss(Fraction(1, 10))}
    ledger.reserve(Entry("a", "ana", cost, "", "policy", CREATE), Caps())
    ledger.reserve(Entry("b", "ana", {}, "", "policy", CREATE, cost), Caps())
    ledger.reserve(Entry("c", "ana", {}, "", "policy", " " + CREATE), Caps())
    assert ledger.definitions() == ()


# --- what is computed of stored numbers -------------------------------------------------------------------------------


def estimate(answers: list[StoredAnswer]) -> Estimate:
    """The first number, and nothing of the others."""
    sources = []
    for answer in answers:
        mechanism = made_by(answer.mechanism, answer.parameter)
        assert isinstance(mechanism, Additive)
        sources.append(NoisySource(mechanism, 1, Integers.of(answer.values)))
    sums = Sums(np.array([0, 1]), np.array([0]), np.array([1.0]))
    return Estimate(tuple(answers), tuple(sources), {0: sums})


@pytest.mark.parametrize("holds", [(), (0,), (1,), (0, 1)])
def test_every_answer_that_is_not_held_is_charged_whichever_is_used(
    con: Connection, ledger: MemoryLedger, holds: tuple[int, ...]
) -> None:
    """ε 1 and ε .5 are stored; ben's entries name some of them. The ledger decides, not what is looked at."""
    answers = sorted(stored(con), key=lambda a: -a.losses["members"].epsilon if "members" in a.losses else 0)
    losses = [next(iter(a.losses.values())) for a in answers]
    unit = next(iter(answers[0].losses))
    for i in holds:
        ledger.reserve(Entry(f"own{i}", "ben", {}, "", "", "", {unit: losses[i]}, (answers[i].id,)), Caps())
    before = ledger.spent(unit, "ben"), ledger.spent(unit)
    plan = con.plan("SELECT COUNT(*) AS n FROM members WHERE age < 7", epsilon=2)
    given = (GivenAnswers(estimate=estimate(answers)),)
    assert wanted(plan.releases[0].measured, given[0]) == ()
    missing = [a for i, a in enumerate(answers) if i not in holds]
    asked = sum((losses[i] for i in range(len(answers)) if i not in holds), NO_LOSS)
    told = price(plan.releases, given, missing, "approx_dp")
    assert told.new == {} and told.in_account.get(unit, NO_LOSS) == asked
    charged = charge(ledger, request(ledger, "ben", "SELECT"), plan.releases, given)
    assert ledger.spent(unit, "ben") == before[0] + asked and ledger.spent(unit) == before[1]
    assert {a.id for a in answers} <= ledger.received("ben")
    noisy = draw_release(plan.releases[0], con.service.engine, charged.receipt, 0, given=given[0])
    assert list(noisy.columns[0]) == [answers[0].values[0]]


def test_an_answer_that_nobody_paid_for_is_not_computed_with(con: Connection, ledger: MemoryLedger) -> None:
    answers = stored(con)
    forged = [replace(answers[0], id="f" * 32 + ".0." + "0" * 32), *answers[1:]]
    plan = con.plan("SELECT COUNT(*) AS n FROM members", epsilon=2)
    with pytest.raises(AssertionError, match="no entry of the ledger names"):
        charge(ledger, request(ledger, "*", "SELECT"), plan.releases, (GivenAnswers(estimate=estimate(forged)),))
    cheaper = {unit: PrivacyLoss(Fraction(1, 10**6)) for unit in answers[0].losses}
    forged = [replace(answers[0], losses=cheaper), *answers[1:]]
    with pytest.raises(AssertionError, match="whose price is not the one"):
        charge(ledger, request(ledger, "ben", "SELECT"), plan.releases, (GivenAnswers(estimate=estimate(forged)),))
