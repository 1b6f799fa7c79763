"""A ledger's tables in PostgreSQL: how they are made, and how they are recognised."""

from __future__ import annotations

import re
from typing import Final

from dpsql.core.ledger.accountant import ACCOUNTANTS
from dpsql.core.ledger.chain.hash_chain import ADDED, FORMAT, Identity
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.postgres_server import GRANTS, LedgerConnection, LedgerServer, UnknownOutcome
from dpsql.core.ledger.refusals import unusable

RESTORE = (
    "custodian: restore the newest intact copy of the database; do not edit it, and never start a new ledger for the "
    "same data without counting what was spent",
)

TABLES: Final = """\
CREATE SCHEMA dpsql;
CREATE TABLE dpsql.head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL,
    dataset text COLLATE "C" NOT NULL,
    accountant text COLLATE "C" NOT NULL,
    salt bigint NOT NULL,
    nonce text COLLATE "C" NOT NULL,
    last_sequence bigint NOT NULL,
    last_hash text COLLATE "C" NOT NULL
);
CREATE TABLE dpsql.entries (
    sequence bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    analyst text COLLATE "C" NOT NULL,
    charges text COLLATE "C" NOT NULL,
    plan_hash text COLLATE "C" NOT NULL,
    policy_hash text COLLATE "C" NOT NULL,
    statement text COLLATE "C" NOT NULL,
    reserved_at text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    received text COLLATE "C" NOT NULL,
    answers text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL DEFAULT '',
    about text COLLATE "C" NOT NULL DEFAULT '{}'
);
CREATE TABLE dpsql.answers (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    address text COLLATE "C" NOT NULL,
    numbers text COLLATE "C" NOT NULL,
    mechanism text COLLATE "C" NOT NULL,
    parameter text COLLATE "C" NOT NULL,
    losses text COLLATE "C" NOT NULL,
    conversion text COLLATE "C" NOT NULL,
    made_at text COLLATE "C" NOT NULL,
    shown text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL
);
CREATE INDEX answers_address ON dpsql.answers (address);
"""
"""What makes the tables; docs/howto/many-gateways.md shows it for custodians who make them themselves."""

_UPGRADE: Final = "; ".join(
    [
        *(f"""ALTER TABLE dpsql.entries ADD COLUMN {name} text COLLATE "C" NOT NULL DEFAULT '{empty}'"""
          for name, empty in ADDED[2]),
        f"UPDATE dpsql.head SET format = {FORMAT}",
    ]
)  # fmt: skip
"""What brings a ledger of format 2 up to date, the first format that was kept on a server. No entry and no hash
changes. docs/howto/many-gateways.md shows it to owners of the tables."""

_FOUNDING = 0x6470736C
"""The advisory lock under which the tables are made; SQLite's files of ledgers have the same number."""


def is_founded(session: LedgerConnection) -> bool:
    """Whether there is a ledger: its tables, and the row that says what it is for."""
    return _has_tables(session) and bool(session.rows("SELECT 1 FROM dpsql.head"))


def found(server: LedgerServer, identity: Identity, head: Head) -> None:
    """Make a ledger of this identity where there is none, unless its head remembers that it had entries.

    Tables that somebody has made beforehand are used, older ones brought up to date. Raises CannotOpen (DP407).
    """
    bring_up_to_date(server)
    if not server.read(is_founded):
        try:
            server.transaction(lambda session: _found(server, session, identity, head))
        except UnknownOutcome:
            raise unusable(server.url, "the connection was lost while it was made", "try again") from None


def _found(server: LedgerServer, session: LedgerConnection, identity: Identity, head: Head) -> None:
    session.rows("SELECT pg_advisory_xact_lock(%s)", (_FOUNDING,))
    if not _has_tables(session):
        ((may,),) = session.rows("SELECT has_database_privilege(current_database(), 'CREATE')")
        if not may:
            raise unusable(
                server.url, "there is none in this database, and this role may not make one",
                "its owner: make the tables, as docs/howto/many-gateways.md shows them", GRANTS,
            )  # fmt: skip
        session.run(TABLES)
    check(session, server.url)
    # Another gateway may have done it meanwhile; it writes its head after its commit, so the order matters.
    if session.rows("SELECT 1 FROM dpsql.head"):
        return
    known = head.read()
    if known is not None and known.sequence:
        raise unusable(server.url, f"it is empty, but had {known.sequence} entries (head: {head.path})", *RESTORE)
    if session.rows("SELECT 1 FROM dpsql.entries LIMIT 1"):
        raise unusable(server.url, "it has entries, and the row that says whose they are is missing", *RESTORE)
    session.change(
        "INSERT INTO dpsql.head (format, dataset, accountant, salt, nonce, last_sequence, last_hash) "
        "VALUES (%s, %s, %s, %s, %s, 0, %s)",
        (FORMAT, identity.dataset, identity.accountant, identity.salt, identity.nonce, identity.origin.hash),
    )


def bring_up_to_date(server: LedgerServer) -> None:
    """Make a ledger of format 2 one of this format. Raises CannotOpen (DP407): this role may not."""
    if server.read(_is_older):
        try:
            server.transaction(lambda session: _upgrade(session, server.url))
        except UnknownOutcome:
            raise unusable(server.url, "the connection was lost while it was brought up to date", "try again") from None


def _is_older(session: LedgerConnection) -> bool:
    return _has_tables(session) and session.rows(_SHAPE) == _EXPECTED_OF_2


def _upgrade(session: LedgerConnection, url: str) -> None:
    session.rows("SELECT pg_advisory_xact_lock(%s)", (_FOUNDING,))
    if not _is_older(session):
        return  # another gateway has done it
    ((may,),) = session.rows(
        "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'dpsql.entries'::regclass"
    )
    if not may:
        raise unusable(
            url, "an older dpsql made its tables, and this role may not bring them up to date",
            f"its owner:  {_UPGRADE}"
        )  # fmt: skip
    session.run(_UPGRADE)


def _has_tables(session: LedgerConnection) -> bool:
    return bool(
        session.rows(
            "SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = 'dpsql' AND c.relname = 'head'"
        )
    )


# What could lose or hide an entry: a view or an UNLOGGED table, a trigger or a rule that undoes what is inserted, a
# policy that hides rows, a key that is gone, a collation that takes two ids for one.
_SHAPE = """
SELECT c.relname::text, c.relkind::text || c.relpersistence::text,
    c.relrowsecurity OR c.relforcerowsecurity OR c.relhassubclass
        OR EXISTS (SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
        OR EXISTS (SELECT 1 FROM pg_rewrite AS r WHERE r.ev_class = c.oid),
    (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attnotnull THEN '' ELSE ' NULL' END || coalesce(' ' || o.collname, ''), ', ' ORDER BY a.attnum)
        FROM pg_attribute AS a LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    (SELECT string_agg(d, ', ' ORDER BY d COLLATE "C") FROM (SELECT pg_get_constraintdef(k.oid) AS d
        FROM pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype <> 'n' AND NOT k.condeferrable) AS k)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'dpsql' AND c.relkind NOT IN ('i', 'S', 't') ORDER BY c.relname
"""


def _expected(table: str, keys: str) -> tuple[str, str, bool, str, str]:
    """The shape of a table as `TABLES` makes it."""
    body = re.search(rf"CREATE TABLE dpsql\.{table} \((.*?)\n\);", TABLES, re.DOTALL)
    assert body is not None
    columns = []
    for line in body[1].split(",\n"):
        name, kind, *rest = line.split()
        columns.append(f"{name} {kind}{' C' if 'COLLATE' in rest else ''}")
    return table, "rp", False, ", ".join(columns), keys


_EXPECTED = [
    _expected("answers", "PRIMARY KEY (number), UNIQUE (id)"),
    _expected("entries", "PRIMARY KEY (sequence), UNIQUE (id)"),
    _expected("head", "CHECK (one), PRIMARY KEY (one)"),
]


_EXPECTED_OF_2 = [
    (*shape[:3], ", ".join(shape[3].split(", ")[: -len(ADDED[2])]), shape[4]) if shape[0] == "entries" else shape
    for shape in _EXPECTED
]


def check(session: LedgerConnection, url: str) -> None:
    """Raise CannotOpen (DP407) unless the tables are as they were made."""
    if session.rows(_SHAPE) != _EXPECTED:
        raise unusable(url, "its tables in the schema dpsql are not as dpsql makes them", *RESTORE)


def read_identity(session: LedgerConnection, url: str) -> Identity:
    """What the ledger says it is for. Raises CannotOpen (DP407)."""
    found = session.rows("SELECT format, dataset, accountant, salt, nonce FROM dpsql.head")
    if len(found) != 1:
        raise unusable(url, "there is no ledger in this database", *RESTORE)
    ((form, *values),) = found
    if form > FORMAT:
        raise unusable(
            url, f"a newer dpsql wrote it (format {form}; this version reads {FORMAT})", "upgrade dpsql to use it"
        )
    identity = Identity(*values)
    if form != FORMAT or identity.accountant not in ACCOUNTANTS:
        raise unusable(url, "its identity was changed", *RESTORE)
    return identity
