"""What only a process of its own can show: streams, signals, encodings, imports, and the constant internal error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpsql.api.connection import Connection
from dpsql.diagnostics.errors import EngineError
from dpsql.faces.cli import exits, main
from tests.support.command_line import Call, Clinic

pytestmark = pytest.mark.processes

COUNT = "SELECT COUNT(*) AS n FROM patients"


def test_the_installed_command_is_the_module(process: Call) -> None:
    program = Path(sys.executable).with_name("dpsql")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, process("--version").out) and done.stdout.startswith("dpsql 0.")


def test_a_query_from_a_pipe(process: Call, clinic: Clinic) -> None:
    done = process("query", clinic.policy, "-", "--epsilon", "0.1", "--format", "csv", stdin=COUNT.encode())
    assert done.status == 0 and done.out.splitlines()[0] == "n" and int(done.out.splitlines()[1]) > 10_000


@pytest.mark.parametrize("command", [["--help"], ["query", "--help"], ["policy", "--help"], ["rule", "DP201"]])
def test_help_loads_neither_engine_nor_arrays(command: list[str], tmp_path: Path) -> None:
    assert loaded_by(command, tmp_path) == set()


def test_check_loads_neither_engine_nor_arrays(clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(f"{COUNT};\nSELECT MAX(cost) FROM visits;")
    assert loaded_by(["check", "q.sql", "--policy", clinic.policy], tmp_path) == set()
    assert loaded_by(["query", clinic.policy, COUNT], tmp_path) == {"duckdb", "numpy"}, "the search finds nothing"


def loaded_by(arguments: list[str], folder: Path) -> set[str]:
    code = (
        "import sys; from dpsql.faces.cli.main import main; main(sys.argv[1:]); "
        "print('loaded', *{'duckdb', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
        stdin=subprocess.DEVNULL, env={**os.environ, "XDG_STATE_HOME": str(folder)},
    )  # fmt: skip
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "loaded", done.stderr
    return set(last[1:])


def test_ctrl_c_while_waiting_is_130(clinic: Clinic, tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "dpsql", "query", clinic.policy, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=tmp_path, text=True,
    )  # fmt: skip
    with running:
        wait_until_it_reads(running.pid)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=300)
    assert running.returncode == 130 and out == "" and "Traceback" not in err
    assert err.strip() == exits.interrupted() and "the charge stays" in err


def wait_until_it_reads(process: int) -> None:
    """Wait until the process has loaded the command and has slept for a second, and so in a read of standard input."""
    modules = Path(f"/proc/{process}/maps")
    if not modules.exists():
        time.sleep(20)
        return
    since: tuple[list[str], int] = [], 0
    for at in range(6000):
        time.sleep(0.05)
        status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        worked = status[11:15]  # processor time; who waits for the processor or the disk does not sleep
        if "pydantic_core" not in modules.read_text() or status[0] != "S" or worked != since[0]:
            since = worked, at
        elif at >= since[1] + 20:
            return
    pytest.fail("the command does not wait for its input")


def test_ctrl_c_during_a_run(dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "run", stop)
    done = dpsql("query", clinic.policy, COUNT)
    assert done.status == 130 and done.err.strip() == exits.interrupted() and done.out == ""


def test_a_reader_that_leaves_is_no_error(clinic: Clinic, tmp_path: Path) -> None:
    for command in (["policy", "schema"], ["query", clinic.policy, COUNT, "--epsilon", "0.1"]):
        running = subprocess.Popen(
            [sys.executable, "-m", "dpsql", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, cwd=tmp_path,
        )  # fmt: skip
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        err = running.stderr.read().decode()
        assert running.wait(timeout=300) == 1 and err == ""
        running.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk(clinic: Clinic, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpsql", "query", clinic.policy, COUNT, "--epsilon", "0.1"], stdout=full,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=300, text=True, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 1 and "error[DP903]: reading or writing failed: no space left" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_streams_that_know_ascii_only(process: Call, clinic: Clinic) -> None:
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = process("query", clinic.policy, COUNT, "--epsilon", "0.1", env=env)
    assert done.status == 0 and "spent ? 0.1" in done.out
    sql = "SELECT 'é' AS \"naïve\", title FROM icd10 WHERE code = 'I10'"
    done = process("query", clinic.policy, sql, "--format", "json", env=env)
    assert done.status == 0 and '"na\\u00efve"' in done.out and '["\\u00e9", "High blood pressure"]' in done.out


def test_an_argument_that_is_no_text(process: Call, clinic: Clinic) -> None:
    done = process(b"query", clinic.policy, b"SELECT '\xff' FROM patients")
    assert done.status == 1 and done.codes == {"DP903"} and "UTF-8" in done.err
    done = process(b"query", b"\xff\xfe.yaml", COUNT)
    assert done.status == 2 and done.codes == {"DP001"}
    assert process("query", clinic.policy, COUNT, b"--analyst", b"\xff", "--epsilon", "0.1").status == 0


def test_closed_streams(clinic: Clinic, tmp_path: Path) -> None:
    """Started by something that has no terminal and no streams: no crash, and the exit code is right."""
    for redirect, status in (("<&-", 3), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 3)):
        command = f'"{sys.executable}" -m dpsql query "{clinic.policy}" - --epsilon 0.1 {redirect}'
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=300, cwd=tmp_path, input=COUNT
        )
        assert done.returncode == status, (redirect, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr
        assert done.stdout.lstrip().startswith("n\n") == (redirect == "2>&-")


def test_what_nobody_foresaw_is_one_constant_message(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two different failures, whose texts and types hold private values, look the same; no switch shows more."""
    monkeypatch.setenv("DPSQL_DEBUG", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    seen = set()
    for failure in (
        ZeroDivisionError("age 57 of patient 4711"),
        RecursionError("deep"),
        MemoryError(),
        LookupError("x"),
    ):

        def fail(*_: object, failure: Exception = failure) -> None:
            raise failure

        monkeypatch.setattr(Connection, "run", fail)
        status = main.main(["query", clinic.policy, COUNT])
        shown = capsys.readouterr()
        seen.add((status, shown.out, shown.err))
    assert len(seen) == 1
    status, out, err = seen.pop()
    assert status == 1 and out == "" and err.startswith("error[DP904]: dpsql itself failed") and "4711" not in err


def test_an_engine_failure_is_1_and_says_that_the_charge_stays(
    dpsql: Call, clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsql.core.engine import engine_failed
    from dpsql.engines.duckdb.engine import DuckDBEngine

    def fail(*_: object) -> EngineError:
        raise engine_failed()

    monkeypatch.setattr(DuckDBEngine, "fetch", fail)
    done = dpsql("query", clinic.policy, COUNT, "--analyst", "ana", "--epsilon", "0.25")
    assert done.status == 1 and done.codes == {"DP901"} and "what was charged stays charged" in done.err
    assert "ε 0.25" in dpsql("budget", clinic.policy).out
