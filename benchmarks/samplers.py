"""Noise per second, ours beside OpenDP's where it is installed: discrete Laplace and discrete Gaussian integers.

    python -m benchmarks.samplers [--size short] [--rounds 5] [--json FILE]

Both sides are timed in one run, in turn, on one core, and the median is reported: on a shared machine only ratios
within a run mean anything. "single" is one draw on its own with the tables at hand, "cold" the first draw at a scale
that was never used before. The scale of Gaussian noise is its σ.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from importlib import util
from typing import Any

from benchmarks.frame import Figures, Settings, command, seconds, table
from dpsql.core.noise.backends import EXACT, Backend, OpenDPBackend

TITLE = "Noise"
SCALES = [Fraction(1), Fraction(10**3), Fraction(10**6), Fraction(10**9), Fraction(1 << 50)]
FAMILIES = ("laplace", "gaussian")

Draw = Callable[[Fraction, int], object]


def drawer(backend: Backend, family: str) -> Draw:
    """scale, n ↦ n draws."""
    if family == "laplace":
        return backend.laplace
    return lambda scale, n: backend.gaussian(scale**2, n)


def measure(family: str, scale: Fraction, draws: int, repeats: int) -> dict[str, Any]:
    """One line of the table: rates in draws a second, times in microseconds."""
    peer_draws, singles = draws // 20, draws // 2000
    ours = drawer(EXACT, family)
    ours(Fraction(10**5), 1)  # whatever is made once in a process
    cold = seconds(lambda: ours(scale + Fraction(1, 10**9 + 7), 1))
    ours(scale, 1000)
    single = statistics.median(seconds(lambda: ours(scale, 1)) for _ in range(singles))
    theirs = drawer(OpenDPBackend(), family) if util.find_spec("opendp") else None
    ours_times, their_times, their_singles = [], [], []
    if theirs:
        theirs(scale, 1)
        their_singles = [seconds(lambda: theirs(scale, 1)) for _ in range(singles)]
    for _ in range(repeats):
        ours_times.append(seconds(lambda: ours(scale, draws)))
        if theirs:
            their_times.append(seconds(lambda: theirs(scale, peer_draws)))
    row: dict[str, Any] = {
        "family": family,
        "scale": str(scale),
        "draws": draws,
        "per_second": draws / statistics.median(ours_times),
        "single_us": single * 1e6,
        "cold_us": cold * 1e6,
    }
    if their_times:
        row["opendp_per_second"] = peer_draws / statistics.median(their_times)
        row["opendp_single_us"] = statistics.median(their_singles) * 1e6
        row["ratio"] = row["per_second"] / row["opendp_per_second"]
    return row


def run(settings: Settings) -> Figures:
    """The whole table."""
    draws, repeats = settings.pick(4_000, 1_000_000, 1_000_000), settings.turns(1, 5, 9)
    rows = [measure(family, scale, draws, repeats) for family in FAMILIES for scale in SCALES]
    return {"draws": draws, "repeats": repeats, "rows": rows}


def markdown(figures: Figures) -> str:
    """One line per family and scale."""
    rows = [
        (
            row["family"],
            f"{float(row['scale']):.6g}",
            f"{row['per_second'] / 1e6:.1f}",
            *((f"{row['opendp_per_second'] / 1e6:.3f}", f"{row['ratio']:.0f}") if "ratio" in row else ("–", "–")),
            f"{row['single_us']:.0f}",
            f"{row['opendp_single_us']:.0f}" if "ratio" in row else "–",
            f"{row['cold_us']:.0f}",
        )
        for row in figures["rows"]
    ]
    head = ("noise", "scale or σ", "M/s", "OpenDP M/s", "ratio", "one draw µs", "OpenDP µs", "first at a scale µs")
    return f"{figures['draws']:,} draws, medians of {figures['repeats']}.\n\n" + table(head, rows)


if __name__ == "__main__":
    command(__doc__, "samplers", run, markdown)
