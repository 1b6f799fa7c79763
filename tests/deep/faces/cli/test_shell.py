"""The shell away from a terminal: formats, files that read one another, dearer answers, and where answers go."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faces.cli.test_shell import COUNT
from tests.support.command_line import Call, Clinic

REGIONS = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's own settings."""
    for name in [n for n in os.environ if n.startswith("DPSQL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_formats(dpsql: Call, clinic: Clinic) -> None:
    def shown(*flags: str) -> str:
        done = dpsql("shell", clinic.policy, *flags, "-c", REGIONS)
        assert done.status == 0
        return done.out

    assert shown().splitlines()[0].split() == ["region", "|", "n"] and "(4 rows)" in shown()
    plain = shown("-At")
    assert [line.split("|")[0] for line in plain.splitlines()] == ["east", "north", "south", "west"]
    assert all(re.fullmatch(r"\w+\|[\d,]+ ± \d+", line) for line in plain.splitlines())
    rows = list(csv.reader(io.StringIO(shown("--csv", "-P", "intervals=cols"))))
    assert rows[0] == ["region", "n", "n_low", "n_high"] and float(rows[1][2]) <= int(rows[1][1]) <= float(rows[1][3])
    assert len(json.loads(shown("--json"))["rows"]) == 4
    assert shown("-x").startswith("-[ RECORD 1 ]") and "| north" in shown("-x")
    assert "<td>north</td>" in shown("--format", "html") and "│ north" in shown("--format", "box")
    assert "±" not in shown("-P", "intervals=off") and "\x1b" not in shown()


def test_query_has_the_same_formats(dpsql: Call, clinic: Clinic) -> None:
    for format, sign in (("box", "│"), ("html", "<td>"), ("vertical", "RECORD"), ("unaligned", "|")):
        done = dpsql("query", clinic.policy, REGIONS, "--format", format)
        assert sign in done.out and ("(4 rows)" in done.out) == (format != "html")


def test_answers_go_to_a_new_file_and_nothing_is_overwritten(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    target = tmp_path / "answer.csv"
    assert dpsql("shell", clinic.policy, "--csv", "-q", "-o", target, "-c", COUNT).out == ""
    kept = target.read_text()
    assert kept.startswith("n\n")
    for path in (target, Path(clinic.policy), clinic.ledger):
        before = path.read_bytes()
        done = dpsql("shell", clinic.policy, "-c", f"\\o {path}", "-c", COUNT)
        assert done.status == 1 and done.codes == {"DP903"} and path.read_bytes() == before
    assert dpsql("shell", clinic.policy, "-c", "\\o |cat").codes == {"DP906"}


@pytest.mark.parametrize("end", ["", "-wal", ".answers"])
def test_no_answer_goes_where_the_ledger_is_going_to_be(dpsql: Call, clinic: Clinic, end: str) -> None:
    path = clinic.ledger.with_name(clinic.ledger.name + end)
    for arguments in (["-o", path], ["-c", f"\\o {path}"]):
        assert dpsql("shell", clinic.policy, *arguments, "-c", "\\dt").codes == {"DP903"}
        assert not path.exists()


def test_settings_and_their_order(dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def epsilon(*flags: str) -> str:
        return dpsql("shell", *flags, "-c", "SHOW epsilon").out.strip()

    assert epsilon(clinic.policy).startswith("0.5 (the policy")
    (tmp_path / "config" / "dpsql").mkdir(parents=True)
    (tmp_path / "config" / "dpsql" / "config.toml").write_text("[shell]\nepsilon = 0.4\nformat = 'csv'\n")
    assert epsilon(clinic.policy) == "0.4" and epsilon(clinic.policy, "-X").startswith("0.5")
    monkeypatch.setenv("DPSQL_EPSILON", "0.3")
    monkeypatch.setenv("DPSQL_POLICY", clinic.policy)
    assert epsilon() == "0.3" and epsilon("--epsilon", "0.2") == "0.2"
    assert dpsql("shell", "-c", REGIONS).out.startswith(" region"), "looks of the file are for terminals"
    assert dpsql("shell", "-c", "SET epsilon = 0.1; SHOW epsilon; RESET epsilon; SHOW epsilon").out.split()[0] == "0.1"
    assert dpsql("shell", "-c", "SET nonsense = 1").codes == {"DP903"}


def test_allow_dearer_and_where_it_is_set(
    dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def dearer(*flags: str) -> str:
        return dpsql("shell", clinic.policy, *flags, "-c", "SHOW allow_dearer").out.strip()

    assert dearer() == "off (the policy's default)" and dearer("--allow-dearer") == "on"
    (tmp_path / "config" / "dpsql").mkdir(parents=True)
    (tmp_path / "config" / "dpsql" / "config.toml").write_text("[shell]\nallow_dearer = true\n")
    assert dearer() == "on" and dearer("--no-allow-dearer") == "off" and dearer("-X").startswith("off")
    monkeypatch.setenv("DPSQL_ALLOW_DEARER", "off")
    assert dearer() == "off" and dearer("--allow-dearer") == "on"
    monkeypatch.setenv("DPSQL_ALLOW_DEARER", "perhaps")
    assert dpsql("shell", clinic.policy, "-c", "SHOW allow_dearer").codes == {"DP406"}
    monkeypatch.delenv("DPSQL_ALLOW_DEARER")
    text = "SET allow_dearer = on; SHOW allow_dearer; RESET allow_dearer; SHOW allow_dearer"
    assert dpsql("shell", clinic.policy, "-X", "-c", text).out.split() == ["on", "off", "(the", "policy's", "default)"]


def test_dearer_answers_are_received_once_that_is_set(dpsql: Call, clinic: Clinic) -> None:
    def shown(*arguments: str) -> str:
        return dpsql("shell", clinic.policy, "--epsilon", "0.1", *arguments).out

    dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.4")
    cost = ("-c", f"\\cost {COUNT}")
    assert shown(*cost).startswith("would cost ε 0.1") and shown("--allow-dearer", *cost).startswith("would cost ε 0.4")
    explain = f"EXPLAIN {COUNT};"
    assert "cost: ε 0.1 of each patient\n" in shown("-c", explain)
    assert "cost: ε 0.4 of each patient (asked: ε 0.1 of each patient)" in shown(
        "-c", f"SET allow_dearer = on; {explain}"
    )
    assert "cost: ε 0.1 of each patient\n" in shown("--allow-dearer", "-c", "\\fresh on", "-c", explain)
    assert shown("--allow-dearer", "-c", "\\fresh on", *cost).startswith("would cost ε 0.1")
    assert "spent ε 0.4, left" in shown("-c", f"SET allow_dearer = on; {COUNT}")


def test_files_that_read_one_another(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(f"\\i '{tmp_path / 'b.sql'}'")
    (tmp_path / "b.sql").write_text(f"\\i '{tmp_path / 'a.sql'}'")
    assert (done := dpsql("shell", clinic.policy, "-f", tmp_path / "a.sql")).status == 1 and "16 files" in done.err


@pytest.mark.processes
def test_pipes_load_nothing_for_terminals(clinic: Clinic, tmp_path: Path) -> None:
    code = (
        "import sys; from dpsql.faces.cli.main import main; main(sys.argv[1:]); "
        "print(*{'prompt_toolkit', 'pygments', 'cli_helpers', 'rich'} & {m.partition('.')[0] for m in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "shell", clinic.policy, "-c", f"EXPLAIN {COUNT}", "-c", COUNT], text=True,
        capture_output=True, timeout=300, cwd=tmp_path, stdin=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0 and "(1 row)" in done.stdout and done.stdout.splitlines()[-1] == "", done.stderr


def test_what_may_be_asked_is_what_is_answered(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, "-c", "\\d+ visits")
    for line in done.out.splitlines()[2:9]:
        name, *_, asked = (part.strip() for part in line.split("|"))
        if name in ("visit_id", "patient_id"):
            continue
        for aggregate in ("SUM", "AVG", "MEDIAN", "MODE"):
            plain = aggregate in asked.replace("SUM(CLIP(…))", "").replace(";", ",").replace(" ", "").split(",")
            status = dpsql("explain", clinic.policy, f"SELECT {aggregate}({name}) FROM visits", "--epsilon", "1").status
            assert (status == 0) == plain, (name, aggregate)


def test_octaves_that_an_account_holds(dpsql: Call, clinic: Clinic) -> None:
    clinic.change("    max_rows_per_unit: {", "    max_rows_per_unit: search # {")
    assert "octaves" not in dpsql("shell", clinic.policy, "--analyst", "ana", "-c", "\\d+ visits").out
    asked = ["-c", "SET limits = search", "-c", "SELECT COUNT(*) AS n FROM visits"]
    assert dpsql("shell", clinic.policy, "--analyst", "ana", "--epsilon", "1", *asked).status == 0
    found = dpsql("shell", clinic.policy, "--analyst", "ana", "--epsilon", "1", "-c", "\\d+ visits").out
    assert "you hold the octaves of COUNT(*): a query at ε 1 takes at most" in found and "about so many" in found
    assert "octaves" not in dpsql("shell", clinic.policy, "-c", "\\d+ visits").out  # nobody else holds them
