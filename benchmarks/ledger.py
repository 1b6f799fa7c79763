"""Durable charges per second, from one process and from eight, and the time to open a long ledger.

    python benchmarks/ledger.py [--charges 2000] [--processes 1 8] [--entries 20000] [--folder DIR] [--json FILE]

Every charge is committed with fsync, and the head written, before it counts. The folder decides which disk is measured:
the fsync time beside each figure says how fast that disk is at best.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

from dpsql.budget.ledger import Caps, Entry
from dpsql.budget.sqlite import SqliteLedger
from dpsql.loss import PrivacyLoss

CHARGE = {"patient": PrivacyLoss(Fraction(1, 1000))}


def open_ledger(folder: Path) -> SqliteLedger:
    return SqliteLedger.open(folder / "l.sqlite", folder / "head.json", "benchmark", "approx_dp", timeout=60)


def work(folder: Path, name: str, charges: int, gate: Any, latencies: Any) -> None:
    with open_ledger(folder) as ledger:
        gate.wait()
        taken = []
        for i in range(charges):
            start = time.perf_counter()
            ledger.reserve(Entry(f"{name}-{i}", "ana", CHARGE, "plan", "policy", "SELECT COUNT(*) FROM t"), Caps())
            taken.append(time.perf_counter() - start)
        latencies.put(taken)


def charges_per_second(base: Path, processes: int, charges: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        open_ledger(folder).close()
        context = multiprocessing.get_context("spawn")
        gate, latencies = context.Barrier(processes + 1), context.Queue()
        each = charges // processes
        workers = [
            context.Process(target=work, args=(folder, f"p{i}", each, gate, latencies)) for i in range(processes)
        ]
        for worker in workers:
            worker.start()
        gate.wait()
        start = time.perf_counter()
        taken = sorted(t for _ in workers for t in latencies.get())
        seconds = time.perf_counter() - start
        for worker in workers:
            worker.join()
        with open_ledger(folder) as ledger:
            assert ledger.verify() == each * processes, "a charge was lost"
    return {
        "per_second": each * processes / seconds,
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


def fsync_ms(base: Path) -> float:
    with tempfile.TemporaryFile(dir=base) as file:
        taken = []
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken)


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
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--entries", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    report: dict[str, Any] = {"versions": versions(), "fsync_ms": fsync_ms(options.folder), "charges": {}}
    print(", ".join(f"{name} {version}" for name, version in report["versions"].items()))
    print(f"one fsync: {report['fsync_ms']:.2f} ms")
    for processes in options.processes:
        figures = charges_per_second(options.folder, processes, options.charges)
        report["charges"][str(processes)] = figures
        print(
            f"{processes} process{'es' if processes > 1 else ''}: {figures['per_second']:.0f} charges/s, "
            f"median {figures['median_ms']:.2f} ms, p99 {figures['p99_ms']:.1f} ms, worst {figures['worst_ms']:.0f} ms"
        )
    report["opening"] = opening(options.folder, options.entries)
    print(f"opening and verifying {options.entries} entries: {report['opening']['seconds']:.2f} s")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
