"""The examples in the docstrings of the public names, run on a small clinic."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import duckdb
import pytest

import dpsql

POLICY = """\
version: 1
name: clinic
database: clinic.duckdb
units: {patient: {table: patients, key: patient_id}}
tables:
  patients:
    unit: {column: patient_id}
    primary_key: [patient_id]
    columns:
      patient_id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 110], nullable: false}
      region: {type: varchar, domain: [north, south, east, west], nullable: false}
  visits:
    unit: {column: patient_id}
    max_rows_per_unit: 12
    columns:
      patient_id: {type: bigint, nullable: false}
      day: {type: date, bounds: [2025-01-01, 2025-12-31], nullable: false}
      surcharge: {type: double}
budgets: {total: {epsilon: 1000, delta: 1e-6}, analysts: {ana: {epsilon: 3}, "*": {epsilon: 900}}}
ledger_head: head.json
"""
DATA = """\
CREATE TABLE patients AS SELECT i AS patient_id, CAST(i % 90 AS INTEGER) AS age,
  ['north', 'south', 'east', 'west'][1 + i % 4] AS region FROM range(4000) t(i);
CREATE TABLE visits AS SELECT i // 4 AS patient_id, DATE '2025-01-01' + CAST(i % 300 AS INTEGER) AS day,
  CAST(1 AS DOUBLE) AS surcharge FROM range(9000) t(i);
"""
MODULES = sorted(set(dpsql._HOMES.values()))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def examples(module: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(import_module(module), globs={"dpsql": dpsql})
    return [test for test in found if test.examples]


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("clinic.duckdb") as database:
        database.execute(DATA)
    Path("clinic.yaml").write_text(POLICY, encoding="utf-8")


@pytest.mark.usefixtures("clinic")
@pytest.mark.parametrize("module", [m for m in MODULES if examples(m)])
def test_examples(module: str) -> None:
    told: list[str] = []
    for test in examples(module):
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=told.append)
    assert not told, "".join(told)


def test_the_main_names_have_examples() -> None:
    with_examples = {test.name.rpartition(".")[2] for module in MODULES for test in examples(module)}
    assert {"connect", "Connection", "Cursor", "Query", "Release", "check", "from_dict"} <= with_examples


def test_a_wrong_example_fails() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> dpsql.apilevel\n'1.0'\n", {"dpsql": dpsql}, "wrong", None, 0)
    told: list[str] = []
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(wrong, out=told.append).failed == 1
