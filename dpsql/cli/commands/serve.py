"""`dpsql serve`: analysts connect as to PostgreSQL, and this process answers them until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.cli import exits
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.policy.issues import listed
from dpsql.policy.load import load_policy
from dpsql.server.audit import AuditLog, NoLog
from dpsql.server.catalogue.asking import CatalogueOfLogins
from dpsql.server.front.listen import Front, Limits, require_tls, tls_context
from dpsql.server.front.login import Door
from dpsql.server.front.route import Route
from dpsql.server.gateway import Gateway
from dpsql.server.health import Health, place
from dpsql.server.metrics import Metrics
from dpsql.server.people.users import Users, load_users
from dpsql.server.refusals import Refusals
from dpsql.server.workers.link import Starting, command, connected, started

if TYPE_CHECKING:
    from dpsql.server.web.doors import Address

    Consoles = tuple[Address | None, Address | None]


def run(
    file: str,
    users: str | None,
    host: str,
    port: int,
    certificate: str | None,
    key: str | None,
    client_ca: str | None,
    log: str | None,
    workers: str | None,
    health: str | None,
    http: str | None,
    custodian_http: str | None,
) -> int:
    """Raises dpsql.Error if policy, users, data, ledger or certificate cannot be opened."""
    policy = load_policy(file)
    found = load_users(users if users is not None else Path(file).with_name("users.yaml"))
    if (certificate is None) != (key is None):
        raise reject("DP903", "a certificate and its key are given together", help=["--tls-cert FILE --tls-key FILE"])
    tls = None if certificate is None or key is None else tls_context(certificate, key)
    wire = None
    if client_ca is not None:
        if certificate is None or key is None:
            raise reject("DP903", "clients show certificates under TLS alone", help=["--tls-cert FILE --tls-key FILE"])
        wire = tls_context(certificate, key, client_ca)
    elif found.with_certificates:
        raise reject(
            "DP903", f"{listed(found.with_certificates, 3)} cannot show a certificate: no authority is named",
            help=["--tls-client-ca FILE"],
        )  # fmt: skip
    require_tls(host, tls)
    for remark in _remarks(policy, found):
        exits.say(remark)
    consoles = _consoles(http, custodian_http, tls, found.provider is not None)
    listening = _Listening((host, port), None if health is None else place(health), consoles)
    metrics = Metrics(NoLog() if log is None else AuditLog(Path(log)))
    refusals = Refusals(metrics)
    door = Door(found, frozenset({policy.name}), refusals, tls, wire=wire)
    start = started(command(Path(file), policy.serving)) if workers is None else connected(Path(workers))
    return asyncio.run(_serve(start, policy, door, metrics, refusals, listening))


@dataclass(frozen=True, slots=True)
class _Listening:
    """Where clients, who watches, and browsers are listened to."""

    at: tuple[str, int]
    watched: tuple[str, int] | None
    consoles: Consoles | None


def _consoles(
    http: str | None, custodian_http: str | None, tls: ssl.SSLContext | None, vouched: bool = False
) -> Consoles | None:
    """Where the consoles listen, None for none. Raises Rejected DP903: what is no address, or an extra is missing.

    vouched: whether an identity provider lets people in.
    """
    if http is None and custodian_http is None:
        return None
    needed = [("server", ("markdown_it", "starlette", "uvicorn")), ("oidc", ("jwt", "cryptography") if vouched else ())]
    for extra, modules in needed:
        if any(find_spec(name) is None for name in modules):
            raise reject(
                "DP903", f"the console needs dpsql's extra `{extra}`, which is not installed",
                help=[f"pip install 'dpsql[{extra}]'"],
            )  # fmt: skip
    from dpsql.server.web.doors import read_address

    found = (
        None if http is None else read_address(http, "--http"),
        None if custodian_http is None else read_address(custodian_http, "--custodian-http"),
    )
    for address in found:
        if address is not None:
            require_tls(address.host, tls)
    return found


async def _serve(
    start: Starting, policy: Policy, door: Door, metrics: Metrics, refusals: Refusals, listening: _Listening
) -> int:
    stopping = asyncio.Event()
    if sys.platform != "win32":  # there Ctrl-C ends it all the same
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    serving = policy.serving
    gateway = await Gateway.open(policy, start)
    catalogue = CatalogueOfLogins(gateway.policy, policy.name)
    health = Health(metrics, gateway.spent)
    try:
        limits = Limits(connections=serving.connections, of_one_user=serving.connections_per_user)
        route = Route(gateway, catalogue)
        front = Front(door, route, limits)
        metrics.connections = lambda: front.connections
        metrics.waiting, metrics.restarted = lambda: gateway.pool.waiting, lambda: gateway.pool.restarted
        host, _ = listening.at
        found = await _listening(front.start, listening.at, "--port 5433")
        if listening.watched is not None:
            port = await _listening(health.start, listening.watched, "--health 127.0.0.1:9188")
            exits.say(f"health: http://{_address(listening.watched[0], port)}/healthz and /metrics")
        web = None
        if listening.consoles is not None:
            from dpsql.server.web.doors import Web
            from dpsql.server.web.pages.reference import Place
            from dpsql.server.web.site import House

            house = House(door, route, gateway.policy, limits)
            web = Web(house, front, Place(host, found, policy.name, door.tls is not None), refusals)
            for url in await web.start(*listening.consoles):
                print(f"console: {url}", flush=True)
        print(_where(policy, door.tls, host, found), flush=True)
        await stopping.wait()
        exits.say("no connections are taken any more; what runs comes to its end")
        await health.stop()
        await asyncio.gather(front.stop(), *([web.stop()] if web is not None else []))
    finally:
        catalogue.close()
        await gateway.close()
    return exits.OK


async def _listening(start: Callable[[str, int], Awaitable[int]], at: tuple[str, int], repair: str) -> int:
    """The port that is listened at. Raises Rejected DP903 for one that cannot be."""
    try:
        return await start(*at)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise reject("DP903", f"{_address(*at)} cannot be listened at: {reason}", help=[repair]) from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _where(policy: Policy, tls: ssl.SSLContext | None, host: str, port: int) -> str:
    """How to connect."""
    secure = "" if tls is None else "?sslmode=require"
    return one_line(f"ready: psql postgresql://NAME@{_address(host, port)}/{policy.name}{secure}")


def _remarks(policy: Policy, users: Users) -> list[str]:
    """Users whose account the policy does not name, so that they share one."""
    return [
        one_line(f"{name} is charged to the shared account: the policy names no account {user.login.account}")
        for name, user in users.by_name.items()
        if policy.account(user.login.account) != user.login.account
    ]
