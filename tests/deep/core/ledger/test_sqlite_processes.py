"""Real processes: killed at any moment, and racing for the last of a budget."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import IO

import pytest

from dpsql.core.privacy_loss import PrivacyLoss
from tests.core.ledger.conftest import Place

pytestmark = pytest.mark.processes

# Prints a line for every receipt, as a query that shows its answer would.
_SPEND = """
import sys
from fractions import Fraction
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.core.privacy_loss import PrivacyLoss

path, head, name, requests, budget = sys.argv[1:]
caps = Caps(total={"patient": PrivacyLoss(Fraction(budget))})
ledger = SqliteLedger.open(path, head, "clinic", "approx_dp", timeout=600)
for i in range(int(requests)):
    entry = Entry(f"{name}-{i}", name, {"patient": PrivacyLoss(Fraction(1, 10))}, "plan", "policy", "SELECT 1")
    try:
        print(ledger.reserve(entry, caps).sequence, flush=True)
    except BudgetExceeded:
        print("refused", flush=True)
"""


def spend(
    place: Place, name: str, requests: int, budget: str, output: IO[str] | int = subprocess.PIPE
) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", _SPEND, str(place.path), str(place.head), name, str(requests), budget]
    return subprocess.Popen(arguments, stdout=output, stderr=subprocess.PIPE, text=True)


def test_kill_9_at_any_moment_loses_no_receipt_and_locks_nobody_out(place: Place, tmp_path: Path) -> None:
    dice = random.Random()
    receipts = 0
    for round_ in range(24):
        outputs = [tmp_path / f"{round_}-{i}.txt" for i in range(2)]
        children = []
        for output in outputs:
            with output.open("w") as file:
                children.append(spend(place, output.stem, 100_000, "1000000", file))
        if round_ % 2:
            # At work, however slow the machine: after the first receipt.
            deadline = time.monotonic() + 600
            while not outputs[0].stat().st_size and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(dice.uniform(0, 0.05))
        else:
            # Around the opening, which follows some 0.1 s of Python's own start.
            time.sleep(dice.uniform(0.05, 0.3))
        for child in children:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        receipts += sum(output.read_text().count("\n") for output in outputs)
        with place.open() as ledger:
            entries = ledger.verify()
            # A process killed between its commit and its line leaves one entry without a receipt.
            assert receipts <= entries <= receipts + 2 * (round_ + 1)
            assert ledger.spent("patient") == PrivacyLoss(Fraction(entries, 10))
    assert receipts >= 12


def test_eight_processes_share_a_budget_for_exactly_so_many(place: Place) -> None:
    children = [spend(place, f"p{i}", 40, "10") for i in range(8)]
    lines: list[str] = []
    for child in children:
        out, err = child.communicate(timeout=600)
        assert child.returncode == 0, err
        lines += out.split()
    admitted = sorted(int(line) for line in lines if line != "refused")
    assert admitted == list(range(1, 101))
    assert lines.count("refused") == 8 * 40 - 100
    with place.open() as ledger:
        assert ledger.verify() == 100
        assert ledger.spent("patient") == PrivacyLoss(Fraction(10))


def test_sixteen_processes_with_two_hundred_requests_each_share_a_budget_for_exactly_a_thousand(place: Place) -> None:
    children = [spend(place, f"p{i}", 200, "100") for i in range(16)]
    lines: list[str] = []
    for child in children:
        out, err = child.communicate(timeout=1200)
        assert child.returncode == 0, err
        lines += out.split()
    assert sorted(int(line) for line in lines if line != "refused") == list(range(1, 1001))
    assert lines.count("refused") == 2200
    with place.open() as ledger:
        assert ledger.verify() == 1000
        assert ledger.spent("patient") == PrivacyLoss(Fraction(100))


def test_processes_that_make_the_ledger_at_once_make_one(place: Place) -> None:
    for attempt in range(3):
        fresh = Place(Path(f"{place.path}{attempt}"), place.head.with_name(f"head{attempt}.json"))
        children = [spend(fresh, f"p{i}", 1, "10") for i in range(6)]
        outcomes = [child.communicate(timeout=600) for child in children]
        assert sorted(int(out) for out, _ in outcomes) == [1, 2, 3, 4, 5, 6], outcomes
