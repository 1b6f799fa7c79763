"""The small shop behind both consoles and the API, in a thread of its own, on free ports of this machine."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any

import httpx

from dpsql.faces.server.databases import Database, Databases
from dpsql.faces.server.front.listen import ConnectionLimits, Front
from dpsql.faces.server.front.login import Door
from dpsql.faces.server.front.patience import Patience
from dpsql.faces.server.front.route import Route
from dpsql.faces.server.pace import Clock
from dpsql.faces.server.people.users import Users
from dpsql.faces.server.refusal_counts import Refusals
from dpsql.faces.server.statements import Login
from dpsql.faces.server.web.doors import Address, Web
from dpsql.faces.server.web.pages.reference import WireAddress
from dpsql.faces.server.web.site import House
from tests.support.answering import NoCatalogue, Recorded
from tests.support.served import PASSWORD, people
from tests.support.served_shop import Served, inside, served
from tests.support.small_shop import Shop

_TOKEN = re.compile(r'name="token" value="([^"]+)"')


@dataclass
class ServedWeb:
    """What runs. waits: what logins waited, in seconds that nobody spent. urls: of analysts, of custodians."""

    server: Served
    web: Web
    log: Recorded
    refusals: Refusals
    front: Front
    waits: list[float]
    urls: tuple[str, str] = ("", "")
    clients: list[httpx.Client] = field(default_factory=list)
    programs: dict[str, httpx.Client] = field(default_factory=dict)

    def client(self, name: str = "", *, custodian: bool = False, **options: Any) -> httpx.Client:
        """A browser of sorts; logged in if a name is given."""
        found = httpx.Client(base_url=self.urls[custodian], timeout=120, **options)
        self.clients.append(found)
        if name:
            answer = found.post("/login", data={"name": name, "password": PASSWORD})
            assert answer.status_code == 303, answer.text
        return found

    def api(self, name: str = "ana") -> httpx.Client:
        """A program with a name and a password, always the same one of a name."""
        if name not in self.programs:
            self.programs[name] = httpx.Client(base_url=self.urls[0], timeout=120, auth=(name, PASSWORD))
            self.clients.append(self.programs[name])
        return self.programs[name]

    @property
    def port(self) -> int:
        return httpx.URL(self.urls[0]).port or 0

    def raw(self, data: bytes) -> bytes:
        """All that comes back for some bytes; nothing where the connection was closed on them."""
        found = b""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection,
            contextlib.suppress(ConnectionError),
        ):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                found += part
        return found


def token_of(page: httpx.Response) -> str:
    """What the forms of a page bring back."""
    found = _TOKEN.search(page.text)
    assert found is not None, page.text
    return found[1]


def post(client: httpx.Client, path: str, page: str = "/query", **fields: str) -> httpx.Response:
    """Fill in a form of a page."""
    return client.post(path, data={"token": token_of(client.get(page)), **fields})


@contextmanager
def served_web(
    shop: Shop,
    *,
    tls: ssl.SSLContext | None = None,
    limits: ConnectionLimits | None = None,
    clock: Clock | None = None,
    second: str = "",
    users: Users | None = None,
    proxies: Sequence[str] = (),
    **more: Login,
) -> Iterator[ServedWeb]:
    """Ana and ben are analysts, carol is a custodian; all have one password. users: others in their place.
    proxies: networks that say where their clients come from.

    second: a further database, which is called made up and asks the same shop.
    """
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    logins = {"ben": Login("ben", "ben"), "carol": Login("carol", "carol", "custodian"), **more}
    with served(shop, inside(shop), clock) as server:
        policy, log = server.gateway.policy, Recorded()
        refusals = Refusals(log)
        route = Route(server.gateway, NoCatalogue())
        known = [Database(policy, route), *([Database(replace(policy, name=second), route, True)] if second else [])]
        databases = Databases(known)
        door = Door(
            (users or people(**logins)).admitted(dict.fromkeys(databases.by_name, policy.name)),
            refusals,
            tls,
            Patience(lambda: 0.0),
            sleep,
            proxies=tuple(map(ip_network, proxies)),
        )
        own = limits or ConnectionLimits()
        front = Front(door, databases, own)
        web = Web(House(door, databases, own), front, WireAddress("db.example.org", 5432, True), refusals)
        found = ServedWeb(server, web, log, refusals, front, waits)
        analysts, custodians = server.do(lambda: web.start(Address("127.0.0.1", 0), Address("127.0.0.1", 0)))
        found.urls = (analysts[1], custodians[1])
        try:
            yield found
        finally:
            for client in found.clients:
                client.close()
            server.do(web.stop)
