"""A custodian's pages: all accounts, refusals, who is there, and the ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from dpsql.core.policy.budgets import Failures
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import one_line
from dpsql.faces.server.refusal_counts import RefusalsOfCode
from dpsql.faces.server.visitors import Visitor
from dpsql.faces.server.web import svg_plots as plot
from dpsql.faces.server.web.markup import Element, Node, h
from dpsql.faces.server.web.pages.account import (
    SYMBOLS,
    Row,
    closed_periods,
    counters_known,
    figures,
    meter,
    number,
    points_of,
    stretches,
)
from dpsql.faces.server.web.pages.page_frame import PageFrame, card, document, table


def accounts(frame: PageFrame, rows: Sequence[Row], spending: Sequence[Row]) -> bytes:
    """What each account has spent and has left, unit by unit."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    units = list(dict.fromkeys(str(row["unit"]) for row in rows))
    return document(
        frame,
        "Accounts",
        h.p("What was learned so far, and what may be. The total is what has been drawn; an account also counts stored "
            "answers that it was given.", class_="lead"),
        [_unit(unit, [r for r in rows if r["unit"] == unit], [s for s in spending if s["unit"] == unit], now)
         for unit in units],
    )  # fmt: skip


def _unit(unit: str, rows: Sequence[Row], spending: Sequence[Row], now: dt.datetime) -> Element:
    main = "rho" if any(number(r["rho_spent"]) or number(r["rho_left"]) for r in rows) else "epsilon"
    symbol = SYMBOLS[main]
    lines: list[plot.PlotLine] = []
    shown: list[list[Node]] = []
    for row in rows:
        name = "all together" if row["account"] is None else str(row["account"])
        spent, left = number(row[f"{main}_spent"]) or 0.0, number(row[f"{main}_left"])
        limit = None if left is None else spent + left
        own = [s for s in spending if s["account"] == row["account"]]
        points = points_of(own, main)
        lines.append(plot.PlotLine(name, points, limit if row["account"] is None else None))
        color = (len(lines) - 1) % 6
        delta = number(row["delta_spent"])
        shown.append(
            [h.span(h.span("", class_=f"key line-{color}", aria_hidden="true"), " ",
                    "shared account *" if name == "*" else name, class_="time"),
             plot.amount(spent), "no limit" if left is None else plot.left(left),
             plot.amount(delta) if delta else "–", meter(symbol, spent, limit) or "–"]
        )  # fmt: skip
    drawing = plot.spending(f"{symbol} spent over time", lines, now)
    total = next((row for row in rows if row["account"] is None), rows[0])
    return card(
        f"Each {unit}",
        h.dl(figures(total, main), class_="figures"),
        h.figure(drawing, h.figcaption(f"{symbol} spent; the dashed line is the total that may be spent"))
        if drawing else h.p("Nothing was spent yet.", class_="note"),
        table(("Account", f"{symbol} spent", f"{symbol} left", "δ spent", "Share of the limit"), shown, (1, 2, 3),
              f"Accounts of {unit}", "stack"),
    )  # fmt: skip


def refusals(frame: PageFrame, by_code: Mapping[str, RefusalsOfCode]) -> bytes:
    """Codes by how often they were met, and the texts."""
    order = sorted(by_code.items(), key=lambda pair: (-pair[1].count, pair[0]))
    return document(
        frame,
        "Refusals",
        h.p("Since the server began, by code: what analysts tried and could not ask. A bound or a list of groups in "
            "the policy often mends many at once.", class_="lead"),
        [_code(code, found) for code, found in order] or h.p("None."),
    )  # fmt: skip


def _code(code: str, found: RefusalsOfCode) -> Element:
    title = CODES[code].title if code in CODES else "of the protocol"
    texts = [
        h.li(
            h.pre(text, tabindex="0", role="group", aria_label="a refused text"),
            h.p("from ", ", ".join(names), class_="note"),
        )
        for text, names in reversed(found.texts.items())
        if text
    ]  # fmt: skip
    return h.section(
        h.h2(h.a(code, href=f"/codes/{code}", class_="code") if code in CODES else code, " ", title,
             h.span(f"{found.count:,} ×", class_="count")),
        h.details(h.summary(f"{len(texts)} text{'' if len(texts) == 1 else 's'}"), h.ul(texts, class_="texts"))
        if texts else None,
        class_="card",
    )  # fmt: skip


def sessions(frame: PageFrame, visitors: Sequence[tuple[int, Visitor]], said: str = "") -> bytes:
    """Who is there. Each with the number of his door."""
    rows: list[list[Node]] = []
    for door, visitor in visitors:
        buttons = h.form(
            frame.token(),
            h.input(type="hidden", name="door", value=door),
            h.input(type="hidden", name="key", value=visitor.key),
            h.button("Stop", h.span(f" the statement of {visitor.name}", class_="hidden"), type="submit", name="do",
                     value="stop", class_="quiet") if visitor.running else None,
            h.button("End", h.span(f" the session of {visitor.name}", class_="hidden"), type="submit", name="do",
                     value="end", class_="quiet"),
            method="post", action="/sessions", class_="buttons",
        )  # fmt: skip
        running: Node = h.code(visitor.running, class_="sql") if visitor.running else h.span("–", class_="note")
        rows.append([visitor.name, visitor.door, visitor.address, running, buttons])
    return document(
        frame,
        "Sessions",
        h.p(said, class_="said", role="status") if said else None,
        h.p("A statement that is stopped stays charged. Who is ended may log in again: to keep him out, take his name "
            "out of the file of users and let the server read it anew (SIGHUP).", class_="lead"),
        table(("Name", "Door", "From", "Runs now", ""), rows, caption="Who is there", class_="stack"),
    )  # fmt: skip


def periods(
    frame: PageFrame,
    closed: Sequence[Row],
    periods: Sequence[Row],
    counters: Sequence[Row],
    said: str = "",
    refused: Sequence[Diagnostic] = (),
    *,
    may: bool = False,
) -> bytes:
    """What is closed of growing tables, what their rows have lost by period, and the counters. may: close some more."""
    if not closed:
        return document(frame, "Periods", h.p("No table of this policy grows.", class_="lead"))
    forms = [
        h.form(
            frame.token(),
            h.input(type="hidden", name="table", value=str(row["table_name"])),
            h.label(f"{row['table_name']!s} is complete up to ", h.input(type="date", name="through", required=True)),
            h.button("Close", type="submit", class_="quiet"),
            method="post", action="/periods", class_="buttons",
        )
        for row in closed
    ]  # fmt: skip
    units = dict.fromkeys(str(row["unit"]) for row in periods)
    return document(
        frame,
        "Periods",
        h.p(said, class_="said", role="status") if said else None,
        [h.p(f"{d.code}: {one_line(d.message)}", class_="said", role="alert") for d in refused],
        h.p("Nothing of a period is read before it is closed. Close it when its rows are complete: its stored "
            "answers do not know of those that come later.", class_="lead"),
        closed_periods(closed),
        card("Close periods", forms if may else h.p("Your login has no right to: ", h.code("may: [periods]"),
                                                    " in the file of users.", class_="note")),
        [stretches(f"Each {unit}, all accounts together",
                   [p for p in periods if p["unit"] == unit and p["account"] is None]) for unit in units],
        counters_known(counters),
    )  # fmt: skip


def ledger(frame: PageFrame, rows: Sequence[Row], failures: Sequence[Row], most: Failures) -> bytes:
    """Where it is, how long, that its chain and head agree; what failed, and how much of that stops queries."""
    facts = [h.div(h.dt(str(row["name"])), h.dd(str(row["value"] or "–"))) for row in rows]
    return document(
        frame,
        "Ledger",
        h.p(h.span("in order", class_="tag good"), " The chain was read and checked from its first entry, and "
            "agreed with its head, when its worker began; what came since, just now. To list it checks all of it anew.",
            class_="lead"),
        h.section(h.dl(facts, class_="facts"), class_="card", aria_label="State of the ledger"),
        h.section(
            h.h2("Failures in the engine", h.span(f"{len(failures):,} of {most.in_total:,}", class_="count")),
            table(("When, UTC", "Account", "How", "Statement"),
                  [[str(f["at"] or "–"), str(f["account"]), str(f["how"]), h.code(str(f["statement"]), class_="sql")]
                   for f in failures], caption="What failed since a custodian looked last", class_="stack")
            if failures else h.p("None since a custodian looked last.", class_="note"),
            h.p(f"{most.most:,} of one account, or {most.in_total:,} in total, stop private queries (DP416). What you "
                "have looked at counts no more: ", h.code("dpsql budget POLICY --failures --clear WHY"), class_="note"),
            class_="card", aria_label="Failures",
        ),
        h.p("Where it and its head lie is in the policy; ", h.code("dpsql budget POLICY --history"), " lists it.",
            class_="note"),
    )  # fmt: skip
