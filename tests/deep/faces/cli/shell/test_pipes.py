"""Away from a terminal: order, exit codes, streams, flags."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes
A = "SELECT code, rank FROM codes WHERE code = 'a'"


def run(folder: Path, *arguments: str, text: str = "") -> tuple[int, str, str]:
    """The exit code of `dpsql shop.yaml …` and both streams, which are plain text."""
    done = subprocess.run(
        [sys.executable, "-m", "dpsql", "shell", "shop.yaml", "-X", *arguments], cwd=folder, input=text,
        capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert "\x1b" not in done.stdout + done.stderr and "Traceback" not in done.stderr and "=>" not in done.stdout
    return done.returncode, done.stdout, done.stderr


def test_commands_files_and_input_run_in_their_order(folder: Path) -> None:
    (folder / "two.sql").write_text("\\echo two\n")
    arguments = ("-c", "\\echo one", "-f", "two.sql", "-c", "\\echo :v", "-v", "v=three", "-f", "-")
    assert run(folder, *arguments, text="\\echo four\n" + A) == (
        0, "one\ntwo\nthree\nfour\n code | rank\n------+------\n a    |    1\n(1 row)  spent nothing\n", ""
    )  # fmt: skip


def test_plain_rows(folder: Path) -> None:
    assert run(folder, "-At", text=f"{A};") == (0, "a|1\n", "")


def test_csv_to_a_file(folder: Path) -> None:
    status, out, err = run(folder, "--csv", "-q", "-o", "out.csv", "-c", A)
    assert (status, out, err, (folder / "out.csv").read_text()) == (0, "", "", "code,rank\na,1\n")


@pytest.mark.parametrize(
    "status, arguments",
    [
        (1, ("-c", "\\nosuch")),
        (2, ("--ledger", "shop.yaml", "-c", "\\budget")),
        (3, ("-c", "SELECT FROM WHERE")),
        (4, ("-c", "SELECT SUM(debt) AS s FROM people")),
        (5, ("--analyst", "broke", "-c", "SELECT COUNT(*) AS n FROM people")),
    ],
)
def test_the_first_error_ends_it_with_its_code(folder: Path, status: int, arguments: tuple[str, ...]) -> None:
    found, out, err = run(folder, *arguments, "-c", "\\echo never")
    assert (found, out) == (status, "") and err.startswith("error[DP")
