"""All benchmarks in one run: queries, planning, noise and the ledger.

    python -m benchmarks [--quick] [--people N] [--rounds N] [--only queries samplers ledger] [--folder DIR]

Prints tables and writes FOLDER/latest.json, with the versions and the machine beside the figures.
--quick: tables of 20,000 people and few repeats, in seconds; its figures say only that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import data, ledger, queries, samplers

PARTS = ("queries", "samplers", "ledger")
PACKAGES = ("dpsql", "duckdb", "numpy", "opendp", "sqlglot")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    found: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            found["processor"] = line.split(":", 1)[1].strip()
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            found["memory_gb"] = round(int(line.split()[1]) / 2**20, 1)
    if hasattr(os, "getloadavg"):
        found["load_before"] = round(os.getloadavg()[0], 2)
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def noise(quick: bool) -> list[dict[str, Any]]:
    """Draws a second of both families at every scale, ours and OpenDP's."""
    print("\nnoise")
    return samplers.run(*((20_000, 1) if quick else (1_000_000, 5)))


def charges(folder: Path, quick: bool) -> dict[str, Any]:
    """Durable charges a second, on the disk of `folder`."""
    print("\nledger")
    if quick:
        return ledger.measure(folder, [1, 8], 80, 100, 160)
    return ledger.measure(folder, [1, 8, 16], 2000, 5_000)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--people", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--folder", type=Path, default=queries.RESULTS)
    options = parser.parse_args()
    people = options.people or (20_000 if options.quick else data.PEOPLE)
    rounds = options.rounds or (2 if options.quick else 9)
    options.folder.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"machine": machine(), "quick": options.quick}
    print(", ".join(f"{name} {value}" for name, value in report["machine"].items()), end="\n\n")
    if "queries" in options.only:
        report |= queries.run(options.folder, people, rounds)
        queries.show(report)
    if "samplers" in options.only:
        report["samplers"] = noise(options.quick)
    if "ledger" in options.only:
        report["ledger"] = charges(options.folder, options.quick)
    target = options.folder / "latest.json"
    target.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(f"\nwritten to {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
