"""What a run is charged when whoever chose its stored answers is wrong, or lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.resolve import resolve
from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.core.release.noisy import GivenAnswers
from dpsql.planner.plan import Plan
from tests.core.release.conftest import Members

BOTH = "SELECT COUNT(*) AS n, SUM(age) AS s FROM members"
POLICY = {
    "version": 1,
    "name": "club",
    "tables": {
        "members": {
            "unit": {"column": "id"},
            "primary_key": ["id"],
            "columns": {
                "id": {"type": "bigint", "nullable": False},
                "age": {"type": "integer", "bounds": [0, 100], "nullable": False},
            },
        }
    },
    "budgets": {"total": {"epsilon": 100, "delta": 0.001}},
}


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger("club")


@pytest.fixture
def clients(members: Members, ledger: MemoryLedger) -> Iterator[tuple[Connection, Connection]]:
    """ana and ben, with accounts in one ledger. ana has asked for both numbers at ε = 1."""
    found = tuple(Connection(*members(POLICY), name, ledger) for name in ("ana", "ben"))
    found[0].execute(BOTH, epsilon=1)
    yield found[0], found[1]
    for con in found:
        con.close()


def account_of(con: Connection) -> AnalystAccount:
    return con.service.account(con.analyst)


def stored(con: Connection, plan: Plan) -> GivenAnswers:
    """What is stored for the one release of a plan."""
    (given,) = resolve(plan, account_of(con)).given
    assert len(given.answers) == 2
    return given


def test_what_an_account_has_not_is_charged_to_it_and_named(
    clients: tuple[Connection, Connection], ledger: MemoryLedger
) -> None:
    ana, ben = clients
    plan = ben.plan(BOTH, epsilon=1)
    given = stored(ana, plan)
    charged = account_of(ben).charge(plan, (given,))
    assert charged.receipt is not None and not charged.ids
    entry = charged.receipt.entry
    assert not entry.charges and entry.received["unit"] == PrivacyLoss(Fraction(1)) == charged.spent
    assert set(entry.answers) == {a.id for a in given.answers.values()} == ledger.received("ben")
    assert ledger.spent("unit").epsilon == 1 == ledger.spent("unit", "ben").epsilon
    again = account_of(ben).charge(plan, (given,))
    assert again.receipt is None and again.spent == NO_LOSS


def test_what_is_drawn_is_charged_in_full_beside_what_is_received(
    clients: tuple[Connection, Connection], ledger: MemoryLedger
) -> None:
    ana, ben = clients
    plan = ben.plan(BOTH, epsilon=1)
    given = stored(ana, plan)
    (first, *_) = given.answers
    charged = account_of(ben).charge(plan, (GivenAnswers({first: given.answers[first]}),))
    assert charged.receipt is not None and len(charged.ids) == 1
    assert charged.receipt.entry.charges["unit"].epsilon == Fraction(1, 2)
    assert charged.receipt.entry.received["unit"].epsilon == Fraction(1, 2)
    assert set(charged.receipt.entry.answers) == {*charged.ids.values(), given.answers[first].id}


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize(
    "change",
    [
        {"losses": {}},
        {"losses": {"unit": PrivacyLoss(Fraction(1, 1000))}},
        {"losses": {"others": PrivacyLoss(Fraction(1, 2))}},
        {"parameter": Fraction(10**6)},
        {"id": "no.0.entry"},
    ],
)
def test_forged_answers_charge_nothing_and_are_not_left_out_of_a_charge(
    clients: tuple[Connection, Connection], ledger: MemoryLedger, change: dict[str, Any], who: int
) -> None:
    plan = clients[who].plan(BOTH, epsilon=1)
    given = stored(clients[0], plan)
    forged = GivenAnswers({i: replace(answer, **change) for i, answer in given.answers.items()})
    entries = len(ledger.history())
    with pytest.raises(AssertionError, match="a stored answer"):
        account_of(clients[who]).charge(plan, (forged,))
    assert len(ledger.history()) == entries


def test_earlier_draws_of_others_are_received_and_charged(
    clients: tuple[Connection, Connection], ledger: MemoryLedger
) -> None:
    """What a new draw is averaged with is paid for like what is given in its place."""
    ana, ben = clients
    plan = ben.plan(BOTH, epsilon=1)
    earlier = {i: (answer,) for i, answer in stored(ana, plan).answers.items()}
    forged = {i: (replace(answer, losses={}),) for i, (answer,) in earlier.items()}
    with pytest.raises(AssertionError, match="a stored answer"):
        account_of(ben).charge(plan, (GivenAnswers(earlier=forged),))
    charged = account_of(ben).charge(plan, (GivenAnswers(earlier=earlier),))
    assert charged.receipt is not None and len(charged.ids) == 2
    assert charged.receipt.entry.charges["unit"].epsilon == 1 == charged.receipt.entry.received["unit"].epsilon
    assert {answer.id for (answer,) in earlier.values()} < set(charged.receipt.entry.answers)


def test_answers_of_another_ledger_are_not_left_out_of_a_charge(clients: tuple[Connection, Connection]) -> None:
    plan = clients[0].plan(BOTH, epsilon=1)
    given = stored(clients[0], plan)
    other = replace(account_of(clients[0]), ledger=MemoryLedger("club"))
    with pytest.raises(AssertionError, match="no entry of the ledger names"):
        other.charge(plan, (given,))
    assert not other.ledger.history()


def test_a_plan_that_says_it_costs_nothing_is_charged_what_its_noise_costs(
    clients: tuple[Connection, Connection], ledger: MemoryLedger
) -> None:
    plan = replace(clients[1].plan(BOTH, epsilon=1), cost={})
    account = account_of(clients[1])
    charged = account.charge(plan, resolve(plan, account, fresh=True).given)
    assert charged.spent.epsilon == 1 and len(charged.ids) == 2 and ledger.spent("unit").epsilon == 2
