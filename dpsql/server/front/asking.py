"""Asks for answers in the name of one login: with an id, a clock, an eye on the client, and a line in the audit log."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Protocol

from dpsql.server.front.link import Gone
from dpsql.server.front.read_command import MAX_LENGTH
from dpsql.server.statements import Answer, Answering, Described, Event, Login, Recording, Refused, Settings, Value

_numbers = count(1)


class Client(Protocol):
    """Who waits for an answer. gone: set when he has left."""

    gone: asyncio.Event

    def watch(self) -> None:
        """Look from now on whether he leaves."""
        ...


class Asking:
    """The login is given once, and no message of the client comes near it. run_id: of what runs now, "" for nothing.

    running: the text of what runs now, "" for nothing.
    """

    def __init__(self, login: Login, answering: Answering, recording: Recording) -> None:
        self.login, self._answering, self._recording = login, answering, recording
        self._run_id = self.running = ""

    async def describe(self, sql: str, settings: Settings) -> Described:
        """Columns and parameters of a query. Raises Refused."""
        try:
            return await self._answering.describe(self.login, sql, settings)
        except Refused as refused:
            self.refused(sql, refused.diagnostics[0].code)
            raise

    async def run(
        self, described: Described, values: tuple[Value, ...], settings: Settings, seconds: float | None, link: Client
    ) -> Answer:
        """The answer to a query. It is stopped after so many seconds, or when the client leaves. Raises Refused, Gone.

        What was charged by then stays charged.
        """
        self._run_id, self.running = f"{self.login.name}/{next(_numbers)}", described.sql
        running = asyncio.ensure_future(self._answering.run(self.login, described, values, settings, self._run_id))
        leaving = asyncio.ensure_future(link.gone.wait())
        link.watch()
        try:
            done, _ = await asyncio.wait({running, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if running not in done:
                await self._answering.stop(self._run_id)
                await asyncio.wait({running})
            answer = running.result()
        except Refused as refused:
            self.refused(described.sql, refused.diagnostics[0].code)
            raise
        finally:
            self._run_id = self.running = ""
            leaving.cancel()
            running.cancel()
        kind = _kind(answer)
        self._record("statement", described.sql, plan=answer.plan, price=answer.spent, entry=answer.entry, kind=kind)
        if link.gone.is_set():
            raise Gone
        return answer

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
        self._recording.record(
            Event(what, login.name, login.address, sql[:MAX_LENGTH], outcome, plan, price, entry, kind, login.database)
        )


def _kind(answer: Answer) -> str:
    """What was answered: what has no plan is of the catalogue."""
    return {"EXPLAIN": "explain", "SHOW": "show"}.get(answer.command, "query" if answer.plan else "catalogue")
