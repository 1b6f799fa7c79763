"""Redefined built-in functions, operators and casts: without effect, or refused where they would have one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpsql.core.policy.server_address import parse_server
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from tests.engines_elsewhere.postgres.servers import Server

Make = Callable[[str], str]

SHADOWS = """
CREATE FUNCTION {schema}.abs(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 42';
CREATE FUNCTION {schema}.equal(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR {schema}.= (LEFTARG = text, RIGHTARG = text, FUNCTION = {schema}.equal);
CREATE FUNCTION {schema}.equal(integer, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR {schema}.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = {schema}.equal);
CREATE AGGREGATE {schema}.sum(bigint) (SFUNC = int8pl, STYPE = bigint, INITCOND = '1000');
CREATE DOMAIN {schema}.int4 AS integer CHECK (value > 100);
CREATE DOMAIN {schema}.text AS varchar(1);
"""
QUESTION = "SELECT abs(-1), 'a' = 'b', 1 = 2, sum(CAST(i AS bigint)), CAST(3 AS int4), CAST('abc' AS text) FROM {} AS t"


def opened(server: Server, name: str, *tables: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(name)), [Wanted(table) for table in tables])


def test_schemas_of_users_shadow_nothing(server: Server, database: Make) -> None:
    """They do so for whoever has them on the search path: shown first, for else this test would prove nothing."""
    name = database("CREATE SCHEMA data; CREATE TABLE data.t (i integer); INSERT INTO data.t VALUES (1), (2)")
    for schema in ("public", "data"):
        server.run(name, SHADOWS.format(schema=schema))
    with server.admin(name) as admin:
        admin.execute(f"ALTER DATABASE {name} SET search_path = data, public, pg_catalog")
        admin.execute(f"ALTER ROLE reader IN DATABASE {name} SET search_path = data, public, pg_catalog")
    with server.admin(name) as admin:
        found = admin.execute("SELECT abs(-1), 'a' = 'b'::text, 1 = 2, sum(CAST(i AS bigint)) FROM data.t").fetchone()
        assert found == (42, True, True, 1003)
    engine = opened(server, name, "data.t")
    question = QUESTION.format(engine.table_sql("data.t"))
    for _ in range(2):
        found = [c[0] for c in engine.fetch(question).columns]
        assert found == [1, False, False, 3, 3, "abc"]
    engine.close()


INTO_THE_CATALOGUE = {
    "a function beside a built-in one": (
        "CREATE FUNCTION pg_catalog.abs(text) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 42'", "function abs",
    ),
    "an operator": (
        "CREATE FUNCTION public.f(text, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';"
        "CREATE OPERATOR pg_catalog.= (LEFTARG = text, RIGHTARG = integer, FUNCTION = public.f)", "operator =",
    ),
    "a cast between built-in types": (
        "CREATE CAST (text AS integer) WITH INOUT AS IMPLICIT", "cast from text to integer",
    ),
    "a built-in function, replaced": (
        "CREATE OR REPLACE FUNCTION pg_catalog.abs(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 42'",
        "abs(a.i)",
    ),
    "one in another language": (
        "CREATE OR REPLACE FUNCTION pg_catalog.cbrt(float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS "
        "'BEGIN RETURN 42; END'", "function cbrt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", INTO_THE_CATALOGUE)
def test_what_stands_in_the_catalogue_itself_is_refused(server: Server, database: Make, kind: str) -> None:
    script, named = INTO_THE_CATALOGUE[kind]
    name = database("CREATE TABLE t (i integer)")
    engine = opened(server, name, "t")
    server.run(name, script)
    with pytest.raises(CannotOpen) as again:
        opened(server, name, "t")
    with pytest.raises(CannotOpen) as later:  # also if it comes after the data was opened
        engine.fetch(f"SELECT i FROM {engine.table_sql('t')} AS t0")
    for caught in (again, later):
        assert caught.value.diagnostics[0].code == "DP006" and named in str(caught.value)
        assert caught.value.diagnostics[0].help
    engine.close()


def test_what_shadows_nothing_is_let_be(server: Server, database: Make) -> None:
    name = database(
        """CREATE TABLE t (i integer); CREATE TYPE kind AS ENUM ('a');
        CREATE FUNCTION pg_catalog.something_new(integer) RETURNS integer LANGUAGE sql AS 'SELECT 42';
        CREATE CAST (kind AS text) WITH INOUT AS IMPLICIT"""
    )
    opened(server, name, "t").close()


def test_a_temporary_table_hides_nothing(server: Server, database: Make) -> None:
    name = database("CREATE TABLE t (i integer); INSERT INTO t VALUES (1)")
    with server.admin(name) as admin:
        admin.execute(f"GRANT TEMPORARY ON DATABASE {name} TO reader")
    engine = opened(server, name, "t")
    # As if hostile SQL had got to our own connection.
    engine._connection.execute("CREATE TEMPORARY TABLE t AS SELECT 2 AS i; CREATE DOMAIN pg_temp.text AS varchar(1)")
    assert engine.table_sql("t") == '"public"."t"'
    found = engine.fetch(f"SELECT i, CAST('abc' AS text) FROM {engine.table_sql('t')} AS t0")
    assert found.columns == ([1], ["abc"])
    engine.close()
