"""Real processes: killed at any moment, and racing for the last of a budget."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.loss import PrivacyLoss

from .conftest import Place

pytestmark = pytest.mark.processes

# Prints a line for every receipt, as a query that shows its answer would.
_SPEND = """
import sys
from fractions import Fraction
from dpsql.budget.ledger import Caps, Entry
from dpsql.budget.sqlite import SqliteLedger
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.loss import PrivacyLoss

path, head, name, requests, budget = sys.argv[1:]
caps = Caps(total={"patient": PrivacyLoss(Fraction(budget))})
ledger = SqliteLedger.open(path, head, "clinic", "approx_dp", timeout=30)
for i in range(int(requests)):
    entry = Entry(f"{name}-{i}", name, {"patient": PrivacyLoss(Fraction(1, 10))}, "plan", "policy", "SELECT 1")
    try:
        print(ledger.reserve(entry, caps).sequence, flush=True)
    except BudgetExceeded:
        print("refused", flush=True)
"""


def spend(place: Place, name: str, requests: int, budget: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", _SPEND, str(place.path), str(place.head), name, str(requests), budget]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_kill_9_at_any_moment_loses_no_receipt_and_locks_nobody_out(place: Place) -> None:
    dice = random.Random()
    receipts = 0
    killed_at_work = 0
    for round_ in range(25):
        children = [spend(place, f"{round_}-{i}", 100_000, "1000000") for i in range(2)]
        # The start of Python takes some 0.1 s; the spread covers the opening, the first charge and busy times.
        time.sleep(dice.uniform(0.08, 0.35))
        for child in children:
            child.send_signal(signal.SIGKILL)
        for child in children:
            lines = child.communicate()[0].split("\n")[:-1]
            receipts += len(lines)
            killed_at_work += bool(lines)
        with place.open() as ledger:
            entries = ledger.verify()
            assert receipts <= entries <= receipts + 2 * (round_ + 1)
            assert ledger.spent("patient") == PrivacyLoss(Fraction(entries, 10))
    assert killed_at_work > 5
    assert receipts > 100


def test_eight_processes_share_a_budget_for_exactly_so_many(place: Place) -> None:
    children = [spend(place, f"p{i}", 40, "10") for i in range(8)]
    lines: list[str] = []
    for child in children:
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        lines += out.split()
    admitted = sorted(int(line) for line in lines if line != "refused")
    assert admitted == list(range(1, 101))
    assert lines.count("refused") == 8 * 40 - 100
    with place.open() as ledger:
        assert ledger.verify() == 100
        assert ledger.spent("patient") == PrivacyLoss(Fraction(10))


def test_processes_that_make_the_ledger_at_once_make_one(place: Place) -> None:
    for attempt in range(3):
        fresh = Place(Path(f"{place.path}{attempt}"), place.head.with_name(f"head{attempt}.json"))
        children = [spend(fresh, f"p{i}", 1, "10") for i in range(6)]
        outcomes = [child.communicate(timeout=60) for child in children]
        assert sorted(int(out) for out, _ in outcomes) == [1, 2, 3, 4, 5, 6], outcomes
