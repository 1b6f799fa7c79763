"""A connection of our own to a server, and the words for why there is none.

Nothing that the server says is shown: its text may quote values, and the reasons that there are have words of ours.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, Final

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus

from dpsql.core.engine import cannot_open
from dpsql.core.policy.server_address import Server
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.postgres.loaders import register
from dpsql.engines.postgres.settings import (
    BEGIN,
    READ_BACK,
    SETTLE,
    SHADOWS,
    TESTED,
    TRY,
    unlike,
    unset,
)

LEAST_VERSION: Final = 13
"""Older servers lack what the catalogue is asked for."""

_DEFAULTS: Final = {
    "application_name": "dpsql",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
"""Where neither the address nor the environment says otherwise: a server that is gone is noticed."""

_REASONS: Final = (
    ("password authentication failed", "refuses the password", "correct it in ~/.pgpass, PGPASSWORD or the service"),
    ("no password supplied", "wants a password", "put it into ~/.pgpass, PGPASSWORD or the service file"),
    ("authentication failed", "refuses the user", "check the user's name, and pg_hba.conf of the server"),
    ("pg_hba.conf", "lets nobody in from here under this name", "add a line to the server's pg_hba.conf"),
    ("not permitted to log in", "lets this user not log in", "ALTER ROLE reader LOGIN"),
    (
        "permission denied for database",
        "lets this user not into the database",
        "GRANT CONNECT ON DATABASE shop TO reader",
    ),
    ('role "[^"]*" does not exist', "has no such user", "check its name in the address, PGUSER or the service"),
    (
        'database "[^"]*" does not exist',
        "has no such database",
        "check its name in the address, PGDATABASE or the service",
    ),
    (
        "definition of service",
        "is a service that no file defines",
        "check PGSERVICEFILE or ~/.pg_service.conf",
    ),
    ("translate host name", "is on a host that nobody knows", "check the host's name in the address"),
    ("too many", "has no connection left", "raise max_connections, or close other clients"),
    ("certificate", "shows a certificate that is not accepted", "check sslmode and sslrootcert"),
    ("SSL", "and we do not agree on SSL", "check sslmode in the address"),
    ("starting up", "is starting", "try again in a moment"),
    ("shutting down", "is shutting down", "start it again"),
)
"""Pattern of the client's text → what we say, and a repair. The first that fits."""


def connect(server: Server) -> Connection[Any]:
    """A new connection: binary results, no transaction. Raises CannotOpen (DP006)."""
    given = psycopg.conninfo.conninfo_to_dict(server.text)
    said = ""
    try:
        connection = psycopg.connect(
            server.text,
            autocommit=True,
            prepare_threshold=None,
            **{name: value for name, value in _DEFAULTS.items() if name not in given},  # type: ignore[arg-type]
        )
        register(connection)
        return connection
    except psycopg.Error as error:
        said = str(error)
    what, help = next(
        ((what, help) for pattern, what, help in _REASONS if re.search(pattern, said)),
        ("cannot be reached", "is it running?"),
    )
    raise cannot_open(f"the server {server} {what}", help, f"try  psql '{server}'")


def is_alive(connection: Connection[Any] | None) -> bool:
    """Whether a connection can still be used, as far as the client knows."""
    return connection is not None and not connection.closed and not connection.broken


def begin(connection: Connection[Any]) -> None:
    """Start the transaction of a snapshot, which is taken by the first SELECT after it."""
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        connection.execute("ROLLBACK")
    connection.execute(BEGIN)


def settle(connection: Connection[Any]) -> CannotOpen | None:
    """Set, read back and try everything, in the transaction; what is wrong is returned, and not raised."""
    connection.execute(SETTLE, binary=True)
    wrong = unset(_row(connection, READ_BACK)) or unlike(_row(connection, TRY))
    if wrong:
        return cannot_open(
            f"the server does not do what dpsql relies on: {', '.join(wrong[:5])}",
            "its encoding must be UTF8, and neither it nor a pooler before it may keep these settings from being set",
            f"dpsql is tested with PostgreSQL {' and '.join(map(str, TESTED))}",
        )
    shadows = [str(name) for (name,) in connection.execute(SHADOWS, binary=True).fetchall()]
    if shadows:
        return cannot_open(
            f"the database changes what is built in: {', '.join(shadows[:5])}",
            "drop these: dpsql relies on what the built-in functions, operators and casts do",
        )
    return None


def version_of(connection: Connection[Any]) -> tuple[int, str]:
    """The server's major version, and how it is written. Raises CannotOpen for one that is too old."""
    number = connection.info.server_version
    major, minor = divmod(number, 10_000)
    if major < LEAST_VERSION:
        raise cannot_open(f"the server is PostgreSQL {major}", f"dpsql reads PostgreSQL {LEAST_VERSION} and later")
    return major, f"{major}.{minor}"


def dispose(holder: list[Connection[Any]]) -> None:
    """Close what is open."""
    while holder:
        with contextlib.suppress(Exception):
            holder.pop().close()


def _row(connection: Connection[Any], sql: str) -> tuple[str | None, ...]:
    found = connection.execute(sql, binary=True).fetchone()
    return () if found is None else tuple(found)
