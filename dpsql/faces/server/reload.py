"""What a server reads anew while it runs: the file of users, and the certificate with its key.

*Claim.* After a reload nobody is answered as a login that is gone or has changed, but for the statement that runs.
*Why.* Logins that differ in anything, secret and ceilings among them, lose connections and sessions; a login under way
is checked against the secrets of the moment when it ends (`front/login.py`, `web/entrance.py`). *When it would be
false.* If a login were kept elsewhere than in a connection or a session. *Tested by* tests/faces/server/test_reload.py.
"""

from __future__ import annotations

import ssl
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.layout import one_line
from dpsql.faces.server.front.listen import tls_context
from dpsql.faces.server.front.login import Door
from dpsql.faces.server.people.users import Users, load_users


class Holding(Protocol):
    """Who holds logins: connections or sessions."""

    def let_go(self, names: Collection[str]) -> None:
        """End those of these names as soon as nothing of theirs runs."""
        ...


@dataclass(frozen=True, slots=True)
class Files:
    """users: who may log in. databases: where, see `Users.admitted`. certificate, key: of TLS; None without. client_ca:
    whose certificates clients may show."""

    users: Path
    databases: Mapping[str, str]
    certificate: str | None = None
    key: str | None = None
    client_ca: str | None = None

    def read_users(self) -> Users:
        """Raises CannotOpen."""
        return load_users(self.users).admitted(self.databases)

    def tls(self) -> ssl.SSLContext | None:
        """Raises Rejected DP903."""
        return None if self.certificate is None or self.key is None else tls_context(self.certificate, self.key)

    def wire(self) -> ssl.SSLContext | None:
        """TLS that asks clients for their certificates; None where there is no authority. Raises Rejected DP903."""
        if self.certificate is None or self.key is None or self.client_ca is None:
            return None
        return tls_context(self.certificate, self.key, self.client_ca)

    def exposed(self) -> Iterator[str]:
        """What holds secrets and is readable by everybody on this machine, each with its repair."""
        for path in (self.users, *([] if self.key is None else [Path(self.key)])):
            if path.stat().st_mode & stat.S_IROTH:
                yield one_line(f"{path} holds secrets, and every user of this machine can read it:  chmod o= {path}")


def reload(door: Door, files: Files, holding: Sequence[Holding]) -> list[str]:
    """Read all anew; what came of it, a line each. What cannot be read stays as it was."""
    said = []
    try:
        said.append(_users_anew(door, files, holding))
    except (Error, OSError) as error:
        said.append(one_line(f"the file of users is not read anew, and the old users stay: {_why(error)}"))
    if door.tls is not None and files.certificate is not None and files.key is not None:
        try:
            files.tls()  # looked at by itself first: a context that is in use keeps a whole pair
            asking = files.wire()
            door.tls.load_cert_chain(files.certificate, files.key)
            if door.wire is not None and asking is not None:
                # Another context: the old one would go on trusting whom it trusted, and resume what it had begun.
                door.wire.context = asking
            said.append("the certificate was read anew, for new connections")
        except (Error, OSError) as error:
            said.append(one_line(f"the certificate is not read anew, and the old one stays: {_why(error)}"))
    return said


def _users_anew(door: Door, files: Files, holding: Sequence[Holding]) -> str:
    read = files.read_users()
    if read.provider != door.users.provider:
        return "the file of users names another provider below oidc: the old users stay, until the server starts anew"
    found, before = read.by_name, door.users.by_name
    door.users.by_name = found
    changed = [name for name, user in before.items() if found.get(name) != user]
    for each in holding:
        each.let_go(changed)
    rest = f"; changed or gone: {', '.join(changed)}" if changed else "; nobody changed"
    return one_line(f"the file of users was read anew: {len(found)} user{'' if len(found) == 1 else 's'}{rest}")


def _why(error: Exception) -> str:
    return error.diagnostics[0].message if isinstance(error, Error) else "it cannot be read"
