"""Who is next where several accounts wait for a seat.

*Claim.* Whoever waits is behind at most one turn of each other account that waits, however many statements, connections
and faces these have; and no account fills what others wait in. *Why.* Statements wait by account, in their order; the
next turn is that of the account whose last one is longest ago, and each account may have so many waiting. What the
server asks for itself (of the account "") goes first. *When it would be false.* If a face asked past the turns; if one
person had many accounts: those are in the file of users. *Tested by* tests/faces/server/test_turns.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Final, Generic, TypeVar

from dpsql.faces.server.size_limits import queue_full

T = TypeVar("T")
OWN: Final = ""
"""The account of what the server asks for itself."""


class Turns(Generic[T]):
    """What waits, by account. most: of one account."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[str, deque[T]] = {}
        self._last: dict[str, int] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[T]:
        return iter([one for own in self._waiting.values() for one in own])

    def add(self, account: str, one: T) -> None:
        """It waits behind those of its account. Raises Refused DP414: too many of these do."""
        own = self._waiting.setdefault(account, deque())
        if len(own) >= self.most and account != OWN:
            raise queue_full(self.most)
        own.append(one)

    def put_back(self, account: str, several: Iterable[T]) -> None:
        """They wait before the others of their account, for it had its turn without them."""
        self._waiting.setdefault(account, deque()).extendleft(reversed(list(several)))

    def discard(self, account: str, one: T) -> None:
        """It waits no longer, if it does."""
        own = self._waiting.get(account, deque())
        if one in own:
            own.remove(one)
            self._tidy(account)

    def first(self, account: str) -> T:
        """What of an account waits longest."""
        return self._waiting[account][0]

    def next(self, among: Iterable[str] | None = None) -> str | None:
        """The account whose turn it is, of these or of all that wait; None if none does."""
        waiting = self._waiting if among is None else among
        return min(waiting, key=lambda name: (name != OWN, self._last.get(name, 0)), default=None)

    @property
    def accounts(self) -> list[str]:
        """Those that wait."""
        return list(self._waiting)

    def served(self, account: str) -> None:
        """The account had a turn without waiting."""
        self._last[account] = next(self._numbers)

    def take(self, account: str, most: int = 1) -> list[T]:
        """The account's turn, with the first of what it has waiting."""
        self.served(account)
        own = self._waiting[account]
        found = [own.popleft() for _ in range(min(most, len(own)))]
        self._tidy(account)
        return found

    def _tidy(self, account: str) -> None:
        if not self._waiting[account]:
            del self._waiting[account]


class Seats:
    """Places for what is short, taken by one statement at a time each."""

    def __init__(self, size: int, most: int) -> None:
        """most: that may wait, of one account."""
        self._free, self._turns = size, Turns[asyncio.Future[None]](most)

    @asynccontextmanager
    async def taken(self, account: str) -> AsyncIterator[None]:
        """When it is the account's turn, until the block ends. Raises Refused DP414."""
        if self._free:
            self._free -= 1
            self._turns.served(account)
        else:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.add(account, woken)
            try:
                await woken
            except asyncio.CancelledError:
                self._turns.discard(account, woken)
                if woken.done() and not woken.cancelled():  # it was its turn already
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while (account := self._turns.next()) is not None:
            (woken,) = self._turns.take(account)
            if not woken.done():
                woken.set_result(None)
                return
        self._free += 1
