"""Long queries on a real terminal: a bar that grows for who asks, Ctrl-C at random moments, and no file left behind.

How fast a cancelled query gives way is measured by benchmarks/cancel.py; here it only has to within ten seconds.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from benchmarks import cancel
from benchmarks.cancel import WORKS, Child, Work, make_data
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.faces.cli.main import main
from dpsql.policy.load import load_policy

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals"),
]
LONG = WORKS["scan"].sql
PERCENT = re.compile(rb"(\d+)%")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough by its data: the scan takes about a second on one thread."""
    return make_data(tmp_path_factory.mktemp("long"), 500_000, 50_000)


def on_a_terminal(arguments: list[str], **environment: str) -> tuple[int, bytes]:
    """The exit code of `dpsql …` and what its terminal showed."""
    import pty

    process, terminal = pty.fork()
    if process == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ |= {"TERM": "xterm", "COLUMNS": "100", **environment}
        # The bar comes at once, so that the query need not take long.
        code = "import sys, dpsql.faces.cli.main as m, dpsql.engines.progress as p; p.QUIET = 0.05; sys.exit(m.main())"
        os.execv(sys.executable, [sys.executable, "-c", code, *arguments])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux tells that the other side has gone
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown


def ask(policy: Path, *more: str) -> list[str]:
    return ["query", str(policy), LONG, "--epsilon", "1", "--fresh", "--threads", "1", "--format", "csv", *more]


def test_without_being_asked_nothing_is_drawn(policy: Path) -> None:
    """What an analyst sees."""
    status, shown = on_a_terminal(ask(policy))
    assert status == 0 and not PERCENT.search(shown) and b"\x1b[2K" not in shown


def test_a_bar_grows_on_a_terminal_for_who_asks(policy: Path) -> None:
    status, shown = on_a_terminal(ask(policy, "--progress"))
    percents = [int(n) for n in PERCENT.findall(shown)]
    assert status == 0 and percents == sorted(percents) and len(set(percents)) >= 3, shown
    assert 0 <= percents[0] < percents[-1] <= 100
    bar, end, answer = shown.rpartition(b"\r\x1b[2K")
    assert end and b"query" in bar and answer.split()[0] == b"count(*)" and not PERCENT.search(answer)


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_that_wants_plain_text_gets_no_bar(policy: Path, setting: dict[str, str]) -> None:
    status, shown = on_a_terminal(ask(policy, "--progress"), **setting)
    assert status == 0 and not PERCENT.search(shown) and b"\x1b" not in shown


def test_a_pipe_gets_no_bar(policy: Path) -> None:
    command = [sys.executable, "-m", "dpsql", *ask(policy, "--progress")]
    done = subprocess.run(command, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and PERCENT.search(done.stderr) is None and b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "name, times",
    [
        ("scan", 1),
        ("ledger lock", 1),
        ("aggregation", 1),
        ("spill", 1),
        ("noise", 1),
        ("post-processing", 1),
        *(
            pytest.param(name, times, marks=pytest.mark.exhaustive)
            for name, times in (("scan", 4), ("aggregation", 3), ("spill", 2), ("noise", 2), ("post-processing", 2))
        ),
    ],
)
def test_ctrl_c_on_a_terminal_gives_the_session_back(policy: Path, name: str, times: int) -> None:
    """At random moments; the next query of the same session is answered, all is charged, no file is left."""
    before = spent(policy)
    found = cancel.cancel(policy, WORKS[name], times, progress=True)
    assert found.unusable == 0 and found.status == 0 and found.left == []
    assert len(found.waits) == times, "too many queries had ended before Ctrl-C"
    assert max(found.waits) < 10
    # One ε for each answer: the first small one, the first long one, late ones, a small one each round. Then the rest.
    answered = 1 + (not WORKS[name].locked) + found.late + times + found.late
    assert before + answered <= spent(policy) <= before + answered + times
    if WORKS[name].locked:
        assert spent(policy) == before + answered  # who still waited for the ledger has paid nothing


def spent(policy: Path) -> Fraction:
    loaded = load_policy(policy)
    if not loaded.ledger_path.exists():
        return Fraction(0)
    with SqliteLedger.open(loaded.ledger_path, loaded.ledger_head_path, loaded.name, "approx_dp") as ledger:
        ledger.verify()
        return ledger.spent("person").epsilon


def test_what_a_killed_process_spilled_is_removed_by_the_next(policy: Path, tmp_path: Path) -> None:
    child = Child(policy, Work(WORKS["spill"].sql, memory="40MB"), tmp_path, progress=False)
    child.tell("go")
    deadline = time.monotonic() + 60
    while not any(tmp_path.glob("*/duckdb_temp_*")):
        assert time.monotonic() < deadline, "nothing was spilled"
        time.sleep(0.005)
    os.kill(child.process, signal.SIGKILL)
    assert child.end() == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o077 == 0 and any(left.iterdir())

    done = subprocess.run(
        [sys.executable, "-m", "dpsql", "query", str(policy), cancel.SMALL, "--epsilon", "1", "--fresh"],
        capture_output=True, timeout=120, stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0 and list(tmp_path.iterdir()) == []


def test_limits_that_make_no_sense_are_usage_errors(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (
        ("--threads", "0"),
        ("--threads", "many"),
        ("--memory-limit", "lots"),
        ("--memory-limit", "1MB"),
    ):
        for command in (["query", str(policy), cancel.SMALL], ["policy", "verify", str(policy)]):
            assert main([*command, option, value]) == (1 if command[0] == "query" else 2)
            assert "error[DP903]" in capsys.readouterr().err


def test_verify_shows_the_custodian_a_bar_unless_it_shall_be_quiet(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT (i * 7919) % 3000017 AS id, i % 100 AS x FROM range(3000000) s(i)")
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "version: 1\nname: v\ndatabase: d.duckdb\nunits: {person: {}}\ntables:\n  t:\n    unit: {column: id}\n"
        "    primary_key: [id]\n    columns: {id: {type: bigint}, x: {type: bigint, bounds: [0, 100]}}\n"
        "budgets: {total: {epsilon: 1, delta: 1e-6}}\n"
    )
    for more, expected in (([], True), (["--quiet"], False)):
        status, shown = on_a_terminal(["policy", "verify", str(policy), "--threads", "1", *more])
        assert status == 0, shown
        assert (b"\x1b[2K" in shown) == expected
