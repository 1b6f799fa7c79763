"""Makes docs/benchmarks.md and its picture from the published figures, or publishes new ones.

    python -m benchmarks.render                  # from benchmarks/results/published.json
    python -m benchmarks.render --publish FILE   # copy FILE there first (benchmarks/results/latest.json)

The picture needs matplotlib (`pip install dpsql[bench]`). The text of benchmarks/notes.md, about targets that are
missed, is put below the table of targets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import targets
from benchmarks.frame import HERE, RESULTS, Figures, table
from benchmarks.parts import ELSEWHERE, PARTS
from benchmarks.peers.contest import OWN
from benchmarks.peers.environments import PEERS
from benchmarks.queries import QUERIES

PUBLISHED = RESULTS / "published.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PICTURE = PAGE.with_suffix(".svg")


def page(results: Mapping[str, Figures]) -> str:
    """The text of docs/benchmarks.md."""
    notes = (HERE / "notes.md").read_text(encoding="utf-8").strip()
    parts = [
        "<!-- made by `python -m benchmarks.render`; do not edit -->",
        "# Benchmarks",
        "`make bench` measures this on your machine. **A ratio is the median of those within rounds**, in which "
        "contestants take turns; least and most in brackets. [How it is measured](../benchmarks/README.md).",
        f"![times of other systems, growth with rows and with groups]({PICTURE.name})",
        "## Targets",
        *busy(results),
        targets.markdown(results),
        notes,
    ]
    for name, part in (PARTS | ELSEWHERE).items():
        if name in results:
            report = results[name]
            body = part.markdown(report["figures"]).replace("\n## ", "\n### ")
            parts += [f"## {part.TITLE}", f"<sub>{measured_on(report)}</sub>", body]
    parts += ["## Machine", machines(results)]
    return "\n\n".join(parts) + "\n"


def busy(results: Mapping[str, Figures]) -> list[str]:
    """A warning where the machine had more to do than the benchmarks."""
    loads = [report["machine"]["load_before"] or 0 for report in results.values()]
    cores = min((report["machine"]["cores"] or 1 for report in results.values()), default=1)
    if max(loads, default=0) <= cores / 2:
        return []
    return [
        f"The machine was busy: load averages of up to {max(loads):.0f} on {cores} cores before a benchmark. Times are "
        "then too long, short ones most, and their ratios no guide; processor times are."
    ]


def measured_on(report: Figures) -> str:
    """Size, load and duration of one benchmark."""
    machine = report["machine"]
    return (
        f"`{report['size']}`, {machine['when'][:16].replace('T', ' ')} UTC, {report['seconds']} s, load average "
        f"{machine['load_before']} before and {report['load_after']} after on {machine['cores']} cores"
    )


def machines(results: Mapping[str, Figures]) -> str:
    """What it was measured on; several lines where benchmarks were run on several machines or versions."""
    left_out = {"when", "load_before"}
    kinds: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for name, report in results.items():
        kind = tuple((key, value) for key, value in report["machine"].items() if key not in left_out)
        kinds.setdefault(kind, []).append(name)
    rows = [(", ".join(names), ", ".join(f"{key} {value}" for key, value in kind)) for kind, names in kinds.items()]
    return table(("benchmarks", "machine and versions"), rows, left=2)


def picture(results: Mapping[str, Figures], target: Path) -> None:
    """A panel for each of the curves that were measured."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dpsql"
    from matplotlib import pyplot

    wanted = (("peers", systems), ("growth", over_rows), ("growth", over_groups))
    panels = [(results[name]["figures"], draw) for name, draw in wanted if name in results]
    figure, every = pyplot.subplots(1, max(1, len(panels)), figsize=(13, 5), layout="constrained", squeeze=False)
    for axes, (figures, draw) in zip(every[0], panels, strict=False):
        draw(figures, axes)
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)


def systems(peers: Figures, axes: Any) -> None:
    """How many times plain DuckDB each system takes."""
    shown = {OWN[name]: peers["own"][name] for name in ("dpsql", "prepared") if name in peers["own"]}
    shown |= {PEERS[name]: peer["queries"] for name, peer in peers["peers"].items()}
    for marker, (name, answers) in zip("o*sv^DP", shown.items(), strict=False):
        points = [(q.name, found["over"]["plain"][0]) for q in QUERIES if "over" in (found := answers.get(q.name, {}))]
        if points:
            axes.scatter(*zip(*points, strict=True), label=name, marker=marker, s=60 if name == "dpsql" else 36)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_title("time / plain DuckDB")


STYLES = {"plain": ":", "floor": "--", "engine": "--", "dpsql": "-"}


def over_rows(growth: Figures, axes: Any) -> None:
    """Milliseconds over rows, in DuckDB's own format."""
    for color, query in zip(("C0", "C1", "C2"), ("Q1", "Q2", "Q3"), strict=True):
        series = [row for row in growth["rows"] if row["query"] == query and row["layout"] == "native"]
        for name, style in STYLES.items():
            points = [(row["rows"], row["times"][name]["ms"][0]) for row in series if name in row["times"]]
            if points:
                axes.plot(*zip(*points, strict=True), style, color=color, marker=".", label=f"{query} {name}")
    axes.set(title="ms over rows", xscale="log")


def over_groups(growth: Figures, axes: Any) -> None:
    """Milliseconds over groups, in memory."""
    for name, style in STYLES.items():
        sizes = growth["groups"]["sizes"]
        points = [(row["groups"], row["times"][name]["ms"][0]) for row in sizes if name in row["times"]]
        if points:
            axes.plot(*zip(*points, strict=True), style, marker=".", color="C0", label=name)
    axes.set(title="ms over groups", xscale="log")


def published() -> dict[str, Figures]:
    """The figures in the repository."""
    found: dict[str, Figures] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publish", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.publish:
        PUBLISHED.write_text(given.publish.read_text(encoding="utf-8"), encoding="utf-8")
    results = published()
    PAGE.write_text(page(results), encoding="utf-8")
    picture(results, PICTURE)
    print(f"written: {PAGE.name}, {PICTURE.name}")


if __name__ == "__main__":
    main()
