"""Settings are set and read back in each transaction; what differs from what dpsql relies on is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpsql.core.policy.server_address import parse_server
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.postgres import connecting, settings
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from tests.engines_elsewhere.postgres.servers import Server

Make = Callable[[str], str]


def opened(server: Server, name: str, *tables: str, **more: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(name, **more)), [Wanted(table) for table in tables])


HOSTILE = {
    "TimeZone": "America/New_York", "DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard",
    "extra_float_digits": "-15",
    "bytea_output": "escape", "standard_conforming_strings": "off", "transform_null_equals": "on",
    "array_nulls": "off", "client_encoding": "LATIN1", "search_path": "public", "row_security": "on",
    "default_transaction_read_only": "off", "default_transaction_isolation": "read committed",
}  # fmt: skip


def test_settings_of_role_and_database_do_not_count(server: Server, database: Make) -> None:
    name = database("CREATE TABLE t (i integer); INSERT INTO t VALUES (1)")
    with server.admin(name) as admin:
        for setting, value in HOSTILE.items():
            admin.execute(f"ALTER ROLE reader IN DATABASE {name} SET {setting} = {value!r}")
    engine = opened(server, name, "t")

    def read() -> list[Any]:
        names = [*settings.SET, *settings.ALSO_READ]
        return [c[0] for c in engine.fetch("SELECT " + ", ".join(f"current_setting('{n}')" for n in names)).columns]

    wanted = [*settings.SET.values(), *settings.ALSO_READ.values()]
    assert read() == wanted == engine.in_snapshot(read)
    question = "SELECT (NULL::integer = NULL) IS NULL, '\\' || 'n', CAST(1.0::float8 / 3 AS text), CAST('é' AS text)"
    assert [c[0] for c in engine.fetch(question).columns] == [True, "\\n", "0.3333333333333333", "é"]
    with server.admin(name) as admin:  # without us they are as they are
        held = admin.execute("SELECT count(*) FROM pg_db_role_setting").fetchone()
        assert held is not None and held[0] >= 1
    engine.close()


def test_what_was_set_on_the_session_does_not_outlast_it(server: Server, database: Make) -> None:
    """As a pooler that hands over the sessions of others, or hostile SQL, would leave it."""
    engine = opened(server, database("CREATE TABLE t (i integer)"), "t")
    for setting, value in HOSTILE.items():
        engine._connection.execute(f"SET {setting} = {value!r}")
    assert engine.fetch("SELECT current_setting('search_path'), current_setting('TimeZone')").columns == (
        ["pg_catalog, pg_temp"], ["UTC"],
    )  # fmt: skip
    engine._connection.execute("BEGIN")  # a transaction of another kind is no snapshot
    assert engine.fetch("SELECT current_setting('transaction_isolation')").columns == (["repeatable read"],)
    engine.close()


def test_nothing_can_be_written_or_set_for_good(server: Server, database: Make) -> None:
    name = database("CREATE TABLE t (i integer)")
    with server.admin(name) as admin:
        admin.execute("GRANT ALL ON t TO reader; GRANT ALL ON SCHEMA public TO reader")
    engine = opened(server, name, "t")
    for attempt in (
        "WITH w AS (INSERT INTO public.t VALUES (1) RETURNING i) SELECT * FROM w",
        "WITH w AS (DELETE FROM public.t RETURNING i) SELECT * FROM w",
        "SELECT pg_catalog.set_config('transaction_read_only', 'off', true)",
        "SELECT pg_catalog.set_config('transaction_isolation', 'read committed', true)",
        "SELECT * INTO public.u FROM public.t",
        "SELECT i FROM public.t FOR UPDATE",
        "SELECT nextval('public.s')",
        "SELECT 1; INSERT INTO public.t VALUES (1)",
        "COMMIT; INSERT INTO public.t VALUES (1)",
    ):
        with pytest.raises(EngineError):
            engine.fetch(attempt)
    assert engine.fetch("SELECT count(*) FROM public.t").columns == ([0],)
    engine.close()


def test_an_encoding_that_is_not_utf8_is_refused(server: Server) -> None:
    name = f"latin_{server.name}"
    with server.admin() as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}")
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    server.run(name, "CREATE TABLE t (i integer)")
    with pytest.raises(CannotOpen, match="server_encoding"):
        opened(server, name, "t")
    server.drop(name)


@pytest.mark.parametrize("what", ["a setting", "an expression"])
def test_what_reads_back_otherwise_is_named(
    server: Server, database: Make, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Each reads back as expected on the versions that there are: here one is expected to be another."""
    name = database("CREATE TABLE t (i integer)")
    if what == "a setting":
        monkeypatch.setitem(settings.ALSO_READ, "zero_damaged_pages", "on")
    else:
        monkeypatch.setitem(settings.TRIED, "md5(a.a)", "2")
    with pytest.raises(CannotOpen, match="zero_damaged_pages" if what == "a setting" else r"md5\(a\.a\)"):
        opened(server, name, "t")


def test_every_expression_that_is_tried_can_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tuple(settings.TRIED.values())
    assert settings.unlike(right) == ()
    for i, text in enumerate(settings.TRIED):
        assert settings.unlike((*right[:i], f"{right[i]}x", *right[i + 1 :])) == (text,)
        assert settings.unlike((*right[:i], None, *right[i + 1 :])) == (text,)
    values = (*settings.SET.values(), *settings.ALSO_READ.values())
    for i in range(len(values)):
        assert len(settings.unset((*values[:i], "other", *values[i + 1 :]))) == 1


def test_versions(server: Server, database: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    name = database("CREATE TABLE t (i integer)")
    engine = opened(server, name, "t")
    major = int(engine.version.partition(".")[0])
    assert major in settings.TESTED and engine.notes == ()
    engine.close()
    monkeypatch.setattr("dpsql.engines.postgres.engine.TESTED", (1,))
    engine = opened(server, name, "t")
    assert engine.notes == (f"dpsql is not tested with PostgreSQL {major}",)
    engine.close()
    monkeypatch.setattr(connecting, "LEAST_VERSION", major + 1)
    with pytest.raises(CannotOpen, match=f"the server is PostgreSQL {major}"):
        opened(server, name, "t")


def test_why_there_is_no_connection(server: Server, database: Make) -> None:
    """In our words: what the server says is not shown."""
    name = database("CREATE TABLE t (i integer)")
    with server.admin(name) as admin:
        admin.execute("DROP ROLE IF EXISTS idle; CREATE ROLE idle")
        admin.execute(
            f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC; DROP ROLE IF EXISTS outsider; CREATE ROLE outsider LOGIN"
        )
    nowhere = server.address(name).replace(str(server.folder), "/nowhere")
    for address, said in {
        server.address("no_such_database"): "has no such database",
        server.address(name, "nobody_here"): "has no such user",
        server.address(name, "idle"): "lets this user not log in",
        server.address(name, "outsider"): "lets this user not into the database",
        nowhere: "cannot be reached",
        "postgresql://?service=no_such_service": "is a service that no file defines",
        "postgresql://reader@127.0.0.1:1/x?connect_timeout=2": "cannot be reached",
    }.items():
        with pytest.raises(CannotOpen) as caught:
            PostgresEngine.open(parse_server(address), [])
        (diagnostic,) = caught.value.diagnostics
        assert (diagnostic.code, diagnostic.message) == ("DP006", f"the server {address} {said}")
        assert f"psql '{address}'" in diagnostic.help[1] and "FATAL" not in str(caught.value)
