"""Discrete Laplace draws per second, ours beside OpenDP's where it is installed.

    python benchmarks/samplers.py [--draws 1000000] [--repeats 5] [--json FILE]

Both sides are timed in one run, in turn, and the median is reported: on a shared machine only ratios within a run mean
anything. "cold" is the first single draw at a scale never used before, "single" a draw on its own afterwards.
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
from importlib import metadata
from pathlib import Path
from typing import Any

from dpsql.measure.random import discrete_laplace

SCALES = [Fraction(1, 3), Fraction(7, 2), Fraction(1000), Fraction(10**6), Fraction(1 << 40), Fraction(1 << 50)]
SINGLES = 1000
PEER_DRAWS = 100_000


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def opendp_sampler() -> Callable[[Fraction, int], Callable[[], object]] | None:
    """scale, n ↦ a function that draws n integers with OpenDP; None if OpenDP is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")

    def prepare(scale: Fraction, n: int) -> Callable[[], object]:
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        measurement, zeros = dp.m.make_laplace(*space, float(scale)), [0] * n
        return lambda: measurement(zeros)

    return prepare


def measure(scale: Fraction, draws: int, repeats: int) -> dict[str, Any]:
    """One line of the table: rates in draws a second, times in microseconds."""
    never_used = scale + Fraction(1, 10**9 + 7)
    cold = seconds(lambda: discrete_laplace(never_used, 1))
    discrete_laplace(scale, 1)
    single = seconds(lambda: [discrete_laplace(scale, 1) for _ in range(SINGLES)]) / SINGLES
    peer = opendp_sampler()
    theirs = peer(scale, PEER_DRAWS) if peer else None
    ours_times, their_times = [], []
    for _ in range(repeats):
        ours_times.append(seconds(lambda: discrete_laplace(scale, draws)))
        if theirs:
            their_times.append(seconds(theirs))
    result: dict[str, Any] = {
        "scale": str(scale),
        "per_second": draws / statistics.median(ours_times),
        "single_us": single * 1e6,
        "cold_us": cold * 1e6,
    }
    if their_times:
        result["opendp_per_second"] = PEER_DRAWS / statistics.median(their_times)
    return result


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
    rows = []
    print(f"{'scale':>18} {'M draws/s':>10} {'single µs':>10} {'cold µs':>10} {'OpenDP M/s':>11} {'ratio':>7}")
    for scale in SCALES:
        row = measure(scale, options.draws, options.repeats)
        rows.append(row)
        peer = row.get("opendp_per_second")
        beside = f"{peer / 1e6:11.3f} {row['per_second'] / peer:6.0f}×" if peer else f"{'–':>11}"
        shown = f"{float(scale):.6g}"
        rate = row["per_second"] / 1e6
        print(f"{shown:>18} {rate:10.2f} {row['single_us']:10.1f} {row['cold_us']:10.1f} {beside}")
    if options.json:
        report = {"versions": versions(), "draws": options.draws, "repeats": options.repeats, "results": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
