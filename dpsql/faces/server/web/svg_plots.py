"""Drawings as inline SVG: what was spent over time, and ± against ε. Colours come from the style sheet.

A drawing has no words in it: what stands at its axes is HTML beside it, so that it is legible at every width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from dpsql.faces.server.web.markup import Element, Node, h

_WIDTH, _HEIGHT = 1000.0, 300.0


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One account's spending: (time, spent after it), ascending. limit: None for none."""

    name: str
    points: Sequence[tuple[datetime, float]]
    limit: float | None = None


def spending(title: str, lines: Sequence[PlotLine], now: datetime) -> Element | None:
    """What was spent over time, with a dashed line at each limit; None where nothing was spent."""
    times = [at for line in lines for at, _ in line.points]
    if not times:
        return None
    begin, end = min(times), max(max(times), now)
    top = max([line.points[-1][1] for line in lines if line.points] + [line.limit or 0.0 for line in lines]) or 1.0
    seconds = max((end - begin).total_seconds(), 1.0)

    def across(at: datetime) -> str:
        return f"{_WIDTH * (at - begin).total_seconds() / seconds:.1f}"

    def up(value: float) -> str:
        return f"{_HEIGHT * (1 - value / top):.1f}"

    drawn: list[Node] = [h.path(class_="grid", d=f"M0 {up(top * q / 4)}H{_WIDTH}") for q in range(5)]
    for number, line in enumerate(lines):
        if not line.points:
            continue
        last = line.points[-1][1]
        steps = "".join(f"H{across(at)}V{up(value)}" for at, value in line.points)
        path = f"M0 {up(0.0)}{steps}H{_WIDTH}"
        if number == 0:
            drawn.append(h.path(class_="area", d=f"{path}V{up(0.0)}H0Z"))
        whole = " all" if number == 0 and len(lines) > 1 else ""
        drawn.append(h.path(h.title(f"{line.name}: {amount(last)}"), class_=f"line line-{number % 6}{whole}", d=path))
        if line.limit is not None:
            drawn.append(h.path(class_=f"limit line-{number % 6}", d=f"M0 {up(line.limit)}H{_WIDTH}"))
    ticks = [amount(top * q / 4) for q in (4, 3, 2, 1, 0)]
    shown = "%Y-%m-%d %H:%M" if seconds < 3 * 86_400 else "%Y-%m-%d"
    return _figure(title, drawn, ticks, [begin.strftime(shown), end.strftime(shown) + " UTC"])


def errors(title: str, curve: Sequence[tuple[str, Mapping[str, float | None]]], chosen: float | None) -> Element | None:
    """± of each column against ε, both in powers of ten; None where no ± is known before a run."""
    names = list(dict.fromkeys(name for _, found in curve for name in found))
    lines = {n: [(float(e), w) for e, found in curve if (w := found.get(n)) is not None and w > 0] for n in names}
    lines = {n: points for n, points in lines.items() if len(points) > 1}
    if not lines:
        return None
    xs = [math.log10(x) for points in lines.values() for x, _ in points]
    ys = [math.log10(y) for points in lines.values() for _, y in points]
    low, high = math.floor(min(ys)), math.ceil(max(ys))
    high = max(high, low + 1)

    def across(x: float) -> str:
        return f"{_WIDTH * (math.log10(x) - min(xs)) / (max(xs) - min(xs)):.1f}"

    def up(y: float) -> str:
        return f"{_HEIGHT * (1 - (math.log10(y) - low) / (high - low)):.1f}"

    step = max(1, math.ceil((high - low) / 5))
    powers = list(range(high, low - 1, -step))
    drawn: list[Node] = [h.path(class_="grid", d=f"M0 {up(10.0**p)}H{_WIDTH}") for p in powers]
    if chosen is not None and min(xs) <= math.log10(chosen) <= max(xs):
        drawn.append(h.path(h.title(f"ε {chosen:g}"), class_="chosen", d=f"M{across(chosen)} 0V{_HEIGHT}"))
    for number, (name, points) in enumerate(lines.items()):
        path = "M" + "L".join(f"{across(x)} {up(y)}" for x, y in points)
        drawn.append(h.path(h.title(name), class_=f"line line-{number % 6}", d=path))
    first, last = 10 ** min(xs), 10 ** max(xs)
    return _figure(title, drawn, [f"± {10.0**p:,g}" for p in powers], [f"ε {first:g}", f"ε {last:g}"])


def _figure(title: str, drawn: Sequence[Node], up: Sequence[str], across: Sequence[str]) -> Element:
    svg = h.svg(
        *drawn, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", preserveAspectRatio="none", role="img", aria_label=title,
        focusable="false",
    )  # fmt: skip
    return h.div(
        h.div([h.span(text) for text in up], class_="axis-up", aria_hidden="true"),
        h.div(svg, class_="drawing"),
        h.div([h.span(text) for text in across], class_="axis-across"),
        class_="plot",
    )


def amount(x: float, rounding: str = ROUND_CEILING) -> str:
    """An amount of ε, δ or ρ that was spent, rounded up to four digits."""
    shown = Context(prec=4, rounding=rounding).create_decimal(repr(x)).normalize()
    return f"{shown:f}" if -5 < shown.adjusted() < 9 else str(shown).replace("E", "e").replace("e+", "e")


def left(x: float) -> str:
    """One that is left, rounded down."""
    return amount(x, ROUND_FLOOR)
