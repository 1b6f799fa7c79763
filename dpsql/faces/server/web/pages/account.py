"""An analyst's own account: what was spent, over time and query by query."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

from dpsql.diagnostics.words import about
from dpsql.faces.server.statements import Value
from dpsql.faces.server.web import svg_plots as plot
from dpsql.faces.server.web.markup import Element, Node, h
from dpsql.faces.server.web.pages.page_frame import PageFrame, card, document, table

Row = Mapping[str, Value]
SYMBOLS: Final = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
SHOWN: Final = 25
"""Entries of the history on one page."""


def budget(
    frame: PageFrame,
    account: str,
    budgets: Sequence[Row],
    spending: Sequence[Row],
    ceilings: Sequence[str],
    periods: Sequence[Row] = (),
    closed: Sequence[Row] = (),
    counters: Sequence[Row] = (),
) -> bytes:
    """What is spent and left of each unit, and how it came to that; of growing tables, in each period."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    return document(
        frame,
        "Your budget",
        h.p("What you ask is charged to the account ", h.strong(account), ". What is spent never comes back.",
            class_="lead"),
        [_unit(row, [s for s in spending if s["unit"] == row["unit"]], now) for row in budgets],
        [_by_period(str(row["unit"]), [p for p in periods if p["unit"] == row["unit"]]) for row in budgets],
        closed_periods(closed),
        counters_known(counters),
        card("Limits of your login", h.ul([h.li(text) for text in ceilings])) if ceilings else None,
        h.p(h.a("Try a query", href="/query", class_="button"), " spends nothing until you say so."),
    )  # fmt: skip


def _unit(row: Row, spending: Sequence[Row], now: dt.datetime) -> Element:
    main = (
        "rho"
        if number(row["rho_spent"]) or (number(row["rho_left"]) and not number(row["epsilon_left"]))
        else "epsilon"
    )
    parts = [main, *(["delta"] if number(row["delta_spent"]) or number(row["delta_left"]) else [])]
    spent, left = number(row[f"{main}_spent"]) or 0.0, number(row[f"{main}_left"])
    limit = None if left is None else spent + left
    points = points_of(spending, main)
    symbol = SYMBOLS[main]
    drawing = plot.spending(
        f"{symbol} spent over time" + ("" if limit is None else f", of {plot.amount(limit)}"),
        [plot.PlotLine("you", points, limit)],
        now,
    )
    return card(
        f"Each {row['unit']!s}",
        h.dl([figures(row, part) for part in parts], class_="figures"),
        meter(symbol, spent, limit),
        h.figure(drawing, h.figcaption(f"{symbol} spent since your first query", _dashed(limit)))
        if drawing is not None
        else h.p("Nothing was spent yet.", class_="note"),
    )


def _by_period(unit: str, periods: Sequence[Row]) -> Node:
    """Of this account."""
    return stretches(f"Each {unit}, by its day", periods)


def closed_periods(closed: Sequence[Row]) -> Node:
    """Of growing tables, the days that queries read."""
    if not closed:
        return None
    rows: list[list[Node]] = [
        [h.code(str(row["table_name"])), h.code(str(row["told_by"])), str(row["every"]),
         "none" if row["last_day"] is None else f"{row['first_day']!s} … {row['last_day']!s}"]
        for row in closed
    ]  # fmt: skip
    return card("What is closed", table(("table", "told by", "every", "days that queries read"), rows),
                h.p("A text need not change from day to day: ", h.code("WHERE day > last_closed('trips') - 7"),
                    class_="note"))  # fmt: skip


def counters_known(counters: Sequence[Row]) -> Node:
    """How far each is counted, and what it costs who has not got it."""
    if not counters:
        return None
    rows: list[list[Node]] = [
        [h.code(f"dpsql.{row['name']!s}"), str(row["made_by"]), str(row["last_day"] or "no day yet"),
         "yours" if row["held"] else f"{row['price']!s} of each period", str(row["state"]),
         h.code(str(row["query"]), class_="sql")]
        for row in counters
    ]  # fmt: skip
    return card("Counters", table(("read it as", "made by", "counted through", "price", "", "counts"), rows,
                                  class_="stack"),
                h.p("Who has not got one pays once: ", h.code("RECEIVE DP COUNTER name"), ". To read it is free.",
                    class_="note"))  # fmt: skip


def stretches(title: str, periods: Sequence[Row]) -> Node:
    """The newest stretches of days, each with what its rows have lost."""
    if not periods:
        return None
    part = "rho" if any(number(row["rho_left"]) or number(row["rho_spent"]) for row in periods) else "epsilon"
    rows: list[list[Node]] = []
    for row in periods[::-1][:SHOWN]:
        left, first, last = number(row[f"{part}_left"]), str(row["first_day"]), str(row["last_day"])
        days = f"from {first}" if row["last_day"] is None else first if first == last else f"{first} … {last}"
        spent = plot.amount(number(row[f"{part}_spent"]) or 0.0)
        rows.append([days, spent, "no limit" if left is None else plot.left(left)])
    symbol = SYMBOLS[part]
    return card(title, table(("days", f"{symbol} spent", f"{symbol} left"), rows))


def points_of(spending: Sequence[Row], part: str) -> list[tuple[dt.datetime, float]]:
    """Time and what was spent by then, to be drawn."""
    found = ((s["reserved_at"], number(s[part])) for s in spending)
    return [(at, value) for at, value in found if isinstance(at, dt.datetime) and value is not None]


def _dashed(limit: float | None) -> str:
    return "" if limit is None else "; the dashed line is what you may spend"


def figures(row: Row, part: str) -> Node:
    """Spent and left of one currency, in large."""
    left = number(row[f"{part}_left"])
    symbol = SYMBOLS[part]
    return [
        h.div(h.dt(f"{symbol} left"), h.dd("no limit" if left is None else plot.left(left))),
        h.div(h.dt(f"{symbol} spent"), h.dd(plot.amount(number(row[f"{part}_spent"]) or 0.0))),
    ]


def meter(symbol: str, spent: float, limit: float | None) -> Node:
    """How much of a limit is spent."""
    if not limit:
        return None
    words = f"{symbol} {plot.amount(spent)} of {plot.amount(limit)} spent"
    share = min(spent / limit, 1.0)
    return h.svg(
        h.title(words),
        h.rect(class_="rest", x="0", y="0", width="1000", height="12"),
        h.rect(class_=f"spent{' nearly' * (share >= 0.9)}", x="0", y="0", width=f"{1000 * share:.1f}", height="12"),
        viewBox="0 0 1000 12", preserveAspectRatio="none", role="img", class_="meter", aria_label=words,
    )  # fmt: skip


def history(frame: PageFrame, entries: Sequence[tuple[Row, str]], page: int, pages: int, total: int) -> bytes:
    """entries: with their ± in words, the newest first."""
    rows: list[list[Node]] = []
    for row, widths in entries:
        at = row["reserved_at"]
        when = at.strftime("%Y-%m-%d %H:%M") if isinstance(at, dt.datetime) else "–"
        again = h.form(
            frame.token(),
            h.input(type="hidden", name="sql", value=str(row["statement"])),
            h.input(type="hidden", name="epsilon", value=_asked(row)),
            h.button("Ask again", h.span(f" number {row['number']!s}", class_="hidden"), type="submit", class_="quiet"),
            method="post", action="/query/price",
        )  # fmt: skip
        rows.append(
            [str(row["number"]), h.span(when, class_="time"), h.code(str(row["statement"]), class_="sql"), charged(row),
             widths, again]
        )  # fmt: skip
    more = h.nav(
        h.a("Newer", href=f"/history?page={page - 1}", rel="prev") if page > 1 else None,
        h.span(f"page {page} of {pages}"),
        h.a("Older", href=f"/history?page={page + 1}", rel="next") if page < pages else None,
        class_="pages", aria_label="Pages of the history",
    )  # fmt: skip
    return document(
        frame,
        "History",
        h.p(f"{total} quer{'y was' if total == 1 else 'ies were'} charged to you. To ask one again is free: "
            "its answer is stored.", class_="lead"),
        [
            table(("#", "UTC", "Statement", "Charged", "± 95 %", ""), rows, caption="What was charged", class_="stack"),
            more if pages > 1 else None,
            h.p("± is half the width of an interval that holds the true number 95 times of 100, for noise of that "
                "price. Where it depends on the data it stands beside the answer only.", class_="note"),
        ] if rows else h.p("Nothing yet. ", h.a("Try a query", href="/query"), "."),
    )  # fmt: skip


def charged(row: Row) -> Node:
    """The parts of a charge that are not zero."""
    parts = [f"{SYMBOLS[p]} {plot.amount(x)}" for p in ("epsilon", "rho", "delta") if (x := number(row[p]))]
    return h.span(", ".join(parts) or "–", class_="amount")


def _asked(row: Row) -> str:
    epsilon = number(row["epsilon"])
    return f"{epsilon:.10g}" if epsilon else ""


def widths_in_words(errors: Mapping[str, float | None]) -> str:
    """`n 12, s 3,400`; what is not known before a run is left out."""
    known = {name: width for name, width in errors.items() if width is not None}
    if len(known) == 1:
        return about(next(iter(known.values())))
    return ", ".join(f"{name} {about(width)}" for name, width in known.items()) or "–"


def number(value: Value) -> float | None:
    """A value as a number; None for what is none."""
    return float(value) if isinstance(value, int | float) else None
