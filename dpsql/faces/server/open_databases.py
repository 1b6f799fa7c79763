"""Opens the databases of a server: one for each policy, and one of made-up rows beside it or in its place.

*Claim.* A database of made-up rows has no worker that could open data or ledger. *Why.* Its only worker is started to
make up rows, by this process and not by the data's user, and is told names and types at most. *When it would be false.*
If it were given another's workers. *Tested by* tests/faces/server/test_opening.py,
tests/deep/faces/server/test_databases.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.faces.server.catalogue.catalogue_asking import CatalogueOfLogins
from dpsql.faces.server.databases import Database, Databases, name_of_made_up, require_distinct
from dpsql.faces.server.front.route import Route
from dpsql.faces.server.gateway import Gateway
from dpsql.faces.server.workers.worker_link import Starting, command, connected, started
from dpsql.faces.server.workers.worker_messages import Ready
from dpsql.policy.load import load_policy
from dpsql.policy.tools.decisions import decided

MadeUp = Literal["none", "beside", "only"]


@dataclass(frozen=True, slots=True)
class _Of:
    """A policy of the server. socket: of its data's workers; None: they are started here."""

    file: Path
    policy: Policy
    socket: Path | None

    @property
    def made_up(self) -> str:
        """What the database is called that is made up of it."""
        return name_of_made_up(self.policy.name)

    def start(self) -> Starting:
        """Its workers over the data."""
        return connected(self.socket) if self.socket else started(command(self.file, self.policy.serving))

    def start_made_up(self, known: Catalogue) -> Starting:
        """One over made-up rows. known: names and types of the data, as far as they are known."""
        arguments = command(self.file, self.policy.serving, self.made_up)
        return started(arguments, Ready(self.policy.hash, known))


@dataclass(frozen=True, slots=True)
class Planned:
    """The databases that a server will have. made_up: whether a policy has one of made-up rows, too, or only that."""

    of: Sequence[_Of]
    made_up: MadeUp

    @property
    def true(self) -> Sequence[Policy]:
        """The policies whose data is asked."""
        return [] if self.made_up == "only" else [one.policy for one in self.of]

    @property
    def policies(self) -> Sequence[Policy]:
        """All of them."""
        return [one.policy for one in self.of]

    @property
    def names(self) -> Mapping[str, str]:
        """Each database, true ones first → the name of its policy."""
        made_up = {} if self.made_up == "none" else {one.made_up: one.policy.name for one in self.of}
        return {policy.name: policy.name for policy in self.true} | made_up

    @property
    def hashes(self) -> Mapping[str, str]:
        """Each database → the hash of its policy."""
        made_up = {} if self.made_up == "none" else {one.made_up: one.policy.hash for one in self.of}
        return {policy.name: policy.hash for policy in self.true} | made_up


def planned(files: Sequence[str], sockets: Sequence[str], made_up: MadeUp) -> Planned:
    """Read the policies. sockets: of the workers that others have started, one for each policy, or none.

    Raises CannotOpen: a policy, or two databases of one name; Rejected DP903: another number of sockets.
    """
    if sockets and len(sockets) != (0 if made_up == "only" else len(files)):
        raise reject(
            "DP903", "each policy whose data is asked has workers of its own: a socket for each, in their order",
            help=[" ".join(f"--workers {Path(file).stem}.sock" for file in files)],
        )  # fmt: skip
    own: Sequence[Path | None] = [Path(socket) for socket in sockets] or [None] * len(files)
    of = [_Of(Path(file), load_policy(file), socket) for file, socket in zip(files, own, strict=True)]
    found = Planned(of, made_up)
    for policy in found.true:
        decided(policy)
    names = [policy.name for policy in found.true] + [one.made_up for one in found.of if made_up != "none"]
    require_distinct(names, "name:  in one of the policies")
    return found


async def opened(plan: Planned, stack: AsyncExitStack) -> tuple[Databases, Sequence[Gateway]]:
    """Start the workers; the stack ends them. Raises CannotOpen."""
    gateways: list[Gateway] = []
    made_up: list[Gateway] = []
    for one in plan.of:
        known = Catalogue(())
        if plan.made_up != "only":
            gateways.append(await Gateway.open(one.policy, one.start()))
            stack.push_async_callback(gateways[-1].close)
            known = gateways[-1].catalogue
        if plan.made_up != "none":
            start, policy = one.start_made_up(known), replace(one.policy, name=one.made_up)
            made_up.append(await Gateway.open(policy, start, made_up=True))
            stack.push_async_callback(made_up[-1].close)
    databases = []
    for gateway in (*gateways, *made_up):
        catalogue = CatalogueOfLogins(gateway.policy, made_up=gateway in made_up)
        stack.callback(catalogue.close)
        databases.append(Database(gateway.policy, Route(gateway, catalogue), gateway in made_up))
    return Databases(databases), (*gateways, *made_up)
