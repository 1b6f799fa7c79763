"""What a clock tells of runs: the same of data over which they take other times, as long as these lie below a moment.

Evenings of several accounts, each over two databases: what everybody sees, and when, is compared event by
event. No time passes. A broken twin shows that the comparison finds what it is there for.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.policy.catalogue import Catalogue
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.faces.server.pace import Pace
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.workers.worker_link import Died, Said
from dpsql.faces.server.workers.worker_messages import Ask, IsCharged, Ready, Reply, Waiting
from dpsql.faces.server.workers.worker_pool import Pool
from tests.faces.server.test_pace import ANSWER, an_ask
from tests.support.hand_clock import Hand, HandClock

EVENINGS = 8
MOMENTS = (Fraction(1), Fraction(5))
ACCOUNTS = ("ana", "ben", "cleo")

Event = tuple[float, str, str]


@dataclass
class Evening:
    """Who asks what when, and how long it takes. seen: what others can see; ways: how a run ends, by its name."""

    asked: list[tuple[float, str, str]]
    takes: dict[str, float]
    ways: dict[str, str]
    clock: HandClock = field(default_factory=HandClock)
    seen: list[Event] = field(default_factory=list)

    def note(self, what: str, id: str) -> None:
        self.seen.append((round(self.clock.now(), 6), what, id))


class Timed(Hand):
    """A worker over an evening's data: it charges at once, which the ledger shows, and draws as long as that takes."""

    def __init__(self, evening: Evening) -> None:
        super().__init__(Ready("", Catalogue(())), charges=True)
        self.evening = evening

    async def ask(self, ask: Ask) -> Said:
        if self.killed:
            raise Died
        self.evening.note("charged", ask.id)
        return IsCharged(ask.id) if ask.wish == "run" else Reply(ask.id, ANSWER)

    async def draw(self, id: str, within: float) -> Said:
        clock, way = self.evening.clock, self.evening.ways[id]
        await clock.sleep_until(clock.now() + self.evening.takes[id])
        if way == "dies":
            self.killed = True
        if self.killed:
            raise Died
        return Waiting(id) if way == "answers" else Reply(id, None, (Diagnostic("DP901", "no"),))

    async def go(self, id: str) -> Reply:
        if self.killed:
            raise Died
        self.evening.note("stored", id)
        return Reply(id, ANSWER)


async def passed(evening: Evening, kind: type[Pool]) -> list[Event]:
    """All that was seen until everybody went home."""
    clock = evening.clock

    async def start() -> Timed:
        return Timed(evening)

    pool = kind(start, 2, 50, Pace.of(MOMENTS), clock)
    await pool.open()

    async def one(at: float, id: str, account: str) -> None:
        await clock.sleep_until(at)
        try:
            await pool.run(an_ask(id, account))
            evening.note("answered", id)
        except Refused as refused:
            evening.note("refused: " + refused.diagnostics[0].message[:30], id)

    async def watch() -> None:
        for step in range(100):
            await clock.sleep_until(step / 2 + 0.05)
            evening.note(f"{pool.free} free, {pool.waiting} waiting", "")

    tasks = [asyncio.create_task(each) for each in (*(one(*asked) for asked in evening.asked), watch())]
    await clock.go_to(60)
    assert all(task.done() for task in tasks)
    return sorted(evening.seen)


def made(seed: int, data: int) -> Evening:
    """An evening over one of two databases, of which only the runs' times differ."""
    choose, times = random.Random(seed), random.Random(f"{seed} {data}")
    asked = [
        (choose.randrange(0, 200) / 10 + place / 1000, f"q{place}", choose.choice(ACCOUNTS)) for place in range(14)
    ]
    ways = {id: choose.choices(["answers", "fails", "dies"], [8, 1, 1])[0] for _, id, _ in asked}
    return Evening(asked, {id: times.uniform(0.001, 0.08) for _, id, _ in asked}, ways)


def different(kind: type[Pool]) -> int:
    """Of how many evenings somebody sees which database it was."""
    return sum(asyncio.run(passed(made(n, 0), kind)) != asyncio.run(passed(made(n, 1), kind)) for n in range(EVENINGS))


def test_nobody_sees_how_long_a_run_took() -> None:
    assert different(Pool) == 0


class AtOnce(Pool):
    """An answer leaves when it is ready."""

    async def _left(self, seat: object, run: object, drawing: object, moment: float, unread: bool) -> bool:
        return await super()._left(seat, run, drawing, 0.0, unread)  # type: ignore[arg-type]


def test_a_broken_twin_is_found() -> None:
    assert different(AtOnce) == EVENINGS
