"""`dpsql check`: files, folders, standard input, places of findings, formats, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Call

GOOD = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
BAD = "SELECT ward, SUM(fee) AS f FROM visits GROUP BY ward"


@pytest.fixture
def policy(policies: Path) -> Path:
    return policies / "pages.yaml"


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """A folder with clean files only."""
    folder = tmp_path / "queries"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "one.sql").write_text(f"{GOOD};\n")
    (folder / "deep" / "er" / "two.SQL").write_text(f"-- two; statements\n{GOOD};;\n/* ; */ {GOOD}\n;\n")
    (folder / "notes.txt").write_text("SELECT nonsense")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "bad.sql").write_text(BAD)
    return folder


def test_clean_files(dpsql: Call, policy: Path, queries: Path) -> None:
    done = dpsql("check", queries, "--policy", policy)
    assert (done.status, done.out) == (0, "")
    assert done.err == "checked 3 statements in 2 files: no findings\n"
    assert dpsql("check", queries, "--policy", policy, "--output-format", "json").out == "[]\n"
    assert dpsql("check", queries, "--policy", policy, "--output-format", "concise").out == ""


def test_a_finding_points_into_its_file(dpsql: Call, policy: Path, queries: Path) -> None:
    """The third statement of a file with other line ends, wide characters and comments before it."""
    text = f"-- é 日本; not a statement\r\n{GOOD};\r\nSELECT 'a;b' AS \"c;d\" FROM items;\r\n\t{BAD};\r\n"
    file = queries / "three.sql"
    file.write_bytes(text.encode())
    done = dpsql("check", queries, "--policy", policy)
    assert done.status == 1
    assert f"error[DP201]: SUM(fee) has no bounds, so its sensitivity is unbounded\n  --> {file}:4:19\n" in done.out
    source, caret = done.out.splitlines()[2:4]
    assert source[caret.index("^") : caret.rindex("^") + 1] == "fee"
    (record,) = json.loads(dpsql("check", file, "--policy", policy, "--output-format", "json").out)
    keys = ["code", "message", "path", "line", "column", "end_line", "end_column", "help", "fix", "statement"]
    assert list(record) == keys
    assert (record["code"], record["path"], record["statement"]) == ("DP201", str(file), BAD)
    assert (record["line"], record["column"], record["end_line"], record["end_column"]) == (4, 19, 4, 22)
    done = dpsql("check", file, "--policy", policy, "--output-format", "concise")
    assert done.out == f"{file}:4:19: DP201 SUM(fee) has no bounds, so its sensitivity is unbounded\n"


def test_every_statement_and_every_file_is_checked(dpsql: Call, policy: Path, queries: Path) -> None:
    (queries / "a.sql").write_text(f"{BAD};\nSELECT * FROM patients;\nSELECT nope FROM visits;\nDROP TABLE visits;")
    (queries / "z.sql").write_text("SELEC 1")
    done = dpsql("check", queries, "--policy", policy, "--output-format", "json")
    assert done.status == 1
    assert [r["code"] for r in json.loads(done.out)] == ["DP201", "DP110", "DP103", "DP012", "DP010"]
    assert [r["line"] for r in json.loads(done.out)] == [1, 2, 3, 4, 1]


def test_an_open_quote_is_a_finding(dpsql: Call, policy: Path, queries: Path) -> None:
    (queries / "a.sql").write_text(f"{GOOD};\nSELECT 'open FROM visits")
    done = dpsql("check", queries / "a.sql", "--policy", policy, "--output-format", "concise")
    assert done.status == 1 and ": DP010 " in done.out


def test_standard_input(dpsql: Call, policy: Path) -> None:
    assert dpsql("check", "-", "--policy", policy, stdin=GOOD.encode()).status == 0
    done = dpsql("check", "-", "--policy", policy, stdin=f"{GOOD};\n{BAD}".encode())
    assert done.status == 1 and "  --> <stdin>:2:18" in done.out


def test_a_file_is_checked_once_however_often_it_is_named(dpsql: Call, policy: Path, queries: Path) -> None:
    done = dpsql("check", queries / "one.sql", queries, queries, "--policy", policy)
    assert done.err == "checked 3 statements in 2 files: no findings\n"


def test_no_file_is_a_failure_unless_allowed(dpsql: Call, policy: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = dpsql("check", tmp_path / "empty", "--policy", policy)
    assert done.status == 2 and done.codes == {"DP903"}
    assert dpsql("check", tmp_path / "empty", "--policy", policy, "--allow-empty").status == 0
    (tmp_path / "empty" / "q.sql").write_text("-- nothing yet\n")
    assert dpsql("check", tmp_path / "empty", "--policy", policy).status == 0


def test_the_current_folder_is_the_default(
    dpsql: Call, policy: Path, queries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(queries)
    assert dpsql("check", "--policy", policy).err == "checked 3 statements in 2 files: no findings\n"
    (queries / "bad.sql").write_text(BAD)
    assert dpsql("check", "--policy", policy, "--output-format", "concise").out.startswith("bad.sql:1:18: DP201 ")


def test_one_unreadable_file_does_not_hide_the_findings_of_others(dpsql: Call, policy: Path, queries: Path) -> None:
    (queries / "bad.sql").write_text(BAD)
    (queries / "binary.sql").write_bytes(b"\x00")
    done = dpsql("check", queries, "--policy", policy)
    assert done.status == 2 and "DP201" in done.out and "binary.sql" in done.err


def test_the_output_does_not_depend_on_the_data(dpsql: Call, policies: Path, tmp_path: Path) -> None:
    """The policy's database need not exist, and what lies there is not looked at."""
    policy = tmp_path / "pages.yaml"
    policy.write_bytes((policies / "pages.yaml").read_bytes())
    outputs = set()
    for content in (None, b"", b"garbage" * 1000):
        if content is not None:
            (tmp_path / "clinic.duckdb").write_bytes(content)
        done = dpsql("check", "-", "--policy", policy, stdin=f"{GOOD};{BAD}".encode())
        outputs.add((done.status, done.out, done.err))
    assert len(outputs) == 1 and outputs.pop()[0] == 1


@pytest.mark.parametrize("format", ["github", "sarif", "json"])
def test_a_broken_policy_is_told_in_the_format_with_its_place(dpsql: Call, tmp_path: Path, format: str) -> None:
    broken, queries = tmp_path / "broken.yaml", tmp_path / "q.sql"
    broken.write_text("version: 1\nname: t\ntables:\n  t: {publik: true}\n")
    queries.write_text("SELECT 1;\n")
    done = dpsql("check", str(queries), "--policy", str(broken), "--output-format", format, "--no-config")
    assert done.status == 2 and "DP003" in done.err
    match format:
        case "github":
            assert all(line.startswith("::error ") for line in done.out.splitlines())
            assert "broken.yaml,line=4," in done.out
        case "sarif":
            (run,) = json.loads(done.out)["runs"]
            places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
            assert 4 in [place["region"]["startLine"] for place in places]
            assert all(place["artifactLocation"]["uri"].endswith("broken.yaml") for place in places)
        case _:
            assert 4 in [finding["line"] for finding in json.loads(done.out)]
