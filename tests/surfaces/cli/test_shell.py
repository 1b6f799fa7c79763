"""`dpsql shell` away from a terminal: flags, files, pipes, exit codes, and input that makes no sense."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.command_line import Call, Clinic

COUNT = "SELECT COUNT(*) AS n FROM patients"


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


def test_a_batch_of_a_file_shows_its_price_first(dpsql: Call, clinic: Clinic, tmp_path: Path) -> None:
    """It is refused at its place, or goes on without what is refused; explained, it costs nothing; again it is free."""
    board = tmp_path / "board.sql"
    board.write_text(
        f"{COUNT};\nSELECT region, AVG(age) AS m FROM patients\n GROUP BY region;\nSELECT MAX(age) FROM patients"
    )
    refused = dpsql("shell", clinic.policy, "-c", f"\\batch {board}")
    assert refused.status == 4 and refused.codes == {"DP101"} and f"{board}:4:8" in refused.err
    shown = dpsql("shell", clinic.policy, "-c", "\\epsilon 0.1", "-c", f"\\batch {board} skip explain")
    assert shown.status == 0 and "cost: ε 0.1" in shown.out and "query 3: refused" in shown.out
    done = dpsql("shell", clinic.policy, "-c", "\\epsilon 0.1", "-c", f"\\batch {board} skip")
    lines = done.out.splitlines()
    assert (
        lines[0] == "2 queries, together: would cost ε 0.1" and done.out.count(" ± ") == 7 and done.codes == {"DP101"}
    )
    assert "age is clipped to [0, 110]" in done.out and "CLIP" not in done.out
    again = dpsql("shell", clinic.policy, "-c", "\\epsilon 0.1", "-c", f"\\batch {board} skip")
    assert again.out.startswith("2 queries, together: would cost nothing") and "spent ε 0" in again.out
    for wrong in ("\\batch", f"\\batch {board} now", f"\\batch {tmp_path}/none.sql"):
        assert dpsql("shell", clinic.policy, "-c", wrong).codes == {"DP903"}
