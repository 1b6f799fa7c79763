"""Names and passwords that come as they are: from a form under TLS or on this machine, or as HTTP Basic.

*Claim.* Whoever guesses here waits as he does at the wire, with one count for both; nothing tells whether a name exists
or has another role. *Why.* Both doors have one `Patience`; an unknown name, and one of another role, have a secret
that is checked all the same, and the same refusal after the same wait. *When it would be false.* If the rounds of
secrets differ, a name's existence shows in the time that its check takes. *Tested by*
tests/faces/server/web/test_login.py.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from dpsql.faces.server.databases import Databases, NoDatabase
from dpsql.faces.server.front.listen import ConnectionLimits
from dpsql.faces.server.front.login import Door
from dpsql.faces.server.front.patience import network
from dpsql.faces.server.statements import AuditEvent, Login
from dpsql.faces.server.web.sessions import Sessions, WebSession
from dpsql.faces.server.wire.scram import fits

LONGEST_PASSWORD: Final = 1_000
"""Characters."""


class Busy(Exception):
    """So many are logging in that nobody else may try."""


class Entrance:
    """Lets in who shows the password of a login that has this role, to one of that login's databases."""

    def __init__(
        self, door: Door, databases: Databases, role: str, sessions: Sessions, limits: ConnectionLimits
    ) -> None:
        self._door, self._databases, self._role = door, databases, role
        self._sessions, self._limits = sessions, limits
        self._trying: Counter[str] = Counter()
        self._key = secrets.token_bytes(32)
        self._proven: dict[bytes, str] = {}
        """Of Basic: mark of name, password, address and database → the token of its session."""

    async def by_password(
        self, name: str, password: str, address: str, database: str = "", *, first: bool = False
    ) -> Login | None:
        """Who it is; None for a wrong pair. database, first: see `Databases.entered`. Raises Busy, NoDatabase."""
        with self._place(address):
            login = await self._checked(name, password, address)
        return None if login is None else self._entered(login, database, first)

    async def by_provider(self, subject: Callable[[], Awaitable[str | None]], address: str) -> Login | None:
        """Who it is that the identity provider vouches for, in his first database; None for who is not listed. Raises
        Busy, and what it does.

        subject: asks the provider, which takes a while.
        """
        with self._place(address):
            found = await subject()
        door = self._door
        login = None if found is None else door.users.by_subject(found, self._role)
        if login is None:
            door.recording.record(AuditEvent("refused login", (found or "")[:100], address, outcome="28000"))
            return None
        return self._entered(replace(login, address=address), "", first=True)

    @contextmanager
    def _place(self, address: str) -> Iterator[None]:
        """For as long as somebody tries to log in. Raises Busy."""
        limits, place = self._limits, network(address)
        if self._trying.total() >= limits.not_logged_in or self._trying[place] >= limits.from_one_address:
            raise Busy
        self._trying[place] += 1
        try:
            yield
        finally:
            self._trying[place] -= 1
            self._trying += Counter()

    async def _checked(self, name: str, password: str, address: str) -> Login | None:
        door = self._door
        wait = door.patience.try_begins(name, address)
        await door.sleep(wait)
        secret = door.users.secret_of(name)
        right = await asyncio.to_thread(fits, secret, password[:LONGEST_PASSWORD])
        login = door.users.login(name)
        changed = door.users.secret_of(name) != secret  # the file was read anew
        if not right or changed or login is None or login.role != self._role or len(password) > LONGEST_PASSWORD:
            door.recording.record(AuditEvent("refused login", name[:100], address, outcome="28P01"))
            return None
        door.patience.try_succeeded(name, address)
        return replace(login, address=address)

    def _entered(self, login: Login, database: str, first: bool) -> Login:
        recording = self._door.recording
        try:
            login = self._databases.entered(login, database, first=first)
        except NoDatabase as found:
            wrong = found.database[:100]
            recording.record(AuditEvent("refused login", login.name, login.address, outcome="3D000", database=wrong))
            raise
        recording.record(AuditEvent("login", login.name, login.address, database=login.database))
        return login

    async def by_authorization(self, header: str, address: str, database: str = "") -> WebSession | None:
        """The session of a program, by its `Authorization`: Basic, or Bearer with a session's token. Raises Busy.

        database: which it asks; "" for its login's only one, or for that which the token is of. Raises NoDatabase.
        """
        kind, _, rest = header.partition(" ")
        if kind.lower() == "bearer":
            found = self._sessions.find(rest.strip(), "API")
            if found is not None and database not in ("", found.login.database):
                raise NoDatabase(database, [found.login.database])
            return found
        return await self._by_basic(rest.strip(), address, database) if kind.lower() == "basic" else None

    async def _by_basic(self, header: str, address: str, database: str) -> WebSession | None:
        """A pair is checked once, for each database, while its session lasts. Raises Busy, NoDatabase."""
        try:
            name, colon, password = base64.b64decode(header, validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        if not colon:
            return None
        mark = hmac.digest(self._key, f"{address}\0{name}\0{password}\0{database}".encode(), "sha256")
        known = self._proven.get(mark)
        session = None if known is None else self._sessions.find(known, "API")
        if session is not None:
            return session
        login = await self.by_password(name, password, address, database)
        if login is None:
            return None
        self._proven = {m: t for m, t in self._proven.items() if self._sessions.lasts(t)}
        token, session = self._sessions.begin(login, "API")
        self._proven[mark] = token
        return session
