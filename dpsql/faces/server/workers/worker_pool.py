"""Workers: one that runs nothing, which answers what costs nothing, and others that run what is paid for.

*Claim.* When a statement that costs nothing is answered depends on no private row, and when one that is paid for is
answered, as far as the declared moments do (`pace.py`). *Why.* The first are asked of a worker in which no statement
ever runs that reads private rows; the others wait for a worker that is free only when its last answer has left. *When
it would be false.* If a stored answer were looked up by a worker that runs. What the processes take from each other
(processors, disks) no clock of ours hides. *Tested by* tests/faces/server/test_pace.py,
tests/faces/server/test_gateway.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field, replace
from typing import Final

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.pace import Clock, LoopClock, Pace
from dpsql.faces.server.size_limits import ending, failed, queue_full, stopped
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.workers.worker_link import Died, Starting, WorkerLink
from dpsql.faces.server.workers.worker_messages import Ask, Ready, Reply, Waiting

_log = logging.getLogger("dpsql.server")

_BEFORE_A_RESTART: Final = 1.0
"""Seconds between attempts to replace a worker."""


@dataclass(slots=True, eq=False)
class _Seat:
    """A place for one worker."""

    link: WorkerLink


@dataclass(slots=True, eq=False)
class _Run:
    """A statement on its way. outcome: what its caller waits for. entry: of the ledger, that it was about to make, ""
    for none; known when it is over. seat: None while it waits for a worker."""

    ask: Ask
    outcome: asyncio.Future[Reply]
    entry: asyncio.Future[str]
    seat: _Seat | None = None

    def refuse(self, refusal: Refused) -> None:
        """Tell who waits, whatever has come of it. One that waits for a worker is never run."""
        if not self.outcome.done():
            self.outcome.set_exception(refusal)
            if self.seat is None:
                self.over("")

    def over(self, entry: str) -> None:
        """Nothing is charged for it any more."""
        if not self.entry.done():
            self.entry.set_result(entry)


@dataclass(eq=False)
class Pool:
    """The workers of one server.

    start: makes one. size: how many run statements; 0 where the one that looks answers all. queue: how many statements
    may wait for them. restarted: how many were replaced.
    """

    start: Starting
    size: int
    queue: int
    pace: Pace
    clock: Clock = field(default_factory=LoopClock)
    restarted: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._free: asyncio.Queue[_Seat] = asyncio.Queue()
        self._turn = asyncio.Lock()
        self._desk: WorkerLink | None = None
        self._waiting = 0
        self._closing = False
        self._policy = ""
        self._missing = 0
        self._runs: dict[str, _Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> Ready:
        """Start all workers; what the first of them said. Raises CannotOpen."""
        try:
            self._desk = desk = await self.start()
            self._policy = desk.ready.policy
            for _ in range(self.size):
                self._free.put_nowait(_Seat(await self._another()))
        except (Died, CannotOpen) as error:
            await self.drain()
            raise error if isinstance(error, CannotOpen) else CannotOpen(failed().diagnostics) from None
        return desk.ready

    @property
    def waiting(self) -> int:
        """How many statements wait for a worker."""
        return self._waiting

    @property
    def free(self) -> int:
        """How many workers wait for a statement."""
        return self._free.qsize()

    @property
    def can_run(self) -> bool:
        """Whether there is a worker that runs statements, taken or not."""
        return self._missing < self.size or not self.size

    # --- what costs nothing ----------------------------------------------------------------------------------------

    async def look(self, ask: Ask) -> Reply:
        """What can be said without a run, at once. Raises Refused for a worker that died."""
        async with self._turn:
            try:
                if self._desk is None:
                    self._desk = await self._another()
                    self.restarted += 1
                late = self.clock.at(self.clock.now() + self.pace.last, self._desk.kill)
                try:
                    found = await self._desk.ask(ask)
                finally:
                    late.cancel()
                if isinstance(found, Reply):
                    return found
                raise Died
            except (Died, CannotOpen):
                if self._desk is not None:
                    self._desk.kill()
                    _log.warning("the worker of what is free ended%s, and is replaced", await self._desk.ended())
                self._desk = None
                raise failed() from None
            except asyncio.CancelledError:
                if self._desk is not None:  # its reply would be taken for that to the next statement
                    self._desk.kill()
                self._desk = None
                raise

    # --- what is paid for ------------------------------------------------------------------------------------------

    async def run(self, ask: Ask, entry: asyncio.Future[str] | None = None) -> Reply:
        """Charge and run, and reply at the moment when that may leave.

        entry: is set to the ledger's entry that it was about to make, "" for none, when the run is over: of one that
            was stopped later than this returns.
        Raises Refused: DP414 if too many wait, or the server stops; DP901 if it was stopped, took too long, or its
        worker died.
        """
        loop = asyncio.get_running_loop()
        run = _Run(ask, loop.create_future(), loop.create_future() if entry is None else entry)
        is_full = self._free.empty() and self._waiting >= self.queue
        if self._closing or is_full:
            run.over("")
            raise ending() if self._closing else queue_full(self.queue)
        self._runs[ask.id] = run
        task = asyncio.create_task(self._through(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await run.outcome
        finally:
            self._runs.pop(ask.id, None)

    async def stop(self, id: str) -> None:
        """Whoever waits for a run is told at once that it is stopped, whatever has come of it.

        One that waits for a worker is never run. One that runs goes on, and its worker stays taken: whether its answer
        is stored in the end must not depend on how far it was now.
        """
        if (run := self._runs.get(id)) is not None:
            run.refuse(stopped())

    async def _through(self, run: _Run) -> None:
        try:
            self._waiting += 1
            try:
                seat = await self._free.get()
            finally:
                self._waiting -= 1
            try:
                if not run.outcome.done():  # stopped while it waited
                    run.seat = seat
                    await self._seated(seat, run)
            finally:
                self._free.put_nowait(seat)
        finally:
            run.refuse(failed())
            run.over("")

    async def _seated(self, seat: _Seat, run: _Run) -> None:
        begun = self.clock.now()
        asking = asyncio.create_task(seat.link.ask(run.ask))
        reply: Reply | None = None
        is_late = False
        if await self._done_by(asking, begun + self.pace.last):
            await self.clock.sleep_until(begun + self.pace.leaves(self.clock.now() - begun))
            with contextlib.suppress(Died):
                found = await asking
                reply = found if isinstance(found, Reply) else await seat.link.go(run.ask.id)
        else:
            _log.warning("a statement took longer than the last of answers_at: its worker is ended")
            is_late = True
        self._leave(run, reply)
        if is_late:
            await self._spare(run.ask, seat.link.entry)
        if reply is None:
            seat.link.kill()
            await asyncio.wait({asking})
            asking.exception()
            await seat.link.ended()
        run.over(seat.link.entry)
        if reply is None:
            await self._replace(seat)

    async def _spare(self, ask: Ask, entry: str) -> None:
        """Say that a run is ended by the clock before it is: else who looks next takes it for one that died."""
        if entry:
            with contextlib.suppress(Refused):
                await self.look(replace(ask, wish="stopped", sql=entry, values=()))

    def _leave(self, run: _Run, reply: Reply | None) -> None:
        """Let the caller have what came of his run; None, a death: the constant error."""
        if run.outcome.done():
            return
        if reply is None or any(d.code == "DP901" for d in reply.refused):
            run.outcome.set_exception(failed())
        else:
            run.outcome.set_result(reply)

    async def _done_by(self, task: asyncio.Task[Reply | Waiting], moment: float) -> bool:
        """Whether it is done then, or before."""
        waking = asyncio.create_task(self.clock.sleep_until(moment))
        await asyncio.wait({task, waking}, return_when=asyncio.FIRST_COMPLETED)
        waking.cancel()
        return task.done()

    async def _another(self) -> WorkerLink:
        """A worker of the policy that this server began with. Raises Died, CannotOpen."""
        link = await self.start()
        if link.ready.policy == self._policy:
            return link
        link.kill()
        raise Died

    async def _replace(self, seat: _Seat) -> None:
        """A new worker in place of one that is gone, however long that takes."""
        seat.link.kill()
        self._missing += 1
        _log.warning("a worker ended%s, and is replaced", await seat.link.ended())
        while not self._closing:
            try:
                seat.link = await self._another()
                self._missing -= 1
                self.restarted += 1
                return
            except (Died, CannotOpen, OSError):
                _log.error("a worker cannot be replaced")
                await self.clock.sleep_until(self.clock.now() + _BEFORE_A_RESTART)

    # --- the end ---------------------------------------------------------------------------------------------------

    def begin_nothing(self) -> None:
        """From now on nothing is run that does not run yet: what waits for a worker is refused, and what comes."""
        self._closing = True
        for run in list(self._runs.values()):
            if run.seat is None:
                run.refuse(ending())

    async def finish(self) -> None:
        """Begin nothing, and wait for what runs, which is paid for."""
        self.begin_nothing()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def drain(self) -> None:
        """Finish, and let the workers end, who close ledger and data."""
        await self.finish()
        links = [self._free.get_nowait().link for _ in range(self._free.qsize())]
        links += [] if self._desk is None else [self._desk]
        self._desk = None
        await asyncio.gather(*(link.close() for link in links))
