"""What all pages have in common: head, navigation, messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import anchor, marked_lines, one_line
from dpsql.diagnostics.render import closing_note
from dpsql.faces.server.web.hints import in_form
from dpsql.faces.server.web.markup import Element, Node, h, page

FOR_ANALYSTS: Final = (
    ("/", "Budget"), ("/query", "Try a query"), ("/history", "History"), ("/tables", "What may be asked"),
    ("/connect", "Connect"),
)  # fmt: skip
FOR_CUSTODIANS: Final = (
    ("/", "Accounts"), ("/refusals", "Refusals"), ("/sessions", "Sessions"), ("/periods", "Periods"),
    ("/ledger", "Ledger"),
    ("/policy", "Policy"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What stands around a page. here: its path. form_token: of forms that change something. databases: all that the
    login may ask. made_up: whether the rows of this one are."""

    database: str
    role: str
    name: str
    form_token: str
    here: str
    databases: tuple[str, ...] = ()
    made_up: bool = False

    def token(self) -> Element:
        """The hidden field that a form brings back."""
        return h.input(type="hidden", name="token", value=self.form_token)


def document(frame: PageFrame, title: str, *content: Node) -> bytes:
    """A whole page."""
    links = FOR_CUSTODIANS if frame.role == "custodian" else FOR_ANALYSTS
    nav = h.nav(
        h.ul([h.li(h.a(text, href=path, aria_current="page" if path == frame.here else None)) for path, text in links]),
        aria_label="Pages",
    )
    who = h.form(
        frame.token(),
        h.span("signed in as ", h.strong(frame.name), class_="who"),
        h.button("Sign out", type="submit", class_="quiet"),
        method="post", action="/logout", class_="sign-out",
    )  # fmt: skip
    return _html(
        f"{title} · {frame.database}",
        h.a("Skip to the content", href="#content", class_="skip"),
        h.header(h.div(_brand(frame.database, frame.role), _others(frame), who, class_="top"), nav),
        h.main(
            h.h1(title),
            h.p("The data of this database is made up: answers are free, and say nothing of anybody.", class_="said")
            if frame.made_up else None,
            *content, id="content", tabindex="-1",
        ),
    )  # fmt: skip


def bare(role: str, title: str, *content: Node) -> bytes:
    """A page of somebody who has not logged in, to whom no database is named."""
    main = h.main(h.h1(title), *content, id="content")
    return _html(f"{title} · dpsql", h.header(h.div(_brand("", role), class_="top")), main)


def _others(frame: PageFrame) -> Node:
    """To go on in another database."""
    if len(frame.databases) < 2:
        return None
    options = [h.option(name, value=name, selected=name == frame.database) for name in frame.databases]
    return h.form(
        frame.token(),
        h.label("Database", for_="database", class_="hidden"),
        h.select(options, id="database", name="database"),
        h.button("Change", h.span(" the database", class_="hidden"), type="submit", class_="quiet"),
        method="post", action="/database", class_="databases",
    )  # fmt: skip


def _html(title: str, *body: Node) -> bytes:
    head = h.head(
        h.meta(charset="utf-8"),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.title(title),
        h.link(rel="stylesheet", href="/style.css"),
        h.link(rel="icon", href="/icon.svg", type="image/svg+xml"),
    )
    return page(h.html(head, h.body(*body), lang="en"))


def _brand(database: str, role: str) -> Element:
    return h.a(
        h.span("dpsql", class_="mark"),
        h.span(database, class_="policy") if database else None,
        h.span("custodian", class_="role") if role == "custodian" else None,
        href="/",
        class_="brand",
    )


# Messages -------------------------------------------------------------------------------------------------------------


def refusal(found: Sequence[Diagnostic]) -> Element:
    """Why a statement was not answered: message, place, repairs."""
    return h.section(
        h.h2("Refused", id="refused"), [_finding(d, "error") for d in found],
        class_="card refused", aria_labelledby="refused", role="alert",
    )  # fmt: skip


def warnings(found: Sequence[Diagnostic]) -> Node:
    """What spoke against a run."""
    if not found:
        return None
    return h.section(
        h.h2("Warnings", id="warnings"), [_finding(d, "warning") for d in found],
        class_="card warned", aria_labelledby="warnings",
    )  # fmt: skip


def _finding(found: Diagnostic, tone: str) -> Element:
    helps = [text for line in found.help if (text := in_form(line))]
    note = closing_note(found, tone == "error").partition("`dpsql rule")[0].rstrip(". ")
    notes = [one_line(text) for text in (*found.notes, note) if text]
    return h.div(
        h.p(h.a(found.code, href=f"/codes/{found.code}", class_="code"), " ", h.strong(one_line(found.message))),
        _place(found),
        h.ul([h.li(h.span("repair", class_="tag"), " ", h.code(_lines(text))) for text in helps], class_="repairs")
        if helps
        else None,
        [h.p(text, class_="note") for text in notes],
        class_="finding",
    )


def _lines(text: str) -> Node:
    return " / ".join(part.strip() for part in text.splitlines() if part.strip())


def _place(found: Diagnostic) -> Node:
    if found.source is None or found.span is None:
        return h.p(one_line(found.label), class_="note") if found.label else None
    shown: list[Node] = []
    for line in list(marked_lines(found.source, anchor(found.source, found.span)))[:6]:
        caret = " " * line.start + "^" * (line.end - line.start)
        shown += [line.text, "\n", h.span(caret, class_="caret"), "\n"]
    if found.label and shown:
        shown[-1] = h.span(f" {one_line(found.label)}\n", class_="caret")
    return h.pre(shown, class_="place", tabindex="0", role="group", aria_label=f"where {found.code} is")


def table(
    head: Sequence[Node],
    rows: Sequence[Sequence[Node]],
    numbers: Sequence[int] = (),
    caption: str = "",
    class_: str = "",
) -> Element:
    """A table that scrolls by itself where the page is narrow. numbers: columns that are set to the right.

    class_: "stack" for one whose rows become blocks there; roles are said, for a table in blocks is none to a reader.
    """
    kinds = ["number" if at in numbers else None for at in range(len(head))]
    labels = [text if isinstance(text, str) else None for text in head]
    body = [
        h.tr(
            [h.td(cell, class_=kind, data_label=label or None, role="cell")
             for cell, kind, label in zip(row, kinds, labels, strict=True)],
            role="row",
        )
        for row in rows
    ]  # fmt: skip
    heads = [
        h.th(cell, scope="col", class_=kind, role="columnheader") if cell else h.td("", role="cell")
        for cell, kind in zip(head, kinds, strict=True)
    ]
    return h.div(
        h.table(
            h.caption(caption, class_="hidden") if caption else None,
            h.thead(h.tr(heads, role="row"), role="rowgroup"),
            h.tbody(body, role="rowgroup"),
            role="table",
        ),
        class_=f"scroll {class_}".strip(), tabindex="0", role="group", aria_label=caption or "table",
    )  # fmt: skip


def card(title: str, *content: Node, class_: str = "") -> Element:
    """A part of a page with a heading of its own."""
    return h.section(h.h2(title), *content, class_=f"card {class_}".strip())
