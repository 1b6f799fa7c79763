"""What the sessions of a service share, what each has for itself, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.answers.results.answer import Release
from dpsql.api.connection import Connection, connect
from dpsql.core.engine import RawTable
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.diagnostics.errors import Rejected
from dpsql.service.open_data import open_data
from dpsql.service.service import Service

COUNT = "SELECT COUNT(*) AS n FROM members"
JOINED = "SELECT country, COUNT(*) AS n FROM members JOIN cities USING (city) GROUP BY country"
NESTED = f"SELECT COUNT(*) AS n FROM members WHERE age > ({COUNT})"


@pytest.fixture
def service(club_folder: Path, ledger: MemoryLedger) -> Iterator[Service]:
    with Service(*open_data(club_folder / "club.yaml", None, None, None, None), ledger) as opened:
        yield opened


@contextmanager
def running(service: Service, sql: str) -> Iterator[None]:
    """While another thread's query reads private rows, in its snapshot."""
    inner, reads, goes_on = service.engine.fetch, threading.Event(), threading.Event()
    answers: list[Release] = []

    def fetch(sql: str) -> RawTable:
        reads.set()
        goes_on.wait()
        return inner(sql)

    service.engine.fetch = fetch  # type: ignore[method-assign]
    runner = threading.Thread(
        target=lambda: answers.append(service.session("ana").sql(sql).run(epsilon=1)), daemon=True
    )
    runner.start()
    reads.wait()
    try:
        yield
    finally:
        goes_on.set()
        runner.join()
    assert len(answers) == 1


def in_time(action: Callable[[], object]) -> bool:
    """Whether it returns although nothing that runs does: not, if it waits for that."""
    returned = threading.Event()
    threading.Thread(target=lambda: (action(), returned.set()), daemon=True).start()
    return returned.wait(60)


@pytest.mark.parametrize("analyst", ["ana", "ben"])
def test_planning_explaining_and_pricing_wait_for_no_query(service: Service, analyst: str) -> None:
    """Public facts that were never measured and stored answers included."""
    service.session(analyst).sql(NESTED).run(epsilon=2)
    session = service.session(analyst)
    seen: list[object] = []
    with running(service, COUNT.replace("*", "DISTINCT age")):
        for action in (
            lambda: seen.append(session.sql(JOINED).plan(epsilon=1).basis.public),
            lambda: seen.append(session.sql(JOINED).explain(epsilon=1)),
            lambda: seen.append(session.sql(NESTED).cost(epsilon=1)),
            lambda: seen.append(session.budget),
            lambda: session.set("epsilon", "0.5"),
        ):
            assert in_time(action)
    public, shown, cost, *_ = seen
    assert public and "cost: ε 1" in str(shown) and cost == NO_LOSS


def test_runs_wait_for_each_other(service: Service) -> None:
    """The twin: what is charged runs one after the other, so this one has to wait."""
    begun, done = threading.Event(), threading.Event()

    def ask() -> None:
        begun.set()
        service.session("ben").sql(JOINED).run(epsilon=1)
        done.set()

    with running(service, COUNT):
        other = threading.Thread(target=ask, daemon=True)
        other.start()
        begun.wait()
        assert not service.running.acquire(blocking=False) and not done.is_set()
    other.join()
    assert done.is_set()


def test_sessions_have_settings_and_accounts_of_their_own(service: Service, ledger: MemoryLedger) -> None:
    ana, ben = service.session("ana"), service.session("ben")
    ana.set("epsilon", "0.5")
    assert ben.settings.epsilon is None and ana.settings.epsilon == Fraction(1, 2)
    first, second = ana.sql(COUNT).run(), ben.sql(COUNT).run(epsilon="0.5")
    assert first.rows == second.rows and service.session("ana").sql(COUNT).cost(epsilon="0.5") == NO_LOSS
    half = PrivacyLoss(Fraction(1, 2))
    assert ledger.spent("member", "ana") == ledger.spent("member", "ben") == ledger.spent("member") == half
    assert ana.budget["member"].spent == half == ben.budget["member"].total_spent


def test_plans_and_facts_are_shared(service: Service) -> None:
    plan = service.session("ana").plan(JOINED, epsilon=1)
    kept, changes = len(service.planner.kept), service.facts.changes
    assert service.session("ben").plan(JOINED, epsilon=1) == plan
    assert (len(service.planner.kept), service.facts.changes) == (kept, changes) and changes > 0


def test_a_plan_of_one_session_runs_in_another_on_its_account(service: Service, ledger: MemoryLedger) -> None:
    plan = service.session("ana").plan(COUNT, epsilon=1)
    service.session("ben").run(plan)
    assert ledger.spent("member", "ana") == NO_LOSS and ledger.spent("member", "ben").epsilon == 1


def test_a_closed_service_closes_its_sessions(service: Service) -> None:
    session = service.session("ana")
    service.close()
    service.close()
    for action in (lambda: session.plan(COUNT, epsilon=1), lambda: session.set("epsilon", 1), lambda: session.settings):
        with pytest.raises(Rejected, match="closed"):
            action()


def test_a_connection_is_a_session_with_a_service_of_its_own(club_folder: Path) -> None:
    with connect(club_folder / "club.yaml", ledger=MemoryLedger("club")) as con:
        assert isinstance(con, Connection) and con.sql(COUNT).run(epsilon=1).spent.epsilon == 1
        service = con.service
    with pytest.raises(Rejected, match="closed"):
        service.session().plan(COUNT, epsilon=1)
