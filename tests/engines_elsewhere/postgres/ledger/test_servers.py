"""Servers, databases, roles and URLs that cannot keep a ledger: each a refusal by name with a repair."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.core.ledger.postgres_schema import TABLES
from dpsql.core.ledger.postgres_server import LedgerServer
from dpsql.core.ledger.refusals import CHARGED
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import NOTHING_RAN
from tests.engines_elsewhere.postgres.ledger.conftest import Cluster, Database, made

EVERY_VERSION = True
Charge = Callable[[object], Entry]
CANARY = "canary-4711"


def refused(action: Callable[[], object]) -> Diagnostic:
    with pytest.raises(CannotOpen) as refusal:
        action()
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP407" and diagnostic.help
    return diagnostic


# --- URLs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("postgresql://[::1/db", "does not understand the URL"),
        ("postgresql://h/db?nonsense=1", "has the parameter `nonsense`"),
        ("postgresql://h/db?options=-c%20search_path%3Dx", "has the parameter `options`"),
        ("postgresql://u%zz@h/db", "does not understand the URL"),
        ("postgresql://h:port/db", "cannot be reached"),
        ("postgresql://127.0.0.1:1/db", "cannot be reached"),
        ("postgresql://nowhere.invalid/db", "cannot be reached"),
        ("postgresql://" + "x" * 70 + "/db", "cannot be reached"),
        ("postgresql:///db?service=none", "cannot be reached"),
        ("postgresql:///db?host=/nowhere", "cannot be reached"),
        ("postgresql://h\0/db", "is no address of a server"),
        ("postgresql://\udcff/db", "is no address of a server"),
    ],
)
def test_a_url_that_leads_nowhere(url: str, what: str, tmp_path: Path) -> None:
    diagnostic = refused(lambda: PostgresLedger.open(url, tmp_path / "head", "clinic", "approx_dp", timeout=3))
    assert what in diagnostic.message and diagnostic.notes == (NOTHING_RAN,)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:SECRET@h/db",
        "postgresql://u:SECRET%zz@h/db",
        "postgresql://u:SECRET@[::1/db",
        "postgresql://h/db?password=SECRET",
        "postgresql://h/db?pass%77ord=SECRET",
        "postgresql://h/db?sslpassword=SECRET",
        "postgresql://h?port=1&password=SECRET",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    diagnostic = refused(lambda: PostgresLedger.open(url, tmp_path / "head", "clinic", "approx_dp"))
    assert "SECRET" not in str(CannotOpen([diagnostic])) and "password" in diagnostic.message
    assert any(".pgpass" in repair for repair in diagnostic.help)


def test_roles_and_databases_that_are_not_there(cluster: Cluster, database: Database) -> None:
    for url in (cluster.url("nowhere"), cluster.url(database.name, "nobody")):
        assert "does not exist" in refused(lambda url=url: database.open(url=url)).message


@pytest.fixture
def locked(own_cluster: Cluster, tmp_path: Path) -> Database:
    """Its role `gateway` needs a password."""
    database = made(own_cluster, "spent", tmp_path)
    hba = own_cluster.folder / "data" / "pg_hba.conf"
    hba.write_text("local all gateway scram-sha-256\n" + hba.read_text())
    own_cluster.run("CREATE ROLE gateway LOGIN PASSWORD 'SECRET'", "SELECT pg_reload_conf()")
    database.run("GRANT ALL ON DATABASE spent TO gateway")
    return database


def test_passwords_come_from_files_and_the_environment(
    locked: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, charge: Charge
) -> None:
    url = locked.cluster.url("spent", "gateway")
    for name, value in (("PGPASSFILE", str(tmp_path / "none")), ("PGPASSWORD", "WRONG")):
        monkeypatch.setenv(name, value)
        diagnostic = refused(lambda: locked.open(url=url))
        assert "WRONG" not in str(CannotOpen([diagnostic])) and "password" in diagnostic.message
    monkeypatch.setenv("PGPASSWORD", "SECRET")
    with locked.open(url=url) as ledger:
        ledger.reserve(charge("a"), Caps())
    monkeypatch.delenv("PGPASSWORD")
    passes, services = tmp_path / "pgpass", tmp_path / "services"
    passes.write_text("*:*:*:gateway:SECRET\n")
    passes.chmod(0o600)
    services.write_text(f"[spent]\nhost={locked.cluster.folder}\ndbname=spent\nuser=gateway\n")
    monkeypatch.setenv("PGPASSFILE", str(passes))
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    with locked.open(url="postgresql:///?service=spent") as ledger:
        assert ledger.reserve(charge("b"), Caps()).sequence == 2


def test_without_the_client_it_says_what_to_install(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert refused(database.open).help == ("pip install 'dpsql[postgres]'",)


# --- servers ----------------------------------------------------------------------------------------------------------


def test_a_server_that_may_lose_what_it_says_it_has(own_cluster: Cluster, tmp_path: Path, charge: Charge) -> None:
    database = made(own_cluster, "spent", tmp_path)

    own_cluster.set("fsync", "off")
    assert "fsync is off" in refused(database.open).message
    own_cluster.set("fsync", "on")
    with database.open() as ledger:
        ledger.reserve(charge("a"), Caps())
        own_cluster.set("fsync", "off")

        def until_it_notices() -> None:
            for i in range(100_000):  # a process of the server reads its settings between two queries
                ledger.reserve(charge(i), Caps())

        diagnostic = refused(until_it_notices)
        assert "fsync is off" in diagnostic.message and diagnostic.notes == (NOTHING_RAN,)


def test_a_commit_that_no_standby_has_confirmed_is_charged_and_runs_nothing(
    own_cluster: Cluster, tmp_path: Path, charge: Charge
) -> None:
    database = made(own_cluster, "spent", tmp_path)
    with database.open() as ledger:
        own_cluster.set("synchronous_standby_names", "nobody")
        waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'dpsql'"

        receipts, cancelled = [], []

        def cancel() -> None:
            while not cancelled:
                cancelled.extend(own_cluster.run(f"SELECT pg_cancel_backend(pid) {waiting}"))

        def until_it_waits() -> None:
            while not cancelled:  # every process of the server reads its settings in its own time
                receipts.append(ledger.reserve(charge(len(receipts)), Caps()))

        thread = threading.Thread(target=cancel, daemon=True)
        thread.start()
        try:
            diagnostic = refused(until_it_waits)
        finally:  # whatever else commits would wait for nobody
            own_cluster.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        thread.join(600)
        assert "a standby has not confirmed" in diagnostic.message and diagnostic.notes == (CHARGED,)
        assert len(ledger.history()) == len(receipts) + 1


def test_a_standby_is_refused(own_cluster: Cluster, tmp_path: Path, charge: Charge) -> None:
    database = made(own_cluster, "spent", tmp_path)
    with database.open() as ledger:
        ledger.reserve(charge("a"), Caps())
        own_cluster.server.stop()
        (own_cluster.folder / "data" / "standby.signal").touch()
        own_cluster.server.start()
        diagnostic = refused(lambda: ledger.reserve(charge("b"), Caps()))
        assert "only reads" in diagnostic.message and diagnostic.notes == (NOTHING_RAN,)
        assert len(ledger.history()) == 1


def test_an_old_server_and_another_encoding(
    cluster: Cluster, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    latin = Database(cluster, f"{database.name}_latin", database.heads)
    cluster.run(
        f"CREATE DATABASE {latin.name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    try:
        diagnostic = refused(latin.open)
        assert "encoding is LATIN1" in diagnostic.message and "ENCODING 'UTF8'" in diagnostic.help[0]
    finally:
        cluster.run(f"DROP DATABASE {latin.name} WITH (FORCE)")
    monkeypatch.setattr("dpsql.core.ledger.postgres_server._OLDEST", 99)
    assert "this is PostgreSQL" in refused(database.open).message


def test_a_pooler_that_forgets_what_was_set_is_noticed(database: Database, charge: Charge) -> None:
    with database.open() as ledger:
        ledger.reserve(charge("a"), Caps())
        (session,) = ledger._server._idle
        session.run("DISCARD ALL")  # what poolers do between two transactions
        diagnostic = refused(lambda: ledger.reserve(charge("b"), Caps()))
        assert "does not stay" in diagnostic.message and "pooler" in diagnostic.help[0]


def test_a_weaker_commit_is_not_taken_over_and_a_stronger_one_is(database: Database, charge: Charge) -> None:
    for stated, used in (("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")):
        database.run(f"ALTER DATABASE {database.name} SET synchronous_commit = {stated}")
        with database.open() as ledger:
            ledger.reserve(charge(stated), Caps())
            assert ledger._server.read(lambda s: s.rows("SHOW synchronous_commit")) == [(used,)]


def test_names_are_not_looked_up_where_others_may_put_them(database: Database, charge: Charge) -> None:
    """Functions and operators of another schema, before PostgreSQL's own in the role's search path."""
    database.run(
        "CREATE SCHEMA evil",
        "CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$SELECT 'pg_catalog'$$",
        "CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$SELECT 'on'$$",
        "CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS $$SELECT true$$",
        "CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = text, RIGHTARG = text)",
        "CREATE FUNCTION evil.less(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$SELECT false$$",
        "CREATE OPERATOR evil.>= (FUNCTION = evil.less, LEFTARG = bigint, RIGHTARG = bigint)",
        "CREATE OPERATOR evil.= (FUNCTION = evil.less, LEFTARG = bigint, RIGHTARG = bigint)",
        f"ALTER DATABASE {database.name} SET search_path = evil, pg_catalog",
    )
    assert database.run("SELECT 'a' = 'b'::text") == [(True,)]  # the twin: it does take over
    with database.open() as ledger:
        receipts = [ledger.reserve(charge(name), Caps()) for name in ("a", "b", "a")]
        assert [r.sequence for r in receipts] == [1, 2, 1] and ledger.verify() == 2


# --- roles ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(cluster: Cluster, database: Database) -> Iterator[str]:
    """The URL for a role that has nothing but a login."""
    role = f"gateway{os.getpid()}"
    cluster.run(f"CREATE ROLE {role} LOGIN")
    yield cluster.url(database.name, role)
    database.run(f"DROP OWNED BY {role}")
    cluster.run(f"DROP ROLE {role}")


def granted(database: Database, url: str, *without: str) -> None:
    role = url.partition("//")[2].partition("@")[0]
    rights = (
        f"GRANT USAGE ON SCHEMA dpsql TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA dpsql TO {role}",
        f"GRANT INSERT ON ALL TABLES IN SCHEMA dpsql TO {role}",
        f"GRANT UPDATE (last_sequence, last_hash) ON dpsql.head TO {role}",
    )
    database.run(*(right for right in rights if right.split()[1] not in without))


def test_a_role_that_may_not_make_tables_is_told_who_may(database: Database, gateway: str) -> None:
    diagnostic = refused(lambda: database.open(url=gateway))
    assert "this role may not make one" in diagnostic.message and "GRANT" in str(diagnostic.help)


def test_a_role_that_may_only_add_is_enough(database: Database, gateway: str, charge: Charge) -> None:
    database.run(TABLES)
    granted(database, gateway)
    with database.open(url=gateway) as ledger:
        assert ledger.reserve(charge("a"), Caps()).sequence == 1
        server = LedgerServer(gateway)
        for statement in (
            "DELETE FROM dpsql.entries", "UPDATE dpsql.entries SET analyst = 'eve'", "TRUNCATE dpsql.entries",
            "UPDATE dpsql.head SET salt = 1", "DELETE FROM dpsql.head", "DROP TABLE dpsql.entries",
            "ALTER TABLE dpsql.entries SET UNLOGGED", "DELETE FROM dpsql.answers", "CREATE TABLE dpsql.more (x int)",
        ):  # fmt: skip
            assert "SQLSTATE 42501" in refused(lambda s=statement: server.read(lambda session: session.run(s))).message
        server.close()
        assert ledger.verify() == 1


@pytest.mark.parametrize("missing", ["USAGE", "SELECT", "INSERT", "UPDATE"])
def test_a_right_that_is_missing_is_told(database: Database, gateway: str, charge: Charge, missing: str) -> None:
    database.run(TABLES)
    granted(database, gateway, missing)

    def charged() -> None:
        with database.open(url=gateway) as ledger:
            ledger.reserve(charge("a"), Caps())

    diagnostic = refused(charged)
    assert "lacks a right" in diagnostic.message and "GRANT" in diagnostic.help[0]
    assert diagnostic.notes == (NOTHING_RAN,)


def test_no_message_holds_a_value(database: Database) -> None:
    """Also where the server itself quotes the whole row."""
    with database.open() as ledger:
        database.run("ALTER TABLE dpsql.entries ADD CHECK (length(statement) < 3) NOT VALID")
        entry = Entry(CANARY, CANARY, {}, CANARY, CANARY, f"SELECT '{CANARY}'")
        diagnostic = refused(lambda: ledger.reserve(entry, Caps()))
        assert diagnostic.message.endswith("the server refused a statement (SQLSTATE 23514)")
        assert CANARY not in str(CannotOpen([diagnostic]))


# --- the data's database ----------------------------------------------------------------------------------------------


def test_the_database_of_the_data_is_refused_however_it_is_named(
    cluster: Cluster, database: Database, charge: Charge, gateway: str
) -> None:
    other = made(cluster, f"{database.name}_data", database.heads)
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.run, f"DROP DATABASE {other.name} WITH (FORCE)")
        cluster.run(f"ALTER DATABASE {other.name} SET search_path = nowhere")
        for data in (database.url, database.url + "&connect_timeout=5", gateway):
            assert "holds the data" in refused(lambda data=data: database.open(data=data)).message
        with database.open(data=other.url) as ledger:
            ledger.reserve(charge("a"), Caps())
