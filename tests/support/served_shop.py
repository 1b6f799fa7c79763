"""The small shop behind a server, asked as its front asks, without a wire: workers are processes, or threads here."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dpsql.faces.server.gateway import Gateway
from dpsql.faces.server.pace import Clock
from dpsql.faces.server.statements import Answer, Ceilings, ChargedRun, Login, Refused, StatementSettings, Value
from dpsql.faces.server.workers.answering import WorkerAnswering
from dpsql.faces.server.workers.worker_link import Said, Starting, WorkerLink, command, started
from dpsql.faces.server.workers.worker_messages import (
    Ask,
    IsCharged,
    Part,
    Ready,
    Reply,
    Waiting,
    parts_of,
    read,
    write,
)
from dpsql.policy.load import load_policy
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.small_shop import Shop

T = TypeVar("T")
TENTH = StatementSettings(epsilon="0.1")
ANA = Login("ana", "ana", address="127.0.0.1")
BEN = Login("ben", "ben", address="127.0.0.1")
PATIENCE = 600
FINE = "{answers_at: [" + ", ".join(f"{ms}ms" for ms in (*range(10, 1000, 10), *range(1000, 60_000, 100))) + ", 600s]"
"""A `serve:` without its end, whose moments are so close that tests are not kept waiting."""
PRELUDE = """
import os, signal, sys
import dpsql, dpsql.core.ledger.sqlite, dpsql.core.ledger.chain.head, dpsql.engines.duckdb.engine
import dpsql.engines.duckdb.scratch, dpsql.planner.postprocessing.run, dpsql.answers.stored.store.sqlite
from dpsql.planner.stages.answering_rows import AnsweringRows
import dpsql.core.noise.mechanisms.laplace, dpsql.core.release.noisy, dpsql.service.pipeline
import dpsql.faces.server.workers.worker, dpsql.faces.server.workers.answering

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def wrap(owner, name, before=None, after=None):
    inner = getattr(owner, name)
    def wrapped(*arguments, **named):
        if before: before()
        found = inner(*arguments, **named)
        if after: after()
        return found
    setattr(owner, name, wrapped)
"""
"""What prepared workers know."""


class Standing:
    """A clock that stands, but for the half second in which statements gather, until a test lets it go on: then all
    time has passed."""

    def __init__(self) -> None:
        self.goes_on, self._now = asyncio.Event(), 0.0

    def now(self) -> float:
        return 1e9 if self.goes_on.is_set() else self._now

    async def sleep_until(self, moment: float) -> None:
        if moment > 0.5:
            await self.goes_on.wait()
        self._now = max(self._now, moment)

    def at(self, moment: float, do: Callable[[], object]) -> asyncio.Task[None]:
        async def later() -> None:
            await self.sleep_until(moment)
            do()

        return asyncio.create_task(later())


class Served:
    """A gateway whose loop runs in a thread of its own; every call waits for its end."""

    def __init__(self, shop: Shop, starting: Starting | None = None, clock: Clock | None = None) -> None:
        self.shop = shop
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        policy = load_policy(shop.policy)
        start = starting or started(command(shop.policy, policy.serving))
        self._names = iter(range(1_000_000))
        try:
            self.gateway = self.do(lambda: Gateway.open(policy, start, clock))
        except BaseException:
            self._end_loop()
            raise

    def do(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a coroutine that runs in the loop."""
        return asyncio.run_coroutine_threadsafe(make(), self._loop).result(PATIENCE)

    def ask(
        self, sql: str, *values: Value, login: Login = ANA, settings: StatementSettings = TENTH, name: str = ""
    ) -> Answer:
        """Describe and run one statement."""

        async def both() -> Answer:
            described = await self.gateway.describe(login, sql, settings)
            return await self.gateway.run(login, described, values, settings, name or f"r{next(self._names)}")

        return self.do(both)

    def charge_of(self, refused: Refused) -> ChargedRun:
        """What a refused run was charged all the same: price and entry."""
        charge = refused.charge
        assert charge is not None

        async def known() -> ChargedRun:
            return await charge

        return self.do(known)

    def close(self) -> None:
        """Drain."""
        self.do(self.gateway.close)
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def served(shop: Shop, starting: Starting | None = None, clock: Clock | None = None) -> Iterator[Served]:
    """A server of a shop, until the end of the block."""
    server = Served(shop, starting, clock)
    try:
        yield server
    finally:
        server.close()


class Inside:
    """A worker in this process. What it is told and says crosses as lines all the same."""

    def __init__(self, policy: Path, loop: asyncio.AbstractEventLoop) -> None:
        loaded = load_policy(policy)
        completed, engine = open_data(loaded, None, None, None, None)
        self._service = Service(completed, engine)
        self._answering = WorkerAnswering(
            self._service, completed.serving.rows, self._leave, self._charge, self._charged
        )
        self._accounts: dict[str, str] = {}
        self._entries: dict[str, str] = {}
        self._says: dict[str, asyncio.Future[Said]] = {}
        self._goes: dict[str, queue.SimpleQueue[float]] = {}
        self._answered: dict[str, asyncio.Task[Reply]] = {}
        self._loop = loop
        self.ready = Ready(loaded.hash, engine.describe())
        self.replied: set[str] = set()

    async def ask(self, ask: Ask) -> Said:
        told = read(write(ask))
        assert isinstance(told, Ask)
        self._accounts[ask.id] = ask.account
        self._goes[ask.id] = queue.SimpleQueue()
        self._says[ask.id] = self._loop.create_future()
        self._answered[ask.id] = asyncio.create_task(asyncio.to_thread(self._answering.answer, told))
        return await self._next(ask.id)

    async def draw(self, id: str, within: float) -> Said:
        self._says[id] = self._loop.create_future()
        self._goes[id].put(within)
        found = await self._next(id)
        self.replied.add(id)
        return found

    async def go(self, id: str) -> Reply:
        self._goes[id].put(0.0)
        return await self._reply(id)

    def entry_of(self, id: str) -> str:
        return self._entries.pop(id, "")

    async def _next(self, id: str) -> Said:
        says = self._says[id]
        await asyncio.wait({says, self._answered[id]}, return_when=asyncio.FIRST_COMPLETED)
        return says.result() if says.done() else await self._reply(id)

    async def _reply(self, id: str) -> Reply:
        given = await self._answered.pop(id)
        parts = [part for part in map(read, map(write, parts_of(given))) if isinstance(part, Part)]
        reply = read(write(given), parts, self._accounts)
        assert isinstance(reply, Reply)
        return reply

    def _charge(self, id: str, entry: str) -> None:
        self._entries[id] = entry

    def _charged(self, id: str) -> float:
        self._loop.call_soon_threadsafe(self._says[id].set_result, IsCharged(id))
        return self._goes[id].get(timeout=PATIENCE)

    def _leave(self, id: str) -> None:
        """In the thread of a run."""
        self._loop.call_soon_threadsafe(self._says[id].set_result, Waiting(id))
        self._goes[id].get(timeout=PATIENCE)

    def kill(self) -> None:
        raise AssertionError("a thread cannot be killed")

    async def ended(self) -> str:
        return ""

    async def close(self) -> None:
        self._service.close()


def inside(shop: Shop) -> Starting:
    """Workers without processes."""

    async def start() -> WorkerLink:
        return await asyncio.to_thread(Inside, shop.policy, asyncio.get_running_loop())

    return start


def with_serve(shop: Shop, text: str) -> Shop:
    """The shop with a `serve:` in its policy."""
    shop.policy.write_text(shop.policy.read_text() + f"serve: {text}\n")
    return shop


def prepared_worker(policy: Path, prepare: str) -> list[str]:
    """What starts a worker in which some code runs first."""
    code = (
        f"{PRELUDE}\n{prepare}\nfrom dpsql.faces.server.workers.worker import main\nsys.exit(main([{str(policy)!r}]))"
    )
    return [sys.executable, "-c", code]


def login(name: str, **ceilings: str) -> Login:
    """A login with these ceilings."""
    return Login(name, name, ceilings=Ceilings(**ceilings))
