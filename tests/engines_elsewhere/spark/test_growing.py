"""Growing tables over Spark: no row of a period that is not read moves an integer."""

from __future__ import annotations

import pytest

from dpsql.core.printing.relational_nodes import Emitter
from dpsql.spelling.spark_functions import SPARK
from tests.engines_elsewhere.spark.bare import Bare
from tests.engines_elsewhere.spark.servers import Server
from tests.support.growing_town import TownElsewhere, moved_outside, town_rows
from tests.support.rider_town import RidersElsewhere, as_duckdb_counts, rows_of_riders


@pytest.mark.long_on_spark
def test_no_row_outside_the_region_moves_an_integer(cluster: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ", ".join(
        f"({db}, CAST({'NULL' if day is None else repr(str(day))} AS DATE), {station}, {minutes})"
        for db, (day, station, minutes) in town_rows()[0]
    )
    schema = cluster.new_schema(
        "CREATE TABLE SCHEMA.trips AS SELECT CAST(col1 AS INT) AS db, col2 AS day, CAST(col3 AS BIGINT) AS station, "
        f"CAST(col4 AS BIGINT) AS minutes FROM VALUES {rows}"
    )
    bare = Bare(cluster.address, SPARK)
    moved, outside = moved_outside(TownElsewhere(bare, f"{schema}.trips"))
    assert moved == 0 and outside > 1_000
    monkeypatch.setattr(Emitter, "_of_periods", lambda self, node, read, env: self.tables(node.table))
    assert moved_outside(TownElsewhere(bare, f"{schema}.trips"), 17)[0] > 2
    cluster.drop(schema)


@pytest.mark.long_on_spark
def test_one_rider_s_day_counts_as_on_duckdb(cluster: Server) -> None:
    made = []
    for table, day, number in (("trips", "day", "station"), ("walks", "on_day", "km")):
        rows = ", ".join(
            f"({db}, {rider or 'NULL'}, CAST({'NULL' if on is None else repr(str(on))} AS DATE), {n})"
            for name, db, (rider, on, n) in rows_of_riders() if name == table
        )  # fmt: skip
        made.append(
            f"CREATE TABLE SCHEMA.{table} AS SELECT CAST(col1 AS INT) AS db, CAST(col2 AS BIGINT) AS rider, "
            f"col3 AS {day}, CAST(col4 AS BIGINT) AS {number} FROM VALUES {rows}"
        )
    schema = cluster.new_schema(*made)
    assert as_duckdb_counts(RidersElsewhere(Bare(cluster.address, SPARK), schema)) > 30
    cluster.drop(schema)
