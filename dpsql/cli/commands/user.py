"""`dpsql user add | check`: the file of users of a server."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence

from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import printable

_LONGEST = 4096


def add(name: str, account: str | None, role: str, kind: str, databases: Sequence[str]) -> int:
    """Print the lines of a new user. The password is asked for on a terminal, else it is the first line that comes.

    Raises Rejected DP903.
    """
    from dpsql.server.people.lines import lines_for

    print(lines_for(name, _password(), account, role, kind, databases))
    return 0


def check(file: str) -> int:
    """Raises CannotOpen with every mistake."""
    from dpsql.server.people.users import load_users

    found = load_users(file).by_name
    lines = [f"{name}: {user.login.role}, account {user.login.account}" for name, user in found.items()]
    print(printable("\n".join([*lines, f"{file}: {len(found)} user{'' if len(found) == 1 else 's'}"])))
    return 0


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline(_LONGEST).removesuffix("\n").removesuffix("\r")
    first = getpass.getpass("password: ")
    if getpass.getpass("again: ") != first:
        raise reject("DP903", "the two passwords are not the same", help=["try again"])
    return first
