"""The picture of error against the number of counts in a dashboard, from the published figures of the benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from benchmarks.render import published

SHOWN = {
    "PMW-Bypass": "other", "MWEM": "mwem", "one by one": "alone", "GROUP BYs": "grouped", "summary": "summary",
    "batch": "batch",
}  # fmt: skip
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 700, 400, 64, 130, 58, 52
STYLE = """\
text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #24292f } .dim { fill: #57606a } .end { text-anchor: end }
.middle { text-anchor: middle } .title { font-weight: 600 } .grid { stroke: #d1d9e0 } .card { fill: #ffffff }
path { fill: none; stroke-width: 2.2 } .other { stroke: #8c959f } .mwem, circle.mwem { stroke: #8250df }
.alone { stroke: #cf222e } .grouped { stroke: #bf8700 } .summary { stroke: #0969da }
.batch { stroke: #1a7f37 } path.other, path.mwem { stroke-dasharray: 5 4 }
circle { stroke: none } circle.other { fill: #8c959f } circle.mwem { fill: #8250df }
circle.alone { fill: #cf222e } circle.grouped { fill: #bf8700 }
circle.summary { fill: #0969da } circle.batch { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .grid { stroke: #3d444d } .card { fill: #0d1117 }
circle.mwem { fill: #ab7df8 } .mwem, circle.mwem { stroke: #ab7df8 }
.alone { stroke: #ff7b72 } .grouped { stroke: #d29922 } .summary { stroke: #4493f8 } .batch { stroke: #3fb950 }
circle.alone { fill: #ff7b72 } circle.grouped { fill: #d29922 } circle.summary { fill: #4493f8 }
circle.batch { fill: #3fb950 } }"""


def picture() -> str:
    """Error over counts on flights at ρ = 0.005, both axes logarithmic."""
    figures = published()["dashboards"]["figures"]
    cases = [c for c in figures["cases"] if c["set"] == "flights" and c["price"].startswith("ρ")]
    lines = {name: [(c["queries"], c[name]["rms"]) for c in cases if name in c] for name in SHOWN}
    errors = [error for line in lines.values() for _, error in line]
    low, high = (10 ** math.floor(math.log10(min(errors))), 10 ** math.ceil(math.log10(max(errors))))
    few, many = cases[0]["queries"], cases[-1]["queries"]

    def across(count: float) -> float:
        return LEFT + 16 + math.log(count / few) / math.log(many / few) * (WIDE - LEFT - RIGHT - 16)

    def up(error: float) -> float:
        return HIGH - BOTTOM - math.log(error / low) / math.log(high / low) * (HIGH - TOP - BOTTOM)

    shapes: list[str] = []

    def text(x: float, y: float, said: str, kind: str) -> None:
        shapes.append(f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{escape(said)}</text>')

    rows = figures["sets"]["flights"]["rows"]
    text(16, 26, f"Error of a count (rows): {rows:,} flights, ρ = 0.005 for all counts together", "title")
    mark = low
    while mark <= high:
        for each in (mark, 3 * mark):
            if each <= high:
                shapes.append(f'<path d="M{LEFT} {up(each):.1f} H{WIDE - RIGHT}" class="grid" style="stroke-width:1"/>')
                text(LEFT - 8, up(each) + 4, f"{each:,}", "dim end")
        mark *= 10
    for case in cases:
        text(across(case["queries"]), HIGH - BOTTOM + 22, f"{case['queries']:,}", "dim middle")
    text((LEFT + WIDE - RIGHT) / 2, HIGH - 10, "counts in the dashboard", "dim middle")
    labels = sorted((up(line[-1][1]), name) for name, line in lines.items())
    below = -math.inf
    for y, name in labels:
        below = max(y + 4, below + 17)
        text(WIDE - RIGHT + 14, below, name, "")
    for name, kind in SHOWN.items():
        points = [(across(count), up(error)) for count, error in lines[name]]
        shapes.append(f'<path d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in points)}" class="{kind}"/>')
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="{kind}"/>' for x, y in points]
    words = "Error against the number of counts: each by itself it grows; of a batch and a summary it hardly does"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" '
        f'role="img" aria-label="{words}">',
        f"<style>\n{STYLE}\n</style>",
        f'<rect width="{WIDE}" height="{HIGH}" rx="8" class="card"/>',
        *shapes,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


PICTURES: dict[str, Callable[[], str]] = {"docs/images/dashboards.svg": picture}
