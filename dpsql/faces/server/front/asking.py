"""Asks for answers in the name of one login: with an id, a clock, an eye on the client, and a line in the audit log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from itertools import count
from typing import Protocol

from dpsql.faces.server.front.client_link import Gone
from dpsql.faces.server.front.commands.read_command import MAX_LENGTH
from dpsql.faces.server.size_limits import unrecorded
from dpsql.faces.server.statements import (
    STOPPED,
    Answer,
    Answering,
    AuditEvent,
    ChargedRun,
    DescribedStatement,
    Login,
    Recording,
    Refused,
    StatementSettings,
    Value,
)

_numbers = count(1)


class Client(Protocol):
    """Who waits for an answer. gone: set when he has left."""

    gone: asyncio.Event

    def watch(self, left: Callable[[], object]) -> None:
        """Look from now on whether he leaves, and call this then; at some time soon, if he has left."""
        ...


class Asking:
    """The login is given once, and no message of the client comes near it. run_id: of what runs now, "" for nothing.

    running: the text of what runs now, "" for nothing.
    """

    def __init__(self, login: Login, answering: Answering, recording: Recording) -> None:
        self.login, self._answering, self._recording = login, answering, recording
        self._run_id = self.running = ""

    async def describe(self, sql: str, settings: StatementSettings) -> DescribedStatement:
        """Columns and parameters of a query. Raises Refused."""
        try:
            return await self._answering.describe(self.login, sql, settings)
        except Refused as refused:
            self.refused(sql, refused.diagnostics[0].code)
            raise

    async def run(
        self,
        described: DescribedStatement,
        values: tuple[Value, ...],
        settings: StatementSettings,
        seconds: float | None,
        link: Client,
    ) -> Answer:
        """The answer to a query. It is stopped after so many seconds, or when the client leaves. Raises Refused, Gone.

        What was charged by then stays charged.
        """
        self._require_log()
        self._run_id = run_id = f"{self.login.name}/{next(_numbers)}"
        self.running = described.sql
        stops: list[asyncio.Task[None]] = []

        def stop() -> None:
            if self._run_id == run_id and not stops:
                stops.append(asyncio.ensure_future(self._answering.stop(run_id)))

        late = None if seconds is None else asyncio.get_running_loop().call_later(seconds, stop)
        link.watch(stop)
        try:
            answer = await self._answering.run(self.login, described, values, settings, run_id)
        except Refused as refused:
            await self._note_run(described.sql, refused)
            raise
        finally:
            self._run_id = self.running = ""
            if late is not None:
                late.cancel()
        kind = _kind(answer)
        self._record("statement", described.sql, plan=answer.plan, price=answer.spent, entry=answer.entry, kind=kind)
        if link.gone.is_set():
            raise Gone
        return answer

    def _require_log(self) -> None:
        """Raises Refused if what is asked now could not be noted."""
        try:
            self._recording.require()
        except OSError:
            raise unrecorded(is_paid=False) from None

    async def _note_run(self, sql: str, refused: Refused) -> None:
        """Note a refusal with what was charged all the same; of one that was stopped, which is told at once, later."""
        code, charge = refused.diagnostics[0].code, refused.charge
        if charge is not None and refused.sqlstate != STOPPED:
            found = await charge
            self._record("statement", sql, outcome=code, price=found.price, entry=found.entry)
            self._note_failure(sql, code, found)
            return
        self.refused(sql, code)
        if charge is not None:
            charge.add_done_callback(lambda done: self._charged(sql, code, done.result()))

    def _charged(self, sql: str, code: str, found: ChargedRun) -> None:
        if found.price:
            with contextlib.suppress(Refused):  # nobody waits for it any more; who keeps the log has said it
                self._record("charged", sql, outcome=code, price=found.price, entry=found.entry)
                self._note_failure(sql, code, found)

    def _note_failure(self, sql: str, code: str, found: ChargedRun) -> None:
        if found.has_failed:
            self._record("failure", sql, outcome=code, entry=found.entry)

    async def stop(self) -> None:
        """Stop what runs, if anything does."""
        if self._run_id:
            self._record("stop", "")
            await self._answering.stop(self._run_id)

    def noted(self, sql: str) -> None:
        """Note a statement that spends nothing."""
        self._record("statement", sql)

    def refused(self, sql: str, code: str, word: str = "") -> None:
        """Note a refusal. word: of a command whose text may hold a secret, in its place."""
        self._record("statement", word or sql, outcome=code)

    def _record(
        self, what: str, sql: str, *, outcome: str = "ok", plan: str = "", price: str = "", entry: str = "",
        kind: str = "",
    ) -> None:  # fmt: skip
        login = self.login
        event = AuditEvent(
            what, login.name, login.address, sql[:MAX_LENGTH], outcome, plan, price, entry, kind, login.database
        )
        try:
            self._recording.record(event)
        except OSError:
            raise unrecorded(is_paid=bool(price)) from None


def _kind(answer: Answer) -> str:
    """What was answered: what has no plan is of the catalogue."""
    return {"EXPLAIN": "explain", "SHOW": "show"}.get(answer.command, "query" if answer.plan else "catalogue")
