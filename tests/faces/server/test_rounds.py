"""What several statements of an account do in one seat: by a clock that is moved by hand, and workers that are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.core.policy.catalogue import Catalogue
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.faces.server.pace import Pace
from dpsql.faces.server.size_limits import failed
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.turns import OWN
from dpsql.faces.server.workers.worker_link import Died
from dpsql.faces.server.workers.worker_messages import Ask, IsCharged, Ready, Reply
from dpsql.faces.server.workers.worker_pool import COMPUTES, MOST_AT_ONCE, SLICE, Pool
from tests.faces.server.test_pace import ANSWER, Told, an_ask, asking
from tests.support.hand_clock import Hand, HandClock, settle


class Rounds:
    """A pool whose workers charge first. made: all of them, the one that runs nothing first."""

    def __init__(self, moments: Sequence[int], size: int = 1) -> None:
        self.clock, self.made = HandClock(), list[Hand]()
        self.pool = Pool(self._start, size, 20, Pace.of([Fraction(m) for m in moments]), self.clock)

    async def _start(self) -> Hand:
        self.made.append(Hand(Ready("", Catalogue(())), charges=True))
        return self.made[-1]

    @property
    def worker(self) -> Hand:
        return self.made[1]

    async def draws(self, id: str, at: float, waits: bool = True) -> None:
        """It is this one that draws now; its answer is ready then."""
        assert self.worker.drawn[-1] == id
        await self.clock.go_to(at)
        self.worker.reply(Reply(id, ANSWER), waits)
        await settle()


def run(test: Callable[[Rounds], Awaitable[None]], *moments: int, size: int = 1) -> None:
    async def whole() -> None:
        rounds = Rounds(moments or (5,), size)
        await rounds.pool.open()
        await test(rounds)

    asyncio.run(whole())


def told_at(told: Told) -> dict[str, float]:
    return {found.id: at for at, found in told if isinstance(found, Reply)}


def a_look(id: str, account: str) -> Ask:
    return replace(an_ask(id, account), wish="look")


CHARTS = [f"c{number}" for number in range(8)]


def test_eight_charts_that_are_asked_at_once_leave_together() -> None:
    """Half a second is gathered, and they leave five seconds after that: forty before."""

    async def test(rounds: Rounds) -> None:
        told: Told = []
        for number, id in enumerate(CHARTS):
            await rounds.clock.go_to(0.05 * number)
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        for number, id in enumerate(CHARTS):
            await rounds.draws(id, 0.6 + number / 2)
        await rounds.clock.go_to(5.499)
        assert told == [] and rounds.worker.gone == []
        await rounds.clock.go_to(5.5)
        assert told_at(told) == dict.fromkeys(CHARTS, 5.5) and rounds.pool.free == 1

    run(test)


def test_all_of_a_round_are_charged_before_any_of_it_draws() -> None:
    """Else the ledger, which anybody of the account may read, would tell when one was ready."""

    async def test(rounds: Rounds) -> None:
        told: Told = []
        for id in CHARTS:
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        assert [ask.id for ask in rounds.worker.asked] == CHARTS and rounds.worker.drawn == ["c0"]
        await rounds.draws("c0", 1)
        asking(rounds, told, "late", "ana")  # type: ignore[arg-type]
        for number, id in enumerate(CHARTS[1:]):
            await rounds.draws(id, 1.1 + number / 10)
        await rounds.clock.go_to(5.49)  # the seat rests, and nobody joins: when he comes would choose what he is told
        assert [ask.id for ask in rounds.worker.asked] == CHARTS
        await rounds.clock.go_to(5.5)
        assert [ask.id for ask in rounds.worker.asked] == [*CHARTS, "late"]

    run(test)


@pytest.mark.parametrize(
    ("ready", "leaves"),
    [((0.7, 0.8), (1.5, 1.5)), ((1.4, 1.49), (1.5, 1.5)), ((0.7, 1.6), (1.5, 2.5)), ((1.6, 1.7), (5.5, 5.5)),
     ((1.6, 5.6), (5.5, 6.5)), ((0.7, 2.6), (1.5, 6.5))],
)  # fmt: skip
def test_each_leaves_at_a_declared_moment_whenever_it_is_ready(
    ready: tuple[float, float], leaves: tuple[float, float]
) -> None:
    """With moments of 1 and 5 seconds: of the round, which begins at 0.1; of the second, where the first one left."""

    async def test(rounds: Rounds) -> None:
        told: Told = []
        gathered = rounds.pool.pace.gathers - 0.5  # the table counts from half a second
        for id in "ab":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(rounds.pool.pace.gathers)
        for id, at in zip("ab", ready, strict=True):
            await rounds.draws(id, at + gathered)
        await rounds.clock.go_to(60)
        assert told_at(told) == pytest.approx({id: at + gathered for id, at in zip("ab", leaves, strict=True)})

    run(test, 1, 5)


@pytest.mark.parametrize(("workers", "asks"), [(1, 1), (2, 1), (3, 1), (3, 6)])
def test_eight_charts_are_there_within_two_moments_beside_five_that_never_stop(workers: int, asks: int) -> None:
    """Who asks now and then, of one worker; who asks without end as well, of three. See docs/howto/run-a-server.md."""

    async def test(rounds: Rounds) -> None:
        now = await beside_five(rounds, 0.0, 33.3)  # by then each has had its turn
        for turn in range(asks):
            told: Told = []
            for chart in CHARTS:
                asking(rounds, told, f"{turn}{chart}", "ana")  # type: ignore[arg-type]
            asked, now = now, await beside_five(rounds, now, now + 2 * 5 + rounds.pool.pace.gathers)
            assert len(told_at(told)) == len(CHARTS) and max(at for at, _ in told) <= asked + 10.5

    run(test, size=workers)


async def beside_five(rounds: Rounds, now: float, then: float) -> float:
    """Until then five accounts always have a round waiting, and what draws is ready at once; when that is."""
    while now < then:
        for place in range(5):
            waits = [run for run in rounds.pool._turns if run.ask.account == f"user{place}"]
            for number in range(MOST_AT_ONCE if len(waits) < MOST_AT_ONCE else 0):
                asking(rounds, [], f"{place} {number} {now}", f"user{place}")  # type: ignore[arg-type]
        for worker in rounds.made[1:]:
            while worker.drawn and worker._reply is not None and not worker._reply.done():
                worker.reply(Reply(worker.drawn[-1], ANSWER), True)
                await settle()
        now = min(now + 0.25, then)
        await rounds.clock.go_to(now)
    return now


def test_accounts_take_turns_whoever_has_more_waiting() -> None:
    async def test(rounds: Rounds) -> None:
        told: Told = []
        for number in range(15):
            asking(rounds, told, f"m{number}", "mallory")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        asking(rounds, told, "a", "ana")  # type: ignore[arg-type]
        for number in range(MOST_AT_ONCE):
            await rounds.draws(f"m{number}", 0.6)
        await rounds.clock.go_to(5.5)
        await rounds.draws("a", 6)
        await rounds.clock.go_to(10.5)
        assert told_at(told)["a"] == 10.5 and len(told) == MOST_AT_ONCE + 1
        assert rounds.worker.drawn[-1] == "m10"

    run(test)


def test_who_kept_others_waiting_gets_one_statement_at_a_time_and_more_again_later() -> None:
    async def test(rounds: Rounds) -> None:
        told: Told = []
        for number in range(12):
            asking(rounds, told, f"m{number}", "mallory")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        for number in range(9):
            await rounds.draws(f"m{number}", 0.6)
        await rounds.draws("m9", 7)
        await rounds.clock.go_to(10.5)
        assert len(told) == 10 and [ask.id for ask in rounds.worker.asked][10:] == ["m10"]
        for number in range(12, 16):
            asking(rounds, told, f"m{number}", "mallory")  # type: ignore[arg-type]
        await rounds.draws("m10", 11)
        await rounds.clock.go_to(15.5)
        assert [ask.id for ask in rounds.worker.asked][11:] == ["m11", "m12"]

    run(test)


def test_what_draws_what_another_of_its_round_holds_waits_for_the_next_one() -> None:
    async def test(rounds: Rounds) -> None:
        told: Told = []
        for id in "ab":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        await rounds.draws("a", 1)
        rounds.worker.reply(Reply("b", instead="later"))
        await rounds.clock.go_to(5.49)
        assert told == [] and len(rounds.worker.asked) == 2
        await rounds.clock.go_to(5.5)
        assert told_at(told) == {"a": 5.5} and rounds.worker.drawn == ["a", "b", "b"]

    run(test)


def test_one_that_is_too_slow_takes_its_round_with_it_and_no_other_counts_as_a_failure() -> None:
    """Workers stop it before; this is of one that does not listen."""

    async def test(rounds: Rounds) -> None:
        told: Told = []
        for id in "abc":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        rounds.worker.entry = "e"
        await rounds.draws("a", 1)
        await rounds.clock.go_to(10.49)
        assert told_at(told) == {"a": 5.5} and not rounds.worker.killed
        await rounds.clock.go_to(10.5)
        assert [(at, type(found)) for at, found in told[1:]] == [(10.5, Refused)] * 2
        for _ in "bc":
            rounds.made[0].reply(Reply("", ANSWER))
            await settle()
        assert [ask.wish for ask in rounds.made[0].asked] == ["stopped"] * 2 and rounds.worker.killed
        assert len(rounds.made) == 3 and rounds.pool.free == 1

    run(test)


def test_a_death_is_told_at_the_moment_and_is_a_failure_of_the_one_that_drew() -> None:
    async def test(rounds: Rounds) -> None:
        told: Told = []
        for id in "abc":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        rounds.worker.entry = "e"
        await rounds.draws("a", 1)
        rounds.worker.die()
        await rounds.clock.go_to(5.49)
        assert told == []
        await rounds.clock.go_to(5.5)
        assert [type(found) for _, found in told] == [Refused] * 3
        for _ in "ac":
            rounds.made[0].reply(Reply("", ANSWER))
            await settle()
        assert [ask.id for ask in rounds.made[0].asked] == ["a", "c"]

    run(test)


def refusals(told: Told) -> dict[str, str]:
    """Whose statement, by what it was called → what he was told."""
    return {id: found.diagnostics[0].message for (_, found), id in zip(told, "abcdefgh", strict=False)
            if isinstance(found, Refused)}  # fmt: skip


def test_who_was_behind_the_one_that_died_is_told_that_his_was_not_read() -> None:
    """And the account's next round has one statement, so that the one that kills its worker takes nobody along."""

    async def test(rounds: Rounds) -> None:
        told: Told = []
        for id in "abc":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(0.5)
        rounds.worker.die()
        await rounds.clock.go_to(5.5)
        said = refusals(told)
        assert said["a"].startswith("the statement failed") and set(said) == set("abc")
        assert said["b"] == said["c"] and said["b"].startswith("another statement of your account")
        for id in "de":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(6.5)
        assert [ask.id for ask in rounds.made[-1].asked] == ["d"]

    run(test)


class Deaf(Hand):
    """A worker that dies before it has charged anything that it is asked, but what it says it was about to."""

    charging = ""

    async def ask(self, ask: Ask) -> IsCharged | Reply:
        self.asked.append(ask)
        raise Died

    def entry_of(self, id: str) -> str:
        return "e" if id == self.charging else ""


def test_what_a_dead_worker_had_not_begun_to_charge_is_asked_again_once() -> None:
    """Nothing was charged for it; what perhaps was is told so, and not asked again."""

    async def test(rounds: Rounds) -> None:
        deaf = Deaf(Ready("", Catalogue(())))
        deaf.charging = "b"
        rounds.pool._free[0].link = deaf
        told: Told = []
        for id in "abc":
            asking(rounds, told, id, "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(5.49)
        assert told == []
        await rounds.clock.go_to(5.5)
        assert list(refusals(told).values()) == [message_of_failure()]
        again = rounds.made[-1]
        await rounds.clock.go_to(6)
        assert [ask.id for ask in deaf.asked] == ["a", "b", "c"] and [ask.id for ask in again.asked] == ["a"]
        again.reply(Reply("a", ANSWER))
        await rounds.clock.go_to(10.5)
        assert told_at(told) == {"a": 10.5} and [ask.id for ask in again.asked] == ["a", "c"]

    run(test)


def test_what_kills_each_worker_that_is_asked_is_asked_twice() -> None:
    async def test(rounds: Rounds) -> None:
        made = list[Deaf]()

        async def start() -> Deaf:
            made.append(Deaf(Ready("", Catalogue(()))))
            return made[-1]

        rounds.pool._free[0].link = await start()
        rounds.pool.start = start  # type: ignore[assignment]
        told: Told = []
        asking(rounds, told, "a", "ana")  # type: ignore[arg-type]
        await rounds.clock.go_to(60)
        assert [len(worker.asked) for worker in made] == [1, 1, 0] and list(refusals(told)) == ["a"]
        assert refusals(told)["a"] == message_of_failure() and rounds.pool.free == 1

    run(test)


def message_of_failure() -> str:
    return failed().diagnostics[0].message


def test_what_computes_is_asked_again_in_a_seat_of_its_own_and_nobody_waits_for_it() -> None:
    async def test(rounds: Rounds) -> None:
        asked = [asyncio.create_task(rounds.pool.look(replace(a_look(id, "mallory"), within=SLICE))) for id in "ab"]
        await settle()
        desk = rounds.made[0]
        for ask in list("ab"):
            assert desk.asked[-1].within == SLICE
            desk.reply(Reply(ask, instead="computes"))
            await settle()
        computing = rounds.made[-1]
        assert [(ask.id, ask.within, ask.computing) for ask in computing.asked] == [("a", COMPUTES, True)]
        budget = asyncio.create_task(rounds.pool.look(a_look("c", "ana")))
        await settle()
        desk.reply(Reply("c", ANSWER))
        assert (await budget).answer == ANSWER and not any(task.done() for task in asked)
        computing.reply(Reply("a", None, (Diagnostic("DP901", "no"),)))
        await settle()
        assert [ask.id for ask in computing.asked] == ["a", "b"] and asked[0].done()
        computing.reply(Reply("b", ANSWER))
        assert (await asked[1]).answer == ANSWER and rounds.pool.restarted == 0

    run(test)


def test_health_goes_before_everybody_at_the_desk() -> None:
    async def test(rounds: Rounds) -> None:
        looks = [a_look(str(number), f"user{number}") for number in range(5)]
        own = replace(a_look("custodian", OWN), wish="spent")
        tasks = [asyncio.create_task(rounds.pool.look(ask)) for ask in (*looks, own)]
        await settle()
        rounds.made[0].reply(Reply("0", ANSWER))
        await settle()
        assert [ask.id for ask in rounds.made[0].asked] == ["0", "custodian"]
        for task in tasks:
            task.cancel()

    run(test)
