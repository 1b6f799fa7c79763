"""What a Parquet file says of itself and DuckDB believes, one row may change for all: its statistics leave NaNs out.

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

from dpsql.api.connection import Connection
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.files.parquet import believing_views
from tests.support.checklist_clinic import DELTA, POLICY, Clinic

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
            a, b = (exact_totals(release, sources.service.engine, 7) for release in (before, after))
            for i, measured in enumerate(before.measured.measurements):
                moved = sum(abs((a[k][i] if k in a else 0) - (b[k][i] if k in b else 0)) for k in {**a, **b})
                assert moved <= measured.sensitivity.l1, (sql, a, b)


def test_probe_zeros_of_either_sign_are_one_number(make: Callable[..., Clinic]) -> None:
    """A Bloom filter of a row group that has -0.0 only does not have 0.0, and DuckDB asks it for both."""
    columns = "x: {type: double}, y: {type: float}"
    policy = POLICY.partition("  patients:")[0] + (
        f"  zeros:\n    source: read_parquet('zeros.parquet')\n    unit: {{rows: 1}}\n    columns: {{{columns}}}\n"
    )
    clinic = make(private=False, policy=policy)
    path = clinic.folder / "zeros.parquet"
    zeros = "SELECT CASE WHEN i < 0 THEN 1 ELSE -0.0::DOUBLE END AS x, (-0.0::FLOAT) AS y FROM range(5000) t(i)"
    with duckdb.connect() as con:
        con.execute(f"COPY ({zeros}) TO '{path}' (FORMAT parquet)")
        assert con.execute(f"SELECT DISTINCT x::VARCHAR FROM '{path}'").fetchall() == [("-0.0",)]
    with clinic.connect() as con:
        for condition in ("x = 0", "x = -0.0", "x IN (0, 1)", "y = 0", "NOT x <> 0"):
            plan = con.sql(f"SELECT COUNT(*) FROM zeros WHERE {condition}").plan(epsilon=1, delta=DELTA)
            assert exact_totals(plan.releases[0], con.service.engine, 7) == {(): [5000]}, condition


def test_probe_a_stored_view_of_a_sources_file(make: Callable[..., Clinic]) -> None:
    """The lock leaves the files of sources readable, so a view in the policy's database can read them, too."""
    policy = POLICY.partition("  patients:")[0] + "".join(
        f"  {name}:\n    unit: {{rows: 1{of}}}\n    columns: {{x: {{type: double}}}}\n{source}"
        for name, of, source in (
            ("given", "", "    source: read_parquet('one.parquet')\n"),
            ("stored", ", of: given", ""),
        )
    )
    clinic = make(private=False, policy=policy)
    path = clinic.folder / "one.parquet"
    pq.write_table(pa.table({"x": pa.array(FILES["one"], pa.float64())}), path)
    with duckdb.connect(str(clinic.folder / "d.duckdb")) as con:
        con.execute(f"CREATE VIEW stored AS FROM '{path}'")
    with clinic.connect() as con:
        (given,) = con.sql("SELECT COUNT(*) FROM given WHERE x > 100").plan(epsilon=1, delta=DELTA).releases
        assert exact_totals(given, con.service.engine, 7) == {(): [20]}
        with pytest.raises(CannotOpen, match=r"reads files.*one\.parquet"):
            con.execute("SELECT COUNT(*) FROM stored WHERE x > 100", epsilon=1)


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
    lakes = {("d", "main", name): f"SELECT * FROM {name}_scan('visits')" for name in ("delta", "iceberg")}
    assert believing_views(lakes, ()) == {*lakes}
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
        engine = DuckDBEngine.wrap(con, optimizers="ours")
        engine.register("parquet_frame", pq.read_table(path))
        for name in ("visits", "parquet_frame", *careful):
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
