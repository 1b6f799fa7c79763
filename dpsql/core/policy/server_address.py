"""`database: postgresql://…` or `sc://…`, and `ledger:` — a server's address and a table's place in it, understood
without its client.

    address  = ("postgresql" | "postgres") "://" [ user "@" ] [ hosts ] [ "/" database ] [ "?" name=value { "&" … } ]
             | "sc://" host [ ":" port ] [ "/" { ";" name=value } ]                       Apache Spark, over Connect
    place    = name [ "." name [ "." name ] ]    a name is a word, or anything in double quotes (on Spark in backticks)

No address holds a secret: a policy is read by many, and kept in repositories. A password stands between a colon and an
`@`, or is a parameter; every colon before an `@` counts, for a password may have a slash or a question mark in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote

Kind = Literal["postgres", "spark"]
SCHEMES: Final[dict[str, Kind]] = {"postgresql://": "postgres", "postgres://": "postgres", "sc://": "spark"}
DEFAULT_SCHEMA: Final = "public"
_FORM: Final[dict[Kind, str]] = {
    "postgres": "postgresql://reader@host/database", "spark": "sc://host:15002/;use_ssl=true"
}  # fmt: skip
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
_KNOWN_ON_SPARK: Final = frozenset({"use_ssl", "user_id", "user_agent", "x-databricks-cluster-id"})
_SPARK_HOST: Final = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_PART: Final = re.compile(r'"((?:[^"]|"")+)"|([^\W\d][\w$]*)')
_SPARK_PART: Final = re.compile(r'`((?:[^`]|``)+)`|"((?:[^"]|"")+)"|(\w+)')


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
    kind: Kind = "postgres"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Stored:
    """A table's place in a server's database. schema, catalogue: empty: those that a session begins with."""

    schema: str
    table: str
    catalogue: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """What is written of it, from the outside in."""
        return tuple(part for part in (self.catalogue, self.schema, self.table) if part)

    def __str__(self) -> str:
        return ".".join('"' + part.replace('"', '""') + '"' for part in self.parts)


def kind_of_server(text: str | None) -> Kind | None:
    """What a `database:` or a `ledger:` is a server of; None: it is a file, or nothing."""
    written = "" if text is None else text.strip().lower()
    return next((kind for scheme, kind in SCHEMES.items() if written.startswith(scheme)), None)


def names_server(text: str | None) -> bool:
    """Whether a `database:` or a `ledger:` is a server's address, and no file."""
    return kind_of_server(text) is not None


def parse_server(text: str) -> Server:
    """Understand an address. Raises ServerError for one with a secret, and for parameters that are not known."""
    written = text.strip()
    spark = kind_of_server(text) == "spark"
    if "\0" in written or not written.isprintable():
        raise ServerError("is no address of a server", _FORM["spark" if spark else "postgres"])
    return _parse_spark(written) if spark else _parse_postgres(written)


def _parse_spark(written: str) -> Server:
    host, _, rest = written.partition("://")[2].partition("/")
    if "@" in written:
        raise _spark_secret("a user or a password")
    given = [part.partition("=") for part in rest.removeprefix(";").split(";")] if rest else []
    for name, _, _value in given:
        if name.lower() in ("token", "password") or "authorization" in name.lower():
            raise _spark_secret(f"`{name.lower()[:40]}`")
        if name == "session_id":
            raise ServerError("names a session, which others could join", "leave  session_id  out")
    if _SPARK_HOST.fullmatch(host) is None or (rest and not rest.startswith(";")):
        raise ServerError("is no address of Spark Connect", _FORM["spark"])
    for name, equals, value in given:
        if not equals or not value:
            raise ServerError("is no address of Spark Connect", "write parameters as  /;name=value;name=value")
        if name not in _KNOWN_ON_SPARK:
            raise ServerError(
                f"has the parameter `{name[:40]}`, which a policy cannot give",
                f"leave it out; known are  {', '.join(sorted(_KNOWN_ON_SPARK))}",
            )
    return Server(written, kind="spark")


def _spark_secret(what: str) -> ServerError:
    return ServerError(
        f"holds {what}, which stands in no policy",
        f"leave it out:  {_FORM['spark']}  and put the token into the variable SPARK_CONNECT_AUTHENTICATE_TOKEN; "
        "a user without a secret is  /;user_id=name",
    )


def _parse_postgres(written: str) -> Server:
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


def parse_stored(text: str, kind: Kind = "postgres") -> Stored:
    """Understand `table`, `schema.table` or either in quotes, on Spark also `catalogue.schema.table`.

    Words are as the server has them: in lower case on PostgreSQL, where quotes keep a name's case. Raises ServerError.
    """
    names: list[str] = []
    pattern, most = (_PART, 2) if kind == "postgres" else (_SPARK_PART, 3)
    at, written = 0, text.strip()
    while (found := pattern.match(written, at)) is not None and len(names) < most:
        *quoted, word = found.groups()
        inner = next((q.replace(mark * 2, mark) for q, mark in zip(quoted, _QUOTES[kind], strict=True) if q), "")
        names.append(inner or (word.lower() if kind == "postgres" else word))
        at = found.end()
        if at == len(written):
            default = DEFAULT_SCHEMA if kind == "postgres" else ""
            *outer, schema, table = [default, *names] if len(names) == 1 else names
            return Stored(schema, table, *outer)
        if written[at] != ".":
            break
        at += 1
    if kind == "spark":
        raise ServerError(
            "names no table of the cluster's catalogue, and no files",
            "source: catalogue.schema.table  or  source: read_parquet('s3a://bucket/folder')",
        )
    raise ServerError(
        "names no table of the server: files are read by DuckDB only",
        'source: schema.table  or, with other characters,  source: \'"Schema"."Table"\'',
    )


_QUOTES: Final[dict[Kind, str]] = {"postgres": '"', "spark": '`"'}
