"""Growing tables over PostgreSQL: no row of a period that is not read moves an integer."""

from __future__ import annotations

import pytest

from dpsql.core.printing.relational_nodes import Emitter
from dpsql.spelling.postgres_functions import POSTGRES
from tests.engines_elsewhere.postgres.bare import Bare
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.growing_town import TownElsewhere, moved_outside, town_rows
from tests.support.rider_town import RidersElsewhere, as_duckdb_counts, rows_of_riders

TABLE = "CREATE TABLE trips (db INT, day DATE, station BIGINT, minutes BIGINT)"


def test_no_row_outside_the_region_moves_an_integer(one_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    name = one_server.new_database(TABLE)
    with one_server.admin(name) as admin:
        rows = [(db, *row) for db, row in town_rows()[0]]
        admin.cursor().executemany("INSERT INTO trips VALUES (%s, %s, %s, %s)", rows)
        admin.execute("INSERT INTO trips SELECT db, 'infinity', 1, 5 FROM generate_series(1, 306) AS t(db)")
    bare = Bare(one_server, POSTGRES, name)
    moved, outside = moved_outside(TownElsewhere(bare, "public.trips"))
    assert moved == 0 and outside > 1_000
    monkeypatch.setattr(Emitter, "_of_periods", lambda self, node, read, env: self.tables(node.table))
    assert moved_outside(TownElsewhere(bare, "public.trips"))[0] > 5
    bare.close()
    one_server.drop(name)


def test_one_rider_s_day_counts_as_on_duckdb(one_server: Server) -> None:
    name = one_server.new_database(
        "CREATE TABLE trips (db INT, rider BIGINT, day DATE, station BIGINT); "
        "CREATE TABLE walks (db INT, rider BIGINT, on_day DATE, km BIGINT)"
    )
    with one_server.admin(name) as admin:
        for table, db, row in rows_of_riders():
            admin.cursor().execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", (db, *row))
    bare = Bare(one_server, POSTGRES, name)
    assert as_duckdb_counts(RidersElsewhere(bare, "public")) > 30
    bare.close()
    one_server.drop(name)
