"""What is noted of a statement: its price where it was charged, and nothing is charged that could not be noted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.faces.server.front.asking import Asking
from dpsql.faces.server.size_limits import stopped
from dpsql.faces.server.statements import (
    Answer,
    ChargedRun,
    DescribedStatement,
    Login,
    Refused,
    StatementSettings,
    Value,
)
from tests.support.answering import Answers, Recorded

ANA = Login("ana", "ana")
CHARGED = ChargedRun("ε 0.1", "e1")


class Client:
    """Who waits."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    def watch(self, left: Callable[[], None]) -> None:
        pass


class Refusing(Answers):
    """Refuses all, with what was charged as soon as a test says what."""

    def __init__(self, make: Callable[[], Refused]) -> None:
        super().__init__()
        self.make = make
        self.runs = 0
        self.charge: asyncio.Future[ChargedRun] | None = None

    async def run(
        self,
        login: Login,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        run_id: str,
    ) -> Answer:
        self.runs += 1
        refused = self.make()
        refused.charge = self.charge = asyncio.get_running_loop().create_future()
        raise refused


def too_large() -> Refused:
    return Refused([Diagnostic("DP415", "no")])


async def asked(asking: Asking) -> Refused:
    with pytest.raises(Refused) as refusal:
        await asking.run(DescribedStatement("SELECT n"), (), StatementSettings(), None, Client())
    return refusal.value


def test_a_refusal_after_the_charge_is_noted_with_its_price() -> None:
    async def whole() -> None:
        log, answering = Recorded(), Refusing(too_large)
        asking = asyncio.create_task(asked(Asking(ANA, answering, log)))
        while answering.charge is None and not asking.done():
            await asyncio.sleep(0)
        assert not log.events and not asking.done()
        answering.charge.set_result(CHARGED)
        await asking
        ((event),) = log.events
        assert (event.what, event.outcome, event.price, event.entry) == ("statement", "DP415", *CHARGED[:2])

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("charge", "told"),
    [
        (CHARGED, ["statement", "charged"]),
        (ChargedRun(), ["statement"]),
        (CHARGED._replace(has_failed=True), ["statement", "charged", "failure"]),
    ],
)
def test_who_stops_is_told_at_once_and_the_charge_is_noted_later(charge: ChargedRun, told: list[str]) -> None:
    async def whole() -> None:
        log, answering = Recorded(), Refusing(stopped)
        await asked(Asking(ANA, answering, log))
        assert [e.what for e in log.events] == ["statement"] and answering.charge is not None
        answering.charge.set_result(charge)
        await asyncio.sleep(0)
        assert [e.what for e in log.events] == told and {e.outcome for e in log.events} == {"DP901"}
        assert [(e.price, e.entry) for e in log.events if e.price] == [charge[:2]] * bool(charge.price)

    asyncio.run(whole())


def test_nothing_is_asked_that_could_not_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError

    async def whole() -> None:
        log, answering = Recorded(), Refusing(too_large)
        monkeypatch.setattr(log, "require", full)
        refused = await asked(Asking(ANA, answering, log))
        assert (refused.sqlstate, answering.runs) == ("58030", 0)
        assert "nothing was spent" in refused.diagnostics[0].notes[0]

    asyncio.run(whole())
