"""Sessions of the web: who has logged in, by a token that only his browser or program knows.

*Claim.* A session is its holder's alone, ends when it is not used, and at the latest after half a day. *Why.* A token
has 256 bits of the operating system, is kept here as a hash only, and is good at the one listener, and in the one way
(cookie or bearer), that it was made for. *When it would be false.* If a token stood in a page, a URL or a log. *Tested
by* tests/faces/server/web/test_login.py.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal

from dpsql.faces.server.front.asking import Asking
from dpsql.faces.server.statements import AuditEvent, Login, Recording
from dpsql.faces.server.visitors import Visitor

IDLE: Final = 30 * 60.0
LONGEST: Final = 12 * 3600.0
MOST: Final = 1_000
MOST_RUNNING: Final = 4
"""Statements that one session may have on their way."""

Way = Literal["console", "API"]


@dataclass(slots=True, eq=False)
class WebSession:
    """One login, in one database. form_token: what its forms have to bring back. running: what is on its way."""

    number: int
    way: Way
    login: Login
    begun: float
    seen: float
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    running: set[Asking] = field(default_factory=set)

    def enter(self, login: Login) -> None:
        """Go on in another database of the login. Forms of the earlier one are not taken any more."""
        self.login, self.form_token = login, secrets.token_urlsafe(24)


class Sessions:
    """Those of one listener. of_one_user: sessions that a name may have; the one that rested longest gives way."""

    def __init__(
        self, recording: Recording, of_one_user: int, clock: Callable[[], float] = time.monotonic, most: int = MOST
    ) -> None:
        self._recording, self._of_one_user, self._clock, self._most = recording, of_one_user, clock, most
        self._by_hash: dict[bytes, WebSession] = {}
        self._numbers = count(1)

    def begin(self, login: Login, way: Way) -> tuple[str, WebSession]:
        """A new session and its token."""
        self._forget_old()
        own = [key for key, s in self._by_hash.items() if s.login.name == login.name]
        for full, keys in ((len(own) >= self._of_one_user, own), (len(self._by_hash) >= self._most, self._by_hash)):
            if full:
                self._end(min(keys, key=lambda k: (bool(self._by_hash[k].running), self._by_hash[k].seen)))
        token, now = secrets.token_urlsafe(32), self._clock()
        session = WebSession(next(self._numbers), way, login, now, now)
        self._by_hash[_hash(token)] = session
        return token, session

    def find(self, token: str, way: Way) -> WebSession | None:
        """Whose token it is; None for one that was never given, for another way, or is over."""
        found = self._by_hash.get(_hash(token))
        if found is None or found.way != way:
            return None
        if self._is_over(found):
            self._end(_hash(token))
            return None
        found.seen = self._clock()
        return found

    def lasts(self, token: str) -> bool:
        """Whether a session of this token has begun and is not over. To ask is no use of it."""
        found = self._by_hash.get(_hash(token))
        return found is not None and not self._is_over(found)

    def end(self, session: WebSession) -> None:
        """Its token is good for nothing any more."""
        for key in [key for key, s in self._by_hash.items() if s is session]:
            self._end(key)

    def let_go(self, names: Collection[str]) -> None:
        """See `reload.Holding`: what runs comes to its end."""
        for key in [key for key, s in self._by_hash.items() if s.login.name in names]:
            self._end(key)

    # --- for custodians, see Visited ---------------------------------------------------------------------------------

    def visitors(self) -> list[Visitor]:
        """See Visited."""
        self._forget_old()
        return [
            Visitor(
                str(s.number), s.way, s.login.name, s.login.address, "; ".join(sorted(a.running for a in s.running)),
                s.login.database,
            )
            for s in self._by_hash.values()
        ]  # fmt: skip

    async def stop_of(self, key: str) -> bool:
        """See Visited."""
        found = [s for s in self._by_hash.values() if str(s.number) == key]
        for session in found:
            for asking in list(session.running):
                await asking.stop()
        return bool(found)

    async def end_of(self, key: str) -> bool:
        """See Visited."""
        there = await self.stop_of(key)
        for hashed in [k for k, s in self._by_hash.items() if str(s.number) == key]:
            self._end(hashed)
        return there

    # ---------------------------------------------------------------------------------------------------------------

    def _is_over(self, session: WebSession) -> bool:
        now = self._clock()
        return now - session.begun > LONGEST or (now - session.seen > IDLE and not session.running)

    def _forget_old(self) -> None:
        for key in [key for key, session in self._by_hash.items() if self._is_over(session)]:
            self._end(key)

    def _end(self, key: bytes) -> None:
        session = self._by_hash.pop(key)
        login = session.login
        self._recording.record(AuditEvent("end", login.name, login.address, database=login.database))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
