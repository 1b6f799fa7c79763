"""A worker in which nothing runs that is paid for: it answers one question after the other, in turns of accounts."""

from __future__ import annotations

import asyncio
import logging

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.pace import Clock
from dpsql.faces.server.size_limits import failed
from dpsql.faces.server.turns import Seats
from dpsql.faces.server.workers.worker_link import Died, Starting, WorkerLink
from dpsql.faces.server.workers.worker_messages import Ask, Reply

_log = logging.getLogger("dpsql.server")


class Desk:
    """start: makes its worker, at the first question. most: questions of one account that may wait. last: seconds after
    which its worker is ended. restarted: how often it was replaced."""

    def __init__(self, start: Starting, most: int, last: float, clock: Clock) -> None:
        self.start, self._seats, self._last, self._clock = start, Seats(1, most), last, clock
        self.link: WorkerLink | None = None
        self._begun = False
        self.restarted = 0

    async def open(self) -> WorkerLink:
        """Its worker. Raises CannotOpen, Died."""
        if self.link is None:
            self.link = await self.start()
            self.restarted += self._begun
            self._begun = True
        return self.link

    async def ask(self, ask: Ask) -> Reply:
        """The reply, when it is the account's turn. Raises Refused: DP414; DP901 for a worker that died."""
        async with self._seats.taken(ask.account):
            try:
                link = await self.open()
                late = self._clock.at(self._clock.now() + self._last, link.kill)
                try:
                    found = await link.ask(ask)
                finally:
                    late.cancel()
                if isinstance(found, Reply):
                    return found
                raise Died
            except (Died, CannotOpen):
                if self.link is not None:
                    self.link.kill()
                    _log.warning("the worker of what is free ended%s, and is replaced", await self.link.ended())
                self.link = None
                raise failed() from None
            except asyncio.CancelledError:
                if self.link is not None:  # its reply would be taken for that to the next statement
                    self.link.kill()
                self.link = None
                raise

    async def close(self) -> None:
        """Let its worker end."""
        link, self.link = self.link, None
        if link is not None:
            await link.close()
