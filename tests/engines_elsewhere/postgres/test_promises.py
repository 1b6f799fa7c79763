"""What is measured of promises and of public tables is what DuckDB measures of the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dpsql.core.engine import Engine
from dpsql.core.policy.server_address import parse_server
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines import promises
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from tests.engines_elsewhere.postgres.servers import Server
from tests.engines_elsewhere.promises import QUESTIONS, ROWS, TABLES, for_duckdb


@pytest.fixture(scope="module")
def both(server: Server) -> Iterator[tuple[Engine, Engine]]:
    name = server.new_database(ROWS)
    con = duckdb.connect()
    con.execute(for_duckdb())
    here = DuckDBEngine.wrap(con, optimizers="ours")
    there = PostgresEngine.open(parse_server(server.address(name)), [Wanted(table) for table in TABLES])
    yield here, there
    here.close()
    there.close()
    con.close()
    server.drop(name)


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_measures_what_duckdb_measures(both: tuple[Engine, Engine], question: str) -> None:
    wanted, found = (QUESTIONS[question](engine) for engine in both)
    assert found == wanted and type(found) is type(wanted)


def test_the_questions_have_different_answers(both: tuple[Engine, Engine]) -> None:
    assert len({str(ask(both[0])) for ask in QUESTIONS.values()}) > 12


def test_what_is_not_there(both: tuple[Engine, Engine]) -> None:
    with pytest.raises(CannotOpen):
        promises.nulls(both[1], "nobody", "x")
    with pytest.raises(EngineError):
        promises.nulls(both[1], "children", "nobody")
