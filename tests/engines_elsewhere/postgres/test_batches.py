"""Batches and summaries over PostgreSQL: numbers before noise, limits and all, and answers are those of DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.engines_elsewhere.postgres.servers import Server
from tests.support.board_elsewhere import answers, exactly
from tests.support.summary_board import POLICY, TABLES, make_board


def test_both_engines_give_the_same(tmp_path: Path, one_server: Server) -> None:
    here, there = make_board(tmp_path / "here"), tmp_path / "there.yaml"
    name = one_server.new_database(TABLES.replace("AS FROM (VALUES ('a'), ('b')) v(ward)", "(ward VARCHAR)"))
    with duckdb.connect(str(here.with_name("board.duckdb")), read_only=True) as db, one_server.admin(name) as admin:
        for table in ("flights", "visits", "tours", "wards"):
            rows = db.execute(f"FROM {table}").fetchall()
            values = ", ".join(["%s"] * len(rows[0]))
            admin.cursor().executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # type: ignore[arg-type]
    there.write_text(POLICY.replace("database: board.duckdb", f"database: '{one_server.address(name)}'"))
    assert exactly(there) == exactly(here)
    assert answers(there) == answers(here)
    one_server.drop(name)
