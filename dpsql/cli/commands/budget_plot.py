"""Spending over time against the limits, as one HTML file without scripts, or as PNG with matplotlib.

One panel for each unit and currency (ε or ρ, and δ where any was spent), one line for the total and one for each
account, dashed where its limit is. Time is the clock's, but never runs backwards: an entry is drawn no earlier than the
one before it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

from dpsql.core.ledger.ledger import Receipt
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, show_spent
from dpsql.diagnostics.errors import reject

Part = Literal["epsilon", "rho", "delta"]
SYMBOLS: dict[Part, str] = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOTAL = "#1b1b1b"
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""For accounts in turn; told apart in the common forms of colour blindness (Okabe & Ito 2008)."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one account (None: all together) has spent after each entry. limit: None if no cap is declared."""

    account: str | None
    points: tuple[tuple[datetime, Fraction], ...]
    limit: Fraction | None

    @property
    def drawn(self) -> bool:
        """Whether there was an entry. If there was none, no time is known."""
        return self.points[0][0] != _NEVER

    @property
    def spent(self) -> Fraction:
        """After the last entry."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Panel:
    """One unit in one currency."""

    unit: str
    part: Part
    lines: tuple[Line, ...]

    @property
    def title(self) -> str:
        """The unit, and what is counted."""
        return f"{self.unit}: {SYMBOLS[self.part]}"

    @property
    def top(self) -> Fraction:
        """The largest number to be drawn; above 0."""
        return max(
            (max(line.spent, line.limit or Fraction(0)) for line in self.lines), default=Fraction(0)
        ) or Fraction(1)


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
    drawn = panels(policy, entries, analyst)
    try:
        if Path(file).suffix.lower() == ".png":
            _write_png(Path(file), policy.name, drawn)
        else:
            Path(file).write_text(as_html(policy.name, drawn), encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise reject("DP903", f"the plot cannot be written: {reason}", help=["name another file"]) from None


def panels(policy: Policy, entries: Sequence[Receipt], analyst: str | None) -> list[Panel]:
    """A panel for each unit and currency. analyst: draw this account alone beside the total."""
    entries = [replace(r, entry=r.entry.called(policy.unit_names)) for r in entries]
    times = _times(entries)
    wanted = None if analyst is None else policy.account(analyst)
    names = sorted({r.entry.analyst for r in entries if r.entry.units} if wanted is None else {wanted})
    main: Part = "rho" if policy.privacy.accountant == "zcdp" else "epsilon"
    found = []
    for unit in policy.units:
        deltas = any(r.entry.in_account(unit).delta for r in entries)
        parts: tuple[Part, ...] = (main, "delta") if deltas else (main,)
        for part in parts:
            lines = [_line(None, unit, part, entries, times, policy.caps_for().total.get(unit))]
            for name in names:
                limit = policy.caps_for(None if name == "*" else name).analyst.get(unit)
                lines.append(_line(name, unit, part, entries, times, limit))
            found.append(Panel(unit, part, tuple(lines)))
    return found


def _line(
    account: str | None,
    unit: str,
    part: Part,
    entries: Sequence[Receipt],
    times: Sequence[datetime],
    limit: PrivacyLoss | None,
) -> Line:
    total = Fraction(0)
    points = [(times[0], total)]
    for receipt, time in zip(entries, times[1:], strict=True):
        entry = receipt.entry
        if account is None:
            loss = entry.charges.get(unit, NO_LOSS)
        else:
            loss = entry.in_account(unit) if entry.analyst == account else NO_LOSS
        if loss != NO_LOSS:
            total += getattr(loss, part)
            points.append((time, total))
    points.append((times[-1], total))
    return Line(account, tuple(points), None if limit is None else getattr(limit, part))


def _times(entries: Sequence[Receipt]) -> list[datetime]:
    """The start, then one time for each entry, never before the one before it."""
    found: list[datetime] = []
    for receipt in entries:
        try:
            time = datetime.fromisoformat(receipt.reserved_at).astimezone(UTC)
        except (ValueError, OverflowError):
            time = found[-1] if found else _NEVER
        found.append(max(time, found[-1]) if found else time)
    return [found[0] if found else _NEVER, *found]


# HTML -----------------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 760, 260, 70, 16, 16, 34
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:800px;margin:2em auto;padding:0 1em;color:#1b1b1b;"
    "background:#fff}h2{font-size:1.1em;margin:1.6em 0 .2em}svg{width:100%;height:auto}text{font-size:12px;fill:#444}"
    "ul{list-style:none;padding:0;margin:.2em 0}i{display:inline-block;width:1.4em;height:0;border-top:3px solid;"
    "vertical-align:middle;margin-right:.5em}"
)


def as_html(name: str, drawn: Sequence[Panel]) -> str:
    """One page: for each panel a heading, a drawing, and the same numbers in words."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f"<title>Budget of {html.escape(name)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Budget of {html.escape(name)}</h1>",
    ]
    for panel in drawn:
        parts += [f"<h2>{html.escape(panel.title)}</h2>", _svg(panel), "<ul>", *_legend(panel), "</ul>"]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _color(at: int) -> str:
    return _TOTAL if at == 0 else _COLORS[(at - 1) % len(_COLORS)]


def _account(line: Line) -> str:
    return "total" if line.account is None else line.account


def _words(line: Line) -> str:
    limit = "no limit" if line.limit is None else f"of {show_spent(line.limit)}"
    return f"{_account(line)}: {show_spent(line.spent)} {limit}"


def _legend(panel: Panel) -> list[str]:
    return [
        f'<li><i style="color:{_color(at)}"></i>{html.escape(_words(line))}</li>' for at, line in enumerate(panel.lines)
    ]


def _svg(panel: Panel) -> str:
    start, end = panel.lines[0].points[0][0], panel.lines[0].points[-1][0]
    seconds = max((end - start).total_seconds(), 1.0)
    inner, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(time: datetime) -> str:
        return f"{_LEFT + inner * (time - start).total_seconds() / seconds:.1f}"

    def up(value: Fraction) -> str:
        return f"{_TOP + height * (1 - float(value / panel.top) / 1.05):.1f}"

    found = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(panel.title)}">']
    for quarter in range(5):
        value = panel.top * quarter / 4
        found.append(
            f'<path d="M{_LEFT} {up(value)}H{_WIDTH - _RIGHT}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 8}" y="{up(value)}" dy="4" text-anchor="end">{show_spent(value, 3)}</text>'
        )
    for time, anchor in ((start, "start"), (end, "end")) if panel.lines[0].drawn else ():
        shown = time.strftime("%Y-%m-%d %H:%M UTC")
        found.append(f'<text x="{across(time)}" y="{_HEIGHT - 10}" text-anchor="{anchor}">{shown}</text>')
    for at, line in reversed(list(enumerate(panel.lines))):
        (first, value), *rest = line.points
        path = f"M{across(first)} {up(value)}" + "".join(f"H{across(t)}V{up(v)}" for t, v in rest)
        width = 2.5 if at == 0 else 1.5
        title = f"<title>{html.escape(_words(line))}</title>"
        found.append(f'<path d="{path}" fill="none" stroke="{_color(at)}" stroke-width="{width}">{title}</path>')
        if line.limit is not None:
            found.append(
                f'<path d="M{_LEFT} {up(line.limit)}H{_WIDTH - _RIGHT}" stroke="{_color(at)}" stroke-dasharray="6 4"/>'
            )
    return "".join([*found, "</svg>"])


# PNG ------------------------------------------------------------------------------------------------------------------


def _write_png(path: Path, name: str, drawn: Sequence[Panel]) -> None:
    from matplotlib import dates
    from matplotlib.figure import Figure

    formatter: Any = dates.ConciseDateFormatter
    figure = Figure(figsize=(9, 3.2 * max(1, len(drawn))), layout="constrained")
    figure.suptitle(f"Budget of {name}", parse_math=False)
    for at, panel in enumerate(drawn):
        axes: Any = figure.add_subplot(len(drawn), 1, at + 1)
        axes.set_title(panel.title, loc="left", parse_math=False)
        for number, line in enumerate(panel.lines):
            times, values = zip(*line.points, strict=True)
            heavy = 2.5 if number == 0 else 1.5
            axes.step(times, [_float(v) for v in values], where="post", color=_color(number), linewidth=heavy)
            if line.limit is not None:
                axes.axhline(_float(line.limit), color=_color(number), linestyle="--", linewidth=1)
            axes.plot([], [], color=_color(number), label=_words(line).replace("$", r"\$"))
        first, last = panel.lines[0].points[0][0], panel.lines[0].points[-1][0]
        end = max(last, first + timedelta(seconds=1))
        axes.set_xlim(first, end + (end - first) / 50)  # so that the last step is seen
        axes.set_ylim(0, _float(panel.top) * 1.05)
        if panel.lines[0].drawn:
            axes.xaxis.set_major_formatter(formatter(axes.xaxis.get_major_locator()))
            axes.set_xlabel("UTC")
        else:
            axes.set_xticks([])
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left", fontsize="small")
    figure.savefig(path, format="png", dpi=120)


def _float(x: Fraction) -> float:
    return float(min(x, Fraction(10**300)))
