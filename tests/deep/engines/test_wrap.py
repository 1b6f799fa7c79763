"""A connection passed in by the user: found tables, registered frames, nothing set, and a note that says so."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.engine import DuckDBEngine


@pytest.fixture
def theirs() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE People AS SELECT * FROM range(5) t(id)")
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.people AS SELECT * FROM range(7) t(id)")
        yield con


def count(engine: DuckDBEngine, name: str) -> int:
    return int(engine.fetch(f"SELECT COUNT(*) FROM {engine.table_sql(name)}").columns[0][0])


def settings(con: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """All but the one that is set: tests/engines/test_clips_stay.py."""
    known = "SELECT name, value FROM duckdb_settings() WHERE name <> 'disabled_optimizers' ORDER BY name"
    return con.execute(known).fetchall()


def test_nothing_is_set_and_the_notes_say_so(theirs: duckdb.DuckDBPyConnection) -> None:
    before = settings(theirs)
    engine = DuckDBEngine.wrap(theirs, optimizers="ours")
    assert (count(engine, "people"), count(engine, "s.people"), count(engine, "memory.s.people")) == (5, 7, 7)
    assert len(engine.notes) == 1 and "not locked" in engine.notes[0]
    assert settings(theirs) == before
    engine.close()
    engine.close()
    assert theirs.execute("SELECT COUNT(*) FROM people").fetchall() == [(5,)]


def test_a_result_of_the_users_survives_ours(theirs: duckdb.DuckDBPyConnection) -> None:
    theirs.execute("SELECT id FROM people ORDER BY id")
    engine = DuckDBEngine.wrap(theirs, optimizers="ours")
    count(engine, "people")
    engine.describe()
    assert theirs.fetchall() == [(0,), (1,), (2,), (3,), (4,)]


def test_a_table_made_later_is_found(theirs: duckdb.DuckDBPyConnection) -> None:
    engine = DuckDBEngine.wrap(theirs, optimizers="ours")
    assert count(engine, "people") == 5
    theirs.execute("CREATE TABLE later AS SELECT 1 AS x")
    assert count(engine, "later") == 1


def test_our_statements_cannot_write(theirs: duckdb.DuckDBPyConnection) -> None:
    engine = DuckDBEngine.wrap(theirs, optimizers="ours")
    for sql in ("DELETE FROM people", "CREATE TABLE x AS SELECT 1", "SELECT 1; DROP TABLE people", "SET threads = 1"):
        with pytest.raises(Exception, match="DP901"):
            engine.fetch(sql)
    assert theirs.execute("SELECT COUNT(*) FROM people").fetchall() == [(5,)]


def test_frames_are_registered_by_name(theirs: duckdb.DuckDBPyConnection) -> None:
    pandas = pytest.importorskip("pandas")
    engine = DuckDBEngine.wrap(theirs, optimizers="ours")
    engine.register("People", pandas.DataFrame({"id": [1, 2, 3]}))
    assert engine.table_sql("people") == '"temp"."main"."People"'
    assert count(engine, "people") == 3
    table = engine.describe().table("people")
    assert table is not None and [(c.name, c.type) for c in table.columns] == [("id", "BIGINT")]
    with pytest.raises(CannotOpen, match="DP006"):
        engine.register("nonsense", object())


def test_a_variable_of_the_program_is_no_table(theirs: duckdb.DuckDBPyConnection) -> None:
    pandas = pytest.importorskip("pandas")
    hidden = pandas.DataFrame({"id": [1]})
    with pytest.raises(CannotOpen, match="hidden"):
        DuckDBEngine.wrap(theirs, optimizers="ours").table_sql("hidden")
    assert len(hidden) == 1


def test_redefined_functions_are_refused(theirs: duckdb.DuckDBPyConnection) -> None:
    theirs.execute("CREATE MACRO harmless(x) AS x")
    DuckDBEngine.wrap(theirs, optimizers="ours").close()
    theirs.execute("CREATE MACRO round(x, y) AS 42")
    with pytest.raises(CannotOpen, match="redefines built-in functions: round"):
        DuckDBEngine.wrap(theirs, optimizers="ours")


def test_what_is_no_open_connection_is_refused() -> None:
    closed = duckdb.connect()
    closed.close()
    for thing in (closed, object(), None, "clinic.yaml"):
        with pytest.raises(CannotOpen) as caught:
            DuckDBEngine.wrap(thing, optimizers="ours")  # type: ignore[arg-type]
        assert caught.value.diagnostics[0].code == "DP006"
