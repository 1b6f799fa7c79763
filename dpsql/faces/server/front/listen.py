"""The listener: accepts connections within limits, sees each from first byte to last, and stops in good order."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import secrets
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpsql.diagnostics.errors import reject
from dpsql.faces.server.front.asking import Asking
from dpsql.faces.server.front.client_link import ClientLink, Gone
from dpsql.faces.server.front.conversation import Conversation
from dpsql.faces.server.front.error_fields import ProtocolFault, notice
from dpsql.faces.server.front.login import Door, Turned, entered, opened
from dpsql.faces.server.front.patience import network
from dpsql.faces.server.statements import Answering, AuditEvent
from dpsql.faces.server.visitors import Visitor
from dpsql.faces.server.wire import messages as m
from dpsql.faces.server.wire import replies

_log = logging.getLogger("dpsql.server")
_NUMBERS: Final = 2**31
MOST_TURNED: Final = 40
"""Connections at one time that are told that there is no place; those beyond end without a word."""
_TURNED_SECONDS: Final = 10.0
_MINUTE: Final = 60.0
_See = Callable[[ClientLink], Awaitable[None]]
_MOST_TOLD: Final = 1_000
MADE_UP: Final = "the data of this database is made up: answers are free, and say nothing of anybody"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Connections: in all, of one user; and of those who have not logged in yet, in all and from one address (of
    IPv6, from one network). Where the latter two are reached, somebody who waits gives his place to who comes."""

    connections: int = 100
    of_one_user: int = 20
    not_logged_in: int = 80
    from_one_address: int = 60


class Front:
    """Listens, and speaks with whoever logs in."""

    def __init__(self, door: Door, answering: Answering, limits: ConnectionLimits | None = None) -> None:
        self._door, self._answering, self._limits = door, answering, limits or ConnectionLimits()
        self._servers: list[asyncio.Server] = []
        self._tasks: dict[asyncio.Task[None], ClientLink] = {}
        self._turned: dict[asyncio.Task[None], ClientLink] = {}
        self._told_of: dict[str, float] = {}
        self._talking: dict[tuple[int, int], Conversation] = {}
        self._of_user: Counter[str] = Counter()
        self._stopping = False

    @property
    def connections(self) -> Counter[str]:
        """Clients that are logged in, by database."""
        return Counter(talking.asking.login.database for talking in self._talking.values())

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which was chosen if 0 was given. Raises Rejected DP903, OSError."""
        require_tls(host, self._door.tls)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ClientLink(self._started), host, port, backlog=128)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def stop(self, seconds: float | None = None) -> None:
        """No new connections; what runs comes to its end, and each client is told.

        seconds: after which whoever is there all the same, for he does not take his answer, is let go of.
        """
        self._stopping = True
        for server in self._servers:
            server.close()
        for task, link in [*self._tasks.items(), *self._turned.items()]:
            if not any(link is talking.link for talking in self._talking.values()):
                link.abort()
                task.cancel()
        for talking in list(self._talking.values()):
            talking.end()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        for link in self._tasks.values():
            link.abort()
        while self._tasks or self._turned:
            await asyncio.wait({*self._tasks, *self._turned})
        for server in self._servers:
            await server.wait_closed()

    # --- who is there ----------------------------------------------------------------------------------------------

    def visitors(self) -> list[Visitor]:
        """See Visited."""
        return [
            Visitor(
                str(key[0]), "PostgreSQL", t.asking.login.name, t.asking.login.address, t.asking.running,
                t.asking.login.database,
            )
            for key, t in self._talking.items()
        ]  # fmt: skip

    async def stop_of(self, key: str) -> bool:
        """Stop what runs on a connection. See Visited.stop."""
        found = [talking for (number, _), talking in self._talking.items() if str(number) == key]
        for talking in found:
            await talking.stop()
        return bool(found)

    async def end_of(self, key: str) -> bool:
        """Stop what runs, and end the connection. See Visited.end."""
        found = [talking for (number, _), talking in self._talking.items() if str(number) == key]
        for talking in found:
            await talking.stop()
            talking.end()
        return bool(found)

    def let_go(self, names: Collection[str]) -> None:
        """See `reload.Holding`."""
        for talking in [t for t in self._talking.values() if t.asking.login.name in names]:
            talking.end()

    # --- one connection --------------------------------------------------------------------------------------------

    def _started(self, link: ClientLink) -> None:
        if not self._stopping and self._has_place(network(link.address)):
            self._begin(self._tasks, link, self._see_through)
        elif len(self._turned) < MOST_TURNED:
            self._begin(self._turned, link, self._turn_away)
        else:
            link.abort()

    def _begin(self, where: dict[asyncio.Task[None], ClientLink], link: ClientLink, see: _See) -> None:
        task = asyncio.get_running_loop().create_task(self._see(link, see))
        where[task] = link
        task.add_done_callback(lambda done: where.pop(done, None))

    def _has_place(self, place: str) -> bool:
        """Whether somebody else is let in from there. Who has logged in counts for no address, and gives no place.

        Who has not gives his to somebody new: of the network that has most of them (its own, where it has too many),
        first who has said nothing, then who has waited longest.
        """
        limits, talking = self._limits, {talking.link for talking in self._talking.values()}
        waiting = [(task, link) for task, link in self._tasks.items() if link not in talking]
        of = Counter(network(link.address) for _, link in waiting)
        own = of[place] >= limits.from_one_address
        if not own and len(waiting) < limits.not_logged_in and len(self._tasks) < limits.connections:
            return True
        may_go = [(t, link) for t, link in waiting if not own or network(link.address) == place]
        if not may_go:
            return False
        task, link = min(may_go, key=lambda each: (-of[network(each[1].address)], each[1].spoke))
        self._note_refused(link.address)
        del self._tasks[task]
        link.abort()
        self._turned[task] = link
        task.add_done_callback(lambda done: self._turned.pop(done, None))
        task.cancel()
        return True

    def _note_refused(self, address: str, name: str = "") -> None:
        """In the audit log, of each network once a minute: strangers do not fill it."""
        now, place = asyncio.get_running_loop().time(), network(address)
        self._told_of = {told: at for told, at in self._told_of.items() if now - at < _MINUTE}
        if place not in self._told_of and len(self._told_of) < _MOST_TOLD:
            self._told_of[place] = now
            with contextlib.suppress(OSError):  # who keeps the log has said why
                self._door.recording.record(AuditEvent("refused login", name[:100], address, outcome="53300"))

    async def _turn_away(self, link: ClientLink) -> None:
        """Hear who it is, under TLS if he wants it, so that his client shows why he is not let in."""
        async with asyncio.timeout(_TURNED_SECONDS):
            first = await opened(link, m.Decoder(), self._door)
        if isinstance(first, m.CancelRequest):
            await self._cancelled(first)
            return
        self._note_refused(link.address, first.parameters.get("user", ""))
        raise ProtocolFault("53300", "too many connections", "try again later")

    async def _cancelled(self, which: m.CancelRequest) -> None:
        talking = self._talking.get((which.process, which.key))
        if talking is not None:
            await talking.stop()

    async def _see(self, link: ClientLink, see: _See) -> None:
        """One connection from its first byte to its last. Nothing that is raised in it leaves it."""
        fault: ProtocolFault | None = None
        try:
            await see(link)
        except (Gone, Turned, asyncio.CancelledError):
            pass
        except TimeoutError:
            fault = ProtocolFault("08006", "the login took too long")
        except m.MalformedMessage as error:
            fault = ProtocolFault("08P01", str(error))
        except ProtocolFault as error:
            fault = error
        except OSError:  # who keeps the log has said why
            fault = ProtocolFault("58030", "the audit log of the server cannot be written, so nobody is let in")
        except Exception as error:
            _log.error("unforeseen %s", type(error).__name__)  # and nothing of its text
            fault = ProtocolFault("XX000", "dpsql itself failed; this is an error in dpsql")
        if fault is not None:
            link.send(replies.error_response(fault.fields(severity="FATAL")))
        link.close()

    async def _see_through(self, link: ClientLink) -> None:
        decoder = m.Decoder()
        async with asyncio.timeout(self._door.seconds):
            first = await opened(link, decoder, self._door)
            if isinstance(first, m.CancelRequest):
                await self._cancelled(first)
                return
            who = await entered(link, decoder, self._door, first)
        login = who.login
        if self._of_user[login.name] >= self._limits.of_one_user:
            self._door.recording.record(
                AuditEvent("refused login", login.name, login.address, outcome="53300", database=login.database)
            )
            raise ProtocolFault("53300", f'too many connections of user "{login.name}"', "close some of them")
        self._door.recording.record(AuditEvent("login", login.name, login.address, database=login.database))
        key = self._new_key()
        talking = Conversation(link, decoder, Asking(login, self._answering, self._door.recording), who.variables)
        self._of_user[login.name] += 1
        self._talking[key] = talking
        try:
            for name, value in who.variables.reported():
                link.send(replies.parameter_status(name, value))
            link.send(replies.backend_key_data(*key))
            if who.variables.made_up and who.variables.tells_notices:
                link.send(replies.notice_response(notice(MADE_UP)))
            await talking.talk()
        finally:
            del self._talking[key]
            self._of_user[login.name] -= 1
            self._of_user += Counter()  # users without a connection are forgotten
            self._door.recording.record(AuditEvent("end", login.name, login.address, database=login.database))

    def _new_key(self) -> tuple[int, int]:
        """What a client shows to stop a statement of this connection: nobody else guesses it."""
        while True:
            key = (secrets.randbelow(_NUMBERS - 1) + 1, secrets.randbelow(_NUMBERS))
            if key not in self._talking:
                return key


def require_tls(host: str, tls: ssl.SSLContext | None) -> None:
    """Raises Rejected DP903 for an address that other machines reach, without TLS."""
    if tls is None and not _is_loopback(host):
        raise reject(
            "DP903", f"connections from other machines need TLS, and {host} is open to them",
            help=["--tls-cert FILE --tls-key FILE", "or  --host 127.0.0.1"],
        )  # fmt: skip


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def tls_context(certificate: str, key: str, of_clients: str | None = None) -> ssl.SSLContext:
    """TLS 1.2 or newer, with this certificate and its key (PEM files). Raises Rejected DP903.

    of_clients: a file of authorities whose certificates clients may show, and of what they have revoked.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        reason = (
            (error.strerror or "unknown reason").lower()
            if not isinstance(error, ssl.SSLError)
            else "not PEM, or not a pair"
        )
        raise reject(
            "DP903", f"the certificate or its key cannot be read: {reason}", help=["--tls-cert FILE --tls-key FILE"]
        ) from None
    if of_clients is not None:
        _ask_for_certificates(context, of_clients)
    return context


def _ask_for_certificates(context: ssl.SSLContext, authorities: str) -> None:
    """Who shows one that does not come from there, or was revoked, does not get through the handshake. Whether one is
    needed, the file of users says."""
    try:
        context.load_verify_locations(authorities)
        revoked = "X509 CRL" in Path(authorities).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        reason = "not PEM" if isinstance(error, ssl.SSLError) else (error.strerror or "unknown reason").lower()
    else:
        if context.cert_store_stats()["x509_ca"]:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF if revoked else ssl.VERIFY_DEFAULT
            return
        reason = "no authority stands in it"
    raise reject(
        "DP903", f"the authorities of clients' certificates cannot be read: {reason}", help=["--tls-client-ca FILE"]
    )
