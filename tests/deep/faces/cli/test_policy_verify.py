"""`dpsql policy verify` on a DuckDB file and on Parquet files: kept, broken, impossible; text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from dpsql.core.engine import engine_failed
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.faces.cli.commands.policies.policy_verify import WARNING
from tests.support.command_line import Call, Clinic

CANARY = "sesame-271828182"
PARQUET = """\
version: 1
name: parts
units: {owner: {}}
tables:
  items:
    source: read_parquet('items/*.parquet')
    unit: {column: owner}
    unique: [[item]]
    max_rows_per_unit: {rows: 2, enforce: assume}
    columns:
      item:  {type: bigint, nullable: false}
      owner: {type: varchar}
      word:  {type: varchar, domain: [a, b]}
  parts:
    source: read_parquet('parts.parquet')
    unit: {path: [{column: item, references: items(item)}]}
    foreign_keys: [{columns: [item], references: items(item)}]
    columns: {item: {type: bigint}}
budgets: {total: {epsilon: 1}}
"""
KEYS = {
    "kind", "where", "status", "claim", "unit", "measures", "measured", "of", "comparison", "promised", "when_false",
    "repair", "file", "line", "column",
}  # fmt: skip


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A policy over Parquet files that keep it; `write` of the tests below changes them."""
    (tmp_path / "items").mkdir()
    (tmp_path / "parts.yaml").write_text(PARQUET, encoding="utf-8")
    write(tmp_path / "items" / "1.parquet", f"(1, '{CANARY}', 'a'), (2, '{CANARY}', NULL)", "item, owner, word")
    write(tmp_path / "items" / "2.parquet", f"(3, NULL, '{CANARY}')", "item, owner, word")
    write(tmp_path / "parts.parquet", "(1), (1), (NULL)", "item")
    return tmp_path


def write(file: Path, rows: str, columns: str) -> None:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS FROM (VALUES {rows}) t({columns})")
        con.execute("ALTER TABLE t ALTER item TYPE BIGINT")
        con.execute(f"COPY t TO '{file}'")


@pytest.mark.processes
def test_a_database_that_keeps_its_promises(process: Call, clinic: Clinic) -> None:
    done = process("policy", "verify", clinic.policy)
    assert done.status == 0 and done.err == ""
    first, second, *lines, empty, last, advice = done.out.splitlines()
    assert "dpsql policy suggest" in advice
    assert first == f"{WARNING}." and "not differentially private" in WARNING and second == empty == ""
    assert {line.split()[0] for line in lines} == {"ok", "info", "enforced", "untestable"}
    assert all(clinic.policy in line for line in lines)
    found = next(line for line in lines if "tables.visits.foreign_keys[0]" in line)
    assert found.startswith("ok ") and found.endswith("is not in patients(patient_id): 0 (promised 0)")
    assert "at most 1" in next(line for line in lines if "tables.visits.unique[0]" in line)
    assert "promised at most 12" in next(line for line in lines if "visits.max_rows_per_unit.nobody_has_more" in line)
    assert "breaks none of 17 promises and proves none" in last
    assert not clinic.ledger.exists()


@pytest.mark.processes
def test_a_database_that_breaks_some(process: Call, clinic: Clinic, clinic_data: Path) -> None:
    clinic.change("unique: [[visit_id]]", "unique: [[visit_id], [patient_id]]")
    clinic.change(
        "max_rows_per_unit: {rows: 12, nobody_has_more: true} ", "max_rows_per_unit: {rows: 5, enforce: assume} "
    )
    clinic.change("town:       {type: varchar}", "town:       {type: varchar, domain: [Oakfield]}")
    clinic.change("surcharge:  {type: double}", "surcharge:  {type: double, nullable: false}")
    with duckdb.connect(str(clinic_data / "clinic.duckdb"), read_only=True) as con:
        truth = con.execute("SELECT max(n) FROM (SELECT count(*) n FROM visits GROUP BY patient_id)").fetchall()[0][0]
        missing = con.execute("SELECT count(*) FROM visits WHERE surcharge IS NULL").fetchall()[0][0]
        elsewhere = con.execute("SELECT count(*) FROM patients WHERE town <> 'Oakfield'").fetchall()[0][0]
    done = process("policy", "verify", clinic.policy)
    assert done.status == 1 and done.err == ""
    broken = [line for line in done.out.splitlines() if line.startswith("broken")]
    assert [line.split(": ", 1)[1] for line in broken] == [
        f"most rows of visits that share patient_id: {truth:,} (promised at most 1)",
        f"most rows of visits of one patient: {truth:,} (promised at most 5)",
        f"rows where visits.surcharge is NULL: {missing:,} (promised 0)",
    ]
    assert done.out.count("  repair:   ") == done.out.count("  if false: ") == 3
    assert "enforce: truncate" in done.out and "max_rows_per_unit: 5" in done.out and "nullable: true" in done.out
    assert f"patients.town is not in its domain are left out of its groups: {elsewhere:,}" in done.out
    text = Path(clinic.policy).read_text(encoding="utf-8").splitlines()
    line = int(broken[0].split(clinic.policy + ":")[1].split()[0])
    assert "[patient_id]]" in text[line - 1]


@pytest.mark.processes
def test_parquet_files_as_json(process: Call, parts: Path) -> None:
    done = process("policy", "verify", parts / "parts.yaml", "--format", "json")
    assert done.status == 0 and done.err == ""
    found = json.loads(done.out)
    assert list(found) == ["warning", "policy", "hash", "holds", "checks"] and found["warning"] == WARNING
    assert found["holds"] is True and found["policy"] == "parts"
    assert all(set(c) == KEYS for c in found["checks"])
    numbers = {(c["kind"], c["where"]): (c["status"], c["measured"], c["promised"]) for c in found["checks"]}
    assert numbers == {
        ("unit", "tables.items.unit"): ("untestable", None, None),
        ("no_id", "tables.items.unit"): ("info", 1, None),
        ("unique", "tables.items.unique[0]"): ("ok", 1, 1),
        ("max_rows_per_unit", "tables.items.max_rows_per_unit"): ("ok", 2, 2),
        ("not_null", "tables.items.columns.item.nullable"): ("ok", 0, 0),
        ("domain", "tables.items.columns.word.domain"): ("info", 1, None),
        ("unit", "tables.parts.unit"): ("untestable", None, None),
        ("path", "tables.parts.unit.path[0].references"): ("ok", 1, 1),
        ("no_id", "tables.parts.unit"): ("info", 1, None),
        ("foreign_key", "tables.parts.foreign_keys[0]"): ("ok", 0, 0),
    }
    assert CANARY not in done.out


@pytest.mark.processes
def test_parquet_files_that_were_changed(process: Call, parts: Path) -> None:
    write(parts / "items" / "3.parquet", f"(1, '{CANARY}', 'b'), (NULL, 'x', 'b')", "item, owner, word")
    write(parts / "parts.parquet", "(1), (77), (78)", "item")
    done = process("policy", "verify", parts / "parts.yaml", "--format", "json")
    assert done.status == 1
    found = json.loads(done.out)
    assert found["holds"] is False
    assert {c["where"]: c["measured"] for c in found["checks"] if c["status"] == "broken"} == {
        "tables.items.unique[0]": 2,
        "tables.items.max_rows_per_unit": 3,
        "tables.items.columns.item.nullable": 1,
        "tables.parts.unit.path[0].references": 2,
        "tables.parts.foreign_keys[0]": 2,
    }
    assert all(c["repair"] and c["when_false"] for c in found["checks"] if c["status"] == "broken")
    assert CANARY not in done.out + process("policy", "verify", parts / "parts.yaml").out


def test_what_cannot_be_verified_is_2(
    dpsql: Call, clinic: Clinic, parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 means a broken promise, so nothing else may be 1."""
    (parts / "parts.parquet").unlink()
    done = dpsql("policy", "verify", parts / "parts.yaml")
    assert done.status == 2 and done.codes == {"DP006"} and done.out == ""
    assert dpsql("policy", "verify", parts / "none.yaml").status == 2
    for arguments in (["--format", "xml"], ["two.yaml"], ["--bogus"]):
        done = dpsql("policy", "verify", clinic.policy, *arguments)
        assert done.status == 2 and done.codes == {"DP903"}
    assert dpsql("policy", "verify").status == 2
    clinic.change("town:       {type: varchar}", "city:       {type: varchar}")
    assert dpsql("policy", "verify", clinic.policy).codes == {"DP004"}
    clinic.change("city:       {type: varchar}", "town:       {type: varchar}")

    def fail(*_: object) -> None:
        raise engine_failed()

    monkeypatch.setattr(DuckDBEngine, "fetch", fail)
    done = dpsql("policy", "verify", clinic.policy)
    assert done.status == 2 and done.codes == {"DP901"} and done.out == ""


def test_the_help_says_what_it_shows(dpsql: Call) -> None:
    done = dpsql("policy", "verify", "--help")
    words = " ".join(done.out.split())
    assert "exact numbers about private data" in words and "not differentially private" in words
    assert "0 the data keeps every promise, 1 it breaks at least one, 2 could not verify" in words


def test_a_policy_without_promises(dpsql: Call, tmp_path: Path) -> None:
    write(tmp_path / "n.parquet", "(1)", "item")
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "version: 1\nname: p\ntables:\n  n:\n    source: read_parquet('n.parquet')\n    unit: {rows: 1}\n"
        "    columns: {item: {}}\nbudgets: {total: {epsilon: 1}}\n"
    )
    done = dpsql("policy", "verify", policy)
    assert done.status == 0 and "breaks none of 0 promises" in done.out
