"""When answers leave and workers are free: by a clock that is moved by hand."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from fractions import Fraction

import pytest

from dpsql.core.ir.types import BIGINT
from dpsql.core.policy.catalogue import Catalogue
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.faces.server.pace import Pace
from dpsql.faces.server.size_limits import failed
from dpsql.faces.server.statements import Answer, Ceilings, Refused, StatementSettings
from dpsql.faces.server.workers.worker_messages import Ask, Ready, Reply
from dpsql.faces.server.workers.worker_pool import Pool
from tests.support.hand_clock import Hand, HandClock, settle

MOMENTS = (Fraction(1, 5), Fraction(1), Fraction(5))
ANSWER = Answer((("n", BIGINT),), [(1,)])


def an_ask(id: str, account: str = "ana") -> Ask:
    return Ask(
        id, "run", account, "SELECT 1", (), StatementSettings(), Ceilings(), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    )


class AtOnce(Pace):
    """Nobody waits for others of his account."""

    gathers = 0.0


class Hands:
    """A pool of such workers, and all that were made for it: the first is the one that runs nothing.

    What begins is not gathered first: `test_rounds.py` has what several of one account do.
    """

    def __init__(self, size: int, queue: int = 10) -> None:
        self.clock, self.made, self.policy = HandClock(), list[Hand](), ""
        self.pool = Pool(self._start, size, queue, AtOnce.of(MOMENTS), self.clock)

    async def _start(self) -> Hand:
        self.made.append(Hand(Ready(self.policy, Catalogue(()))))
        return self.made[-1]

    @property
    def workers(self) -> list[Hand]:
        return self.made[1:]


Told = list[tuple[float, object]]


def run(test: Callable[[Hands], Awaitable[None]], size: int = 1, queue: int = 10) -> None:
    async def whole() -> None:
        hands = Hands(size, queue)
        await hands.pool.open()
        await test(hands)

    asyncio.run(whole())


def asking(hands: Hands, told: Told, id: str, account: str = "") -> asyncio.Task[None]:
    """A caller who notes when he is told what; without an account he has one of his own."""

    async def ask() -> None:
        try:
            found: object = await hands.pool.run(an_ask(id, account or id))
        except Refused as refusal:
            found = refusal
        told.append((hands.clock.now(), found))

    return asyncio.create_task(ask())


REPLIES = {
    "an answer": Reply("a", ANSWER),
    "a refusal of the budget": Reply("a", None, (Diagnostic("DP403", "no"),)),
    "an engine that failed": Reply("a", None, (Diagnostic("DP901", "no"),)),
}


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("what", [*REPLIES, "a death"])
@pytest.mark.parametrize(
    ("ready", "leaves"), [(0.0, 0.2), (0.01, 0.2), (0.2, 0.2), (0.21, 1.0), (1.0, 1.0), (1.1, 5.0), (4.99, 5.0)]
)
def test_whatever_is_ready_leaves_at_the_next_moment(what: str, waits: bool, ready: float, leaves: float) -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await hands.clock.go_to(ready)
        (worker,) = hands.workers
        worker.entry = "e"  # it has said what it charges
        worker.die() if what == "a death" else worker.reply(REPLIES[what], waits)
        await hands.clock.go_to(leaves - 0.001 if leaves > ready else ready)
        assert told == [] or leaves == ready
        await hands.clock.go_to(60)
        ((at, found),) = told
        assert at == leaves
        if what in ("an engine that failed", "a death"):
            assert isinstance(found, Refused) and found.diagnostics == failed().diagnostics
        else:
            assert found == REPLIES[what]

    run(test)


def test_what_is_not_ready_at_the_last_moment_is_stopped_with_the_constant_error() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await hands.clock.go_to(5)
        ((at, found),) = told
        assert at == 5 and isinstance(found, Refused) and found.diagnostics == failed().diagnostics
        assert found.sqlstate == "XX000" and hands.workers[0].killed and hands.workers[0].gone == []

    run(test)


def test_who_is_ended_by_the_clock_is_said_to_be_before_he_is_and_who_dies_is_not() -> None:
    """Else who looks in between takes the one for the other: a death counts as a failure (core/ledger/underway.py)."""

    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await settle()
        hands.workers[0].entry = "e1"
        await hands.clock.go_to(5)
        assert told[0][0] == 5 and not hands.workers[0].killed
        (ask,) = hands.made[0].asked
        assert (ask.wish, ask.sql) == ("stopped", "e1")
        hands.made[0].reply(Reply("a", Answer((), ())))
        await settle()
        assert hands.workers[0].killed
        asking(hands, told, "b")
        await settle()
        hands.workers[1].entry = "e2"
        hands.workers[1].die()
        await hands.clock.go_to(60)
        assert len(told) == 2 and len(hands.made[0].asked) == 1

    run(test)


def test_a_worker_that_was_killed_is_replaced_and_serves_the_next() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        asking(hands, told, "b")
        await hands.clock.go_to(5)
        assert len(hands.workers) == 2 and [ask.id for ask in hands.workers[1].asked] == ["b"]

    run(test)


def test_a_run_stores_nothing_before_its_moment() -> None:
    """Else another connection of the same account would be given its answer, or told a lower price, sooner."""

    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await hands.clock.go_to(0.3)
        hands.workers[0].reply(Reply("a", ANSWER), waits=True)
        await hands.clock.go_to(0.999)
        assert hands.workers[0].gone == [] and told == []
        await hands.clock.go_to(1)
        assert hands.workers[0].gone == ["a"] and told == [(1.0, Reply("a", ANSWER))]

    run(test)


def test_a_worker_is_taken_until_its_answer_leaves() -> None:
    """Who waits behind a run is told which moment it was, and nothing of when it was ready."""

    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        asking(hands, told, "b")
        await hands.clock.go_to(0.3)
        hands.workers[0].reply(Reply("a", ANSWER))
        await hands.clock.go_to(0.999)
        assert [ask.id for ask in hands.workers[0].asked] == ["a"]
        await hands.clock.go_to(1.0)
        assert [ask.id for ask in hands.workers[0].asked] == ["a", "b"]

    run(test)


def test_what_costs_nothing_waits_for_no_run_and_for_no_moment() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        asking(hands, told, "b")
        await hands.clock.go_to(0.05)
        look = asyncio.create_task(hands.pool.look(an_ask("c")))
        await settle()
        hands.made[0].reply(Reply("c", ANSWER))
        await settle()
        assert look.done() and look.result().answer == ANSWER and hands.clock.now() == 0.05 and told == []

    run(test)


@pytest.mark.parametrize("ready", [None, 0.1])
def test_who_stops_is_told_the_same_whatever_has_come_of_it(ready: float | None) -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        if ready is not None:
            await hands.clock.go_to(ready)
            hands.workers[0].reply(Reply("a", ANSWER), waits=True)
        await hands.clock.go_to(0.15)
        await hands.pool.stop("a")
        await settle()
        ((at, found),) = told
        assert at == 0.15 and isinstance(found, Refused) and found.sqlstate == "57014"
        asking(hands, told, "b")
        await hands.clock.go_to(0.19)
        assert [ask.id for ask in hands.workers[0].asked] == ["a"] and not hands.workers[0].killed
        if ready is not None:  # and stored at its moment, as if nobody had stopped it
            await hands.clock.go_to(0.2)
            assert hands.workers[0].gone == ["a"]

    run(test)


def test_a_statement_that_is_stopped_while_it_waits_is_never_run() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        asking(hands, told, "b")
        await settle()
        await hands.pool.stop("b")
        hands.workers[0].reply(Reply("a", ANSWER))
        await hands.clock.go_to(60)
        assert [ask.id for ask in hands.workers[0].asked] == ["a"] and len(told) == 2

    run(test)


def test_a_full_queue_refuses_and_says_so() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        for id in "abcd":
            asking(hands, told, id, "ana")
            await settle()
        asking(hands, told, "e", "ben")  # who has a queue of his own
        await settle()
        ((_, found),) = told
        assert isinstance(found, Refused) and [d.code for d in found.diagnostics] == ["DP414"]
        assert found.sqlstate == "53300"

    run(test, queue=2)


def test_a_worker_that_died_is_replaced_and_serves_the_next() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        asking(hands, told, "b")
        await settle()
        hands.workers[0].entry = "e"
        hands.workers[0].die()
        await hands.clock.go_to(1)
        assert len(hands.workers) == 2 and [ask.id for ask in hands.workers[1].asked] == ["b"]
        hands.workers[1].reply(Reply("b", ANSWER))
        await hands.clock.go_to(60)
        assert told[1][1] == Reply("b", ANSWER)

    run(test)


def test_a_worker_of_another_policy_takes_nobodys_place() -> None:
    """The file may have been changed since: who edits it starts the server anew."""

    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await settle()
        hands.policy = "another"
        hands.workers[0].die()
        asking(hands, told, "b")
        await hands.clock.go_to(3.5)
        assert len(hands.workers) > 2 and all(hand.killed for hand in hands.workers)
        hands.policy = ""
        await hands.clock.go_to(5)
        assert [ask.id for ask in hands.workers[-1].asked] == ["b"]

    run(test)


def test_a_restart_is_counted_at_a_moment_and_without_workers_nothing_can_run() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await hands.clock.go_to(0.3)
        hands.policy = "another"
        hands.workers[0].die()
        await hands.clock.go_to(0.999)
        assert hands.pool.restarted == 0 and hands.pool.can_run
        asking(hands, told, "b")
        await hands.clock.go_to(1)
        assert len(told) == 1 and not hands.pool.can_run and hands.pool.waiting == 1
        hands.policy = ""
        await hands.clock.go_to(3)
        assert hands.pool.restarted == 1 and hands.pool.can_run and hands.pool.waiting == 0

    run(test)


def test_a_dead_worker_for_looking_is_replaced_at_the_next_question() -> None:
    async def test(hands: Hands) -> None:
        first = asyncio.create_task(hands.pool.look(an_ask("a")))
        await settle()
        hands.made[0].die()
        await settle()
        assert isinstance(first.exception(), Refused)
        second = asyncio.create_task(hands.pool.look(an_ask("b")))
        await settle()
        hands.made[-1].reply(Reply("b", ANSWER))
        await settle()
        assert second.result().answer == ANSWER and hands.pool.restarted == 1

    run(test)


def test_what_waits_is_refused_unpaid_and_nothing_more_begins() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        await settle()
        entries = [asyncio.get_running_loop().create_future() for _ in range(2)]
        waiting = asyncio.create_task(hands.pool.run(an_ask("b"), entries[0]))
        await settle()
        hands.pool.begin_nothing()
        with pytest.raises(Refused) as refusal:
            await waiting
        assert (refusal.value.sqlstate, refusal.value.diagnostics[0].code) == ("57P01", "DP414")
        with pytest.raises(Refused):
            await hands.pool.run(an_ask("c"), entries[1])
        assert [entry.result() for entry in entries] == ["", ""]
        hands.workers[0].reply(Reply("a", ANSWER))
        await hands.clock.go_to(60)
        assert told[0][1] == Reply("a", ANSWER) and [ask.id for ask in hands.workers[0].asked] == ["a"]
        await hands.pool.drain()

    run(test)


def test_the_entry_of_a_run_is_known_when_it_is_over_however_it_ends() -> None:
    async def test(hands: Hands) -> None:
        entry: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stopped = asyncio.create_task(hands.pool.run(an_ask("a"), entry))
        await settle()
        await hands.pool.stop("a")
        with pytest.raises(Refused):
            await stopped
        hands.workers[0].entry = "e1"  # it is charged after its reader has left
        assert not entry.done()
        hands.workers[0].die()
        await hands.clock.go_to(60)
        assert entry.result() == "e1"

    run(test)


def test_draining_waits_for_what_runs_and_refuses_what_waits() -> None:
    async def test(hands: Hands) -> None:
        told: Told = []
        asking(hands, told, "a")
        asking(hands, told, "b")
        await settle()
        draining = asyncio.create_task(hands.pool.drain())
        await settle()
        ((_, waited),) = told
        assert isinstance(waited, Refused) and waited.sqlstate == "57P01" and not draining.done()
        hands.workers[0].reply(Reply("a", ANSWER))
        await hands.clock.go_to(60)
        assert draining.done() and told[1][1] == Reply("a", ANSWER)
        assert all(hand.closed for hand in hands.made)

    run(test)
