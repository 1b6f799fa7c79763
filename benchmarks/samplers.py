"""Noise per second, ours beside OpenDP's where it is installed: discrete Laplace and discrete Gaussian integers.

    python benchmarks/samplers.py [--draws 1000000] [--repeats 5] [--json FILE]

Both sides are timed in one run, in turn, on one core, and the median is reported: on a shared machine only ratios
within a run mean anything. "single" is one draw on its own with the tables at hand, "cold" the first draw at a scale
that was never used before. The scale of Gaussian noise is its σ.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import metadata, util
from pathlib import Path
from typing import Any

from dpsql.measure.backends import EXACT, Backend, OpenDPBackend

SCALES = [Fraction(1), Fraction(10**3), Fraction(10**6), Fraction(10**9), Fraction(1 << 50)]
FAMILIES = ("laplace", "gaussian")
WANTED = {"laplace": 3e6, "gaussian": 1e6}
"""Draws a second that have to be reached at n = 10⁶, on one core."""
WANTED_SINGLE = 100e-6
"""Seconds within which a single draw has to be made."""
SINGLES = 500
PEER_DRAWS = 50_000

Draw = Callable[[Fraction, int], object]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def drawer(backend: Backend, family: str) -> Draw:
    """scale, n ↦ n draws."""
    if family == "laplace":
        return backend.laplace
    return lambda scale, n: backend.gaussian(scale**2, n)


def measure(family: str, scale: Fraction, draws: int, repeats: int) -> dict[str, Any]:
    """One line of the table: rates in draws a second, times in microseconds."""
    ours = drawer(EXACT, family)
    ours(Fraction(10**5), 1)  # whatever is made once in a process
    cold = seconds(lambda: ours(scale + Fraction(1, 10**9 + 7), 1))
    ours(scale, 1000)
    single = statistics.median(seconds(lambda: ours(scale, 1)) for _ in range(SINGLES))
    theirs = drawer(OpenDPBackend(), family) if util.find_spec("opendp") else None
    ours_times, their_times, their_singles = [], [], []
    if theirs:
        theirs(scale, 1)
        their_singles = [seconds(lambda: theirs(scale, 1)) for _ in range(SINGLES)]
    for _ in range(repeats):
        ours_times.append(seconds(lambda: ours(scale, draws)))
        if theirs:
            their_times.append(seconds(lambda: theirs(scale, PEER_DRAWS)))
    row: dict[str, Any] = {
        "family": family,
        "scale": str(scale),
        "draws": draws,
        "per_second": draws / statistics.median(ours_times),
        "single_us": single * 1e6,
        "cold_us": cold * 1e6,
    }
    if their_times:
        row["opendp_per_second"] = PEER_DRAWS / statistics.median(their_times)
        row["opendp_single_us"] = statistics.median(their_singles) * 1e6
        row["ratio"] = row["per_second"] / row["opendp_per_second"]
    row["met"] = row["per_second"] >= WANTED[family] and single < WANTED_SINGLE
    return row


def run(draws: int, repeats: int) -> list[dict[str, Any]]:
    """Measure and print the whole table."""
    print(f"{'noise':>8} {'scale':>12} {'M/s':>7} {'OpenDP M/s':>11} {'ratio':>6}", end=" ")
    print(f"{'single µs':>10} {'OpenDP':>7} {'cold µs':>8}")
    rows = []
    for family in FAMILIES:
        for scale in SCALES:
            row = measure(family, scale, draws, repeats)
            rows.append(row)
            peer, peer_single = f"{'–':>11} {'–':>6}", f"{'–':>7}"
            if "ratio" in row:
                peer = f"{row['opendp_per_second'] / 1e6:11.3f} {row['ratio']:5.0f}×"
                peer_single = f"{row['opendp_single_us']:7.0f}"
            rate, single, cold = row["per_second"] / 1e6, row["single_us"], row["cold_us"]
            print(f"{family:>8} {float(scale):12.6g} {rate:7.2f} {peer} {single:10.1f} {peer_single} {cold:8.0f}")
    if draws < 1_000_000:
        return rows  # the targets speak of a million
    missed = [f"{r['family']} {r['scale']}" for r in rows if not r["met"]]
    print("at least 3 M Laplace and 1 M Gaussian draws a second, a single one in under 100 µs: ", end="")
    print("missed by " + ", ".join(missed) if missed else "met everywhere")
    return rows


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.platform()}
    for package in ("dpsql", "numpy", "opendp"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers and all versions there")
    options = parser.parse_args()
    rows = run(options.draws, options.repeats)
    if options.json:
        report = {"versions": versions(), "draws": options.draws, "repeats": options.repeats, "results": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
