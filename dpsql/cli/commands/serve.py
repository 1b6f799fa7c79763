"""`dpsql serve`: analysts connect as to PostgreSQL, and this process answers them until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.cli import exits
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.server.audit import AuditLog, NoLog
from dpsql.server.front.listen import Front, Limits, require_tls, tls_context
from dpsql.server.front.login import Door
from dpsql.server.gateway import spent_in_all
from dpsql.server.health import Health, place
from dpsql.server.metrics import Metrics
from dpsql.server.opening import MadeUp, Planned, opened, planned
from dpsql.server.people.users import Users, load_users
from dpsql.server.refusals import Refusals

if TYPE_CHECKING:
    from dpsql.server.web.doors import Address

    Consoles = tuple[Address | None, Address | None]


def run(
    files: Sequence[str],
    users: str | None,
    host: str,
    port: int,
    certificate: str | None,
    key: str | None,
    log: str | None,
    workers: Sequence[str],
    health: str | None,
    http: str | None,
    custodian_http: str | None,
    made_up: MadeUp,
) -> int:
    """Raises dpsql.Error if a policy, its data or ledger, users or the certificate cannot be opened."""
    plan = planned(files, workers, made_up)
    people = load_users(users if users is not None else Path(files[0]).with_name("users.yaml")).admitted(plan.names)
    if (certificate is None) != (key is None):
        raise reject("DP903", "a certificate and its key are given together", help=["--tls-cert FILE --tls-key FILE"])
    tls = None if certificate is None or key is None else tls_context(certificate, key)
    require_tls(host, tls)
    for remark in _remarks(plan.true, people):
        exits.say(remark)
    listening = _Listening(
        (host, port), None if health is None else place(health), _consoles(http, custodian_http, tls)
    )
    of_made_up = frozenset(plan.names) - {policy.name for policy in plan.true}
    metrics = Metrics(NoLog() if log is None else AuditLog(Path(log)), of_made_up)
    refusals = Refusals(metrics)
    door = Door(people, refusals, tls, made_up=of_made_up)
    return asyncio.run(_serve(plan, door, metrics, refusals, listening))


@dataclass(frozen=True, slots=True)
class _Listening:
    """Where clients, who watches, and browsers are listened to."""

    at: tuple[str, int]
    watched: tuple[str, int] | None
    consoles: Consoles | None


def _consoles(http: str | None, custodian_http: str | None, tls: ssl.SSLContext | None) -> Consoles | None:
    """Where the consoles listen, None for none. Raises Rejected DP903: what is no address, or no extra `server`."""
    if http is None and custodian_http is None:
        return None
    if any(find_spec(name) is None for name in ("markdown_it", "starlette", "uvicorn")):
        raise reject(
            "DP903", "the console needs dpsql's extra `server`, which is not installed",
            help=["pip install 'dpsql[server]'"],
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


async def _serve(plan: Planned, door: Door, metrics: Metrics, refusals: Refusals, listening: _Listening) -> int:
    stopping = asyncio.Event()
    if sys.platform != "win32":  # there Ctrl-C ends it all the same
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    serving = [policy.serving for policy in plan.policies]
    async with AsyncExitStack() as stack:
        databases, gateways = await opened(plan, stack)
        health = Health(metrics, lambda: spent_in_all(gateways))
        limits = Limits(
            connections=sum(s.connections for s in serving), of_one_user=sum(s.connections_per_user for s in serving)
        )
        front = Front(door, databases, limits)
        metrics.connections = lambda: {name: front.connections[name] for name in databases.by_name}
        metrics.waiting = lambda: {g.policy.name: g.pool.waiting for g in gateways}
        metrics.restarted = lambda: {g.policy.name: g.pool.restarted for g in gateways}
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

            web = Web(House(door, databases, limits), front, Place(host, found, door.tls is not None), refusals)
            for url in await web.start(*listening.consoles):
                print(f"console: {url}", flush=True)
        print("\n".join(_where(name, door.tls, host, found) for name in databases.by_name), flush=True)
        await stopping.wait()
        exits.say("no connections are taken any more; what runs comes to its end")
        await health.stop()
        await asyncio.gather(front.stop(), *([web.stop()] if web is not None else []))
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


def _where(database: str, tls: ssl.SSLContext | None, host: str, port: int) -> str:
    """How to connect."""
    secure = "" if tls is None else "?sslmode=require"
    return one_line(f"ready: psql postgresql://NAME@{_address(host, port)}/{database}{secure}")


def _remarks(policies: Sequence[Policy], users: Users) -> list[str]:
    """Users whose account a policy does not name, so that they share one there."""
    return [
        one_line(
            f"{name} is charged to the shared account of {policy.name}, which names no account {user.login.account}"
        )
        for policy in policies
        for name, user in users.by_name.items()
        if policy.name in user.login.databases and policy.account(user.login.account) != user.login.account
    ]
