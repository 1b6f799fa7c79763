"""All that is fetched in one snapshot is of one moment, whatever others do meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from dpsql.core.policy.server_address import parse_server
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from dpsql.engines.public_facts import frequency, row_count
from tests.engines_elsewhere.postgres.servers import Server

Make = Callable[[str], str]
SCRIPT = "CREATE TABLE pub AS SELECT 1 AS k; CREATE TABLE other AS SELECT 1 AS k; CREATE VIEW v AS SELECT k FROM other"


def opened(server: Server, name: str, *tables: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(name)), [Wanted(table) for table in tables])


def test_a_snapshot_is_of_one_moment(server: Server, database: Make) -> None:
    name = database(SCRIPT)
    engine, writer = opened(server, name, "pub", "other", "v"), server.admin(name)

    def inside() -> tuple[int, ...]:
        before = frequency(engine, "pub", ["k"])
        for table in ("pub", "other"):  # of the second, nothing was read before
            writer.execute(f"INSERT INTO {table} VALUES (1)")
        writer.execute("UPDATE pub SET k = 1")
        return before, frequency(engine, "pub", ["k"]), frequency(engine, "other", ["k"]), row_count(engine, "v")

    assert engine.in_snapshot(inside) == (1, 1, 1, 1)
    assert [frequency(engine, t, ["k"]) for t in ("pub", "other", "v")] == [2, 2, 2]
    writer.close()
    engine.close()


@pytest.mark.parametrize(
    "change",
    ["TRUNCATE other", "ALTER TABLE pub ALTER k TYPE text", "DROP VIEW v", "DROP TABLE other CASCADE"],
)
def test_changes_that_no_snapshot_holds_off_wait_for_its_end(server: Server, database: Make, change: str) -> None:
    """A table that is emptied or rewritten would be found empty by a snapshot that has not read it yet."""
    name = database(SCRIPT)
    engine, writer = opened(server, name, "pub", "other", "v"), server.admin(name)

    def inside() -> tuple[int, int]:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            writer.execute(f"SET lock_timeout = '50ms'; {change}")
        return row_count(engine, "other"), row_count(engine, "v")

    assert engine.in_snapshot(inside) == (1, 1)
    writer.execute("SET lock_timeout = 0")
    writer.execute(change)
    writer.close()
    engine.close()


def test_without_the_lock_it_would_be_found_empty(server: Server, database: Make) -> None:
    """The twin of the one above: what it holds off is there."""
    name = database(SCRIPT)
    reader, writer = server.admin(name), server.admin(name)
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    assert reader.execute("SELECT count(*) FROM pub").fetchone() == (1,)
    writer.execute("TRUNCATE other")
    assert reader.execute("SELECT count(*) FROM other").fetchone() == (0,)
    reader.close()
    writer.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE pub ALTER k TYPE bigint", "schema has changed"),
        ("ALTER TABLE pub RENAME k TO j", "schema has changed"),
        ("ALTER TABLE other RENAME TO gone", "gone"),
        ("REVOKE SELECT ON other FROM reader", "may no longer be read"),
        ("CREATE OR REPLACE VIEW v AS SELECT k FROM pub", "schema has changed"),
        ("CREATE TABLE child () INHERITS (pub)", ""),
        ("ALTER TABLE other ADD COLUMN more integer", "schema has changed"),
        ("DROP TABLE pub; CREATE TABLE pub AS SELECT 7 AS k; GRANT SELECT ON pub TO reader", ""),
        ("ALTER TABLE pub ENABLE ROW LEVEL SECURITY", "row security"),
    ],
)
def test_another_schema_than_the_policy_was_checked_with_is_refused(
    server: Server, database: Make, change: str, said: str
) -> None:
    name = database(SCRIPT)
    engine = opened(server, name, "pub", "other", "v")
    with server.admin(name) as admin:
        admin.execute(change)
    if said:
        with pytest.raises(CannotOpen, match=said) as caught:
            row_count(engine, "pub")
        assert caught.value.diagnostics[0].help
        with pytest.raises(CannotOpen):
            engine.in_snapshot(pytest.fail)
    else:
        assert row_count(engine, "pub") == 1
    engine.close()


def test_a_query_waits_for_a_change_of_the_schema_and_can_be_stopped(server: Server, database: Make) -> None:
    name = database(SCRIPT)
    engine, writer = opened(server, name, "pub", "other", "v"), server.admin(name)
    writer.execute("BEGIN; ALTER TABLE pub ADD COLUMN c integer")
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(row_count(engine, "pub"))
        except CannotOpen as error:
            found.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    with server.admin(name) as admin:
        waiting = (
            "FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted AND a.usename = 'reader'"
        )
        while admin.execute(f"SELECT count(*) {waiting}").fetchone() != (1,):
            assert found == []
    writer.execute("ROLLBACK")
    asking.join()
    assert found == [1]
    writer.close()
    engine.close()
