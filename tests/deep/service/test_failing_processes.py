"""Failures of processes: those that die, race, or are stopped by a signal; each is a real one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import dpsql
from dpsql.diagnostics.errors import BudgetExceeded
from tests.support.small_shop import COUNT, Shop, make_shop

pytestmark = pytest.mark.processes


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = make_shop(tmp_path / "shop")
    made.policy.write_text(made.policy.read_text() + "failures: {most: 2, in_total: 3}\n")
    return made


def refused(con: dpsql.Connection, sql: str = COUNT) -> str:
    before = str(con.budget)
    with pytest.raises(BudgetExceeded) as refusal:
        con.execute(sql, epsilon="0.1", fresh=True)
    (found,) = refusal.value.diagnostics
    assert (
        str(con.budget) == before
        and found.code == "DP416"
        and found.notes == ("nothing was run and nothing was spent",)
    )
    assert "dpsql budget POLICY --failures --clear" in found.help[0] and "4711" not in str(refusal.value)
    return found.message


RUNS = """
import os, signal, sys
import dpsql
from dpsql.engines.duckdb.engine import DuckDBEngine
fetch = DuckDBEngine.fetch
def private(engine, sql):
    if '"orders"' in sql:
        DO
    return fetch(engine, sql)
DuckDBEngine.fetch = private
with dpsql.connect(sys.argv[1], analyst=sys.argv[2]) as con:
    try:
        con.execute("SELECT COUNT(*) FROM orders", epsilon="0.1", fresh=True)
    except dpsql.Error as error:
        print(error.code)
"""


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for child in found:
        child.kill()
        child.communicate()


def start(shop: Shop, name: str, do: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUNS.replace("DO", do), str(shop.policy), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_a_process_that_dies_counts_at_the_next_opening_and_one_that_runs_does_not(
    shop: Shop, children: list[subprocess.Popen[str]]
) -> None:
    runs = start(shop, "ben", "print('there', flush=True); sys.stdin.readline()")
    children.append(runs)
    assert runs.stdout is not None and runs.stdin is not None and runs.stdout.readline() == "there\n"
    for _ in range(2):
        children.append(dies := start(shop, "ana", "os.kill(os.getpid(), signal.SIGKILL)"))
        assert dies.wait() == -signal.SIGKILL
    assert shop.spent() > 0
    for _ in range(2):
        with dpsql.connect(shop.policy, analyst="ana") as con:
            refused(con)
        assert shop.failures() == [("ana", "crashed")] * 2
    runs.communicate("\n")
    assert runs.returncode == 0
    with dpsql.connect(shop.policy, analyst="ben") as con:
        assert con.execute(COUNT, epsilon="0.1").rows
    assert shop.failures() == [("ana", "crashed")] * 2 and not list(shop.folder.glob("state/*runs-*"))


def test_processes_that_fail_at_one_time_count_all(shop: Shop, children: list[subprocess.Popen[str]]) -> None:
    several: Sequence[subprocess.Popen[str]] = [
        start(shop, "ana", "print('there', flush=True); sys.stdin.readline(); raise RuntimeError") for _ in range(2)
    ]
    children += several
    for child in several:
        assert child.stdout is not None and child.stdout.readline() == "there\n"
    for child in several:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    assert [child.communicate()[0] for child in several] == ["DP901\n"] * 2
    assert shop.failures() == [("ana", "failed")] * 2


def test_whoever_stops_with_a_signal_is_no_failure(shop: Shop, children: list[subprocess.Popen[str]]) -> None:
    runs = start(shop, "ana", "raise SystemExit(3)")
    children.append(runs)
    runs.communicate()
    assert runs.returncode == 3
    with dpsql.connect(shop.policy, analyst="ana") as con:
        assert con.execute(COUNT, epsilon="0.1").rows
    assert shop.failures() == []
