"""`dpsql shell` away from a terminal: flags, files, pipes, exit codes, and input that makes no sense."""

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

from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"
REGIONS = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's own settings."""
    for name in [n for n in os.environ if n.startswith("DPSQL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["-c", COUNT], 0, None),
        (["-c", "\\d patients"], 0, None),
        (["-c", "\\nonsense"], 1, "DP903"),
        (["-c", "SELECT 1; INSERT INTO patients VALUES (1)"], 3, "DP012"),
        (["-c", "SELECT FROM WHERE"], 3, "DP010"),
        (["-c", "SELECT SUM(surcharge) FROM visits"], 4, "DP201"),
        (["-c", "\\copy patients to 'x.csv'"], 4, "DP906"),
        (["-c", "EXPLAIN ANALYZE SELECT 1"], 4, "DP906"),
        (["-c", COUNT, "--epsilon", "7"], 5, "DP404"),
        (["-c", COUNT, "--epsilon", "x"], 1, "DP406"),
        (["-f", "no-such-file.sql"], 1, "DP903"),
        (["-P", "format=x", "-c", COUNT], 1, "DP903"),
        (["-v", "a b=1", "-c", COUNT], 1, "DP903"),
        (["--ledger", "/dev/null/x", "-c", COUNT], 2, "DP407"),
        (["--dialect", "klingon", "-c", COUNT], 1, "DP903"),
        (["--no-such-flag"], 1, "DP903"),
    ],
)
def test_exit_codes(dpsql: Call, clinic: Clinic, arguments: list[str], status: int, code: str | None) -> None:
    done = dpsql("shell", clinic.policy, *arguments)
    assert done.status == status and done.codes == ({code} if code else set())


def test_a_policy_that_is_not_there(dpsql: Call, tmp_path: Path) -> None:
    for arguments in (["shell", str(tmp_path / "none.yaml")], [str(tmp_path / "none.yaml")]):
        assert (done := dpsql(*arguments)).status == 2 and done.codes == {"DP001"}
    assert dpsql("shell").codes == {"DP903"}


def test_the_policy_alone_is_enough(dpsql: Call, clinic: Clinic) -> None:
    assert dpsql(clinic.policy, stdin=f"{COUNT};".encode()).out.splitlines()[0].strip() == "n"


def test_commands_and_files_run_in_their_order(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("\\echo two\n\\ir b.sql\n")
    (tmp_path / "b.sql").write_text("\\echo three")
    done = dpsql(
        "shell", clinic.policy, "-c", "\\echo one", "-f", tmp_path / "a.sql", "-c", "\\echo four", "-f", "-",
        "-c", "\\q", "-c", "\\echo never", stdin=b"\\echo five",
    )  # fmt: skip
    assert done.out.split() == ["one", "two", "three", "four", "five"] and done.status == 0


def test_the_first_error_ends_a_pipe(dpsql: Call, clinic: Clinic) -> None:
    text = b"\\echo before\nSELECT nonsense FROM patients;\n\\echo after\n"
    done = dpsql("shell", clinic.policy, stdin=text)
    assert done.status == 4 and done.out == "before\n" and "<stdin>:2:8" in done.err
    done = dpsql("shell", clinic.policy, "-v", "ON_ERROR_STOP=off", stdin=text)
    assert done.status == 0 and done.out == "before\nafter\n" and done.codes == {"DP103"}


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{COUNT}".encode(),
        f"{COUNT};\r\n".encode(),
        f"-- π\n\n{COUNT}\n;\n-- done".encode(),
        b"SELECT 1 AS n \\g",
    ],
)
def test_files_of_any_kind(dpsql: Call, clinic: Clinic, text: bytes) -> None:
    done = dpsql("shell", clinic.policy, "--csv", "-q", stdin=text)
    assert done.status == 0 and done.out.splitlines()[0] == "n" and len(done.out.splitlines()) == 2 and not done.err


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"SELECT \xc3\x28;", b"SELECT 1\x00;"])
def test_what_is_no_text(dpsql: Call, clinic: Clinic, text: bytes) -> None:
    assert (done := dpsql("shell", clinic.policy, stdin=text)).status == 1 and done.codes == {"DP903"}


def test_places_in_files(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("\\echo\n\n  SELECT COUNT(*)\n  FROM patients\n  WHERE nonsense = 1;\n")
    done = dpsql("shell", clinic.policy, "-f", tmp_path / "q.sql")
    assert "q.sql:5:9" in done.err and re.search(r"\| +WHERE nonsense = 1\n.*\| {9}\^{8}\n", done.err)


def test_formats(dpsql: Call, clinic: Clinic) -> None:
    def shown(*flags: str) -> str:
        done = dpsql("shell", clinic.policy, *flags, "-c", REGIONS)
        assert done.status == 0
        return done.out

    assert shown().splitlines()[0].split() == ["region", "|", "n"] and "(4 rows)" in shown()
    plain = shown("-At")
    assert [line.split("|")[0] for line in plain.splitlines()] == ["east", "north", "south", "west"]
    assert all(re.fullmatch(r"\w+\|\d+ ± \d+", line) for line in plain.splitlines())
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


def test_what_is_set_is_what_is_spent(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql("shell", clinic.policy, "--analyst", "ana", "--epsilon", "0.2", "-c", f"SET epsilon TO 0.05; {COUNT}")
    assert "spent ε 0.05, left ε 2.95" in done.out
    assert "2.95" in dpsql("shell", clinic.policy, "--analyst", "ana", "-c", "\\budget").out


def test_variables(dpsql: Call, clinic: Clinic) -> None:
    done = dpsql(
        "shell", clinic.policy, "--csv", "-q", "-v", "r=o'x", "-c", "\\set r 'north' ", "-c", "\\echo :r :'r' :\"r\"",
        "-c", "SELECT region AS :\"r\", ':r' AS t FROM patients WHERE region = :'r' GROUP BY region",
    )  # fmt: skip
    assert done.out == "north 'north' \"north\"\nnorth,t\nnorth,:r\n"


def test_looking_spends_nothing_and_makes_no_ledger(dpsql: Call, clinic: Clinic) -> None:
    looks = [
        "\\d",
        '\\d "visits";',
        "\\dt",
        "\\l",
        "\\conninfo",
        "\\policy",
        "\\budget",
        "\\df",
        "\\h clip",
        "\\h",
        "\\?",
        "\\pset",
    ]
    done = dpsql("shell", clinic.policy, *(a for look in looks for a in ("-c", look)), "-c", f"\\explain {COUNT}")
    assert done.status == 0 and not done.err and not clinic.ledger.exists()
    assert "would cost ε 0.5" in dpsql("shell", clinic.policy, "-c", f"\\cost {COUNT}").out


def test_a_ledger_that_was_removed_is_noticed_at_the_start(dpsql: Call, clinic: Clinic) -> None:
    assert dpsql("shell", clinic.policy, "-c", COUNT).status == 0
    clinic.ledger.unlink()
    done = dpsql("shell", clinic.policy, "-c", "\\echo never")
    assert done.status == 2 and done.codes == {"DP407"} and done.out == ""


def test_nothing_is_kept_of_what_pipes_say(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    dpsql("shell", clinic.policy, stdin=f"{COUNT};".encode())
    assert not list(tmp_path.rglob("history"))
    assert dpsql("shell", clinic.policy, "-c", "\\history").codes == {"DP903"}


def test_files_that_read_one_another(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(f"\\i '{tmp_path / 'b.sql'}'")
    (tmp_path / "b.sql").write_text(f"\\i '{tmp_path / 'a.sql'}'")
    assert (done := dpsql("shell", clinic.policy, "-f", tmp_path / "a.sql")).status == 1 and "16 files" in done.err


@pytest.mark.processes
def test_pipes_load_nothing_for_terminals(clinic: Clinic, tmp_path: Path) -> None:
    code = (
        "import sys; from dpsql.cli.main import main; main(sys.argv[1:]); "
        "print(*{'prompt_toolkit', 'pygments', 'cli_helpers', 'rich'} & {m.partition('.')[0] for m in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "shell", clinic.policy, "-c", f"EXPLAIN {COUNT}", "-c", COUNT], text=True,
        capture_output=True, timeout=300, cwd=tmp_path, stdin=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0 and "(1 row)" in done.stdout and done.stdout.splitlines()[-1] == "", done.stderr
