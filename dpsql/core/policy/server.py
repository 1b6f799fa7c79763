"""`database: postgresql://…`, and `ledger:` — a server's address and a table's place in it, understood without its
client.

    address  = ("postgresql" | "postgres") "://" [ user "@" ] [ hosts ] [ "/" database ] [ "?" name=value { "&" … } ]
    place    = name [ "." name ]            a name is a word, or anything in double quotes

No address holds a secret: a policy is read by many, and kept in repositories. A password stands between a colon and an
`@`, or is a parameter; every colon before an `@` counts, for a password may have a slash or a question mark in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

SCHEMES: Final = ("postgresql://", "postgres://")
DEFAULT_SCHEMA: Final = "public"
_SECRET: Final = ("password", "sslpassword", "oauth_client_secret")
_KNOWN: Final = frozenset(
    {"host", "hostaddr", "port", "dbname", "user", "service", "passfile", "channel_binding", "require_auth"}
    | {"connect_timeout", "application_name", "keepalives", "keepalives_idle", "keepalives_interval"}
    | {"keepalives_count", "tcp_user_timeout", "sslmode", "sslnegotiation", "sslcert", "sslkey", "sslrootcert"}
    | {"sslcrl", "sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version", "sslcompression"}
    | {"sslcertmode", "gssencmode", "krbsrvname", "gsslib", "gssdelegation", "target_session_attrs"}
    | {"load_balance_hosts", "requirepeer"}
)
"""Parameters of a connection that change neither what a query means nor what it may do."""
_PART: Final = re.compile(r'"((?:[^"]|"")+)"|([^\W\d][\w$]*)')


class ServerError(ValueError):
    """The text is no such address or place. It holds no secret, and neither does `help`, its repair."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


@dataclass(frozen=True, slots=True)
class Server:
    """An address, as it is written. database: the name in it; None: the client's own default, or a service's."""

    text: str
    database: str | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Stored:
    """A table's place in a server's database."""

    schema: str
    table: str

    def __str__(self) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, self.table))


def names_server(text: str | None) -> bool:
    """Whether a `database:` or a `ledger:` is a server's address, and no file."""
    return text is not None and text.strip().lower().startswith(SCHEMES)


def parse_server(text: str) -> Server:
    """Understand an address. Raises ServerError for one with a secret, and for parameters that are not known."""
    written = text.strip()
    if "\0" in written or not written.isprintable():
        raise ServerError("is no address of a server", "postgresql://reader@host/database")
    rest = written.partition("://")[2]
    if ":" in rest.rpartition("@")[0]:
        raise _secret("a password", "where there is none: write an @ behind the host as %40")
    head, _, query = rest.partition("?")
    path = head.partition("/")[2]
    given = parse_qsl(query, keep_blank_values=True)
    if query and len(given) != query.count("&") + 1:
        raise ServerError("is no address of a server", "write parameters as  ?name=value&name=value")
    for name, _value in given:
        if name.lower() in _SECRET:
            raise _secret(f"`{name.lower()}`")
        if name not in _KNOWN:
            raise ServerError(
                f"has the parameter `{name[:40]}`, which a policy cannot give",
                "leave it out, or set it for the role:  ALTER ROLE reader SET …",
            )
    named = dict(given).get("dbname", unquote(path))
    return Server(written, named or None)


def _secret(what: str, else_help: str = "") -> ServerError:
    return ServerError(
        f"holds {what}, which stands in no policy",
        "leave it out:  postgresql://reader@host/database  and keep it in ~/.pgpass, in PGPASSWORD, or in a service "
        f"file:  postgresql://?service=name{'; ' if else_help else ''}{else_help}",
    )


def parse_stored(text: str) -> Stored:
    """Understand `table`, `schema.table` or either in double quotes; words are in lower case, as the server has them.

    Raises ServerError.
    """
    names: list[str] = []
    at, written = 0, text.strip()
    while (found := _PART.match(written, at)) is not None and len(names) < 2:
        quoted, word = found.groups()
        names.append(word.lower() if word is not None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(written):
            return Stored(*names) if len(names) == 2 else Stored(DEFAULT_SCHEMA, names[0])
        if written[at] != ".":
            break
        at += 1
    raise ServerError(
        "names no table of the server: files are read by DuckDB only",
        'source: schema.table  or, with other characters,  source: \'"Schema"."Table"\'',
    )
