"""A clock that is moved by hand, and workers that reply when they are told to: no test waits for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from dpsql.core.policy.catalogue import Catalogue
from dpsql.faces.server.workers.worker_link import Died, Said
from dpsql.faces.server.workers.worker_messages import Ask, IsCharged, Ready, Reply, Waiting


class HandClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleeping: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    async def sleep_until(self, moment: float) -> None:
        if moment > self.time:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sleeping.append((moment, woken))
            await woken

    def at(self, moment: float, do: Callable[[], object]) -> asyncio.Task[None]:
        async def later() -> None:
            await self.sleep_until(moment)
            do()

        return asyncio.create_task(later())

    async def go_to(self, moment: float) -> None:
        """Let time pass, one sleeper after the other, and everybody do what he then does."""
        await settle()
        while due := sorted(m for m, f in self._sleeping if m <= moment and not f.done()):
            self.time = max(self.time, due[0])
            for sleeping in list(self._sleeping):
                if sleeping[0] <= self.time:
                    self._sleeping.remove(sleeping)
                    if not sleeping[1].done():
                        sleeping[1].set_result(None)
            await settle()
        self.time = max(self.time, moment)
        await settle()


async def settle() -> None:
    """Until nobody has anything left to do without a reply or the clock."""
    for _ in range(50):
        await asyncio.sleep(0)


@dataclass
class Hand:
    """A worker that does what a test says. charges: whether a run waits, once it is charged, until it may draw."""

    ready: Ready = field(default_factory=lambda: Ready("", Catalogue(())))
    asked: list[Ask] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    charges: bool = False
    killed: bool = False
    closed: bool = False
    entry: str = ""
    _reply: asyncio.Future[Said] | None = None
    _then: dict[str, Reply] = field(default_factory=dict)

    async def ask(self, ask: Ask) -> Said:
        if self.killed:
            raise Died
        self.asked.append(ask)
        if self.charges and ask.wish == "run":
            return IsCharged(ask.id)
        return await self._next()

    async def draw(self, id: str, within: float) -> Said:
        if self.killed:
            raise Died
        self.drawn.append(id)
        return await self._next()

    async def _next(self) -> Said:
        self._reply = asyncio.get_running_loop().create_future()
        return await self._reply

    def entry_of(self, id: str) -> str:
        return self.entry

    async def go(self, id: str) -> Reply:
        if self.killed:
            raise Died
        self.gone.append(id)
        return self._then[id]

    def reply(self, reply: Reply, waits: bool = False) -> None:
        """What it says to the last ask, at once or when it is told to go."""
        assert self._reply is not None
        self._then[reply.id] = reply
        self._reply.set_result(Waiting(reply.id) if waits else reply)

    def die(self) -> None:
        """As by a kill from outside."""
        self.killed = True
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(Died())

    def kill(self) -> None:
        self.die()

    async def ended(self) -> str:
        return ""

    async def close(self) -> None:
        self.closed = True
