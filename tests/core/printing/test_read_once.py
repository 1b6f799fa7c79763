"""What counts rows and weighs them, or compares sums with a limit and adds them, reads its local block once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.duckdb import DuckDB
from dpsql.engines.duckdb.locked.optimizers import restrict
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.postgres_functions import POSTGRES
from dpsql.spelling.spark_functions import SPARK
from tests.support.waist_queries import LIMITS, READ_ONCE, of_dialect, read_once


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        restrict(con)
        con.execute("CREATE TABLE ids (id BIGINT, x INTEGER, y DOUBLE, t VARCHAR)")
        con.execute("INSERT INTO ids SELECT i % 7, i % 11, i % 4, chr(97 + (i % 3)::INTEGER) FROM range(300) AS r(i)")
        yield con


def scans(engine: duckdb.DuckDBPyConnection, statement: str) -> int:
    """How often DuckDB reads a table."""
    ((_, text),) = engine.execute(f"EXPLAIN {statement}").fetchall()
    return str(text).upper().count("SEQ SCAN")


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SPARK], ids=lambda d: d.name)
def test_a_statement_names_its_table_once(dialect: Dialect) -> None:
    named = [len(re.findall(r"FROM [\"`]ids", statement)) for statement in read_once(dialect)]
    assert len(named) > len(READ_ONCE) and set(named) == {1}


def test_what_is_named_twice_is_kept(engine: duckdb.DuckDBPyConnection) -> None:
    kept = [s for s in read_once(DUCKDB) if "AS MATERIALIZED" in s]
    assert len(kept) > len(READ_ONCE)
    assert [s for s in read_once(DUCKDB) if scans(engine, s) != 1] == []
    assert any(scans(engine, s.replace("AS MATERIALIZED", "AS NOT MATERIALIZED")) > 1 for s in kept), "the broken twin"
    for statement in read_once(DUCKDB):  # and it is said, where DuckDB would keep it anyhow
        for name in re.findall(r"\b([rq]) AS \(", statement):
            assert len(re.findall(rf"(?:FROM|JOIN) {name}\b", statement)) == 1


@pytest.mark.parametrize("sql", READ_ONCE)
@pytest.mark.parametrize("limits", LIMITS, ids=repr)
def test_windows_give_the_same_integers(
    engine: duckdb.DuckDBPyConnection, sql: str, limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def integers() -> list[list[Any]]:
        return [sorted(engine.execute(s).fetchall(), key=str) for s in of_dialect(sql, DUCKDB, limits)]

    joined = integers()
    monkeypatch.setattr(DuckDB, "weighs_in_windows", True)
    assert integers() == joined


def test_which_groups_are_kept_rests_on_their_keys_alone(engine: duckdb.DuckDBPyConnection) -> None:
    """And not on how many rows or values they have: the sums and the values of a query are of the same groups."""
    sql = "SELECT CAST(y AS INTEGER) AS k, COUNT(*), COUNT(DISTINCT x) FROM ids WHERE id = 3 GROUP BY k"
    rows, values = ({row[0] for row in engine.execute(s).fetchall()} for s in of_dialect(sql, DUCKDB, LIMITS[1]))
    assert rows == values and len(rows) == 2
