"""Curves on two axes as SVG, readable at the width of a phone; colours follow a light or dark page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

Points = Sequence[tuple[float, float]]
WIDE, HIGH = 560, 384
LEFT, RIGHT, TOP, BOTTOM = 62, 34, 58, 52
STYLE = """\
text { font: 15px ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 16px } .dim { fill: #57606a; font-size: 14px }
.end { text-anchor: end } .mid { text-anchor: middle }
.card { fill: #ffffff; stroke: #d1d9e0 } .grid { stroke: #d8dee4; fill: none }
.rule { stroke: #57606a; fill: none; stroke-dasharray: 5 4 }
.a, .b, .c { fill: none; stroke-width: 2.6; stroke-linejoin: round }
.a { stroke: #0969da } .b { stroke: #bc4c00 } .c { stroke: #1a7f37 }
.ta { fill: #0757b8; font-weight: 600 } .tb { fill: #a04100; font-weight: 600 } .tc { fill: #176f30; font-weight: 600 }
.dot { fill: #24292f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .card { fill: #151b23; stroke: #3d444d } .grid { stroke: #30363d }
.rule { stroke: #9198a1 }
.a { stroke: #4493f8 } .b { stroke: #f0883e } .c { stroke: #3fb950 } .dot { fill: #e6edf3 }
.ta { fill: #79b8ff } .tb { fill: #ffa657 } .tc { fill: #56d364 } }"""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its ends, the values that are written, how they are written, and what they are."""

    lo: float
    hi: float
    ticks: Sequence[float]
    name: str
    log: bool = False
    label: Callable[[float], str] = "{:g}".format

    def part(self, value: float) -> float:
        """Where a value lies, from 0 to 1; what lies outside is put at the end."""
        lo, hi, x = (math.log(v) if self.log else v for v in (self.lo, self.hi, max(self.lo, min(self.hi, value))))
        return (x - lo) / (hi - lo)


@dataclass(slots=True)
class Chart:
    """Axes with curves, each named where there is room beside it. words: what is to be seen, for who cannot see it."""

    title: str
    words: str
    x: Axis
    y: Axis
    shapes: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        return (
            round(LEFT + self.x.part(x) * (WIDE - LEFT - RIGHT), 1),
            round(HIGH - BOTTOM - self.y.part(y) * (HIGH - TOP - BOTTOM), 1),
        )

    def curve(self, kind: str, points: Points) -> None:
        """A curve; what lies beyond the axes is left out."""
        inside = [p for p in points if self.x.lo <= p[0] <= self.x.hi and self.y.lo <= p[1] <= self.y.hi]
        path = " ".join(f"{x:g},{y:g}" for x, y in (self.at(*p) for p in inside))
        self.shapes.append(f'<polyline points="{path}" class="{kind}"/>')

    def rule(self, points: Points) -> None:
        """A broken line, for what the curves are compared with."""
        path = " ".join(f"{x:g},{y:g}" for x, y in (self.at(*p) for p in points))
        self.shapes.append(f'<polyline points="{path}" class="rule"/>')

    def dot(self, x: float, y: float) -> None:
        at = self.at(x, y)
        self.shapes.append(f'<circle cx="{at[0]:g}" cy="{at[1]:g}" r="4.5" class="dot"/>')

    def say(self, x: float, y: float, text: str, kind: str = "", away: tuple[float, float] = (0, 0)) -> None:
        """A text at a point, moved by so many pixels."""
        at = self.at(x, y)
        self.shapes.append(_text(at[0] + away[0], at[1] + away[1], text, kind))

    def svg(self) -> str:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" '
            f'role="img" aria-label="{escape(self.words)}">',
            f"<style>\n{STYLE}\n</style>",
            f'<rect x="0.5" y="0.5" width="{WIDE - 1}" height="{HIGH - 1}" rx="8" class="card"/>',
            _text(16, 26, self.title, "title"),
            _text(16, 46, self.y.name, "dim"),
            _text(WIDE - RIGHT, HIGH - 10, self.x.name, "dim end"),
        ]
        for value in self.x.ticks:
            x, y = self.at(value, self.y.lo)
            parts += [f'<path d="M{x:g} {TOP} V{y:g}" class="grid"/>', _text(x, y + 19, self.x.label(value), "dim mid")]
        for value in self.y.ticks:
            x, y = self.at(self.x.lo, value)
            parts += [f'<path d="M{x:g} {y:g} H{WIDE - RIGHT}" class="grid"/>']
            parts += [_text(x - 7, y + 5, self.y.label(value), "dim end")]
        return "\n".join([*parts, *self.shapes, "</svg>", ""])


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    look = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{look}>{escape(text)}</text>'
