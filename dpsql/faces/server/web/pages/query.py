"""Try a query: its price and its ± before anything is spent, then its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpsql.answers.results.cell_texts import cell
from dpsql.core.ir.types import Kind
from dpsql.core.privacy_loss import NO_LOSS, left_text, show_left
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import BESIDE_NOTES, Note, foremost, in_order, note_records
from dpsql.diagnostics.words import TOO_HIGH, TOO_LOW, about
from dpsql.faces.server.statements import Value
from dpsql.faces.server.web import svg_plots as plot
from dpsql.faces.server.web.markup import Element, Node, h
from dpsql.faces.server.web.pages.page_frame import PageFrame, card, document, refusal, table, warnings
from dpsql.faces.server.web.session_asking import Cost, GivenRows, Operator
from dpsql.frontend.text import counter_statements, period_statements, summary_statements

MOST_ROWS = 1_000
"""Rows of an answer that a page shows."""
"""Notices that the page says in its own way."""
_NUMBERS = (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL)


@dataclass(frozen=True, slots=True)
class WrittenForm:
    """What stands in the form."""

    sql: str = ""
    epsilon: str = ""
    delta: str = ""
    search: bool = False


def query(frame: PageFrame, written: WrittenForm, *parts: Node) -> bytes:
    """The form, and below it what came of it."""
    return document(frame, "Try a query", _form(frame, written), *parts)


def _form(frame: PageFrame, written: WrittenForm) -> Element:
    return h.form(
        frame.token(),
        h.label("SQL", for_="sql"),
        h.textarea(written.sql, id="sql", name="sql", rows="5", spellcheck="false", autocapitalize="none",
                   autocomplete="off", required=True, placeholder="SELECT region, COUNT(*) AS n FROM …"),
        h.div(
            h.div(h.label("ε to spend", for_="epsilon"), _amount("epsilon", written.epsilon), class_="field"),
            h.div(h.label("δ, if needed", for_="delta"), _amount("delta", written.delta), class_="field"),
            h.label(
                h.input(type="checkbox", name="search", value="on", checked=written.search),
                " find missing limits, for a quarter of ε", class_="tick",
            ),
            h.button("Show the price", type="submit", class_="main"),
            class_="row",
        ),
        h.p("An empty field means what your login or the policy says. Looking at the price is free.", class_="note"),
        method="post", action="/query/price", class_="card ask",
    )  # fmt: skip


def _amount(name: str, value: str) -> Element:
    return h.input(id=name, name=name, value=value, inputmode="decimal", autocomplete="off", placeholder="default",
                   maxlength="40")  # fmt: skip


def _hidden(frame: PageFrame, written: WrittenForm, epsilon: str) -> list[Node]:
    return [
        frame.token(),
        h.input(type="hidden", name="sql", value=written.sql),
        h.input(type="hidden", name="epsilon", value=epsilon),
        h.input(type="hidden", name="delta", value=written.delta),
        h.input(type="hidden", name="search", value="on") if written.search else None,
    ]


# The price ------------------------------------------------------------------------------------------------------------


def price(
    frame: PageFrame, written: WrittenForm, cost: Cost, curve: Sequence[tuple[str, Mapping[str, float | None]]]
) -> bytes:
    """What it would cost, with its plan and other prices."""
    free = cost.price == NO_LOSS
    pay = h.form(
        _hidden(frame, written, written.epsilon),
        h.button("Run it, for nothing" if free else f"Pay {cost.price} and run", type="submit", class_="main pay"),
        method="post", action="/query/run",
    )  # fmt: skip
    if cost.times == 0:
        pay = h.p(_too_dear(cost), role="status")
    priced = [
        h.h2("What it would cost", id="cost"),
        h.dl(
            h.div(h.dt("price"), h.dd(str(cost.price))),
            h.div(h.dt("you have left"), h.dd(left_text(cost.left))),
            h.div(h.dt("enough for"), h.dd(f"{cost.times:,} such")) if cost.times is not None else None,
            class_="figures",
        ),
        _errors(cost.errors, "Column" if cost.plan else "Counts by"),
        pay,
        h.p("Its answer is stored: asked again, it is free.", class_="note"),
    ]
    unpriced = [
        h.h2("Say how much to spend", id="cost"),
        h.p("Neither you, nor your login, nor the policy has said an ε. Take one below, or fill in the field."),
        h.dl(h.div(h.dt("you have left"), h.dd(left_text(cost.left))), class_="figures"),
    ]
    return query(
        frame,
        written,
        h.section(unpriced if cost.is_nominal else priced, class_="card price", aria_labelledby="cost"),
        _curve(frame, written, curve),
        card("How it would be computed", _tree(cost.tree) if cost.plan else _lines(cost.tree), _released(cost.plan),
             _notes(cost)),
    )  # fmt: skip


WITHOUT_A_PRICE: Final[Mapping[str, tuple[str, str]]] = {
    summary_statements.DROP: (
        "Drop it",
        "Nobody is charged. The summary's name is forgotten, for all accounts; what was paid for stays stored.",
    ),
    counter_statements.DROP: (
        "Drop it",
        "Nobody is charged. The counter ends, for all; periods that it has not measured get their budget back.",
    ),
    period_statements.CLOSE: (
        "Close them",
        "Nobody is charged. Queries read these periods from then on, and counters count them. Close what is complete.",
    ),
    period_statements.REOPEN: (
        "Reopen them",
        "Nobody is charged. What is stored of these days is served no longer; what was spent of them stays spent.",
    ),
}
"""Command → the button, and what it would do."""


def without_a_price(frame: PageFrame, written: WrittenForm, command: str) -> bytes:
    """What a statement would do that charges nobody, and changes something."""
    button, said = WITHOUT_A_PRICE[command]
    act = h.form(
        _hidden(frame, written, written.epsilon),
        h.button(button, type="submit", class_="main"),
        method="post", action="/query/run",
    )  # fmt: skip
    return query(frame, written, card("What it would do", h.p(said), act))


def _too_dear(cost: Cost) -> str:
    """Why it cannot be run, and what could."""
    price, left = cost.price, cost.left
    assert left is not None
    parts = (("ε", price.epsilon, left.epsilon), ("ρ", price.rho, left.rho), ("δ", price.delta, left.delta))
    short, has = next(((part, has) for part, costs, has in parts if costs > has), ("ε", left.epsilon))
    said = f"Too little {short} is left, so this would be refused."
    if not has:
        return f"{said} None is left: a custodian can raise the budget in the policy."
    if short == "ρ":
        return f"{said} Write a smaller ε."
    most = f"{said} Write at most {show_left(has)} into the field {short}"
    return f"{most}, or group by columns with public lists of values." if short == "δ" else f"{most}."


def _errors(errors: Mapping[str, float | None], of: str) -> Node:
    if not errors:
        return None
    rows: list[list[Node]] = [
        [h.code(name), "known with the answer: it depends on the data" if width is None else f"± {about(width)}"]
        for name, width in errors.items()
    ]
    return table((of, "Largest error, 95 %"), rows, caption="Largest errors", class_="fit")


def _curve(frame: PageFrame, written: WrittenForm, curve: Sequence[tuple[str, Mapping[str, float | None]]]) -> Node:
    names = list(dict.fromkeys(name for _, found in curve for name in found))
    known = [name for name in names if any(found.get(name) is not None for _, found in curve)]
    if not known:
        return None
    chosen = _float(written.epsilon)
    rows: list[list[Node]] = []
    for epsilon, found in curve:
        use = h.form(
            _hidden(frame, written, epsilon),
            h.button("Take", h.span(f" ε {epsilon}", class_="hidden"), type="submit", class_="quiet"),
            method="post", action="/query/price",
        )  # fmt: skip
        widths = [("–" if (w := found.get(name)) is None else f"± {about(w)}") for name in known]
        rows.append([h.strong(epsilon) if _float(epsilon) == chosen else epsilon, *widths, use])
    drawing = plot.errors("largest error against ε", curve, chosen)
    return card(
        "What other prices would give",
        h.figure(drawing, h.figcaption("Largest error against ε, both in powers of ten")) if drawing else None,
        table(("ε", *known, ""), rows, range(1, len(known) + 1), "Largest error for other ε", "fit tight"),
    )


def _float(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 < found < float("inf") else None


def _tree(operators: Sequence[Operator]) -> Node:
    """The plan, from its answer down to the tables."""
    found: list[Node] = []
    for depth, operator, facts in operators:
        tags = [h.span(fact, class_="tag good" if fact == "public" else "tag") for fact in facts[:1]]
        more = h.span(" · ".join(facts[1:]), class_="note") if facts[1:] else None
        found.append(h.li(h.code(operator), " ", tags, " ", more, class_=f"depth-{min(depth, 12)}"))
    return h.ol(found, class_="tree") if found else None


def _lines(told: Sequence[Operator]) -> Node:
    return h.pre("\n".join(line for _, line, _ in told), tabindex="0")


def _released(plan: Mapping[str, Any]) -> Node:
    rows: list[list[Node]] = []
    for release in plan.get("releases", []):
        for part in release["components"]:
            price = f"ρ {part['rho']:.4g}" if part["rho"] else f"ε {part['epsilon']:.4g}"
            error, moves = part["expected_error"], part["linf"]
            rows.append(
                [h.code(part["name"]), part["mechanism"], f"{moves:,}" if isinstance(moves, int) else moves,
                 f"{part['scale']:,.6g}", price, "–" if error is None else about(error)]
            )  # fmt: skip
    if not rows:
        return None
    head = ("Measured", "Noise", "One unit moves", "Scale", "Price", "± 95 %")
    return table(head, rows, (2, 3, 4, 5), "What is measured, and with what noise")


def _notes(cost: Cost) -> Node:
    """Those of the plan say what the price's do, and more."""
    return _listed([(n["rank"], n["text"]) for n in cost.plan.get("notes", note_records(cost.notes))])


def _foremost(notes: Sequence[Note]) -> Node:
    """The first of them; the others where somebody opens them."""
    shown, others = foremost(notes)
    rest = in_order(notes)[len(shown) :]
    more = h.details(h.summary(f"{others} more note{'s' * (others != 1)}"), _in_words(rest)) if rest else None
    return [_in_words(shown), more]


def _in_words(notes: Sequence[Note]) -> Node:
    return _listed([(note.rank.word, str(note)) for note in notes])


def _listed(notes: Sequence[tuple[str, str]]) -> Node:
    return h.ul([h.li(text, class_=rank) for rank, text in notes], class_="notes") if notes else None


# The answer -----------------------------------------------------------------------------------------------------------


def answered(frame: PageFrame, written: WrittenForm, given: GivenRows) -> bytes:
    """The answer, what was spent, and what is told with it."""
    answer = given.answer
    spent = answer.spent or "nothing"
    rest = [note for note in answer.notices if note.topic not in BESIDE_NOTES]
    several: list[Node] = [
        [h.h3(f"Answer {n}"), result(each, f"The rows of answer {n}")] for n, each in enumerate(given.more, 1)
    ]
    left = "" if answer.left is None else f"; left {left_text(answer.left)}"
    return query(
        frame,
        written,
        h.section(
            h.h2("Answer", id="answer"),
            h.p(h.strong(f"Spent {spent}"), left, class_="spent-line", role="status"),
            several or result(given),
            _foremost(rest),
            class_="card answer", aria_labelledby="answer",
        ),
        warnings(answer.warnings),
    )  # fmt: skip


def refused(frame: PageFrame, written: WrittenForm, found: Sequence[Diagnostic]) -> bytes:
    """Why there is no answer."""
    return query(frame, written, refusal(found))


def result(given: GivenRows, caption: str = "The rows of the answer") -> Node:
    """Rows, each noisy number with its ±."""
    rows: list[list[Node]] = []
    for row in given.answer.rows[:MOST_ROWS]:
        cells: list[Node] = []
        for number, place in enumerate(given.places):
            ends = given.ends.get(number)
            width = None if ends is None else _width(row[ends], row[ends + 1], row[place])
            cells.append(_cell(row[place], width))
        rows.append(cells)
    numbers = [at for at, (_, type_) in enumerate(given.columns) if type_.kind in _NUMBERS]
    more = len(given.answer.rows) - len(rows)
    return [
        table([h.span(name) for name, _ in given.columns], rows, numbers, caption, "fit"),
        h.p(f"{more:,} rows more are not shown here: psql and the API give all.", class_="note") if more else None,
        h.p("no rows", class_="note") if not rows else None,
    ]


def _width(low: Value, high: Value, value: Value) -> float | str | None:
    """Half of it where the number stands in the middle, else both ends in words, or the only one."""
    if not isinstance(low, float) or not isinstance(high, float):
        if isinstance(low, float):
            return f"at least {low:,.6g}, which is {TOO_LOW}"
        return f"at most {high:,.6g}, which is {TOO_HIGH}" if isinstance(high, float) else None
    middle = float(value) if isinstance(value, int | float) else None
    half = (high - low) / 2
    if middle is not None and abs(middle - (low + high) / 2) <= 0.01 * half + 0.5:
        return half
    return f"{low:,.6g} to {high:,.6g}"


def _cell(value: Value, width: float | str | None) -> Node:
    if value is None:
        return h.span("NULL", class_="null")
    if isinstance(width, float):
        shown, _, error = cell(value, (width, width)).text.partition(" ± ")
        return [shown, " ", h.span(f"± {error}", class_="width")]
    return [cell(value).text, " ", h.span(width, class_="width") if width else None]
