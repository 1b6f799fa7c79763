"""What is given without a run: stored answers and public ones, while another's query holds the engine."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Ceiling
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.plan import Plan
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from dpsql.service.session import Session
from tests.support.small_shop import COUNT, Shop, make_shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path / "shop", epsilon="1")


def opened(shop: Shop) -> Service:
    return Service(*open_data(shop.policy, None, None, None, None))


def plan_of(session: Session, sql: str = COUNT) -> Plan:
    return session.plan(sql, epsilon="0.1")


def test_nothing_is_held_before_it_is_paid_and_all_of_it_after(shop: Shop) -> None:
    with opened(shop) as service:
        session = service.session()
        assert session.held(plan_of(session)) is None
        assert shop.spent() == 0
        paid = session.run(plan_of(session))
        again = session.held(plan_of(session))
        assert again is not None and again.rows == paid.rows and not again.spent.epsilon


def test_a_held_answer_waits_for_no_run(shop: Shop) -> None:
    """`running` and the engine are held by another thread for as long as the answer takes."""
    with opened(shop) as service:
        session = service.session()
        session.run(plan_of(session))
        taken, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with service.running:
                service.engine.in_snapshot(lambda: (taken.set(), let_go.wait()))

        other = threading.Thread(target=hold)
        other.start()
        taken.wait()
        try:
            answered: list[object] = []
            asking = threading.Thread(target=lambda: answered.append(session.held(plan_of(session))))
            asking.start()
            asking.join(20)
            assert answered and answered[0] is not None
        finally:
            let_go.set()
            other.join()


def test_what_no_limit_has_room_for_is_refused_before_a_run(shop: Shop) -> None:
    with opened(shop) as service:
        session = service.session()
        with pytest.raises(BudgetExceeded) as refusal:
            session.held(session.plan(COUNT, epsilon=2))
        assert [d.code for d in refusal.value.diagnostics] == ["DP403"]


def test_a_ceiling_refuses_what_the_budget_has_room_for(shop: Shop) -> None:
    ceilings = {"per_day": Ceiling(PrivacyLoss(Fraction(1, 20), Fraction(1)))}
    with opened(shop) as service:
        session = service.session(ceilings=ceilings)
        for asked in (session.held, session.run):
            with pytest.raises(BudgetExceeded, match="DP413"):
                asked(plan_of(session))
        assert shop.spent() == 0
        assert session.run(session.plan(COUNT, epsilon="0.05")).spent.epsilon == Fraction(1, 20)
