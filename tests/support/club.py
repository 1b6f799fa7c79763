"""A session over four small tables; its ledger is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.api.connection import Connection, connect
from dpsql.core.ledger.memory import MemoryLedger
from tests.support.built_once import build
from tests.support.opened_once import opened

POLICY = """\
version: 1
name: club
database: club.duckdb
units:
  member: {}
tables:
  members:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:   {type: bigint, nullable: false}
      city: {type: varchar, domain: [Bonn, Lyon, Oslo], nullable: false}
      age:  {type: integer, bounds: [0, 100], nullable: false}
      fee:  {type: 'decimal(8,2)', bounds: [0, 500]}
      joined: {type: date, bounds: [2020-01-01, 2020-12-31], nullable: false}
      note: {type: varchar}
  visits:
    unit: {column: id}
    max_rows_per_unit: 4
    columns:
      id:    {type: bigint, nullable: false}
      hours: {type: double, bounds: [0, 10]}
  tills:
    unit: {rows: 1}
    columns:
      amount: {type: integer, bounds: [0, 50], nullable: false}
  cities:
    public: true
    unique: [[city]]
    columns:
      city:    {type: varchar, nullable: false}
      country: {type: varchar, nullable: false}
DEFAULTS
budgets:
  total: {epsilon: 10000, delta: 1e-3}
"""
DATA = """\
CREATE TABLE members AS SELECT i AS id, ['Bonn', 'Lyon', 'Oslo'][1 + i % 2] AS city, CAST(i % 80 AS INTEGER) AS age,
  CAST(i % 400 AS DECIMAL(8,2)) AS fee, DATE '2020-01-01' + CAST(i % 360 AS INTEGER) AS joined, 'n' || i % 3 AS note
  FROM range(3000) t(i);
CREATE TABLE visits AS SELECT i % 1000 AS id, CAST(i % 10 AS DOUBLE) AS hours FROM range(5000) t(i);
CREATE TABLE tills AS SELECT CAST(i % 50 AS INTEGER) AS amount FROM range(2000) t(i);
CREATE TABLE cities AS FROM (VALUES ('Bonn', 'Germany'), ('Lyon', 'France'), ('Oslo', 'Norway')) t(city, country);
"""


@pytest.fixture(scope="session")
def club_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database and two policies: `club.yaml` without defaults, `given.yaml` with ε = 0.25 and δ = 1e-9."""
    folder = tmp_path_factory.mktemp("club")
    build(folder / "club.duckdb", DATA)
    (folder / "club.yaml").write_text(POLICY.replace("DEFAULTS\n", ""), encoding="utf-8")
    given = POLICY.replace("DEFAULTS", "defaults: {epsilon: 0.25, delta: 1e-9}")
    (folder / "given.yaml").write_text(given, encoding="utf-8")
    return folder


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger("club")


@pytest.fixture
def con(club_folder: Path, ledger: MemoryLedger) -> Iterator[Connection]:
    """A session without defaults."""
    with Connection(*opened(club_folder / "club.yaml"), ledger=ledger) as connection:
        yield connection


@pytest.fixture(scope="module")
def shared(club_folder: Path) -> Iterator[Connection]:
    """A session for tests that do not look at the budget."""
    with connect(club_folder / "club.yaml", ledger=MemoryLedger("club")) as connection:
        yield connection
