"""Cuts a connection off whose client does not read, whatever anybody still wants to send him.

*Claim.* A client that takes nothing of what is sent holds his connection for a bounded time. *Why.* What waits to be
sent is looked at again and again, from the first byte of the connection to its last, and not by whoever sends: where
bytes waited at one look and at the next, and none has left, or the room for more was full all the time, the connection
is aborted, also where it was closed already and only waits for its last bytes to leave. *When it would be false.* If a
transport did not tell what waits in it. *Tested by* tests/faces/server/front/test_slow_readers.py,
tests/faces/server/web/test_listener.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class UnreadBytes:
    """Looks at a connection. seconds: between two looks. transport: the one that it has now."""

    def __init__(self, transport: Callable[[], asyncio.Transport], seconds: float) -> None:
        self._transport, self._seconds = transport, seconds
        self._full = self._moved = False
        self._waited = 0
        self._next = asyncio.get_running_loop().call_later(seconds, self._look)

    @property
    def waits(self) -> bool:
        """Whether the client has not taken all that was sent."""
        return self._transport().get_write_buffer_size() > 0

    def full(self) -> None:
        """There is no room for more."""
        self._full, self._moved = True, False

    def room(self) -> None:
        """There is again."""
        self._full, self._moved = False, True

    def _look(self) -> None:
        waiting = self._transport().get_write_buffer_size()
        if waiting and self._waited and not self._moved and (self._full or waiting == self._waited):
            self._transport().abort()
            return
        self._waited, self._moved = waiting, False
        self._next = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def ended(self) -> None:
        """The connection is gone."""
        self._next.cancel()
