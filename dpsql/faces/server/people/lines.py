"""The lines that are put into a file of users for somebody new."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dpsql.diagnostics.errors import reject
from dpsql.faces.server.wire.scram import make_secret
from dpsql.policy.file.scalars import usable_name

LEAST_CHARACTERS = 8


def lines_for(
    name: str, password: str, account: str | None = None, role: str = "analyst", kind: str = "person",
    databases: Sequence[str] = (),
) -> str:  # fmt: skip
    """YAML that stands below `users:`. databases: of the server; none for its only one.

    Raises Rejected DP903 for a name or a password that cannot be one.
    """
    if not usable_name(name) or len(name.encode("utf-8", "replace")) > 63:
        raise reject(
            "DP903", "a user's name has at most 63 bytes and no control characters", help=["dpsql user add ana"]
        )
    if len(password) < LEAST_CHARACTERS or "\0" in password:
        raise reject("DP903", f"a password has at least {LEAST_CHARACTERS} characters", help=["take a longer one"])
    more = [
        ("account", account),
        ("role", None if role == "analyst" else role),
        ("kind", None if kind == "person" else kind),
    ]
    lines = [f"  {_scalar(name)}:", f"    secret: {make_secret(password)}"]
    lines += [f"    {key}: {_scalar(value)}" for key, value in more if value is not None]
    lines += [f"    databases: [{', '.join(map(_scalar, databases))}]"] if databases else []
    return "\n".join(lines)


def _scalar(text: str) -> str:
    """As YAML: in quotes unless it can only be text."""
    plain = text.isascii() and text.isidentifier() and text.lower() not in ("null", "true", "false", "users")
    return text if plain else json.dumps(text, ensure_ascii=False)
