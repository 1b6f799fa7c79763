"""A DuckDB connection of the user's: it works, the notes say what that means, and nothing of it is changed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen, Rejected
from tests.support.small_shop import COUNT, MEANS, Shop

FRAMES_ONLY = """\
version: 1
name: frames
units:
  customer: {}
tables:
  orders:
    unit: {column: customer}
    max_rows_per_unit: 5
    columns:
      customer: {type: bigint}
      city:     {type: varchar, domain: [Bonn, Lyon], nullable: false}
      amount:   {type: double, bounds: [0, 100]}
ledger: frames.ledger.sqlite
ledger_head: state/head.json
budgets:
  total: {epsilon: 3000000, delta: 1e-6}
"""


def state(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Everything a connection is set to, what it holds, and whether a transaction is open.

    But for the one setting that is made: tests/engines/test_clips_stay.py.
    """
    moving = "('memory_limit', 'max_memory', 'duckdb_memory', 'disabled_optimizers')"
    settings = connection.execute(f"SELECT name, value FROM duckdb_settings() WHERE name NOT IN {moving} ORDER BY 1")
    found = settings.fetchall()
    for query in (
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() ORDER BY ALL",
        "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
        "SELECT database_name, path, readonly FROM duckdb_databases() ORDER BY ALL",
        "SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL",
    ):
        found += connection.execute(query).fetchall()
    return found


def test_it_works_says_so_and_changes_nothing(shop: Shop) -> None:
    with duckdb.connect(str(shop.folder / "shop.duckdb")) as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        before = state(connection)
        with dpsql.connect(connection, policy=shop.policy, optimizers="ours") as con:
            release = con.execute(MEANS, epsilon=1000)
            assert [row[0] for row in release.rows] != [] and len(release.rows) == 3
            assert any("not locked" in note for note in release.notes)
            assert state(connection) == before
        assert state(connection) == before
        # The user's connection is still the user's: it writes, and reads files.
        connection.execute("CREATE TABLE mine AS SELECT 1 AS x")
        assert connection.execute(f"SELECT COUNT(*) FROM glob('{shop.policy.parent}/*')").fetchall()[0][0] > 0
    with dpsql.connect(shop.policy) as con:
        assert not any("not locked" in note for note in con.execute(COUNT, epsilon=1).notes)
    assert shop.spent() == 1001


def test_what_the_user_writes_is_seen_and_an_open_transaction_is_left_alone(shop: Shop) -> None:
    connection = duckdb.connect(str(shop.folder / "shop.duckdb"))
    with connection, dpsql.connect(connection, policy=shop.policy, optimizers="ours") as con:
        few = con.execute(COUNT, epsilon=100000, fresh=True).rows[0][0]
        connection.execute("BEGIN")
        connection.execute("INSERT INTO orders SELECT 1000 + i, 'Bonn', 1, '' FROM range(500) t(i)")
        assert con.execute(COUNT, epsilon=100000, fresh=True).rows[0][0] == pytest.approx(few, abs=10)  # not committed
        connection.execute("COMMIT")
        assert con.execute(COUNT, epsilon=100000, fresh=True).rows[0][0] == pytest.approx(few + 500, abs=10)


def frame_of(kind: str) -> object:
    columns = {
        "customer": [i // 2 for i in range(1000)],
        "city": ["Bonn" if i % 4 else "Lyon" for i in range(1000)],
        "amount": [float(i % 50) for i in range(1000)],
    }
    match kind:
        case "pandas":
            return pd.DataFrame(columns)
        case "polars":
            return pl.DataFrame(columns)
        case _:
            return pa.table(columns)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_is_a_table(tmp_path: Path, kind: str) -> None:
    policy = tmp_path / "frames.yaml"
    policy.write_text(FRAMES_ONLY)
    connection = duckdb.connect()
    before = state(connection)
    with dpsql.connect(connection, policy=policy, frames={"orders": frame_of(kind)}, optimizers="ours") as con:
        rows = con.execute("SELECT city, COUNT(*), AVG(amount) FROM orders GROUP BY city", epsilon=30000).rows
        assert [(city, count) for city, count, _ in rows] == [("Bonn", 750), ("Lyon", 250)]
        assert rows[0][2] == pytest.approx(sum(i % 50 for i in range(1000) if i % 4) / 750, abs=0.05)
        assert state(connection) == before
    assert state(connection) == before
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT * FROM orders")


def test_a_frame_for_a_table_of_the_policys_database_is_refused(shop: Shop) -> None:
    with pytest.raises(Rejected) as refusal:
        dpsql.connect(shop.policy, frames={"orders": frame_of("pandas")})
    assert [d.code for d in refusal.value.diagnostics] == ["DP903"]


def test_a_connection_without_a_policy_is_refused() -> None:
    with duckdb.connect() as connection, pytest.raises(Rejected) as refusal:
        dpsql.connect(connection)
    assert [d.code for d in refusal.value.diagnostics] == ["DP903"]


def test_a_closed_connection_is_refused(shop: Shop) -> None:
    connection = duckdb.connect(str(shop.folder / "shop.duckdb"))
    connection.close()
    with pytest.raises(CannotOpen) as refusal:
        dpsql.connect(connection, policy=shop.policy, optimizers="ours")
    assert [d.code for d in refusal.value.diagnostics] == ["DP006"]


def test_a_file_that_is_open_in_this_process_is_explained(shop: Shop) -> None:
    with duckdb.connect(str(shop.folder / "shop.duckdb")), pytest.raises(CannotOpen) as refusal:
        dpsql.connect(shop.policy)
    text = str(refusal.value)
    assert "DP006" in text and "already open in this process" in text and "policy=…, optimizers='ours')" in text
    with dpsql.connect(shop.policy) as con:  # the refusal left nothing behind
        assert len(con.execute(COUNT, epsilon=1).rows) == 1


def test_a_file_that_another_process_writes_is_explained(shop: Shop) -> None:
    writer = textwrap.dedent(f"""
        import duckdb, sys
        connection = duckdb.connect({str(shop.folder / "shop.duckdb")!r})
        print("open", flush=True)
        sys.stdin.read()
    """)
    command = [sys.executable, "-c", writer]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(CannotOpen) as refusal:
            dpsql.connect(shop.policy)
        process.stdin.close()
    assert "DP006" in str(refusal.value) and "another process" in str(refusal.value)


def test_many_sessions_share_a_file(shop: Shop) -> None:
    with dpsql.connect(shop.policy) as first, dpsql.connect(shop.policy, threads=1) as second:
        assert len(first.execute(MEANS, epsilon=1).rows) == len(second.execute(MEANS, epsilon=1, fresh=True).rows) == 3
        assert first.budget.spent.epsilon == second.budget.spent.epsilon == Fraction(2)
