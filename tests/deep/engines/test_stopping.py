"""Queries that are stopped while they begin"""

from __future__ import annotations

import threading

import duckdb
import pytest

from dpsql.core.engine import RawTable
from dpsql.core.stopping import Stop
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.duckdb import engine as duckdb_engine
from dpsql.engines.duckdb.engine import DuckDBEngine
from tests.engines.test_stopping import PATIENCE

ENDLESS = "SELECT COUNT(*) FROM range(9000000000000) t(i) WHERE i % 7 <> 3"


@pytest.mark.parametrize("thread", ["main", "another"])
@pytest.mark.parametrize("moment", ["before", "within"])
def test_closing_stops_a_query_that_is_about_to_begin(
    moment: str, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB forgets an interrupt that comes before it has begun; the one who closes waits for the query's end."""
    engine = DuckDBEngine.wrap(duckdb.connect(), optimizers="ours")
    closing = threading.Thread(target=engine.close, daemon=True)
    told = threading.Event()
    interrupt, read = engine.interrupt, duckdb_engine.read
    failures: list[EngineError] = []

    def interrupted() -> None:
        interrupt()
        told.set()

    def close() -> None:
        if not closing.ident:
            closing.start()
            assert told.wait(PATIENCE)

    def reading(connection: duckdb.DuckDBPyConnection, sql: str, stop: Stop) -> RawTable:
        close()
        return read(connection, sql, stop)

    def ask() -> None:
        try:
            engine.in_snapshot(lambda: (moment == "before" and close(), engine.fetch(ENDLESS)))
        except EngineError as failure:
            failures.append(failure)

    monkeypatch.setattr(engine, "interrupt", interrupted)
    monkeypatch.setattr(duckdb_engine, "read", reading)
    if thread == "main":
        ask()
    else:
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(PATIENCE)
    closing.join(PATIENCE)
    assert len(failures) == 1 and not closing.is_alive()
