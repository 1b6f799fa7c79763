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
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpsql import __version__
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.serving import Serving
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.faces.cli import exits
from dpsql.faces.server.audit_log import AuditLog, NoLog, reason
from dpsql.faces.server.front.listen import ConnectionLimits, Front, require_tls
from dpsql.faces.server.front.login import AskingForCertificates, Door
from dpsql.faces.server.front.patience import IPNetwork
from dpsql.faces.server.gateway import spent_in_all
from dpsql.faces.server.health import Health, place
from dpsql.faces.server.metrics import Metrics
from dpsql.faces.server.open_databases import MadeUp, Planned, opened, planned
from dpsql.faces.server.people.users import Users
from dpsql.faces.server.readiness import tell_ready
from dpsql.faces.server.refusal_counts import Refusals
from dpsql.faces.server.reload import Files, Holding, reload
from dpsql.faces.server.statements import Recording
from dpsql.faces.server.workers.worker_pool import MOST_AT_ONCE
from dpsql.policy.issues import listed

if TYPE_CHECKING:
    from dpsql.faces.server.web.doors import Address

    Consoles = tuple[Address | None, Address | None]

_SWITCH: Final = 0.0005
"""Seconds that a thread which plans may go on before others have their turn, who need less."""
_TO_TAKE_AN_ANSWER: Final = 10.0
"""Seconds, after the last of `answers_at`, until a server that stops lets go of whoever does not take his."""


def run(
    files: Sequence[str],
    users: str | None,
    host: str,
    port: int,
    certificate: str | None,
    key: str | None,
    client_ca: str | None,
    log: str | None,
    workers: Sequence[str],
    health: str | None,
    http: str | None,
    custodian_http: str | None,
    made_up: MadeUp,
    tls_only: bool = False,
    proxies: Sequence[str] = (),
) -> int:
    """Raises dpsql.Error if a policy, its data or ledger, users, the certificate or the log cannot be opened."""
    plan = planned(files, workers, made_up)
    of_users = Path(users) if users is not None else Path(files[0]).with_name("users.yaml")
    own = Files(of_users, plan.names, certificate, key, client_ca)
    found = own.read_users()
    if (certificate is None) != (key is None):
        raise reject("DP903", "a certificate and its key are given together", help=["--tls-cert FILE --tls-key FILE"])
    tls, wire = own.tls(), own.wire()
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
    for remark in (*_remarks(plan.true, found), *own.exposed()):
        exits.say(remark)
    consoles = _consoles(http, custodian_http, tls, found.provider is not None)
    listening = _Listening((host, port), None if health is None else place(health), consoles)
    of_made_up = frozenset(plan.names) - {policy.name for policy in plan.true}
    metrics = Metrics(_recording(log), of_made_up, version=__version__, policies=plan.hashes)
    refusals = Refusals(metrics)
    door = Door(
        found,
        refusals,
        tls,
        made_up=of_made_up,
        wire=None if wire is None else AskingForCertificates(wire),
        tls_only=tls_only,
        proxies=_networks(proxies),
    )
    exits.say(_started(plan, door))
    # What is said to whoever started this would stand among the lines of a log on standard output.
    show = exits.say if log == "-" else lambda text: print(text, flush=True)
    sys.setswitchinterval(_SWITCH)
    return asyncio.run(_serve(plan, door, metrics, refusals, listening, own, show))


def _networks(proxies: Sequence[str]) -> tuple[IPNetwork, ...]:
    """Raises Rejected DP903."""
    try:
        return tuple(ip_network(text) for text in proxies)
    except ValueError:
        raise reject(
            "DP903", f"--proxy: {listed(proxies, 3)}: not all are addresses or networks", help=["--proxy 10.0.0.0/28"]
        ) from None


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


def _started(plan: Planned, door: Door) -> str:
    """What begins, for the log of the custodian."""
    users = len(door.users.by_name)
    databases = [
        f"policy {policy.name} {policy.hash[:12]}, {_counted(policy.serving.workers, 'worker')}, "
        f"{_new_answers(policy.serving):,} new answers a minute at the most"
        for policy in plan.true
    ]
    databases += [f"made up {name} {plan.hashes[name][:12]}" for name in plan.names if name in door.made_up]
    tls = "no TLS" if door.tls is None else "TLS required" if door.tls_only else "TLS, required from other machines"
    return one_line(f"dpsql {__version__}: {'; '.join(databases)}; {_counted(users, 'user')}, {tls}")


def _new_answers(serving: Serving) -> int:
    """How many may leave in a minute, if all are ready at the first moment: a round of each worker after the other."""
    return int(60 / float(serving.answers_at[0]) * serving.workers * MOST_AT_ONCE)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


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
    from dpsql.faces.server.web.doors import read_address

    found = (
        None if http is None else read_address(http, "--http"),
        None if custodian_http is None else read_address(custodian_http, "--custodian-http"),
    )
    for address in found:
        if address is not None:
            require_tls(address.host, tls)
    return found


async def _serve(
    plan: Planned, door: Door, metrics: Metrics, refusals: Refusals, listening: _Listening, files: Files,
    show: Callable[[str], object],
) -> int:  # fmt: skip
    stopping = asyncio.Event()
    if sys.platform != "win32":  # there Ctrl-C ends it all the same
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    serving = [policy.serving for policy in plan.policies]
    async with AsyncExitStack() as stack:
        databases, gateways = await opened(plan, stack)
        pools = {gateway.policy.name: gateway.pool for gateway in gateways}
        over_data = {name: pool for name, pool in pools.items() if name not in door.made_up}
        health = Health(metrics, lambda: spent_in_all(gateways), 10 + max(g.pool.pace.last for g in gateways))
        limits = ConnectionLimits(
            connections=sum(s.connections for s in serving), of_one_user=sum(s.connections_per_user for s in serving)
        )
        front = Front(door, databases, limits)
        metrics.connections = lambda: {name: front.connections[name] for name in databases.by_name}
        metrics.waiting = lambda: {name: pool.waiting for name, pool in pools.items()}
        metrics.restarted = lambda: {name: pool.restarted for name, pool in pools.items()}
        metrics.workers = lambda: {name: pool.size for name, pool in over_data.items()}
        metrics.free = lambda: {name: pool.free for name, pool in over_data.items()}
        host, _ = listening.at
        found = await _listening(front.start, listening.at, "--port 5433")
        if listening.watched is not None:
            port = await _listening(health.start, listening.watched, "--health 127.0.0.1:9188")
            exits.say(f"health: http://{_address(listening.watched[0], port)}/healthz and /metrics")
        web = None
        if listening.consoles is not None:
            from dpsql.faces.server.web.doors import Web
            from dpsql.faces.server.web.pages.reference import WireAddress
            from dpsql.faces.server.web.site import House

            web = Web(House(door, databases, limits), front, WireAddress(host, found, door.tls is not None), refusals)
            for whose, url in await web.start(*listening.consoles):
                show(f"{whose} console: {url}")
        holding: list[Holding] = [front, *([web] if web is not None else [])]
        if sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: _say_all(reload(door, files, holding)))
        show("\n".join(_where(name, door.tls, host, found) for name in databases.by_name))
        tell_ready()
        await stopping.wait()
        exits.say("no connections are taken any more; what runs comes to its end")
        for gateway in gateways:
            gateway.begin_nothing()
        await health.stop()
        last = float(max(s.answers_at[-1] for s in serving)) + _TO_TAKE_AN_ANSWER
        await asyncio.gather(front.stop(last), *([web.stop(last)] if web is not None else []))
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
