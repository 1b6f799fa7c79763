"""`dpsql user add | check`: the file of users of a server."""

from __future__ import annotations

import getpass
import os
import stat
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import printable

if TYPE_CHECKING:
    from dpsql.faces.server.statements import Login

_LONGEST = 4096


def add(name: str, account: str | None, role: str, kind: str, databases: Sequence[str]) -> int:
    """Print the lines of a new user, in an empty file below `users:`.

    The password is asked for on a terminal, else it is the first line that comes.

    Raises Rejected DP903.
    """
    from dpsql.faces.server.people.lines import lines_for

    lines = lines_for(name, _password(), account, role, kind, databases)
    print(f"users:\n{lines}" if _begins_a_file() else lines)
    return 0


def check(file: str) -> int:
    """Raises CannotOpen with every mistake."""
    from dpsql.faces.server.people.users import load_users

    found = load_users(file).by_name
    lines = [f"{name}: {_in_words(user.login)}" for name, user in found.items()]
    print(printable("\n".join([*lines, f"{file}: {len(found)} user{'' if len(found) == 1 else 's'}"])))
    return 0


def _in_words(login: Login) -> str:
    """Role, account, and what the file says besides."""
    own, most = login.defaults, login.ceilings
    defaults = [(symbol, amount) for symbol, amount in (("ε", own.epsilon), ("ρ", own.rho), ("δ", own.delta)) if amount]
    ceilings = (("a query", most.per_query), ("an hour", most.per_hour), ("a day", most.per_day))
    dearer = {True: "dearer stored answers too", False: "no dearer stored answers", None: ""}[own.allow_dearer]
    said = [
        f"{login.role}, account {login.account}",
        "" if login.kind == "person" else f"kind {login.kind}",
        "defaults " + " ".join(f"{symbol} {amount}" for symbol, amount in defaults) if defaults else "",
        dearer,
        "at most " + ", ".join(f"ε {x} {time}" for time, x in ceilings if x) if any(x for _, x in ceilings) else "",
        f"at least ε {most.least_epsilon} a query" if most.least_epsilon else "",
        f"at most {most.statements:,} charged statements an hour" if most.statements else "",
        f"may make {', '.join(login.may)}" if login.may else "",
        f"databases {', '.join(login.databases)}" if login.databases else "",
    ]
    return "; ".join(part for part in said if part)


def _begins_a_file() -> bool:
    """Whether what is printed goes to a file that is empty, as that of `>> users.yaml` the first time."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline(_LONGEST).removesuffix("\n").removesuffix("\r")
    first = getpass.getpass("password: ")
    if getpass.getpass("again: ") != first:
        raise reject("DP903", "the two passwords are not the same", help=["try again"])
    return first
