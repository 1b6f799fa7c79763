"""The search for planted values can fail: sessions in which one gets out on each of its ways, alone and in workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.canary import CANARY, DATA, MARKER, files_with_planted_values, holds

pytestmark = pytest.mark.processes

SEEN = {
    "print": "print(VALUE)",
    "errors": "print(VALUE, file=sys.stderr)",
    "below_python": "os.write(1, VALUE.encode())",
    "capsys": "print(VALUE); capsys.readouterr()",
    "log": "logging.getLogger('dpsql.engines').debug('row %s', VALUE)",
    "process": "subprocess.run([sys.executable, '-c', f'print({VALUE!r})'], capture_output=True)",
    "process_errors": "subprocess.run([sys.executable, '-c', f'raise ValueError({VALUE!r})'], capture_output=True)",
    "handled_exception": "pytest.raises(dpsql.Rejected, dpsql_fail, VALUE)",
}
"""What makes its own test fail."""

LEFT = {
    "file": "(tmp_path / 'file').write_text(VALUE)",
    "wide": "(tmp_path / 'a').mkdir(); (tmp_path / 'a' / 'wide').write_text(VALUE, 'utf-16-le')",
    "temporary": "open(tempfile.mkstemp('_temporary')[1], 'w').write(VALUE)",
    "ledger": "keep(tmp_path, 271828182)",
    "binary": "(tmp_path / 'binary').write_bytes(struct.pack('<d', 271828182))",
}
"""What makes the session fail, by the name of the file."""

SAFE = {
    "nothing": "print('27182818')",
    "data": "(tmp_path / 'd.duckdb').write_text(VALUE)",
    "the_users_own_text": "assert dpsql.check(f'SELECT 1 FROM nothing WHERE x = {VALUE!r}', POLICY)",
}

START = """
import logging, os, sqlite3, struct, subprocess, sys, tempfile, warnings
import dpsql, pytest
from dpsql.diagnostics.errors import reject

VALUE = "2718" + "28182 or zqx" + "marker"
POLICY = {policy!r}

def dpsql_fail(value):
    raise reject("DP102", f"no table {{value}}")

def keep(folder, value):
    con = sqlite3.connect(folder / "ledger")
    con.execute("CREATE TABLE t (x)")
    con.execute("INSERT INTO t VALUES (?)", (value,))
    con.commit()
    con.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that is gone before this session's own files are searched."""
    made = tmp_path / "session"
    (made / "inner").mkdir(parents=True)
    yield made
    shutil.rmtree(made)


def session(folder: Path, root: Path, bodies: dict[str, str], *options: str) -> tuple[int, str]:
    """Exit status and output of a session with the plugin. It shows no captured text, or this session would see it."""
    tests = [f"def test_{name}(tmp_path, capsys):\n    {body}\n" for name, body in bodies.items()]
    start = START.format(policy=str(root / "tests/fixtures/policies/clinic.yaml"))
    (folder / "inner" / "test_inner.py").write_text("\n".join([start, *tests]))
    quiet = ("-q", "-rfE", "-p", "no:cacheprovider", "--show-capture=no", "--disable-warnings")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.canary", *quiet, f"--rootdir={folder}", *options]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))} | {
        "PYTHONPATH": str(root),
        "COLUMNS": "300",
    }
    done = subprocess.run(
        [*command, f"--basetemp={folder / 'base'}", str(folder / "inner")],
        capture_output=True, text=True, cwd=folder, env=env, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def failed(output: str, names: Iterable[str]) -> set[str]:
    """The tests that failed because something was seen."""
    lines = [x for x in output.splitlines() if x.startswith("FAILED")]
    return {n for n in names if any(f"::test_{n} - a planted value was seen in: " in x for x in lines)}


def named(output: str, names: Iterable[str]) -> set[str]:
    """The files named at the end."""
    lines = [x for x in output.splitlines() if x.startswith("a planted value is in: ")]
    return {n for n in names if any(x.endswith(n) for x in lines)}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_every_leak_is_seen(folder: Path, root: Path, workers: tuple[str, ...]) -> None:
    status, output = session(folder, root, {**SEEN, **LEFT, **SAFE}, *workers)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert failed(output, {**SEEN, **LEFT, **SAFE}) == set(SEEN), output
    assert named(output, (*LEFT, "d.duckdb")) == set(LEFT), output


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_file_alone_makes_the_session_fail(folder: Path, root: Path, workers: tuple[str, ...]) -> None:
    status, output = session(folder, root, {"file": LEFT["file"]}, *workers)
    assert status == pytest.ExitCode.TESTS_FAILED and named(output, LEFT) == {"file"}, output


def test_a_warning_makes_the_session_fail(folder: Path, root: Path) -> None:
    status, output = session(folder, root, {"warning": "warnings.warn(VALUE)"})
    assert status == pytest.ExitCode.TESTS_FAILED and named(output, ["a warning"]), output


def test_a_session_without_a_leak_passes(folder: Path, root: Path) -> None:
    status, output = session(folder, root, SAFE)
    assert status == pytest.ExitCode.OK, output


def test_what_counts_as_planted(tmp_path: Path) -> None:
    for shown in (CANARY, f"x{MARKER}y", 271828182, -271828182.5, [CANARY], MARKER.encode("utf-16-le")):
        assert holds(shown)
    for shown in ("2718281", b"27182818", 2.71828182, MARKER[:-1]):
        assert not holds(shown)
    for suffix in (*DATA, ".sqlite", ""):
        (tmp_path / f"file{suffix}").write_text(MARKER)
    found = files_with_planted_values(tmp_path)
    for path in found:
        path.unlink()
    assert {path.suffix for path in found} == {".sqlite", ""}
