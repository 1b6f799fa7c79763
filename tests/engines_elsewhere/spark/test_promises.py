"""What is measured of promises and of public tables is what DuckDB measures of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.core.engine import Engine
from dpsql.core.policy.server_address import parse_server
from dpsql.core.policy.source import parse_source
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines import promises
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.spark.engine import SparkEngine
from dpsql.engines.spark.relations import Wanted
from tests.engines_elsewhere.promises import QUESTIONS, TABLES, for_duckdb


@pytest.fixture(scope="module")
def both(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    folder, con = tmp_path_factory.mktemp("promises"), duckdb.connect()
    con.execute(for_duckdb())
    for table in TABLES:
        con.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
    here, there = (
        DuckDBEngine.wrap(con, optimizers="ours"),
        SparkEngine.open(parse_server(server), [_files(folder, t) for t in TABLES]),
    )
    yield here, there
    here.close()
    there.close()
    con.close()


def _files(folder: Path, table: str) -> Wanted:
    return Wanted(table, source=parse_source(f"read_parquet('{folder}/{table}.parquet')", remote=True))


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_measures_what_duckdb_measures(both: tuple[Engine, Engine], question: str) -> None:
    wanted, found = (QUESTIONS[question](engine) for engine in both)
    assert found == wanted and type(found) is type(wanted)


def test_what_is_not_there(both: tuple[Engine, Engine]) -> None:
    with pytest.raises(CannotOpen):
        promises.nulls(both[1], "nobody", "x")
    with pytest.raises(EngineError):
        promises.nulls(both[1], "children", "nobody")
