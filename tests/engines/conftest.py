"""A small database with a canary, shared by the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engines.duckdb.engine import DuckDBEngine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """clinic.duckdb with tables, a view and a schema; people.parquet, people.csv, parts/*.parquet."""
    con = duckdb.connect(str(tmp_path / "clinic.duckdb"))
    con.execute("CREATE TABLE Patients (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, age INTEGER, u INTEGER UNIQUE)")
    con.execute("INSERT INTO Patients VALUES (1, 'ann', 30, 1), (2, 'bob', 40, 2), (271828182, 'eve', NULL, NULL)")
    con.execute("CREATE TABLE visits (patient BIGINT REFERENCES Patients(id), cost DECIMAL(18,2))")
    con.execute("CREATE VIEW adults AS SELECT id, age FROM Patients WHERE age >= 18")
    con.execute("CREATE SCHEMA ref")
    con.execute("CREATE TABLE ref.codes (code VARCHAR, label VARCHAR)")
    con.execute(f"COPY Patients TO '{tmp_path}/people.parquet'")
    con.execute(f"COPY Patients TO '{tmp_path}/people.csv'")
    (tmp_path / "parts").mkdir()
    for i in range(3):
        con.execute(f"COPY (SELECT {i} AS part) TO '{tmp_path}/parts/p{i}.parquet'")
    con.close()
    return tmp_path


@pytest.fixture
def engine(folder: Path) -> Iterator[DuckDBEngine]:
    """The database and two sources, opened and locked."""
    opened = DuckDBEngine.open(
        Path("clinic.duckdb"),
        {"people": "read_parquet('people.parquet')", "parts": "read_parquet('parts/*.parquet')"},
        folder,
    )
    yield opened
    opened.close()
