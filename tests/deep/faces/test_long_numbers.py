"""Numbers of thousands of digits in files and options of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.test_long_numbers import DIGITS
from tests.support.checklist_clinic import Call, Clinic

CHECK_FILES = (
    "max-epsilon = {}", "max-epsilon = 1e{}", "jobs = {}", "jobs = 0x{}", "[parameters]\na = {}", "{} = 1",
    "[parameters]\na = 0x{}", "strict = 0x{}", "select = [0x{}]", "max-epsilon = 0x{}",
)  # fmt: skip


def test_probe_in_files_and_options_of_the_command_line(
    clinic: Clinic, dpsql_command: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "dpsql").mkdir()
    (tmp_path / "q.sql").write_text("SELECT COUNT(*) AS n FROM patients WHERE pid = $a")

    def refused(*arguments: str | Path) -> None:
        called = dpsql_command(*arguments)  # which sees that it is neither a traceback nor DP904
        assert called.status != 0 and "set_int_max_str_digits" not in called.out + called.err, arguments

    for line in CHECK_FILES:
        (tmp_path / "dpsql.toml").write_text(f'policy = "{clinic.policy}"\n{line.format(DIGITS)}\n')
        refused("check", "q.sql", "--no-cache")
    (tmp_path / "dpsql.toml").unlink()
    for option in ("--max-epsilon", "--max-epsilon-per-file", "--jobs", "--parameter"):
        value = f"a={DIGITS}" if option == "--parameter" else DIGITS
        refused("check", "q.sql", "--policy", clinic.policy, "--no-cache", option, value)
    count = "SELECT COUNT(*) AS n FROM patients"
    for option in ("--epsilon", "--delta", "--rho", "--confidence", "--threads", "--max-error", "--weight"):
        value = f"n={DIGITS}" if option in ("--max-error", "--weight") else DIGITS
        refused("query", clinic.policy, count, option, value)
    for command in (f"SET epsilon = {DIGITS};", f"\\pset confirm {DIGITS}", f"SELECT {DIGITS};", f"\\history {DIGITS}"):
        refused("shell", clinic.policy, "-c", command)
    for line in (f"epsilon = {DIGITS}", f"epsilon = 0x{DIGITS}"):
        (tmp_path / "dpsql" / "config.toml").write_text(f"[shell]\n{line}\n")
        refused("shell", clinic.policy, "-c", "\\conninfo")
