"""DuckDB keeps the contract of all engines, however it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.core.engine import Engine
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.public_facts import frequency
from tests.support.engine_contract import EngineContract, Words, failures, one
from tests.support.engines import ENGINES

WORDS = Words(
    rows=lambda n: f"range({n}) AS r(i)",
    fail=lambda text: f"error('canary ' || {text})",
    long="SELECT COUNT(*) FROM range(100000) a(i), range(400000) b(i) WHERE (a.i * b.i) % 7 = 3",
    types=("BIGINT", "VARCHAR"),
    failures=failures(lambda text: f"error('canary ' || {text})"),
)


@pytest.fixture(params=ENGINES, ids=lambda make: make.__name__)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    opened: Engine = request.param(tmp_path)
    yield opened
    opened.close()


class TestDuckDB(EngineContract):
    @pytest.fixture
    def words(self) -> Words:
        return WORDS

    @pytest.mark.parametrize("type_", ["BIGINT", "HUGEINT"])
    def test_integer_division_truncates_towards_zero(self, engine: Engine, type_: str) -> None:
        for a, b, quotient in ((-7, 2, -3), (7, -2, -3), (7, 2, 3), (-7, -2, 3), (-1, 2, 0), (-8, 2, -4)):
            assert one(engine, f"CAST({a} AS {type_}) // CAST({b} AS {type_})") == quotient

    def test_its_own_integers(self, engine: Engine) -> None:
        assert one(engine, "18446744073709551615::UBIGINT") == 2**64 - 1 and one(engine, "127::TINYINT") == 127

    def test_a_sibling_is_set_and_locked_as_the_engine_is(self, engine: Engine) -> None:
        settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
        assert engine.sibling().fetch(settings).columns == engine.fetch(settings).columns
        assert engine.sibling().notes == engine.notes and engine.sibling().version == engine.version


def test_a_snapshot_is_of_one_moment(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute("CREATE TABLE pub AS SELECT 1 AS k")
        engine = DuckDBEngine.wrap(con, optimizers="ours")

        def inside() -> tuple[int, int]:
            before = frequency(engine, "pub", ["k"])
            con.execute("INSERT INTO pub VALUES (1)")
            return before, frequency(engine, "pub", ["k"])

        assert engine.in_snapshot(inside) == (1, 1)
        assert frequency(engine, "pub", ["k"]) == 2
        engine.close()
