"""PostgreSQL keeps the contract of all engines, in each version that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpsql.core.engine import Engine
from dpsql.core.policy.server_address import parse_server
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.engine_contract import EngineContract, FailureContract, Words, failures
from tests.support.engines import CANARY

FAIL: Callable[[str], str] = lambda text: f"CAST('canary ' || {text} AS integer)"  # noqa: E731
WORDS = Words(
    rows=lambda n: f"generate_series(0, {n - 1}) AS r(i)",
    fail=FAIL,
    long="SELECT COUNT(*) FROM generate_series(1, 99999) a(i), generate_series(1, 99999) b(i) WHERE a.i + b.i < 0",
    types=("BIGINT", "VARCHAR"),
    failures={
        **failures(FAIL),
        "a number too large": lambda t: f"SELECT CAST(i + 1 AS float8) * 1e308 * 1e308 AS x FROM {t}",
        "a sleep that is told to end": lambda t: "SELECT pg_terminate_backend(pg_backend_pid()) AS x",
        "a file of the server": lambda t: "SELECT pg_read_file('/etc/hostname') AS x",
        "a setting": lambda t: "SET search_path = public",
        "the end of the transaction": lambda t: "COMMIT",
    },
)
NUMBERS = f"CREATE TABLE numbers AS SELECT CAST(i AS bigint) AS i, 'x{CANARY}' AS t FROM generate_series(0, 2) AS r(i) "
NUMBERS += "UNION ALL SELECT NULL, NULL"


def opened(server: Server, database: str, *tables: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(database)), [Wanted(name) for name in tables])


@pytest.fixture(scope="module")
def numbers(server: Server) -> Iterator[str]:
    name = server.new_database(NUMBERS)
    yield name
    server.drop(name)


@pytest.fixture
def engine(server: Server, numbers: str) -> Iterator[Engine]:
    engine = opened(server, numbers, "numbers")
    yield engine
    engine.close()


class TestPostgres(EngineContract, FailureContract):
    @pytest.fixture
    def words(self) -> Words:
        return WORDS
