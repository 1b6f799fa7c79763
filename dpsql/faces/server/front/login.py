"""From the first byte to a login: TLS, the start of the connection, and SCRAM. Whatever is wrong ends the connection.

*Claim.* The account that is charged follows from the name whose secret or certificate was shown, and from nothing else
that a client sends; where the file of users wants both, both were. *Why.* A certificate was verified by its authority
in the handshake, and its one common name is compared with the file's, after the secret's proof where there is a secret.
`Login` comes from the file of users under that name; parameters of the start, SET and options fill `Variables`, which
has neither name nor account; the database is one of those that the file gives that name. *When it would be false.* If a
setting were read as a name; if a listener asked for certificates and did not verify them. *Tested by*
tests/faces/server/front/test_login.py, test_certificates.py.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from dpsql.faces.server.front.client_link import ClientLink
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.patience import IPNetwork, Patience, parsed_address
from dpsql.faces.server.front.variables import Variables, startup_options
from dpsql.faces.server.people.users import Users
from dpsql.faces.server.statements import AuditEvent, Login, Recording
from dpsql.faces.server.wire import messages as m
from dpsql.faces.server.wire import replies
from dpsql.faces.server.wire.proxy_header import proxy_header
from dpsql.faces.server.wire.scram import MECHANISM, Exchange, Failed

NEWEST_MINOR: Final = 0
"""Of protocol 3."""
_NOT_SETTINGS: Final = frozenset({"user", "database", "options", "replication"})


@dataclass(slots=True)
class AskingForCertificates:
    """TLS that asks clients for certificates: another context, once its files were read anew."""

    context: ssl.SSLContext


@dataclass(frozen=True, slots=True)
class Door:
    """What every login needs. tls: None where there is none. tls_only: from this machine, too. made_up: databases whose
    rows are.

    sleep: waits so many seconds. wire: TLS that asks clients for certificates, over PostgreSQL's protocol alone, for
    browsers would ask whoever opens a page; None: as `tls`. proxies: networks whose word is taken for where clients
    come from.
    """

    users: Users
    recording: Recording
    tls: ssl.SSLContext | None = None
    patience: Patience = field(default_factory=Patience)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    seconds: float = 60.0
    wire: AskingForCertificates | None = None
    tls_only: bool = False
    made_up: frozenset[str] = frozenset()
    proxies: tuple[IPNetwork, ...] = ()

    def is_proxy(self, address: str) -> bool:
        """Whether who connects from there says where his client comes from."""
        found = parsed_address(address)
        return found is not None and any(found in network for network in self.proxies)


@dataclass(frozen=True, slots=True)
class Entered:
    """Somebody has logged in."""

    login: Login
    variables: Variables


class Turned(Exception):
    """The connection is not gone on with; the client was told why, if he can be told."""


async def opened(link: ClientLink, decoder: m.Decoder, door: Door) -> m.Startup | m.CancelRequest:
    """The first packet that is no request for TLS or GSSAPI. Raises Gone, Malformed, Turned."""
    if door.is_proxy(link.address):
        await _behind_proxy(link, decoder)
    secure = asked_gss = False
    while True:
        first = await _first(link, decoder)
        match first:
            case m.SslRequest():
                if secure or not decoder.is_empty:
                    raise m.MalformedMessage("bytes came before TLS began")
                if door.tls is None:
                    link.send(b"N")
                    if not is_local(link.address):
                        raise Turned
                    continue
                link.send(b"S")
                await link.start_tls(door.tls if door.wire is None else door.wire.context, door.seconds)
                secure = True
            case m.GssRequest():
                if asked_gss or not decoder.is_empty:
                    raise m.MalformedMessage("bytes came before GSSAPI was answered")
                asked_gss = True
                link.send(b"N")
            case m.CancelRequest():
                return first
            case m.Startup():
                if not secure and (door.tls_only or not is_local(link.address)):
                    who = "connections" if door.tls_only else "connections from other machines"
                    raise ProtocolFault("28000", f"{who} use TLS", "sslmode=require, or verify-full")
                return first


async def _behind_proxy(link: ClientLink, decoder: m.Decoder) -> None:
    """Learn from where the client comes. Raises Gone, Malformed."""
    data = b""
    while (found := proxy_header(data)) is None:
        data += await link.receive()
    link.said_address, length = found
    decoder.feed(data[length:])


async def _first(link: ClientLink, decoder: m.Decoder) -> m.First:
    while (found := decoder.first()) is None:
        decoder.feed(await link.receive())
    return found


def is_local(address: str) -> bool:
    """Whether a connection comes from this machine."""
    found = parsed_address(address)
    return found is not None and found.is_loopback


async def entered(link: ClientLink, decoder: m.Decoder, door: Door, startup: m.Startup) -> Entered:
    """Ask for the secret, and read what the client wants to begin with. Raises Gone, Malformed, Fault."""
    given = startup.parameters
    unknown = [name for name in given if name.startswith("_pq_.")]
    if startup.minor > NEWEST_MINOR or unknown:
        link.send(replies.negotiate_protocol_version(NEWEST_MINOR, unknown))
    name = given.get("user", "")
    if not name:
        raise ProtocolFault("28000", "no user name was given")
    login = await _proven(link, decoder, door, name)
    link.send(replies.authentication_ok())
    decoder.logged_in()
    link.logged_in()
    database = given.get("database") or name
    try:
        return _begun(login, door, given, database)
    except ProtocolFault as fault:
        wrong = database[:100]
        door.recording.record(AuditEvent("refused login", name, login.address, outcome=fault.sqlstate, database=wrong))
        raise


def _begun(login: Login, door: Door, given: dict[str, str], database: str) -> Entered:
    """The login in its database, and what holds when the conversation begins. Raises Fault for what there is not."""
    if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise ProtocolFault("0A000", "there is no replication here")
    try:
        login = login.at(database)
    except KeyError:  # of a database that is there for others, nothing else is said
        hint = f"connect to  {', '.join(login.databases)}" if login.databases else ""
        raise ProtocolFault("3D000", f'database "{database[:100]}" does not exist', hint) from None
    return Entered(login, _variables(login, given, database in door.made_up))


async def _proven(link: ClientLink, decoder: m.Decoder, door: Door, name: str) -> Login:
    """Who it is, once he has shown that he knows the secret, and the certificate that he may need. Raises Fault.

    An unknown name takes the same road, and so does one whose certificate, without a secret, was not shown.
    """
    address = link.address
    if (login := door.users.by_certificate(name, link.common_name)) is not None:
        return replace(login, address=address)
    secret = door.users.secret_of(name)
    exchange = Exchange(secret)
    link.send(replies.authentication_sasl(MECHANISM))
    try:
        first = _initial(await _password(link, decoder))
        link.send(replies.authentication_sasl_continue(exchange.first(first)))
        proof = await _password(link, decoder)
        if wait := door.patience.try_begins(name, address):  # else the try ends before another one begins
            await door.sleep(wait)
        last = exchange.final(proof)
        login = door.users.login(name, link.common_name)
        if login is None or door.users.secret_of(name) != secret:  # the file was read anew
            raise Failed(malformed=False)
    except Failed as failed:
        door.recording.record(AuditEvent("refused login", name[:100], address, outcome="28P01"))
        if failed.malformed:
            raise ProtocolFault("08P01", "malformed SCRAM message") from None
        raise ProtocolFault("28P01", f'password authentication failed for user "{name[:100]}"') from None
    door.patience.try_succeeded(name, address)
    link.send(replies.authentication_sasl_final(last))
    return replace(login, address=address)


async def _password(link: ClientLink, decoder: m.Decoder) -> bytes:
    while (found := decoder.later()) is None:
        decoder.feed(await link.receive())
    if not isinstance(found, m.Password):
        raise m.MalformedMessage("a password was expected")
    return found.data


def _initial(data: bytes) -> bytes:
    """The client's first message out of SASLInitialResponse. Raises Failed."""
    mechanism, end, rest = data.partition(b"\0")
    if not end or mechanism != MECHANISM.encode() or len(rest) < 4:
        raise Failed(malformed=True)
    if int.from_bytes(rest[:4], "big") != len(rest) - 4:
        raise Failed(malformed=True)
    return rest[4:]


def _variables(login: Login, given: dict[str, str], made_up: bool) -> Variables:
    """What holds when the conversation begins: the login's defaults, then options, then parameters. Raises Fault."""
    found = Variables(login.defaults, login.defaults, user=login.name, made_up=made_up)
    own = startup_options(given.get("options", ""))
    own += [(key.lower(), value) for key, value in given.items() if key not in _NOT_SETTINGS and key[:5] != "_pq_."]
    for key, value in own:
        found = found.set(key, value)
    return found.as_opened()
