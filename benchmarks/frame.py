"""What all benchmarks share: contestants that take turns, how large to measure, the machine, one command line.

A benchmark is a module with

    TITLE                              the heading over its tables
    run(settings) -> figures           measure; the figures are written to JSON as they are
    markdown(figures) -> str           its tables, as printed and as shown in docs/benchmarks.md

and is run by `python -m benchmarks.NAME` or, with all the others, by `python -m benchmarks`.

Contestants take turns within a round, so that all share caches, settings and disturbances. A ratio is the median over
rounds of the ratio within the round, with the extremes beside it. Single times mean little on a shared machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
CACHE = HERE / "cache"
RESULTS = HERE / "results"
PACKAGES = ("dpsql", "duckdb", "numpy", "opendp", "sqlglot")
SIZES = ("quick", "short", "full")

_COUNTER = count()
T = TypeVar("T")
Figures = dict[str, Any]
Runs = Mapping[str, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much to measure, and where the generated tables are made and kept.

    size: `quick` takes seconds and shows only that everything runs; `short` is meant for an hour in all;
    `full` goes to 100 M rows and to a million people for every peer.
    people, rounds: instead of the size's own.
    """

    size: str = "short"
    folder: Path = CACHE
    people: int | None = None
    rounds: int | None = None

    def pick(self, quick: T, short: T, full: T) -> T:
        """One of three, by the size."""
        return {"quick": quick, "short": short, "full": full}[self.size]

    def turns(self, quick: int, short: int, full: int) -> int:
        """Rounds: those asked for, else by the size."""
        return self.rounds or self.pick(quick, short, full)


def seconds(run: Callable[[], object]) -> float:
    """Of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def unasked(sql: str) -> str:
    """The same query as a text that was not asked before: a session keeps the plans of the texts it has seen."""
    return f"{sql}\n-- {next(_COUNTER)}"


def spread(values: Sequence[float]) -> list[float]:
    """Median, least, most."""
    return [statistics.median(values), min(values), max(values)]


def take_turns(runs: Runs, rounds: int, *, warm: bool = True, limit: float = 600) -> Figures:
    """Times of contestants that run one after the other, again and again, and their ratios.

    Per contestant: `ms` (median, least, most), `cpu_ms` (processor time of this process, all threads, median), `over`
    (every other contestant → the spread of the ratios to it within rounds) and `cpu_over` (the median of the ratios of
    processor time, which other programs disturb least).
    limit: seconds after which no further round begins. warm: one run of each that is not counted.
    """
    if warm:
        for run in runs.values():
            run()
    wall: dict[str, list[float]] = {name: [] for name in runs}
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    began = time.perf_counter()
    for done in range(rounds):
        if done and time.perf_counter() - began > limit:
            break
        for name, run in runs.items():
            before = time.process_time()
            wall[name].append(1e3 * seconds(run))
            cpu[name].append(1e3 * (time.process_time() - before))
    return {
        name: {
            "ms": spread(own),
            "cpu_ms": statistics.median(cpu[name]),
            "over": {
                base: spread([a / b for a, b in zip(own, times, strict=True)])
                for base, times in wall.items()
                if base != name
            },
            "cpu_over": {
                base: statistics.median([a / max(b, 1e-3) for a, b in zip(cpu[name], times, strict=True)])
                for base, times in cpu.items()
                if base != name
            },
        }
        for name, own in wall.items()
    }


def machine() -> Figures:
    """What figures are measured on, and how busy it is."""
    found: Figures = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    for line in lines_of("/proc/cpuinfo"):
        if line.startswith("model name"):
            found["processor"] = line.split(":", 1)[1].strip()
    for line in lines_of("/proc/meminfo"):
        if line.startswith("MemTotal"):
            found["memory_gb"] = round(int(line.split()[1]) / 2**20, 1)
    found["load_before"] = load()
    return found | versions(PACKAGES)


def load() -> float | None:
    """The load average of the last minute, where the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Package → what is installed."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def lines_of(path: str) -> list[str]:
    """The lines of a file of the system; none where there is no such file."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text, the others numbers."""
    lines = [head, ["---" if i < left else "--:" for i in range(len(head))], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def times(ratio: Sequence[float] | None) -> str:
    """A ratio with its extremes; a dash where there is none."""
    if ratio is None:
        return "–"
    middle, low, high = ratio
    return f"**{_short(middle)}** ({_short(low)}–{_short(high)})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def number(value: float | None, unit: str = "") -> str:
    """Three digits or so; a dash for None."""
    return "–" if value is None else _short(value) + (f" {unit}" if unit else "")


def parser(doc: str | None, prog: str) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    made = argparse.ArgumentParser(prog=prog, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--size", choices=SIZES, default="short", help="how much to measure")
    made.add_argument("--quick", action="store_const", dest="size", const="quick", help="the same as --size quick")
    made.add_argument("--folder", type=Path, default=CACHE, help="where tables are made and kept")
    made.add_argument("--people", type=int, help="persons in the tables of the five queries")
    made.add_argument("--rounds", type=int, help="how often contestants take turns")
    made.add_argument("--json", type=Path, help="also write the figures here")
    return made


def settings_of(options: argparse.Namespace) -> Settings:
    """What the options say."""
    options.folder.mkdir(parents=True, exist_ok=True)
    return Settings(options.size, options.folder, options.people, options.rounds)


def measured(run: Callable[[Settings], Figures], settings: Settings) -> Figures:
    """The figures of one benchmark, with the machine they were measured on and how long it took."""
    found: Figures = {"machine": machine(), "size": settings.size}
    start = time.perf_counter()
    found["figures"] = run(settings)
    return found | {"seconds": round(time.perf_counter() - start), "load_after": load()}


def command(
    doc: str | None,
    name: str,
    run: Callable[..., Figures],
    markdown: Callable[[Figures], str],
    **choices: Sequence[str],
) -> None:
    """The command line of one benchmark. choices: further options, each some of these; passed on to `run`."""
    made = parser(doc, f"python -m benchmarks.{name}")
    for option, allowed in choices.items():
        made.add_argument(f"--{option}", nargs="+", choices=allowed, default=())
    options = made.parse_args()
    chosen = {option: getattr(options, option) for option in choices}
    found = measured(lambda settings: run(settings, **chosen), settings_of(options))
    print(markdown(found["figures"]))
    if options.json:
        options.json.write_text(json.dumps({name: found}, indent=1) + "\n", encoding="utf-8")
