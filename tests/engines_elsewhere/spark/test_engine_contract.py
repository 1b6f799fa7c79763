"""Spark keeps the contract of all engines, over tables of its catalogue and over Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.core.engine import Engine
from dpsql.core.ir.types import HUGEINT
from dpsql.core.policy.server_address import parse_server, parse_stored
from dpsql.core.policy.source import parse_source
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.spark.engine import SparkEngine
from dpsql.engines.spark.relations import Wanted
from tests.engines_elsewhere.spark.servers import Server
from tests.support.engine_contract import EngineContract, FailureContract, Words, failures
from tests.support.engines import CANARY

FAIL: Callable[[str], str] = lambda text: f"CAST('canary ' || {text} AS INT)"  # noqa: E731
ENDLESS = "SELECT a.id AS n FROM range(0, 9000000000000, 1, 2) AS a WHERE a.id % 7 = 9"
"""It keeps no rows, and shuffles none: Spark may submit a stage after the query that it is of was cancelled."""
WORDS = Words(
    rows=lambda n: f"range(0, {n}, 1, 1) AS r(i)",
    fail=FAIL,
    long=ENDLESS,
    types=("BIGINT", "VARCHAR"),
    failures={
        **failures(FAIL),
        "another overflow": lambda t: f"SELECT SUM(i + 9223372036854775800) AS x FROM {t}",
        "raised by a function": lambda t: f"SELECT raise_error(t) AS x FROM {t}",
        "an element that is not there": lambda t: f"SELECT array(t)[CAST(i + 7 AS INT)] AS x FROM {t}",
        "a file of the cluster": lambda t: "SELECT * FROM text.`/etc/nothing`",
        "a setting": lambda t: "SET spark.sql.ansi.enabled = false",
        "a query that inserts": lambda t: f"WITH w AS (SELECT 1 AS a) INSERT INTO numbers SELECT a FROM w, {t}",
        "a script": lambda t: f"BEGIN SELECT t FROM {t}; END",
    },
)
NUMBERS = (
    f"CREATE TABLE SCHEMA.numbers USING parquet AS SELECT id AS i, 'x{CANARY}' AS t FROM range(3) "
    "UNION ALL SELECT NULL, NULL"
)


def opened(server: Server, schema: str, *tables: str) -> SparkEngine:
    wanted = [Wanted(name, parse_stored(f"spark_catalog.{schema}.{name}", "spark")) for name in tables]
    return SparkEngine.open(parse_server(server.address), wanted)


def files_opened(server: Server, folder: Path | str, name: str) -> SparkEngine:
    wanted = [Wanted(name, source=parse_source(f"read_parquet('{folder}')", remote=True))]
    return SparkEngine.open(parse_server(server.address), wanted)


@pytest.fixture(scope="module")
def numbers(cluster: Server) -> Iterator[str]:
    name = cluster.new_schema(NUMBERS)
    yield name
    cluster.drop(name)


class TestTables(EngineContract, FailureContract):
    @pytest.fixture
    def engine(self, cluster: Server, numbers: str) -> Iterator[Engine]:
        engine = opened(cluster, numbers, "numbers")
        yield engine
        engine.close()

    @pytest.fixture
    def words(self) -> Words:
        return WORDS

    def test_large_integers_are_exact(self, engine: Engine) -> None:
        """Up to 38 digits; what is larger has no spelling."""
        d = engine.dialect
        edges = [e for p in (53, 62, 63, 64, 65, 100, 126) for e in (2**p - 1, 2**p, 2**p + 1)] + [10**38 - 1, 0]
        values = [*edges, *(-e for e in edges), None]
        rows = d.values(
            [f"{i}, {d.cast(d.constant(v, HUGEINT), HUGEINT)}" for i, v in enumerate(values)], ["i", "v"], "t"
        )
        table = engine.fetch(f"SELECT v AS h FROM {rows} ORDER BY i")
        assert table.columns[0] == values and {type(v) for v in table.columns[0]} == {int, type(None)}
        for beyond in (10**38, 2**127 - 1, -(2**127)):
            with pytest.raises(Rejected, match="DP106"):
                d.constant(beyond, HUGEINT)


@pytest.mark.long_on_spark  # what is pinned differs, and that test_snapshots.py tries
class TestFiles(EngineContract):
    @pytest.fixture
    def engine(self, cluster: Server, numbers: str) -> Iterator[Engine]:
        engine = files_opened(cluster, cluster.folder / "warehouse" / f"{numbers}.db" / "numbers", "numbers")
        yield engine
        engine.close()

    @pytest.fixture
    def words(self) -> Words:
        return WORDS

    test_large_integers_are_exact = TestTables.test_large_integers_are_exact
