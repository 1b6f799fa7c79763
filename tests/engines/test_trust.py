"""An optimizer that can leave out clips works for plain statements over prepared copies, and never beside others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.lockdown import NOT_TRUSTED
from dpsql.engines.duckdb.trust import Trust, is_plain
from tests.engines.test_clips_stay import CLIPPED, MADE, POLICY, SIDES

TWO = duckdb.__version__ >= "2"
A, B = '"memory"."main"."a"', '"memory"."main"."b c"'
COPIES = (A, B)
PLAIN = [
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1",
    f"SELECT t1.x AS k0, SUM(t1.y) AS m0\nFROM {A} AS t1\nJOIN {B} AS t2 ON t1.x = t2.x\n"
    "WHERE t1.x IS NOT NULL\nGROUP BY 1",
]
OTHER = [
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nLEFT JOIN {B} AS t2 ON t1.x = t2.x",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nleft  join {B} AS t2 ON t1.x = t2.x",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nFULL JOIN {B} AS t2 ON t1.x = t2.x",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nASOF JOIN {B} AS t2 ON t1.x >= t2.x",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1, {B} AS t2",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1 , other",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nCROSS JOIN {B} AS t2",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nWHERE t1.x IN (SELECT 1)",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nWHERE EXISTS (FROM {B} AS t2)",
    f"WITH p AS (SELECT 1) SELECT COUNT(*) AS m0\nFROM {A} AS t1",
    f"SELECT COUNT(*) AS m0\nFROM (SELECT * FROM {A} AS t1) AS t2",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nJOIN public AS t2 ON t1.x = t2.x",
    'SELECT COUNT(*) AS m0\nFROM "memory"."main"."c" AS t1',
    'SELECT COUNT(*) AS m0\nFROM "data"."main"."a" AS t1',
    f"SELECT COUNT(*) AS m0\nFROM {A}.x AS t1",
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nWHERE t1.x = 'a right word'",  # a word too much, where it means nothing
    f"SELECT COUNT(*) AS m0\nFROM {A} AS t1\nWHERE t1.x IS DISTINCT FROM 1",
    "SELECT 1",
    f"FROM {A} AS t1",
    "",
]


@pytest.mark.parametrize("sql", PLAIN)
def test_inner_joins_of_copies_are_plain(sql: str) -> None:
    assert is_plain(sql, COPIES)


@pytest.mark.parametrize("sql", OTHER)
def test_nothing_else_is(sql: str) -> None:
    assert not is_plain(sql, COPIES)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"disabled_optimizers": NOT_TRUSTED}) as opened:
        yield opened


def disabled(connection: duckdb.DuckDBPyConnection) -> str:
    ((found,),) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    return str(found)


def test_it_is_off_from_the_first_other_statement_to_the_end_of_the_last(connection: duckdb.DuckDBPyConnection) -> None:
    trust, second = Trust(COPIES), connection.cursor()
    with trust.planned(connection, PLAIN[0]):
        assert disabled(connection) == ""
        with trust.planned(second, OTHER[0]):
            assert disabled(connection) == disabled(second) == NOT_TRUSTED
            with trust.planned(connection, PLAIN[1]), trust.planned(second, OTHER[1]):
                assert disabled(connection) == NOT_TRUSTED
            with trust.planned(connection, PLAIN[1]):
                assert disabled(connection) == NOT_TRUSTED
    assert disabled(connection) == NOT_TRUSTED
    with trust.planned(connection, PLAIN[0]):
        assert disabled(connection) == ""
    with pytest.raises(ZeroDivisionError), trust.planned(connection, OTHER[0]):
        raise ZeroDivisionError
    with trust.planned(connection, PLAIN[0]):
        assert disabled(connection) == ""


def test_of_many_threads_none_plans_another_statement_while_it_is_on(connection: duckdb.DuckDBPyConnection) -> None:
    trust, seen = Trust(COPIES), list[str]()

    def others() -> None:
        own = connection.cursor()
        for _ in range(50):
            with trust.planned(own, OTHER[0]):
                seen.append(disabled(own))

    def plain() -> None:
        own = connection.cursor()
        for _ in range(50):
            with trust.planned(own, PLAIN[0]):
                disabled(own)

    threads = [threading.Thread(target=each) for each in (others, plain, others, plain)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [NOT_TRUSTED] * 100


def test_where_it_cannot_be_turned_off_nothing_is_run(connection: duckdb.DuckDBPyConnection) -> None:
    trust, second = Trust(COPIES), connection.cursor()
    with trust.planned(connection, PLAIN[0]):
        pass
    second.close()
    with pytest.raises(duckdb.Error), trust.planned(second, OTHER[0]):
        raise AssertionError("it was run")


def test_a_locked_database_leaves_it_off(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET lock_configuration = true")
    with Trust(COPIES).planned(connection, PLAIN[0]):
        assert disabled(connection) == NOT_TRUSTED


# --- in a session ----------------------------------------------------------------------------------------------------


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Connection]:
    (tmp_path / "m.yaml").write_text(
        POLICY.replace("    max_rows_per_unit: 5\n", "    max_rows_per_unit: 5\n    prepared: true\n")
    )
    with duckdb.connect(str(tmp_path / "m.duckdb")) as data:
        data.execute(MADE)
    dpsql.prepare(tmp_path / "m.yaml")
    with dpsql.connect(tmp_path / "m.yaml") as opened:
        yield opened


def setting(con: Connection) -> str:
    engine = con.service.engine
    assert isinstance(engine, DuckDBEngine)
    return disabled(engine._connection)


def test_a_sum_over_a_copy_is_planned_with_it_and_a_join_with_nothing_is_not(con: Connection) -> None:
    """The clip of the twin in `test_clips_stay` holds, after a plain statement and before the next."""
    for _ in range(2):
        assert con.sql("SELECT SUM(x) AS s FROM log").run(epsilon=1e20, fresh=True).rows == ((50,),)
        assert setting(con) == ("" if TWO else NOT_TRUSTED)
        for sql in CLIPPED:
            (row,) = con.sql(sql.format(SIDES[0])).run(epsilon=1e20, fresh=True).rows
            assert row == (20,) and setting(con) == NOT_TRUSTED


def test_nothing_but_this_can_be_set(con: Connection) -> None:
    engine = con.service.engine
    assert isinstance(engine, DuckDBEngine)
    for text in (
        "SET enable_external_access = true", "SET allowed_configs = ['threads']", "RESET allowed_configs",
        "SET lock_configuration = false", "PRAGMA disable_optimizer", "SET default_collation = 'nocase'",
        "SET threads = 1", "SET allowed_paths = ['/']",
    ):  # fmt: skip
        with pytest.raises(duckdb.Error):
            engine._connection.execute(text)


def test_without_copies_it_stays_locked(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(POLICY)
    with duckdb.connect(str(tmp_path / "m.duckdb")) as data:
        data.execute(MADE)
    with dpsql.connect(tmp_path / "m.yaml") as con:
        con.sql("SELECT SUM(x) AS s FROM log").run(epsilon=1e20)
        engine = con.service.engine
        assert isinstance(engine, DuckDBEngine) and setting(con) == NOT_TRUSTED
        with pytest.raises(duckdb.Error):
            engine._connection.execute("SET disabled_optimizers = ''")
