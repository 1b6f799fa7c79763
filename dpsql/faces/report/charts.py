"""Drawings: bars of spent and left, spending over time, odds against ε, and dots on a scale of ε.

Lines are SVG that stretches with the page; words beside them are text of the page, and so of one size at any width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from typing import TypeVar

from dpsql.core.privacy_loss import show_left, show_spent
from dpsql.faces.report.markup import text
from dpsql.faces.report.odds import afterwards
from dpsql.faces.report.spending import Panel, SpendingLine
from dpsql.faces.report.style import COLOURS

Moment = TypeVar("Moment", bound=date)
_WIDE, _HIGH = 1000, 400
"""Of a drawing that is stretched to its place: these are no pixels."""


def colour(at: int) -> str:
    """The class of an account's colour: the total is the first."""
    return "k0" if at == 0 else f"k{1 + (at - 1) % (COLOURS - 1)}"


def account(line: SpendingLine) -> str:
    """What an account is called."""
    return "total" if line.account is None else line.account


def short(amount: Fraction) -> str:
    """An ε in three digits, rounded up."""
    return show_spent(amount, 3)


def words(line: SpendingLine) -> str:
    """`ana: 0.75 of 3`."""
    if line.limit is None:
        return f"{account(line)}: {show_spent(line.spent, 4)} no limit"
    spent, limit = show_spent(line.spent, 4), show_left(line.limit, 4)
    return f"{account(line)}: {limit if line.spent <= line.limit < Fraction(spent) else spent} of {limit}"


def bars(panel: Panel) -> str:
    """A bar for the total and each account: how much of its limit is spent, and how much is left."""
    return "".join(_bar(at, line, panel.symbol) for at, line in enumerate(panel.lines))


def _bar(at: int, line: SpendingLine, symbol: str) -> str:
    if line.limit is None:
        left = "no limit of its own"
    else:
        rest = max(Fraction(0), line.limit - line.spent)
        left = f"{show_left(rest, 4)} left" if rest else "nothing left"
    spent = f"{symbol} {text(words(line).partition(': ')[2])}"
    kind = f"{colour(at)}{'' if line.spent else ' none'}"
    return (
        f"<div class=bar><div><b>{text(account(line))}</b><span class=num>{spent} · {left}</span></div>"
        f'<div class=track><i class="{kind}" style="width:{float(line.share):.2%}"></i></div></div>'
    )


def over_time(panel: Panel) -> str:
    """Steps of what was spent, a line for each account, and a dashed one for each limit, whoever it is of."""
    start, end = panel.lines[0].points[0][0], panel.lines[0].points[-1][0]
    form = "%Y-%m-%d %H:%M:%S" if f"{start:%Y-%m-%d %H:%M}" == f"{end:%Y-%m-%d %H:%M}" else "%Y-%m-%d %H:%M"
    return _stepped(panel, "over time", [line.points for line in panel.lines], f"{form} UTC")


def by_period(panel: Panel) -> str:
    """The same over the days of the rows: what those of each have lost. Empty where days have no accounts."""
    days = [line.periods for line in panel.lines]
    return _stepped(panel, f"by {panel.every}", days, "%Y-%m-%d") if days[0] else ""


def _stepped(panel: Panel, over: str, lines: Sequence[Sequence[tuple[Moment, Fraction]]], form: str) -> str:
    """Of each line the points; form: of the first and the last moment."""
    start, end = lines[0][0][0], lines[0][-1][0]
    seconds = max((end - start).total_seconds(), 1.0)
    top = _top(panel, max((value for points in lines for _, value in points), default=Fraction(0)))

    def across(time: Moment) -> str:
        return f"{_WIDE * (time - start).total_seconds() / seconds:.1f}"

    def up(value: Fraction) -> str:
        return f"{_HIGH * (1 - min(1.1, float(min(Fraction(2), value / top))) / 1.08):.1f}"

    paths, labels = [], []
    for quarter in range(5):
        value = top * quarter / 4
        paths.append(f'<path class="grid" d="M0 {up(value)}H{_WIDE}"/>')
        labels.append(f'<span class="y" style="bottom:{float(value / top) / 1.08:.2%}">{show_spent(value, 2)}</span>')
    limits = [(limit, of) for limit, of in panel.limits.items() if limit <= top]
    for limit, of in limits:
        paths.append(f'<path class="limit {_colour_of(of)}" d="M0 {up(limit)}H{_WIDE}"/>')
    for at, line in panel.shown:  # accounts above the total, which is broader
        (first, value), *rest = lines[at]
        path = f"M{across(first)} {up(value)}" + "".join(f"H{across(t)}V{up(v)}" for t, v in rest)
        title = f"<title>{text(words(line))}</title>"
        kind = f"curve {colour(at)}" if at else "curve total k0"
        if at == 0:
            paths.append(f'<path class="area" d="{path}V{_HIGH}H{across(first)}Z"/>')
        paths.append(f'<path class="{kind}" d="{path}">{title}</path>')
    for time, place, left in ((start, "first", "0"), (end, "last", "100%"))[
        : 1 + (f"{start:{form}}" != f"{end:{form}}")
    ]:
        labels.append(f'<span class="x {place}" style="left:{left}">{time:{form}}</span>')
    spent = [(colour(at), text(words(line)), False) for at, line in panel.shown]
    dashed = [
        (_colour_of(of), text(f"limit of {', '.join(account(line) for _, line in of)}: {show_left(limit, 4)}"), True)
        for limit, of in limits
    ]
    dashed += [
        (
            "several",
            text(f"limit of {', '.join(account(line) for _, line in of)}: {show_left(limit, 4)}, above the picture"),
            True,
        )
        for limit, of in panel.limits.items()
        if limit > top
    ]
    return _chart(f"{panel.title} {over}", paths, labels) + key([*spent, *dashed])


def _top(panel: Panel, most: Fraction) -> Fraction:
    """What a chart reaches up to: the total's limit, or little above what was spent of it."""
    limit = panel.lines[0].limit
    return most * Fraction(5, 4) if limit and 0 < most < limit / 4 else limit or most or panel.top


def _colour_of(of: Sequence[tuple[int, SpendingLine]]) -> str:
    """The class of a limit's colour: its account's, or none's if it is of several."""
    return colour(of[0][0]) if len(of) == 1 else "several"


def odds(steps: int, marks: Sequence[Fraction]) -> str:
    """What a guess of 1 in 100, 1 in 10 and 1 in 2 may rise to, against ε; with numbered marks of a policy's own ε.

    steps: as of `afterwards`.
    """
    low, high = 0.05, max([20.0, *(1.3 * min(float(e), 100) for e in marks)])

    def across(epsilon: float) -> float:
        return math.log(max(low, min(high, epsilon)) / low) / math.log(high / low)

    paths = [f'<path class="grid" d="M0 {_HIGH * (1 - q / 4):.0f}H{_WIDE}"/>' for q in range(5)]
    labels = [f'<span class="y" style="bottom:{q * 25}%">{q * 25} %</span>' for q in range(5)]
    for tick in (0.1, 0.5, 2, 5, 10, 20, 50, 100):
        if low < tick <= high:
            end = " last" if tick == high else ""
            labels.append(f'<span class="x{end}" style="left:{across(tick):.2%}">{"ε " * (tick == 0.1)}{tick:g}</span>')
    guesses = ((1, "1 in 100", 0.01), (3, "1 in 10", 0.1), (2, "1 in 2", 0.5))
    for number, _, before in guesses:
        points = []
        for step in range(161):
            epsilon = low * (high / low) ** (step / 160)
            after = afterwards(before, Fraction(epsilon), steps)
            points.append(f"{_WIDE * step / 160:.1f} {_HIGH * (1 - after):.1f}")
        paths.append(f'<path class="curve k{number}" d="M{"L".join(points)}"/>')
    before_it = -1.0
    for number, epsilon in enumerate(marks, 1):
        place = across(float(epsilon))
        paths.append(f'<path class="mark" d="M{_WIDE * place:.1f} 0V{_HIGH}"/>')
        before_it = max(place, before_it + 0.055) if place >= before_it else place  # their numbers stand side by side
        labels.append(f'<span class="tag" style="left:{before_it:.2%}">{number}</span>')
    legend = key((f"k{number}", f"thought {name} before", False) for number, name, _ in guesses)
    return _chart("what a guess may rise to, against ε", paths, labels, "odds") + legend


def dots(rows: Sequence[tuple[str, float, str, bool]]) -> str:
    """Dots on a logarithmic scale of ε: name (finished HTML), ε, its words, and whether it is the policy's own."""
    low = min(0.1, *(max(e, 1e-3) for _, e, _, _ in rows)) / 1.3
    high = max(40.0, *(min(e, 1e4) for _, e, _, _ in rows)) * 1.3

    def line(name: str, epsilon: float, said: str, own: bool) -> str:
        place = math.log(min(max(epsilon, low), high) / low) / math.log(high / low)
        side = " class=left" if place > 0.55 else ""
        return (
            f'<div{" class=own" if own else ""}><span>{name}</span><p><em style="left:{place:.2%}"></em>'
            f'<s{side} style="left:{place:.2%}">{text(said)}</s></p></div>'
        )

    return f"<div class=dots>{''.join(line(*row) for row in rows)}</div>"


def key(entries: Iterable[tuple[str, str, bool]]) -> str:
    """The list that says what the lines of a drawing are: class, words that are finished HTML, dashed."""
    return (
        "<ul class=key>"
        + "".join(f'<li><i class="{kind}{" dash" if dashed else ""}"></i>{said}</li>' for kind, said, dashed in entries)
        + "</ul>"
    )


def _chart(name: str, paths: Sequence[str], labels: Sequence[str], kind: str = "steps") -> str:
    drawing = (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" role="img" aria-label="{text(name)}">'
        f"{''.join(paths)}</svg>"
    )
    return f'<div class="chart {kind}">{drawing}{"".join(labels)}</div>'
