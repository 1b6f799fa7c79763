"""Items 31 to 37 at the engine: what a locked connection still does if hostile SQL should ever get to it.

The first line of defence is that no text of a user gets here; each attack below assumes that it failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.scratch import Scratch

CANARY = "271828182"
hidden_array = np.arange(3)


def plant(folder: Path) -> None:
    """Files next to the data that no query may reach."""
    (folder / "secret.csv").write_text(f"a\n{CANARY}\n")
    (folder / "secret.json").write_text(f'{{"a": {CANARY}}}\n')
    duckdb.execute(f"COPY (SELECT {CANARY} AS a) TO '{folder}/other.parquet'")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with those files and a database; no attack may change it."""
    folder = tmp_path_factory.mktemp("planted")
    plant(folder)
    with duckdb.connect(str(folder / "d.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS x")
        con.execute("CREATE MACRO round(a, b) AS 42")
        con.execute("CREATE MACRO sum(a) AS 42")
        con.execute(f"COPY t TO '{folder}/t.parquet'")
    return folder


@pytest.fixture(scope="module")
def engine(planted: Path) -> Iterator[DuckDBEngine]:
    opened = DuckDBEngine.open(Path("d.duckdb"), {"p": "read_parquet('t.parquet')"}, planted)
    yield opened
    opened.close()


def attacks(folder: Path) -> dict[str, str]:
    secret = f"{folder}/secret.csv"
    return {
        "31 read_csv": f"SELECT * FROM read_csv('{secret}')",
        "31 read_text": f"SELECT * FROM read_text('{secret}')",
        "31 read_blob": f"SELECT * FROM read_blob('{secret}')",
        "31 read_json": f"SELECT * FROM read_json('{folder}/secret.json')",
        "31 glob": f"SELECT * FROM glob('{folder}/*')",
        "31 sniff_csv": f"SELECT * FROM sniff_csv('{secret}')",
        "31 replacement scan of a file": f"SELECT * FROM '{secret}'",
        "31 replacement scan of a quoted name": f'SELECT * FROM "{secret}"',
        "31 parquet_metadata of another file": f"SELECT * FROM parquet_metadata('{folder}/other.parquet')",
        "31 copy to": f"COPY (SELECT 1) TO '{folder}/out.csv'",
        "31 copy over a source": f"COPY (SELECT 1) TO '{folder}/t.parquet'",
        "31 copy from": f"COPY memory.main.x FROM '{secret}'",
        "31 export": f"EXPORT DATABASE '{folder}/out'",
        "31 import": f"IMPORT DATABASE '{folder}/out'",
        "31 attach": f"ATTACH '{folder}/new.duckdb' AS n",
        "31 attach the same file for writing": f"ATTACH '{folder}/d.duckdb' AS n",
        "31 install": "INSTALL httpfs",
        "31 load": "LOAD httpfs",
        "31 secret": "CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET 'y')",
        "31 http": "SELECT * FROM read_csv('https://example.org/x.csv')",
        "31 set": "SET enable_external_access = true",
        "31 set allowed paths": "SET allowed_paths = ['/']",
        "31 reset": "RESET lock_configuration",
        "31 pragma": "PRAGMA enable_profiling",
        "31 profiling to a file": f"SET profiling_output = '{folder}/profile'",
        "31 log to a file": f"SET log_query_path = '{folder}/log'",
        "31 pragma as a call": "CALL enable_logging()",
        "31 detach": "DETACH data",
        "31 use": "USE data",
        "32 a variable of the program": "SELECT * FROM hidden_array",
        "34 environment": "SELECT getenv('HOME')",
        "36 macro": "CREATE MACRO m(x) AS x",
        "36 temporary table": "CREATE TEMP TABLE t AS SELECT 2 AS x",
        "36 view": "CREATE VIEW memory.main.v AS SELECT 2 AS x",
        "36 replaced source": "CREATE OR REPLACE VIEW memory.main.p AS SELECT 2 AS x",
        "36 table in the file": "CREATE TABLE data.main.n AS SELECT 2 AS x",
        "36 insert": "INSERT INTO data.main.t VALUES (2)",
        "36 delete": "DELETE FROM data.main.t",
        "36 variable": "SET VARIABLE a = 1",
        "37 two statements": "SELECT 1; SELECT x FROM data.main.t",
        "37 a hidden second one": "SELECT 1; -- \n DROP VIEW memory.main.p",
        "37 explain": "EXPLAIN ANALYZE SELECT x FROM data.main.t",
        "37 prepare": "PREPARE q AS SELECT x FROM data.main.t",
        "37 call": "CALL duckdb_tables()",
        "37 pivot": "PIVOT data.main.t ON x USING COUNT(*)",
        "37 checkpoint": "CHECKPOINT",
        "37 begin": "BEGIN",
    }


@pytest.mark.parametrize("name", attacks(Path("x")))
def test_items_31_to_37_the_locked_connection_refuses(engine: DuckDBEngine, planted: Path, name: str) -> None:
    before = sorted(p.name for p in planted.iterdir())
    with pytest.raises(EngineError) as caught:
        engine.fetch(attacks(planted)[name])
    assert CANARY not in repr(caught.value) + str(caught.value)
    assert sorted(p.name for p in planted.iterdir()) == before
    for table in ("t", "p"):
        assert engine.fetch(f"SELECT x FROM {engine.table_sql(table)}").columns == ([1],)


def test_item_31_the_lock_itself_holds_below_the_check_of_statements(engine: DuckDBEngine, planted: Path) -> None:
    """`fetch` lets only a SELECT through; the connection below it is locked all the same."""
    kinds = ("31 copy to", "31 copy over", "31 attach", "31 install", "31 load", "31 set", "31 export", "36 insert")
    tried = [sql for name, sql in attacks(planted).items() if name.startswith(kinds) and "same file" not in name]
    assert len(tried) >= 8
    for sql in tried:
        with pytest.raises(duckdb.Error):
            engine._connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    "name", [n for n in attacks(Path("x")) if n.startswith(("31 read", "31 glob", "31 repl", "31 parquet", "32"))]
)
def test_items_31_and_32_the_attacks_work_on_an_open_connection(planted: Path, name: str) -> None:
    """The twin: without the lock these reach what they want, so their failure above is the lock's doing."""
    with duckdb.connect() as con:
        ((found,),) = con.execute(attacks(planted)[name].replace("SELECT *", "SELECT COUNT(*)")).fetchall()
        assert found >= 1


@pytest.fixture(scope="module")
def scratch() -> Iterator[Scratch]:
    opened = Scratch()
    yield opened
    opened.close()


@pytest.mark.parametrize("name", [n for n in attacks(Path("x")) if n.startswith(("31", "32", "34", "37"))])
def test_items_31_to_37_the_scratch_database_refuses_too(scratch: Scratch, planted: Path, name: str) -> None:
    with pytest.raises(EngineError):
        scratch.fetch(attacks(planted)[name])


def test_item_36_functions_of_the_file_shadow_nothing(engine: DuckDBEngine) -> None:
    assert engine.fetch(f"SELECT SUM(x) AS s, round(2.4, 0)::INTEGER AS r FROM {engine.table_sql('t')}").columns == (
        [1],
        [2],
    )


def test_item_36_a_temporary_table_of_the_user_is_not_taken_for_the_real_one() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS x")
        con.execute("CREATE TEMP TABLE t AS SELECT 2 AS x")
        engine = DuckDBEngine.wrap(con, optimizers="ours")
        assert engine.fetch(f"SELECT x FROM {engine.table_sql('t')}").columns == ([1],)
        engine.close()


@pytest.mark.parametrize(
    "name", ["duckdb_tables", "pg_class", "sqlite_master", "information_schema.columns", "pragma_version"]
)
def test_item_33_the_catalogue_is_no_table(engine: DuckDBEngine, name: str) -> None:
    for spelling in (name, f"main.{name}", f"system.{name}", f"system.main.{name}"):
        with pytest.raises(CannotOpen):
            engine.table_sql(spelling)


def test_item_33_describe_shows_no_statistics(tmp_path: Path) -> None:
    """Two databases that differ in their rows alone are described alike."""
    described = []
    for rows in (0, 1000):
        path = tmp_path / f"{rows}.duckdb"
        with duckdb.connect(str(path)) as con:
            con.execute("CREATE TABLE t (x BIGINT, s VARCHAR)")
            con.execute(f"INSERT INTO t SELECT i, 'x' || i FROM range({rows}) r(i)")
        engine = DuckDBEngine.open(path, {}, tmp_path)
        described.append(repr(engine.describe()))
        engine.close()
    assert described[0] == described[1]
