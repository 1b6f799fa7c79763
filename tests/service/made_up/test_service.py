"""A service over made-up rows: asked as the true one, for nothing; and no file of the policy is opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.errors import BudgetExceeded, Rejected
from dpsql.faces.server.workers.ceilings import AccountSpending
from dpsql.faces.server.workers.own_account import rows_of
from dpsql.policy.load import load_policy
from dpsql.service.made_up.service import FREE, MadeUpService, made_up
from dpsql.service.open_data import open_data
from dpsql.service.query import accuracy
from dpsql.service.service import Service
from tests.support.small_shop import COUNT, MEANS, Shop, make_shop

GROUPS = "SELECT city, COUNT(*) AS n, AVG(amount) AS a FROM orders GROUP BY city ORDER BY city"
opened: list[str] = []
_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in ("open", "sqlite3.connect"):
        opened.append(os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else "")


sys.addaudithook(_watch)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"), epsilon="3")


@pytest.fixture(scope="module")
def service(shop: Shop) -> Iterator[MadeUpService]:
    service, _ = made_up(load_policy(shop.policy))
    with service:
        yield service


def test_answers_are_free_stay_the_same_and_have_their_error(service: MadeUpService) -> None:
    session = service.session("ana")
    first = session.sql(GROUPS).run(epsilon="0.5")
    assert [row[0] for row in first.rows] == ["Bonn", "Lyon", "Oslo"] and first.spent == NO_LOSS
    assert session.sql(GROUPS).run(epsilon="0.5").rows == first.rows
    for _ in range(12):  # more than the whole budget would pay for
        session.sql(COUNT).run(epsilon="0.5", fresh=True)
    assert not service.ledger.accounts() and session.budget.spent == NO_LOSS
    assert all(not receipt.entry.units for receipt in service.ledger.history())


def test_plans_widths_and_refusals_are_those_of_the_true_data(service: MadeUpService, shop: Shop) -> None:
    policy, engine = open_data(load_policy(shop.policy), None, None, None, None)
    with Service(policy, engine, ":memory:") as true:
        for sql in (COUNT, GROUPS, MEANS):
            plans = [s.session().sql(sql).plan(epsilon="0.5") for s in (service, true)]
            assert plans[0].cost == plans[1].cost and plans[0].columns == plans[1].columns
            assert accuracy(plans[0], LEVEL) == accuracy(plans[1], LEVEL)
        for sql in ("SELECT note FROM orders", "SELECT SUM(customer) FROM orders", "SELECT n FROM nowhere"):
            said = []
            for one in (service, true):
                with pytest.raises(Rejected) as refusal:
                    one.session().sql(sql).plan(epsilon="0.5")
                said.append(str(refusal.value))
            assert said[0] == said[1]


def test_a_price_above_a_whole_budget_is_refused_as_it_would_be(service: MadeUpService) -> None:
    with pytest.raises(BudgetExceeded):
        service.session().sql(COUNT).run(epsilon="3.5")


def test_what_would_be_charged_is_told_beside_that_it_is_free(service: MadeUpService) -> None:
    session = service.session()
    charge = session.charge_to_show(session.sql(COUNT).plan(epsilon="0.5"))
    assert charge.loss == NO_LOSS and charge.notes[0].startswith(FREE) and "ε 0.5" in charge.notes[0]


def test_its_report_says_that_there_is_nothing_to_report(service: MadeUpService) -> None:
    ((page,),) = rows_of(service.session(), ["report"], AccountSpending(service))["report"]
    assert "rows of this database are made up" in str(page) and "Promises to sign" not in str(page)


def test_nothing_that_the_policy_names_is_opened(shop: Shop) -> None:
    """Not even a name of its folder is looked at once the policy is read."""
    global _watching
    policy = load_policy(shop.policy)
    _watching = True
    try:
        with made_up(policy)[0] as service:
            service.session("ana").sql(MEANS).run(epsilon=Fraction(1, 2))
            assert service.ledger_place is None and service.policy.ledger_path is None
            assert service.policy.database_path is None
    finally:
        _watching = False
    assert not [path for path in opened if path.startswith(str(shop.folder))]
    assert sorted(path.name for path in shop.folder.iterdir()) == ["shop.duckdb", "shop.yaml"]


def test_names_and_types_of_the_data_may_be_known(shop: Shop, tmp_path: Path) -> None:
    """Beside the true database the catalogue is the same, also where the policy leaves a type to the data."""
    place = tmp_path / "shop.yaml"
    text = shop.policy.read_text().replace("type: double, ", "").replace("shop.duckdb", f"{shop.folder}/shop.duckdb")
    place.write_text(text)
    policy = load_policy(place)
    completed, engine = open_data(policy, None, None, None, None)
    known: Catalogue = engine.describe()
    engine.close()
    with made_up(policy, known)[0] as service:
        assert service.policy.tables["orders"].columns == completed.tables["orders"].columns
        service.session().sql(GROUPS).run(epsilon="0.5")
