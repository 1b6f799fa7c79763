"""Who answers a server's front in tests: a session over the demo's data in this process, with a ledger in memory."""

from __future__ import annotations

import asyncio
import itertools
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpsql.api.connection import Connection
from dpsql.core.ir.types import BIGINT, BOOLEAN, DATE, DOUBLE, VARCHAR, SqlType
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Error
from dpsql.frontend.placeholders import placeholders
from dpsql.server.statements import STOPPED, Answer, Described, Event, Login, Refused, Settings, Value

_GUESSES: tuple[tuple[SqlType, Any], ...] = (
    (BIGINT, 1), (VARCHAR, "1"), (DATE, "2025-01-01"), (DOUBLE, 1.5), (BOOLEAN, True),
)  # fmt: skip


class SessionAnswers:
    """Implements `Answering` without other processes.

    holding: while it is set, a run waits for `stop`, or until it is cleared. asked: the account of every run.
    """

    def __init__(self, policy: Path) -> None:
        import dpsql

        self.connection: Connection = dpsql.connect(policy, ledger=":memory:")
        self.lock = threading.Lock()
        self.holding = False
        self.started = asyncio.Event()
        self.asked: list[tuple[str, Settings]] = []
        self._stopped: dict[str, asyncio.Event] = {}

    async def describe(self, login: Login, sql: str, settings: Settings) -> Described:
        return await asyncio.to_thread(self._in_lock, lambda: self._describe(sql))

    def _in_lock(self, step: Callable[[], Any]) -> Any:
        with self.lock:
            try:
                return step()
            except Error as error:
                raise Refused(error.diagnostics) from None

    def _describe(self, sql: str) -> Described:
        names = placeholders(sql) or frozenset()
        count = max((int(n) for n in names if n.isdigit()), default=0)
        last: Error | None = None
        for guess in itertools.product(_GUESSES, repeat=count):
            try:
                plan = self.connection.preview(sql, [value for _, value in guess])
            except Error as error:
                last = last or error
                continue
            columns = tuple((c.name, c.type) for c in plan.columns)
            return Described(sql, columns, tuple(type_ for type_, _ in guess))
        assert last is not None
        raise last

    async def run(
        self, login: Login, described: Described, values: tuple[Value, ...], settings: Settings, run_id: str
    ) -> Answer:
        stopped = self._stopped[run_id] = asyncio.Event()
        self.asked.append((login.account, settings))
        self.started.set()
        try:
            while self.holding and not stopped.is_set():
                await asyncio.sleep(0.001)
            if stopped.is_set():
                raise Refused([Diagnostic("DP901", "the statement was stopped")], STOPPED)
            answer: Answer = await asyncio.to_thread(self._in_lock, lambda: self._run(described, values, settings))
            return answer
        finally:
            del self._stopped[run_id]

    def _run(self, described: Described, values: tuple[Value, ...], settings: Settings) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = self.connection.sql(described.sql, list(values))
            plan = query.plan(settings.epsilon, settings.delta, rho=settings.rho, limits=settings.limits)
            release = self.connection.run(plan)
        columns = tuple(zip(release.columns, release.types, strict=True))
        told = (f"spent {release.spent}", *release.notes)
        against = self.connection.warnings(plan)
        return Answer(columns, release.rows, told, against, str(release.spent), "", "")

    async def stop(self, run_id: str) -> None:
        if (found := self._stopped.get(run_id)) is not None:
            found.set()


class Recorded:
    """An audit log in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)
