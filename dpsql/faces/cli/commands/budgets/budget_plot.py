"""`dpsql budget --plot`: spent and left as bars, then spending over time against the limits, and over the days of the
rows where these have budgets of their own, as one HTML file without scripts, or as PNG with matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from dpsql.core.ledger.ledger import Receipt
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import reject
from dpsql.faces.report import charts
from dpsql.faces.report.markup import document, section, text
from dpsql.faces.report.spending import Panel, panels
from dpsql.faces.report.style import style
from dpsql.service.accounts.spending_story import SpendingStory

_TOTAL: Final = "#1b1b1b"
_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#b3568c", "#b07800", "#3a93c4")
"""For accounts in turn, as in style.py."""


def check(file: str) -> None:
    """Raise Rejected DP903 before anything is read if a plot cannot be made in this form."""
    match Path(file).suffix.lower():
        case ".html" | ".htm":
            return
        case ".png":
            try:
                import matplotlib.figure  # noqa: F401  # takes half a second, and only this form needs it
            except ImportError:
                raise reject(
                    "DP903", "a plot in PNG needs matplotlib, which is not installed",
                    help=["pip install 'dpsql[plot]'", "or name a file that ends in .html, which needs nothing"],
                ) from None  # fmt: skip
        case _:
            raise reject("DP903", f"unknown form of plot: {file}", help=["name a file that ends in .html or .png"])


def write(file: str, policy: Policy, entries: Sequence[Receipt], analyst: str | None) -> None:
    """Draw the ledger's entries into a file. Raises Rejected DP903 if it cannot be written."""
    drawn = panels(policy, SpendingStory.of(policy.unit_names, entries), analyst)
    try:
        if Path(file).suffix.lower() == ".png":
            _write_png(Path(file), policy.name, drawn)
        else:
            Path(file).write_text(as_html(policy.name, drawn), encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise reject("DP903", f"the plot cannot be written: {reason}", help=["name another file"]) from None


def as_html(name: str, drawn: Sequence[Panel]) -> str:
    """One page: for each panel its bars, and the same over time where there was an entry."""
    parts = [f"<main><header><p class=eyebrow>Budget</p><h1>{text(name)}</h1></header>"]
    for number, panel in enumerate(drawn):
        over_time = f"<h3>Over time</h3>{charts.over_time(panel)}" if panel.lines[0].drawn else ""
        by_period = charts.by_period(panel)
        periods = f"<h3>By {panel.every} of the rows</h3>{by_period}" if by_period else ""
        parts.append(section(f"p{number}", text(panel.title), charts.bars(panel), over_time, periods))
    return document(f"Budget of {name}", style(), "".join([*parts, "</main>"]))


# PNG ------------------------------------------------------------------------------------------------------------------


def _write_png(path: Path, name: str, drawn: Sequence[Panel]) -> None:
    from matplotlib.figure import Figure

    heights = [h for panel in drawn for h in (0.5 + 0.32 * len(panel.lines), *[2.8] * len(_steps(panel)))] or [1.0]
    figure = Figure(figsize=(9, sum(heights) + 0.6), layout="constrained")
    figure.suptitle(f"Budget of {name}", parse_math=False)
    grid: Any = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    rows = (figure.add_subplot(place) for place in grid)
    for panel in drawn:
        _png_bars(next(rows), panel)
        for lines, over in _steps(panel):
            _png_steps(next(rows), panel, lines, over)
    figure.savefig(path, format="png", dpi=120)


def _png_bars(axes: Any, panel: Panel) -> None:
    """How much of each limit is spent; an account without a limit has a full bar once it has spent anything."""
    axes.set_title(f"{panel.title}, spent and left", loc="left", parse_math=False)
    axes.set_yticks(range(len(panel.lines)), [_plain(charts.words(line)) for line in panel.lines])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    for number, line in enumerate(panel.lines):
        axes.barh(number, 1, height=0.62, color="#e6eaef")
        axes.barh(number, _float(line.share), height=0.62, color=_color(number))
    axes.set_frame_on(False)
    axes.tick_params(length=0)


def _steps(panel: Panel) -> list[tuple[list[Any], str]]:
    """Of each drawing the points of each line, and what it is over; nothing where no time is known."""
    lines = panel.lines
    found: list[tuple[list[Any], str]] = [([line.points for line in lines], "UTC" if lines[0].drawn else "")]
    return [*found, *([([line.periods for line in lines], f"{panel.every} of the rows")] if lines[0].periods else [])]


def _png_steps(axes: Any, panel: Panel, lines: Sequence[Any], over: str) -> None:
    from matplotlib import dates

    formatter: Any = dates.ConciseDateFormatter
    for number, _ in panel.shown:
        times, values = zip(*lines[number], strict=True)
        heavy = 2.5 if number == 0 else 1.5
        axes.step(times, [_float(v) for v in values], where="post", color=_color(number), linewidth=heavy)
    for limit, of in panel.limits.items():
        axes.axhline(_float(limit), color=_color(of[0][0]) if len(of) == 1 else "#777777", linestyle="--", linewidth=1)
    first, last = lines[0][0][0], lines[0][-1][0]
    end = max(last, first + timedelta(seconds=1))
    axes.set_xlim(first, end + (end - first) / 50)  # so that the last step is seen
    axes.set_ylim(0, _float(panel.top) * 1.05)
    if over:
        axes.xaxis.set_major_formatter(formatter(axes.xaxis.get_major_locator()))
        axes.set_xlabel(over)
    else:
        axes.set_xticks([])
    axes.grid(alpha=0.3)


def _plain(said: str) -> str:
    return said.replace("$", r"\$")


def _color(at: int) -> str:
    return _TOTAL if at == 0 else _COLORS[(at - 1) % len(_COLORS)]


def _float(x: Fraction) -> float:
    return float(min(x, Fraction(10**300)))
