"""A small database with a canary, shared by the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import duckdb
import pytest

from dpsql.engines.duckdb.engine import DuckDBEngine


@pytest.fixture
def folder(tmp_path: Path, template: Path) -> Path:
    """clinic.duckdb with tables, a view and a schema; people.parquet, people.csv, parts/*.parquet."""
    return copytree(template, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What tests have copies of."""
    made = tmp_path_factory.mktemp("template")
    con = duckdb.connect(str(made / "clinic.duckdb"))
    con.execute("CREATE TABLE Patients (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, age INTEGER, u INTEGER UNIQUE)")
    con.execute("INSERT INTO Patients VALUES (1, 'ann', 30, 1), (2, 'bob', 40, 2), (271828182, 'eve', NULL, NULL)")
    con.execute("CREATE TABLE visits (patient BIGINT REFERENCES Patients(id), cost DECIMAL(18,2))")
    con.execute("CREATE VIEW adults AS SELECT id, age FROM Patients WHERE age >= 18")
    con.execute("CREATE SCHEMA ref")
    con.execute("CREATE TABLE ref.codes (code VARCHAR, label VARCHAR)")
    con.execute(f"COPY Patients TO '{made}/people.parquet'")
    con.execute(f"COPY Patients TO '{made}/people.csv'")
    (made / "parts").mkdir()
    for i in range(3):
        con.execute(f"COPY (SELECT {i} AS part) TO '{made}/parts/p{i}.parquet'")
    con.close()
    return made


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
