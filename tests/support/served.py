"""A server's front in a thread of its own, on a port of this machine, for clients of any kind."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any, TypeVar

from dpsql.faces.server.databases import Databases
from dpsql.faces.server.front.listen import ConnectionLimits, Front
from dpsql.faces.server.front.login import AskingForCertificates, Door
from dpsql.faces.server.front.patience import Patience
from dpsql.faces.server.front.route import Route
from dpsql.faces.server.people.users import User, Users
from dpsql.faces.server.statements import Answering, CatalogueAnswering, Login
from dpsql.faces.server.wire.scram import make_secret
from tests.support.answering import NoCatalogue, Recorded

T = TypeVar("T")
PASSWORD = "correct horse battery"
NAME = "ana"
DATABASE = "clinic"


def people(**more: Login) -> Users:
    """Ana, whose account is hers, and others; all with one password, which is hashed once."""
    secret = make_secret(PASSWORD, b"0123456789abcdef", 4096)
    logins = {NAME: Login(NAME, NAME), **more}
    return Users({name: User(secret, login) for name, login in logins.items()})


def _answering(answering: Answering, catalogue: CatalogueAnswering | None) -> Answering:
    return answering if isinstance(answering, Databases) else Route(answering, catalogue or NoCatalogue())


class Hurried(asyncio.SelectorEventLoop):
    """An event loop whose time a test moves on: what would be waited for is over then, and nobody has waited."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Served:
    """A front that listens. waits: what it waited before it looked at a proof, in seconds that nobody spent."""

    def __init__(
        self,
        answering: Answering,
        users: Users | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        wire: ssl.SSLContext | None = None,
        limits: ConnectionLimits | None = None,
        seconds: float = 60,
        catalogue: CatalogueAnswering | None = None,
        databases: Mapping[str, str] | None = None,
        tls_only: bool = False,
        proxies: Sequence[str] = (),
    ) -> None:
        """databases: see `Users.admitted`."""
        self.answering, self.log = answering, Recorded()
        self.waits: list[float] = []
        who = (users or people()).admitted(databases or {DATABASE: DATABASE})
        asking = None if wire is None else AskingForCertificates(wire)
        self.door = Door(
            who,
            self.log,
            tls,
            Patience(lambda: 0.0),
            self._sleep,
            seconds,
            wire=asking,
            tls_only=tls_only,
            proxies=tuple(map(ip_network, proxies)),
        )
        self.front = Front(self.door, _answering(answering, catalogue), limits)
        self._loop = Hurried()
        self._thread = threading.Thread(target=self._loop.run_forever, name="front", daemon=True)
        self.port = 0

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def call(self, step: Coroutine[Any, Any, T]) -> T:
        """Run something where the front runs."""
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(60)

    def later(self, seconds: float) -> None:
        """So much time passes at once, and whoever has waited for it goes on."""

        async def pass_by() -> None:
            self._loop.ahead += seconds
            await asyncio.sleep(0)

        self.call(pass_by())

    def __enter__(self) -> Served:
        self._thread.start()
        self.port = self.call(self.front.start("127.0.0.1", 0))
        return self

    def __exit__(self, *exception: object) -> None:
        self.call(self.front.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    @property
    def dsn(self) -> str:
        """What libpq's clients connect with."""
        return f"host=127.0.0.1 port={self.port} user={NAME} password='{PASSWORD}' dbname={DATABASE}"

    @contextmanager
    def raw(self) -> Iterator[socket.socket]:
        """A connection as bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as found:
            yield found
