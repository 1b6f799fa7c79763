"""Durable charges per second from one and from many processes, a race for a budget, and the time to open a long ledger.

    python benchmarks/ledger.py [--charges 2000] [--processes 1 8 16] [--entries 20000] [--folder DIR] [--json FILE]

A charge counts once the log is flushed to the disk (fsync) and the head written and flushed, too. One charge alone
waits for two flushes; processes that wait at the same time share them (group commit), so together they may be faster
than the disk's own flushes. The folder decides which disk is measured: its flushes a second are measured in the same
run and printed beside each figure.

The race: 16 processes ask 200 times each for a charge out of a budget that holds exactly 1,000.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

from dpsql.budget.ledger import Caps, Entry
from dpsql.budget.sqlite import SqliteLedger
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.loss import PrivacyLoss

CHARGE = {"patient": PrivacyLoss(Fraction(1, 1000))}


def open_ledger(folder: Path) -> SqliteLedger:
    return SqliteLedger.open(folder / "l.sqlite", folder / "head.json", "benchmark", "approx_dp", timeout=60)


def work(folder: Path, name: str, charges: int, budget: Fraction | None, gate: Any, latencies: Any) -> None:
    with open_ledger(folder) as ledger:
        gate.wait()
        taken = []
        caps = Caps() if budget is None else Caps(total={"patient": PrivacyLoss(budget)})
        for i in range(charges):
            start = time.perf_counter()
            entry = Entry(f"{name}-{i}", "ana", CHARGE, "plan", "policy", "SELECT COUNT(*) FROM t")
            with contextlib.suppress(BudgetExceeded):
                ledger.reserve(entry, caps)
                taken.append(time.perf_counter() - start)
        latencies.put(taken)


def charges_per_second(base: Path, processes: int, charges: int, holds: int | None) -> dict[str, float]:
    """holds: how many charges the budget is for; None for no limit."""
    budget = None if holds is None else holds * CHARGE["patient"].epsilon
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        open_ledger(folder).close()
        context = multiprocessing.get_context("spawn")
        gate, latencies = context.Barrier(processes + 1), context.Queue()
        each = charges // processes
        workers = [
            context.Process(target=work, args=(folder, f"p{i}", each, budget, gate, latencies))
            for i in range(processes)
        ]
        for worker in workers:
            worker.start()
        gate.wait()
        start = time.perf_counter()
        taken = sorted(t for _ in workers for t in latencies.get())
        seconds = time.perf_counter() - start
        for worker in workers:
            worker.join()
        admitted = each * processes if holds is None else min(holds, each * processes)
        with open_ledger(folder) as ledger:
            assert ledger.verify() == len(taken) == admitted, "a charge was lost or came for nothing"
    return {
        "admitted": admitted,
        "per_second": admitted / seconds,
        "median_ms": 1e3 * taken[len(taken) // 2],
        "p99_ms": 1e3 * taken[len(taken) * 99 // 100],
        "worst_ms": 1e3 * taken[-1],
    }


def opening(base: Path, entries: int) -> dict[str, float]:
    """Seconds to open, which verifies the whole chain."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        with open_ledger(folder) as ledger:
            for i in range(entries):
                ledger.reserve(Entry(str(i), "ana", CHARGE, "plan", "policy", "SELECT COUNT(*) FROM t"), Caps())
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            open_ledger(folder).close()
            seconds.append(time.perf_counter() - start)
    return {"entries": entries, "seconds": statistics.median(seconds)}


def flushes_per_second(base: Path) -> float:
    """Of one file that grows by a page each time, from one process: the least that a charge can wait for."""
    with tempfile.TemporaryFile(dir=base) as file:
        start, count = time.perf_counter(), 0
        while (seconds := time.perf_counter() - start) < 1:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            count += 1
    return count / seconds


def measure(folder: Path, processes: Sequence[int], charges: int, entries: int, requests: int = 3200) -> dict[str, Any]:
    """Everything that is measured, printed as it comes. requests: of the race, for a budget of 1,000."""
    found: dict[str, Any] = {"charges": {}, "flushes": {}}
    runs = [(f"{n} process{'es' if n > 1 else ''}", n, charges, None) for n in processes]
    for name, count, asked, holds in (*runs, ("race of 16 processes", 16, requests, 1000)):
        flushes = flushes_per_second(folder)
        figures = charges_per_second(folder, count, asked, holds)
        found["charges"][name], found["flushes"][name] = figures, flushes
        print(
            f"    {name}: {figures['admitted']:,} of {asked:,} charges, {figures['per_second']:.0f} a second, median "
            f"{figures['median_ms']:.1f} ms, p99 {figures['p99_ms']:.0f} ms; the disk alone: {flushes:.0f} flushes a "
            "second"
        )
    found["opening"] = opening(folder, entries)
    print(f"    opening and verifying {entries:,} entries: {found['opening']['seconds']:.2f} s")
    return found


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "system": platform.platform()}
    found["cores"] = str(os.cpu_count())
    try:
        found["dpsql"] = metadata.version("dpsql")
    except metadata.PackageNotFoundError:
        found["dpsql"] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charges", type=int, default=2000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    report: dict[str, Any] = {"versions": versions()}
    print(", ".join(f"{name} {version}" for name, version in report["versions"].items()))
    report |= measure(options.folder, options.processes, options.charges, options.entries)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
