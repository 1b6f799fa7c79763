"""Whatever comes in: a documented exit code, a coded message on standard error, no traceback, and nothing spent.

`checked` in conftest.py refuses tracebacks and DP904 (what nobody foresaw) for every call of every test here. Here are
inputs whose code is known; tests/deep/fuzz tries inputs that nobody thought of.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CODE, Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"
GROUPED = (
    "WITH v AS (SELECT patient_id, cost, ward FROM visits WHERE day >= DATE '2025-02-01' AND cost BETWEEN 1 AND 900) "
    "SELECT region, COUNT(*) AS n, AVG(CASE WHEN ward = 'surgery' THEN cost ELSE 0 END) AS m "
    "FROM v JOIN patients p USING (patient_id) GROUP BY region HAVING COUNT(*) > 5 ORDER BY n DESC LIMIT 3"
)

# SQL → exit code. 3: not one query that can be read; 4: read, and refused.
SQL = {
    "empty": ("", 3),
    "blank": (" \n\t ", 3),
    "comment only": ("-- nothing", 3),
    "semicolons": (";;;", 3),
    "one word": ("SELEC", 3),
    "open quote": ("SELECT 'x FROM patients", 3),
    "open identifier": ('SELECT "x FROM patients', 3),
    "open comment": ("SELECT COUNT(*) FROM patients /*", 3),
    "open bracket": ("SELECT COUNT( FROM patients", 3),
    "brackets": ("((((((((((", 3),
    "no from": ("SELECT FROM WHERE", 3),
    "two statements": (f"{COUNT}; {COUNT}", 3),
    "drop": ("DROP TABLE patients", 3),
    "copy": ("COPY patients TO 'stolen.csv'", 3),
    "insert": ("INSERT INTO visits VALUES (1)", 3),
    "attach": ("ATTACH 'x.db'", 3),
    "pragma": ("PRAGMA database_list", 3),
    "set": ("SET threads = 1", 3),
    "parameter": ("SELECT COUNT(*) FROM patients WHERE age > ?", 3),
    "deep": ("SELECT " + "(" * 3000 + "1" + ")" * 3000, 3),
    "deep and": (f"{COUNT} WHERE " + " AND ".join(["age > 1"] * 3000), 3),
    "deep not": (f"{COUNT} WHERE " + "NOT " * 3000 + "smoker", 3),
    "long": ("SELECT " + "1," * 60_000 + "1", 3),
    "huge": (f"{COUNT} WHERE town = '{'x' * 200_000}'", 3),
    "control characters": ("SELECT \x1b[31m\x07\x08 FROM patients", 3),
    "star": ("SELECT * FROM patients", 4),
    "rows": ("SELECT age FROM patients", 4),
    "unknown table": ("SELECT COUNT(*) FROM staff", 4),
    "unknown column": ("SELECT COUNT(salary) FROM patients", 4),
    "unknown function": ("SELECT SUM(pg_sleep(age)) FROM patients", 4),
    "file as table": ("SELECT COUNT(*) FROM 'clinic.yaml'", 4),
    "reader": ("SELECT COUNT(*) FROM read_csv('clinic.yaml')", 4),
    "catalogue": ("SELECT COUNT(*) FROM information_schema.tables", 4),
    "other schema": ("SELECT COUNT(*) FROM data.main.patients", 4),
    "no bounds": ("SELECT MAX(cost) FROM visits", 4),
    "text sum": ("SELECT SUM(town) FROM patients", 4),
    "minimum": ("SELECT MIN(age) FROM patients", 4),
    "window": ("SELECT age, ROW_NUMBER() OVER () FROM patients", 4),
    "random": ("SELECT COUNT(*) FROM patients WHERE random() > 0.5", 4),
    "cross join": ("SELECT COUNT(*) FROM patients a, patients b", 4),
    "limit below": ("SELECT COUNT(*) FROM (SELECT * FROM patients LIMIT 5)", 4),
    "huge number": (f"SELECT SUM(age * {'9' * 400}) FROM patients", 4),
    "exponent": ("SELECT SUM(age * 1e999999999) FROM patients", 4),
    "wrong type": ("SELECT SUM(age + 'x') FROM patients", 4),
    "bad date": ("SELECT COUNT(*) FROM visits WHERE day > DATE '2025-13-45'", 4),
    "emoji": ("SELECT 🙂 FROM patients", 4),
    "bidi": ("SELECT \u202egea FROM patients", 4),
}
NAMED = "SELECT region, COUNT(*) AS n, AVG(age) AS a, SUM(age) / COUNT(*) AS r FROM patients GROUP BY region"

FLAGS = {
    "unknown option": (["--bogus"], 1),
    "error without a query": (["--max-error", "n=5"], 1),
    "two queries": (["SELECT 1", "SELECT 2"], 1),
    "query and file": (["SELECT 1", "-f", "q.sql"], 1),
    "missing file": (["-f", "nowhere.sql"], 1),
    "folder as file": (["-f", "."], 1),
    "binary file": (["-f", "binary"], 1),
    "latin file": (["-f", "latin"], 1),
    "nul in a name": (["-f", "a\x00b"], 1),
    "nul in the query": (["SELECT\x00 1"], 1),
    "half a pair": (["SELECT '\udce9' FROM patients"], 1),
    "unknown format": ([COUNT, "--format", "xlsx"], 1),
    "unknown dialect": ([COUNT, "--dialect", "klingon"], 1),
    "no value": ([COUNT, "--epsilon"], 1),
    "epsilon 0": ([COUNT, "--epsilon", "0"], 1),
    "epsilon -1": ([COUNT, "--epsilon", "-1"], 1),
    "epsilon nan": ([COUNT, "--epsilon", "nan"], 1),
    "epsilon inf": ([COUNT, "--epsilon", "inf"], 1),
    "epsilon text": ([COUNT, "--epsilon", "ε"], 1),
    "epsilon empty": ([COUNT, "--epsilon", ""], 1),
    "epsilon exponent": ([COUNT, "--epsilon", "1e999999999"], 1),
    "epsilon 1/0": ([COUNT, "--epsilon", "1/0"], 1),
    "epsilon digits": ([COUNT, "--epsilon", "1" * 5000], 1),
    "delta 1": ([COUNT, "--delta", "1"], 1),
    "delta -1": ([COUNT, "--delta", "-1e-9"], 1),
    "delta text": ([COUNT, "--delta", "tiny"], 1),
    "error without a column": ([NAMED, "--max-error", "50"], 1),
    "error of nothing": ([NAMED, "--max-error", "=50"], 1),
    "error without a number": ([NAMED, "--max-error", "n="], 1),
    "error 0": ([NAMED, "--max-error", "n=0"], 1),
    "error -1": ([NAMED, "--max-error", "n=-1"], 1),
    "error nan": ([NAMED, "--max-error", "n=nan"], 1),
    "error inf": ([NAMED, "--max-error", "n=inf"], 1),
    "error text": ([NAMED, "--max-error", "n=few"], 1),
    "error exponent": ([NAMED, "--max-error", "n=1e999999"], 1),
    "error twice": ([NAMED, "--max-error", "n=5", "--max-error", "n=6"], 1),
    "error and epsilon": ([NAMED, "--max-error", "n=5", "--epsilon", "1"], 1),
    "error and weight": ([NAMED, "--max-error", "n=5", "--weight", "n=2"], 1),
    "error of another column": ([NAMED, "--max-error", "m=5"], 4),
    "error of a key": ([NAMED, "--max-error", "region=5"], 4),
    "error of a mean": ([NAMED, "--max-error", "a=5"], 4),
    "error of a ratio": ([NAMED, "--max-error", "r=5"], 4),
    "error beyond all": ([NAMED, "--max-error", "n=1e99"], 4),
    "error beyond the budget": ([NAMED, "--max-error", "n=1e-99"], 5),
    "error beyond reading": ([NAMED, "--max-error", "n=1e300"], 1),
    "error below reading": ([NAMED, "--max-error", "n=1e-300"], 1),
    "error with \\0": ([NAMED, "--max-error", "\x00n=5"], 4),
    "confidence 1": ([NAMED, "--max-error", "n=5", "--confidence", "1"], 1),
    "confidence 95": ([NAMED, "--confidence", "95"], 1),
    "confidence text": ([NAMED, "--confidence", "high"], 1),
    "weight 0": ([NAMED, "--weight", "n=0"], 1),
    "weight text": ([NAMED, "--weight", "n"], 1),
    "weight of another column": ([NAMED, "--weight", "m=2"], 4),
    "rho 0": ([NAMED, "--rho", "0"], 1),
    "rho and epsilon": ([NAMED, "--rho", "1", "--epsilon", "1"], 1),
    "rho without zcdp": ([NAMED, "--rho", "0.1"], 1),
    "too much epsilon": ([COUNT, "--epsilon", "1e9"], 5),
    "ledger is a folder": ([COUNT, "--ledger", "."], 2),
    "ledger nowhere": ([COUNT, "--ledger", "no/such/folder/l.sqlite"], 2),
    "ledger is a text": ([COUNT, "--ledger", "latin"], 2),
    "ledger is the data": ([COUNT, "--ledger", "binary"], 2),
    "ledger nul": ([COUNT, "--ledger", "a\x00b"], 2),
    "ledger empty": ([COUNT, "--ledger", ""], 2),
}

POLICIES = {
    "empty": b"",
    "blank": b"\n\n",
    "nul": b"version: 1\x00",
    "binary": bytes(range(256)) * 20,
    "latin": "name: é".encode("latin-1"),
    "utf-16": "version: 1".encode("utf-16"),
    "not yaml": b"{[}]",
    "tabs": b"version: 1\n\tname: x",
    "a list": b"- 1\n- 2",
    "a number": b"42",
    "a text": b"policy",
    "two documents": b"version: 1\n---\nversion: 1",
    "doubled key": b"version: 1\nversion: 1",
    "alias bomb": b"a: &a [x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c]",
    "python tag": b"version: !!python/object/apply:os.system ['echo x']",
    "deep": b"[" * 300,
    "huge": b"# " + b"x" * 5_000_000,
    "unknown key": b"version: 1\nname: x\nbogus: 1\ntables: {}",
    "wrong version": b"version: 99\nname: x\ntables: {}",
    "wrong types": b"version: []\nname: {}\ntables: 3\nbudgets: x",
    "nulls": b"version:\nname:\ntables:\nbudgets:",
    "tables as list": b"version: 1\nname: x\ntables: [a, b]",
    "bounds turned round": b"version: 1\nname: x\nbudgets: {total: {epsilon: 1}}\n"
    b"tables: {t: {unit: {rows: 1}, columns: {a: {type: integer, bounds: [2, 1]}}}}",
    "negative budget": b"version: 1\nname: x\ntables: {}\nbudgets: {total: {epsilon: -1}}",
    "nan budget": b"version: 1\nname: x\ntables: {}\nbudgets: {total: {epsilon: .nan}}",
    "escaping name": b"version: 1\nname: ../../x\ntables: {}",
    "source is sql": b"version: 1\nname: x\nbudgets: {total: {epsilon: 1}}\n"
    b"tables: {t: {unit: {rows: 1}, source: 'SELECT 1; DROP TABLE t', columns: {}}}",
}


@pytest.fixture
def unspent(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clinic]:
    """A clinic of whose budget nothing may be spent."""
    monkeypatch.chdir(clinic.folder)
    yield clinic
    if clinic.ledger.exists():
        with contextlib.closing(sqlite3.connect(clinic.ledger)) as file:
            assert file.execute("SELECT COUNT(*) FROM entries").fetchone() == (0,)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", SQL)
def test_sql(name: str, dpsql: Call, unspent: Clinic) -> None:
    sql, status = SQL[name]
    for command in ("query", "explain"):
        done = dpsql(command, unspent.policy, "--analyst", "ana", "--", sql)
        assert (done.status, done.out) == (status, ""), done.err
        assert CODE.search(done.err) and "error[DP" in done.err
        assert not any(c in done.err for c in "\x1b\x07\x08\u202e"), "the query writes to the terminal"
        assert len(done.err) < 5_000 + len(sql) * 4
    done = dpsql("check", "-", "--policy", unspent.policy, stdin=sql.encode("utf-8"))
    assert done.status == (0 if name in ("empty", "blank", "comment only", "semicolons", "two statements") else 1)


@pytest.mark.parametrize("name", FLAGS)
def test_flags(name: str, dpsql: Call, unspent: Clinic) -> None:
    (unspent.folder / "binary").write_bytes(bytes(range(256)))
    (unspent.folder / "latin").write_bytes("SELECT 'é'".encode("latin-1"))
    arguments, status = FLAGS[name]
    done = dpsql("query", unspent.policy, "--analyst", "ana", *arguments)
    assert (done.status, done.out) == (status, ""), done.err
    assert CODE.search(done.err) and len(done.err) < 3_000


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name: str, dpsql: Call, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_bytes(POLICIES[name])
    for arguments in (
        ["policy", "check", policy],
        ["query", policy, COUNT],
        ["budget", policy],
        ["policy", "show", policy],
    ):
        done = dpsql(*arguments)
        assert (done.status, done.out) == (2, ""), done.err
        assert done.codes and done.codes <= {"DP001", "DP002", "DP003"} and len(done.err) < 20_000
    assert dpsql("check", "-", "--policy", policy, stdin=COUNT.encode()).status == 2
    assert [f.name for f in tmp_path.iterdir()] == ["p.yaml"], "nothing is made beside a bad policy"


@pytest.mark.parametrize("arguments", [
    ["nonsense"], ["policy", "nonsense"], ["--nonsense"], ["query"], ["query", "--epsilon"],
    ["rule"], ["rule", ""], ["rule", "DP999"], ["rule", "\x1b[31m"], ["rule", "../pages"],
    ["rule", "DP201", "DP202"],
    ["budget"], ["policy", "init"], ["policy", "init", "nowhere.duckdb"], ["policy", "init", "."],
    ["policy", "init", "nowhere.parquet"], ["policy", "init", "no*.parquet"], ["policy", "init", "junk.parquet"],
    ["policy", "init", "junk"], ["policy", "init", "a\x00b"], ["policy", "init", "junk.duckdb"],
    ["policy", "schema", "-o", "junk"], ["policy", "schema", "-o", "no/such/folder/x"],
    ["policy", "schema", "-o", "a\x00b"],
    ["demo", "a", "b"],
], ids=repr)  # fmt: skip
def test_commands(arguments: list[str], dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("junk", "junk.parquet", "junk.duckdb"):
        (tmp_path / name).write_bytes(b"PAR1 or DUCK, who knows" + bytes(range(256)))
    before = sorted(f.name for f in tmp_path.iterdir())
    done = dpsql(*arguments)
    assert done.status in (1, 2) and done.out == "" and CODE.search(done.err), done.err
    assert "\x1b" not in done.err
    assert sorted(f.name for f in tmp_path.iterdir()) == before


def test_data_that_is_not_what_the_policy_says(dpsql: Call, clinic: Clinic, clinic_data: Path) -> None:
    """No file, a folder, an empty file, a stump, another format, another schema: 2, and no ledger is made."""
    clinic.change(f"database: '{clinic_data / 'clinic.duckdb'}'", "database: data")
    place = clinic.folder / "data"
    whole = (clinic_data / "clinic.duckdb").read_bytes()
    contents: list[bytes | None] = [None, b"", b"PAR1", b"x" * 5000, whole[:3000]]
    for content in contents:
        if content is not None:
            place.write_bytes(content)
        done = dpsql("query", clinic.policy, COUNT)
        assert (done.status, done.out) == (2, "") and done.codes == {"DP006"}, (content and content[:9], done.err)
    place.unlink()
    place.mkdir()
    assert dpsql("query", clinic.policy, COUNT).codes == {"DP006"}
    place.rmdir()
    shutil.copy(clinic_data / "clinic.duckdb", place)
    clinic.change("smoker:     {type: boolean", "smoker:     {type: integer")
    done = dpsql("query", clinic.policy, COUNT)
    assert done.status == 2 and done.codes == {"DP004"} and "clinic.yaml:" in done.err
    assert not clinic.ledger.exists()


def test_a_ledger_that_is_none(dpsql: Call, clinic: Clinic) -> None:
    for content in (b"x", b"SQLite format 3\x00" + b"\x00" * 100, b"SQLite format 3\x00" + bytes(range(256)) * 40):
        clinic.ledger.write_bytes(content)
        for done in (dpsql("query", clinic.policy, COUNT), dpsql("budget", clinic.policy)):
            assert (done.status, done.out) == (2, "") and done.codes == {"DP407"}
        assert clinic.ledger.read_bytes() == content
