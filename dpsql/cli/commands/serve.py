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
from typing import TYPE_CHECKING, Final

from dpsql import __version__
from dpsql.cli import exits
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.policy.issues import listed
from dpsql.policy.load import load_policy
from dpsql.server.audit import AuditLog, NoLog, reason
from dpsql.server.catalogue.asking import CatalogueOfLogins
from dpsql.server.front.listen import Front, Limits, require_tls
from dpsql.server.front.login import Door
from dpsql.server.front.route import Route
from dpsql.server.gateway import Gateway
from dpsql.server.health import Health, place
from dpsql.server.metrics import Metrics
from dpsql.server.people.users import Users
from dpsql.server.refusals import Refusals
from dpsql.server.reload import Files, Holding, reload
from dpsql.server.statements import Recording
from dpsql.server.workers.link import Starting, command, connected, started

if TYPE_CHECKING:
    from dpsql.server.web.doors import Address

    Consoles = tuple[Address | None, Address | None]

_TO_TAKE_AN_ANSWER: Final = 10.0
"""Seconds, after the last of `answers_at`, until a server that stops lets go of whoever does not take his."""


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
    tls_only: bool = False,
) -> int:
    """Raises dpsql.Error if policy, users, data, ledger, certificate or log cannot be opened."""
    policy = load_policy(file)
    files = Files(Path(users) if users is not None else Path(file).with_name("users.yaml"), certificate, key, client_ca)
    found = files.read_users()
    if (certificate is None) != (key is None):
        raise reject("DP903", "a certificate and its key are given together", help=["--tls-cert FILE --tls-key FILE"])
    tls, wire = files.tls(), files.wire()
    if client_ca is not None and wire is None:
        raise reject("DP903", "clients show certificates under TLS alone", help=["--tls-cert FILE --tls-key FILE"])
    if client_ca is None and found.with_certificates:
        raise reject(
            "DP903", f"{listed(found.with_certificates, 3)} cannot show a certificate: no authority is named",
            help=["--tls-client-ca FILE"],
        )  # fmt: skip
    if tls_only and tls is None:
        raise reject("DP903", "--require-tls needs a certificate", help=["--tls-cert FILE --tls-key FILE"])
    require_tls(host, tls)
    for remark in (*_remarks(policy, found), *files.exposed()):
        exits.say(remark)
    consoles = _consoles(http, custodian_http, tls, found.provider is not None)
    listening = _Listening((host, port), None if health is None else place(health), consoles)
    build = (("version", __version__), ("policy", policy.hash))
    metrics = Metrics(_recording(log), build=build)
    refusals = Refusals(metrics)
    door = Door(found, frozenset({policy.name}), refusals, tls, wire=wire, tls_only=tls_only)
    exits.say(_started(policy, door))
    start = started(command(Path(file), policy.serving)) if workers is None else connected(Path(workers))
    # What is said to whoever started this would stand among the lines of a log on standard output.
    show = exits.say if log == "-" else lambda text: print(text, flush=True)
    return asyncio.run(_serve(start, policy, door, metrics, refusals, listening, files, show))


def _recording(log: str | None) -> Recording:
    """Raises Rejected DP903: the log cannot be written."""
    if log is None:
        return NoLog()
    found = AuditLog(None if log == "-" else Path(log))
    try:
        found.require()
    except OSError as error:
        shown = "on standard output" if log == "-" else repr(log)
        raise reject(
            "DP903", one_line(f"the audit log {shown} cannot be written: {reason(error)}"),
            help=["--audit-log FILE, in a folder that is there", "--audit-log -  for standard output"],
        ) from None  # fmt: skip
    return found


def _started(policy: Policy, door: Door) -> str:
    """What begins, for the log of the custodian."""
    count, users = policy.serving.workers, len(door.users.by_name)
    tls = "no TLS" if door.tls is None else "TLS required" if door.tls_only else "TLS, required from other machines"
    return one_line(
        f"dpsql {__version__}: policy {policy.name} {policy.hash[:12]}, {count} worker{'' if count == 1 else 's'}, "
        f"{users} user{'' if users == 1 else 's'}, {tls}"
    )


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
    start: Starting, policy: Policy, door: Door, metrics: Metrics, refusals: Refusals, listening: _Listening,
    files: Files, show: Callable[[str], object],
) -> int:  # fmt: skip
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
        pool = gateway.pool
        metrics.waiting, metrics.restarted = lambda: pool.waiting, lambda: pool.restarted
        metrics.workers, metrics.free = lambda: pool.size, lambda: pool.free
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
            for whose, url in await web.start(*listening.consoles):
                show(f"{whose} console: {url}")
        holding: list[Holding] = [front, *([web] if web is not None else [])]
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: _say_all(reload(door, files, holding)))
        show(_where(policy, door.tls, host, found))
        await stopping.wait()
        exits.say("no connections are taken any more; what runs comes to its end")
        gateway.begin_nothing()
        await health.stop()
        last = float(serving.answers_at[-1]) + _TO_TAKE_AN_ANSWER
        await asyncio.gather(front.stop(last), *([web.stop(last)] if web is not None else []))
    finally:
        catalogue.close()
        await gateway.close()
    return exits.OK


def _say_all(lines: list[str]) -> None:
    for line in lines:
        exits.say(line)


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
