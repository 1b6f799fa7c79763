"""The statistics of a Parquet file leave NaNs out: what DuckDB concludes from them, one row may change for all others.

A file of NaNs and one 1 says that every value is 1. So `x > 100`, which holds for NaN, held for none of its rows, and
as soon as one row more was 200, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsql.dbapi.connection import Connection
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engine.duckdb import DuckDBEngine
from dpsql.release.noisy import exact_totals
from tests.attacks.conftest import DELTA, POLICY, Clinic

NAN = float("nan")
FILES = {"one": [NAN] * 20 + [1.0], "two": [NAN] * 20 + [1.0, 200.0]}
SOURCES = POLICY.partition("  patients:")[0] + "".join(
    f"  {name}:\n    source: read_parquet('{name}.parquet')\n    unit: {{rows: 1}}\n"
    "    columns:\n      x: {type: double, bounds: [0, 1]}\n      y: {type: float, bounds: [0, 1]}\n"
    for name in FILES
)
QUERIES = (
    "SELECT COUNT(*) FROM {} WHERE x > 100",
    "SELECT COUNT(*) FROM {} WHERE y > 100",
    "SELECT COUNT(*) FROM {} WHERE isnan(x)",
    "SELECT COUNT(*) FROM {} WHERE NOT (x <= 100)",
    "SELECT x > 100 AS high, COUNT(*) FROM {} GROUP BY 1",
    "SELECT COUNT(x) FROM {}",
    "SELECT SUM(x) FROM {}",
    "SELECT SUM(y) FROM {}",
)


@pytest.fixture
def sources(make: Callable[..., Clinic]) -> Iterator[Connection]:
    clinic = make(private=False, policy=SOURCES)
    for name, values in FILES.items():
        columns = {"x": pa.array(values, pa.float64()), "y": pa.array(values, pa.float32())}
        path = clinic.folder / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        statistics = pq.read_metadata(path).row_group(0).column(0).statistics
        assert (statistics.min, statistics.max) == (1, max(values[20:]))  # else nothing is shown here
    with clinic.connect() as con:
        yield con


def test_probe_nans_of_a_parquet_file_are_counted(sources: Connection) -> None:
    for sql in QUERIES:
        one, two = (sources.sql(sql.format(name)).plan(epsilon=1, delta=DELTA).releases for name in FILES)
        for before, after in zip(one, two, strict=True):
            a, b = (exact_totals(release, sources._engine, 7) for release in (before, after))
            for i, measured in enumerate(before.measured.measurements):
                moved = sum(abs((a[k][i] if k in a else 0) - (b[k][i] if k in b else 0)) for k in {**a, **b})
                assert moved <= measured.sensitivity.l1, (sql, a, b)


def test_probe_views_of_a_connection_say_that_there_may_be_nans(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"x": pa.array(FILES["one"], pa.float64())}), path)
    believing = {
        "bare": f"FROM '{path}'",
        "called": f"SELECT * FROM read_parquet('{path}', union_by_name = true)",
        "denied": f"SELECT * FROM parquet_scan(['{path}'], can_have_nan = false)",
        "half": f"FROM read_parquet('{path}', can_have_nan = true) UNION ALL FROM '{path}'",
        "through": 'SELECT x > 100 AS high FROM "bare"',
    }
    careful = {
        "told": f"FROM read_parquet('{path}', can_have_nan = true)",
        "several": f"SELECT x FROM parquet_scan(['{path}', '{path}'], hive_partitioning = false, can_have_nan = true)",
        "parquet_of_told": "SELECT 'it''s (' AS said, * FROM told",
        "of_a_table": "FROM visits",
    }
    with duckdb.connect() as con:
        con.execute("CREATE TABLE visits (x DOUBLE)")
        for name, query in (believing | careful).items():
            con.execute(f"CREATE VIEW {name} AS {query}")
        engine = DuckDBEngine.wrap(con)
        engine.register("parquet_frame", pq.read_table(path))
        for name in (*careful, "visits", "parquet_frame"):
            assert engine.table_sql(name)
        engine.register("registered", engine._connection.read_parquet(str(path)))
        for name in (*believing, "registered"):
            with pytest.raises(CannotOpen):
                engine.table_sql(name)
        con.execute(f"CREATE MACRO files() AS TABLE FROM '{path}'")
        con.execute("CREATE VIEW by_macro AS FROM files()")
        with pytest.raises(CannotOpen, match="Parquet"):
            engine.table_sql("by_macro")
        assert engine.table_sql("visits")
