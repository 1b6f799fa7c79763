"""Questions about public tables alone: plain DuckDB's rows, from the engine itself, and nothing private is near."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.core.engine import RawTable
from dpsql.engines.duckdb import engine as module
from dpsql.faces.cli.main import main

MANY = 130_000
"""More rows than one thread of DuckDB takes at a time."""
POLICY = """\
version: 1
name: public
database: d.duckdb
ledger: l.sqlite
units: {person: {}}
budgets: {total: {epsilon: 10}}
tables:
  people:
    unit: {column: id}
    max_rows_per_unit: 1
    columns: {id: {type: bigint}, age: {type: integer, bounds: [0, 100]}}
  odd: {public: true}
  many: {public: true}
  huge: {public: true}
  towns: {public: true, source: read_parquet('towns.parquet')}
  roads: {public: true, source: read_csv('roads.csv')}
"""
DATA = f"""
CREATE TABLE people AS SELECT i AS id, CAST(i % 100 AS INTEGER) AS age FROM range(1000) AS t(i);
CREATE TABLE odd (
    id INTEGER, n BIGINT, h HUGEINT, small UTINYINT, large UBIGINT, money DECIMAL(12,2), wide DECIMAL(38,0), x DOUBLE,
    f FLOAT, s VARCHAR, b BOOLEAN, d DATE, stamp TIMESTAMP, clock TIME, u UUID
);
INSERT INTO odd VALUES
    (1, 9223372036854775807, 170141183460469231731687303715884105727, 255, 18446744073709551615, 9999999999.99,
     99999999999999999999999999999999999999, 'NaN', 0.1, '', true, '2024-02-29', '2024-02-29 23:59:59.999999',
     '23:59:59.999999', '12345678-1234-1234-1234-1234567890ab'),
    (2, -9223372036854775808, -170141183460469231731687303715884105727, 0, 0, -0.01, -1, 'infinity', 1e38,
     'Ünïcödé ''quoted'' \\ ', false, '0001-01-01', '0001-01-01', '00:00:00', '00000000-0000-0000-0000-000000000000'),
    (3, 0, 0, 7, 7, 0, 0, -0.0, -0.0, 'b', NULL, '9999-12-31', '9999-12-31 12:00:00', '12:00:00', NULL),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, 0, 18446744073709551616, 7, 8, 1.10, 2, '-infinity', 'NaN', 'B', true, NULL, NULL, NULL, NULL),
    (6, 5, -18446744073709551617, 1, 1, 1.1, 3, 5e-324, 0.3, 'Σ', false, '1970-01-01', '1970-01-01', '01:02:03', NULL);
CREATE TABLE many AS
SELECT i AS id, i * 7919 % {MANY} AS mixed, CASE WHEN i % 11 > 0 THEN i % 1000 END AS part FROM range({MANY}) AS t(i);
CREATE TABLE huge AS SELECT {"9" * 38}::DECIMAL(38,0) AS wide FROM range(2);
"""
TOWNS = "SELECT i AS id, 'town ' || i % 7 AS name, CASE WHEN i % 5 > 0 THEN i % 3 END AS region FROM range(40) AS t(i)"
ROADS = 'SELECT i AS "from", i * 3 % 44 AS "to", i / 8 AS length FROM range(60) AS t(i)'

OTHERWISE = (
    "threads = 4", "default_null_order = 'nulls_first'", "default_order = 'desc'", "ieee_floating_point_ops = false",
    "integer_division = true", "TimeZone = 'Asia/Tokyo'",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("public")
    (made / "public.yaml").write_text(POLICY)
    with duckdb.connect(str(made / "d.duckdb")) as con:
        con.execute(DATA)
        con.execute(f"COPY ({TOWNS}) TO '{made / 'towns.parquet'}'")
        con.execute(f"COPY ({ROADS}) TO '{made / 'roads.csv'}'")
    return made


def load(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(DATA)
    con.execute(f"CREATE TABLE towns AS {TOWNS}")
    con.execute(f"CREATE TABLE roads AS {ROADS}")


@pytest.fixture(scope="module")
def sessions(folder: Path) -> Iterator[dict[str, dpsql.Connection]]:
    """Opened from the policy, and on a connection whose owner has set everything otherwise."""
    with duckdb.connect() as theirs:
        load(theirs)
        for setting in OTHERWISE:
            theirs.execute(f"SET {setting}")
        wrapped = folder / "wrapped.yaml"
        stored = POLICY.replace("database: d.duckdb\n", "")
        for source in ("read_parquet('towns.parquet')", "read_csv('roads.csv')"):
            stored = stored.replace(f", source: {source}", "")
        wrapped.write_text(stored)
        with (
            dpsql.connect(folder / "public.yaml") as opened,
            dpsql.connect(theirs, policy=wrapped, optimizers="ours") as over,
        ):
            yield {"opened": opened, "wrapped": over}


@pytest.mark.parametrize("way", ["opened", "wrapped"])
def test_groups_come_in_the_order_of_their_keys(way: str, sessions: dict[str, dpsql.Connection]) -> None:
    rows = sessions[way].sql("SELECT region, COUNT(*) AS n FROM towns GROUP BY region").run().fetchall()
    assert [region for region, _ in rows] == [0, 1, 2, None]


def test_only_the_answer_leaves_the_engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement, two rows, no second database; not so if anything private is asked for as well."""
    heights: list[int] = []
    original = module.DuckDBEngine.fetch

    def fetch(engine: module.DuckDBEngine, sql: str) -> RawTable:
        found = original(engine, sql)
        heights.append(found.height)
        return found

    monkeypatch.setattr(module.DuckDBEngine, "fetch", fetch)
    with dpsql.connect(folder / "public.yaml") as con:
        assert len(con.sql("SELECT mixed % 2 AS k, COUNT(*) AS n FROM many GROUP BY k ORDER BY k").run()) == 2
        assert heights == [2] and con.service.scratch._connection is None
        heights.clear()
        beside = "SELECT n, (SELECT MAX(id) FROM many) AS m FROM (SELECT COUNT(*) AS n FROM people)"
        assert con.sql(beside).run(epsilon=1).rows[0][1] == MANY - 1
        assert heights == [1, MANY] and con.service.scratch._connection is not None


def test_what_fails_in_the_engine_is_one_refusal(
    folder: Path, capsys: pytest.CaptureFixture[str], sessions: dict[str, dpsql.Connection]
) -> None:
    """A sum with more digits than there are."""
    sums = "SELECT SUM(wide) AS s FROM huge"
    with pytest.raises(dpsql.EngineError, match="DP901"):
        sessions["opened"].sql(sums).run()
    assert main(["query", str(folder / "public.yaml"), sums]) != 0
    shown = capsys.readouterr()
    assert "DP901" in shown.err and "Traceback" not in shown.err + shown.out and "9999" not in shown.err + shown.out


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_it_and_the_session_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query would take hours."""
    original, pressed = module.read, []

    def read(*given: Any) -> RawTable:
        if not pressed:
            pressed.append(True)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return original(*given)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with dpsql.connect(folder / "public.yaml") as con:
            query = con.sql("SELECT COUNT(*) AS n FROM many a JOIN many b ON (a.id + b.mixed) % 7 = 3")
            query.plan()
            monkeypatch.setattr(module, "read", read)
            with pytest.raises(KeyboardInterrupt):
                query.run()
            assert pressed and con.sql("SELECT COUNT(*) AS n FROM many").run().fetchall() == [(MANY,)]
    finally:
        signal.signal(signal.SIGINT, before)
