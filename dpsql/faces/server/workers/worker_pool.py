"""Workers: one that runs nothing and answers what costs nothing, one for what of that computes, and those that run.

*Claim.* When a statement that costs nothing is answered depends on no private row, and when one that is paid for is
answered, as far as the declared moments do (`pace.py`). What only plans, or reads stored answers and the ledger, waits
for what computes no longer than SLICE. *Why.* The first are asked of workers in which no statement ever runs that reads
private rows: at the desk for so long, and what has not ended then again in a seat of its own. Those that run are free
only when their last answer has left. *When it would be false.* If a stored answer were looked up by a worker that runs.
If something of a look could not be interrupted: then all wait until it ends; so planning is looked at
before, where the front plans. What the processes take from each other
(processors, disks) no clock of ours hides. *Tested by* tests/faces/server/test_pace.py,
tests/faces/server/test_rounds.py, tests/faces/server/test_gateway.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.pace import Clock, LoopClock, Pace
from dpsql.faces.server.size_limits import beside_another, ending, failed, stopped
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.turns import OWN, Turns
from dpsql.faces.server.workers.desk import Desk
from dpsql.faces.server.workers.worker_link import Died, Said, Starting, WorkerLink
from dpsql.faces.server.workers.worker_messages import Ask, IsCharged, Ready, Reply

_log = logging.getLogger("dpsql.server")

_BEFORE_A_RESTART: Final = 1.0
"""Seconds between attempts to replace a worker."""
_EARLY: Final = 0.001
"""Seconds by which a clock may wake somebody too early."""
MOST_AT_ONCE: Final = 10
"""Statements of a round."""
SLICE: Final = 0.05
"""Seconds that what costs nothing may take at the desk."""
COMPUTES: Final = 1.0
"""Seconds that it may compute in a seat of its own."""


@dataclass(slots=True, eq=False)
class _Seat:
    """A place for one worker."""

    link: WorkerLink


@dataclass(slots=True, eq=False)
class _Run:
    """A statement on its way. outcome: what its caller waits for. entry: of the ledger, that it was about to make, ""
    for none; known when it is over. begins: not before. seat: None until it does. is_again: it was asked before, of a
    worker that died and had charged nothing for it."""

    ask: Ask
    outcome: asyncio.Future[Reply]
    entry: asyncio.Future[str]
    begins: float
    seat: _Seat | None = None
    is_again: bool = False

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


@dataclass(slots=True, eq=False)
class _Begun:
    """A run in its seat. drawing: what its worker says in the end. left: whether it came to its end, at its moment.
    entry: as of a run, where it was asked for."""

    run: _Run
    drawing: asyncio.Task[Said]
    left: asyncio.Task[bool]
    entry: str


@dataclass(eq=False)
class Pool:
    """The workers of one server.

    start: makes one. size: how many run statements; 0 where the one that looks answers all. queue: how many statements
    of one account may wait for them.
    """

    start: Starting
    size: int
    queue: int
    pace: Pace
    clock: Clock = field(default_factory=LoopClock)

    def __post_init__(self) -> None:
        self._free: list[_Seat] = []
        self._turns = Turns[_Run](self.queue)
        self._desk = Desk(self.start, self.queue, self.pace.last, self.clock)
        self._computing = Desk(self._another, self.queue, self.pace.last, self.clock)
        self._closing = False
        self._policy = ""
        self._missing = self._replaced = 0
        self._at_once: dict[str, int] = {}
        """Account → how many statements its next round may have: one after a round that was longer than the last
        moment, twice as many after each other."""
        self._runs: dict[str, _Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> Ready:
        """Start all workers but the one that computes; what the first of them said. Raises CannotOpen."""
        try:
            ready = (await self._desk.open()).ready
            self._policy, self._desk.start = ready.policy, self._another
            for _ in range(self.size):
                self._free.append(_Seat(await self._another()))
        except (Died, CannotOpen) as error:
            await self.drain()
            raise error if isinstance(error, CannotOpen) else CannotOpen(failed().diagnostics) from None
        return ready

    @property
    def restarted(self) -> int:
        """How many workers were replaced."""
        return self._replaced + self._desk.restarted + self._computing.restarted

    @property
    def waiting(self) -> int:
        """How many statements wait for a worker."""
        return len(self._turns)

    @property
    def free(self) -> int:
        """How many workers wait for a statement."""
        return len(self._free)

    @property
    def can_run(self) -> bool:
        """Whether there is a worker that runs statements, taken or not."""
        return self._missing < self.size or not self.size

    # --- what costs nothing ----------------------------------------------------------------------------------------

    async def look(self, ask: Ask) -> Reply:
        """What can be said without a run, at once; or, of an Ask with `within`, where it may compute, after that.

        Raises Refused: DP414 if too many of its account wait; DP901 for a worker that died.
        """
        if not self.size:  # over made-up rows the one that looks answers all
            return await self._desk.ask(replace(ask, within=0.0, computing=False))
        reply = None if ask.computing else await self._desk.ask(ask)
        if reply is None or reply.instead == "computes":
            reply = await self._computing.ask(replace(ask, within=COMPUTES, computing=True))
        return reply

    # --- what is paid for ------------------------------------------------------------------------------------------

    async def run(self, ask: Ask, entry: asyncio.Future[str] | None = None) -> Reply:
        """Charge and run, and reply at the moment when that may leave.

        entry: is set to the ledger's entry that it was about to make, "" for none, when the run is over: of one that
            was stopped later than this returns.
        Raises Refused: DP414 if too many of its account wait, or the server stops; DP901 if it was stopped, took too
        long, or its worker died.
        """
        loop = asyncio.get_running_loop()
        begins = self.clock.now() + self.pace.gathers
        run = _Run(ask, loop.create_future(), entry or loop.create_future(), begins)
        try:
            if self._closing:
                raise ending()
            self._turns.add(ask.account, run)
        except Refused:
            run.over("")
            raise
        self._runs[ask.id] = run
        self.clock.at(begins, self._seat)
        try:
            return await run.outcome
        finally:
            self._turns.discard(ask.account, run)
            self._runs.pop(ask.id, None)

    async def stop(self, id: str) -> None:
        """Whoever waits for a run is told at once that it is stopped, whatever has come of it.

        One that waits for a worker is never run. One that runs goes on, and its worker stays taken: whether its answer
        is stored in the end must not depend on how far it was now.
        """
        if (run := self._runs.get(id)) is not None:
            run.refuse(stopped())

    def _seat(self) -> None:
        """Give free seats to those who have gathered, each account in its turn."""
        while self._free and not self._closing:
            now = self.clock.now() + _EARLY
            ripe = [name for name in self._turns.accounts if self._turns.first(name).begins <= now]
            if (account := self._turns.next(ripe)) is None:
                return
            runs = self._turns.take(account, self._at_once.get(account, MOST_AT_ONCE))
            task = asyncio.create_task(self._seated(self._free.pop(0), runs))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _seated(self, seat: _Seat, runs: Sequence[_Run]) -> None:
        try:
            await self._round(seat, runs)
        finally:
            for run in runs:
                if run.seat is seat:
                    run.refuse(failed())
                    run.over("")
            self._free.append(seat)
            self._seat()

    async def _round(self, seat: _Seat, runs: Sequence[_Run]) -> None:
        """All are charged; then one draws behind the other. What was not charged by then waits for another round; of a
        worker that died, what it had not begun to charge, once.
        """
        began = since = self.clock.now()
        ends = began + self.pace.first
        asked = [(run, self._asked(seat, run)) for run in runs if not run.outcome.done()]
        if not asked:
            return
        await self._done_by({asking for _, asking in asked}, began + self.pace.first / 2)
        asked.sort(key=lambda one: not one[1].done())
        back, begun, is_gone = list[_Run](), list[_Begun](), False
        for run, asking in asked:
            entry = ""
            if asking.done() and isinstance(asking.exception(), Died):  # it names an entry before it makes it
                entry, is_gone = seat.link.entry_of(run.ask.id), True
                if not entry and not run.is_again:
                    run.seat, run.is_again = None, True
                    back.append(run)
                    continue
            latest = (ends if begun else since) + self.pace.last
            within = latest - self.pace.margin - self.clock.now() if len(asked) > 1 else 0.0
            draws, drawing = not is_gone, asking
            if draws:
                drawing = asyncio.create_task(self._drawn(seat, run, asking, within))
            if draws and not await self._done_by({drawing}, ends):
                since = latest - self.pace.last
                await self._done_by({drawing}, latest)
                ends = since + self.pace.leaves(self.clock.now() - since)
            if drawing.done() and not drawing.exception() and getattr(drawing.result(), "instead", "") == "later":
                run.seat = None
                back.append(run)
                continue
            is_gone = is_gone or not drawing.done() or drawing.exception() is not None
            unread = not draws and not (asking.done() and asking.exception())
            left = asyncio.create_task(self._left(seat, run, drawing, ends, unread))
            begun.append(_Begun(run, drawing, left, entry))
        await self.clock.sleep_until(ends)
        self._put_back(back)
        lost = [one for one in begun if not await one.left]
        if lost or is_gone:
            await self._lost(seat, lost)
        account = runs[0].ask.account  # which keeps others waiting no longer than a run of one statement does
        at_once = 2 * self._at_once.get(account, MOST_AT_ONCE)
        is_alone = is_gone or bool(lost) or ends > began + self.pace.last
        self._at_once[account] = 1 if is_alone else min(MOST_AT_ONCE, at_once)

    @staticmethod
    def _asked(seat: _Seat, run: _Run) -> asyncio.Task[Said]:
        run.seat = seat
        return asyncio.create_task(seat.link.ask(run.ask))

    async def _drawn(self, seat: _Seat, run: _Run, asking: asyncio.Task[Said], within: float) -> Said:
        found = await asking
        return await seat.link.draw(run.ask.id, within) if isinstance(found, IsCharged) else found

    async def _left(self, seat: _Seat, run: _Run, drawing: asyncio.Task[Said], moment: float, unread: bool) -> bool:
        """Let the caller have what came of his run, then; whether anything did. unread: it was charged and, behind one
        that died, not let draw."""
        await self.clock.sleep_until(moment)
        reply: Reply | None = None
        if drawing.done() and not isinstance(drawing.exception() or drawing.result(), IsCharged):
            with contextlib.suppress(Died):
                found = drawing.result()
                reply = found if isinstance(found, Reply) else await seat.link.go(run.ask.id)
        if reply is None and unread:
            run.refuse(beside_another())
        self._tell(run, reply)
        if reply is not None:
            run.over(seat.link.entry_of(run.ask.id))
        return reply is not None

    async def _lost(self, seat: _Seat, lost: Sequence[_Begun]) -> None:
        """Their worker is gone, or is ended because one of them took too long.

        A failure is the one that drew when it died. None of those is that the clock ends, or that were behind others.
        """
        entries = [one.entry or seat.link.entry_of(one.run.ask.id) for one in lost]
        is_late = any(not one.drawing.done() for one in lost)
        died = [one for one in lost if one.drawing.done() and one.drawing.exception() is not None] or list(lost)
        for one, entry in zip(lost, entries, strict=True):
            if is_late or one is not died[0]:
                await self._spare(one.run.ask, entry)
        if is_late:
            _log.warning("a statement took longer than the last of answers_at: its worker is ended")
        seat.link.kill()
        for one, entry in zip(lost, entries, strict=True):
            await asyncio.wait({one.drawing})
            one.drawing.exception()
            one.run.over(entry or seat.link.entry_of(one.run.ask.id))
        await self._replace(seat)

    def _put_back(self, runs: Sequence[_Run]) -> None:
        """Those that were not begun in the round of their account; a moment has come."""
        rest = [run for run in runs if not run.outcome.done()]
        for run in rest if self._closing else ():
            run.refuse(ending())
        if rest and not self._closing:
            self._turns.put_back(rest[0].ask.account, rest)
            self._seat()

    async def _spare(self, ask: Ask, entry: str) -> None:
        """Say that a run is ended by the clock before it is: else who looks next takes it for one that died."""
        if entry:
            with contextlib.suppress(Refused):
                await self.look(replace(ask, wish="stopped", account=OWN, sql=entry, values=()))

    def _tell(self, run: _Run, reply: Reply | None) -> None:
        """Let the caller have what came of his run; None, a death: the constant error."""
        if run.outcome.done():
            return
        if reply is None or any(d.code == "DP901" for d in reply.refused):
            run.outcome.set_exception(failed())
        else:
            run.outcome.set_result(reply)

    async def _done_by(self, tasks: Collection[asyncio.Task[Said]], moment: float) -> bool:
        """Whether they are done then, or before."""
        waking = asyncio.create_task(self.clock.sleep_until(moment))
        while not waking.done() and not all(task.done() for task in tasks):
            rest = [task for task in tasks if not task.done()]
            await asyncio.wait([*rest, waking], return_when=asyncio.FIRST_COMPLETED)
        waking.cancel()
        return all(task.done() for task in tasks)

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
                self._replaced += 1
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
        links, self._free = [seat.link for seat in self._free], []
        await asyncio.gather(self._desk.close(), self._computing.close(), *(link.close() for link in links))
