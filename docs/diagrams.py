"""The pictures of the explanations: small tables whose marked rows are those that one privacy unit can change.

Each picture is a function that returns an SVG; `make generate` writes them to docs/images/. Colours follow the reader's
choice of a light or dark page (`prefers-color-scheme`, which a browser also sets from the colour scheme of the page).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from html import escape

ROW = 20  # the height of a row of a table, in pixels
STYLE = """\
text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600 } .dim { fill: #57606a } .mark { fill: #a40e26 } .left { text-anchor: start }
.box { fill: none; stroke: #8c959f } .hit { fill: #ffd8d3; stroke: none } .bar { fill: #0969da } .cut { fill: #b6d4f5 }
.line { stroke: #8c959f; fill: none } .hot { stroke: #cf222e; stroke-width: 1.6; fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .mark { fill: #ff9d94 }
.hit { fill: #5d2020 } .bar { fill: #4493f8 } .cut { fill: #24466f } .hot { stroke: #ff7b72 } }"""


@dataclass(slots=True)
class Drawing:
    """Shapes on a page of a given size in pixels; what it shows, in words, is for those who cannot see it."""

    wide: int
    high: int
    words: str
    shapes: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>')

    def box(self, x: float, y: float, wide: float, high: float, kind: str = "box") -> None:
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="3" class="{kind}"/>')

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str = "line") -> None:
        bend = (to_x - x) / 2
        self.shapes.append(
            f'<path d="M{x:g} {y:g} C{x + bend:g} {y:g} {to_x - bend:g} {to_y:g} {to_x:g} {to_y:g}" class="{kind}"/>'
        )

    def table(
        self, x: float, y: float, title: str, widths: Sequence[int], rows: Sequence[str], marked: Collection[int] = ()
    ) -> None:
        """A table whose first row holds the names of columns; cells are separated by spaces, `marked` counts from 0."""
        self.text(x, y - 6, title, "head")
        for number in marked:
            self.box(x, y + ROW * (number + 1), sum(widths), ROW, "hit")
        self.box(x, y, sum(widths), ROW * len(rows))
        self.shapes.append(f'<path d="M{x:g} {y + ROW:g} h{sum(widths)}" class="line"/>')
        for number, row in enumerate(rows):
            kind = "dim" if number == 0 else "mark" if number - 1 in marked else ""
            for column, cell in enumerate(row.split()):
                self.text(x + sum(widths[:column]) + 6, y + ROW * (number + 0.7), cell, kind)

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.wide}" height="{self.high}" '
            f'viewBox="0 0 {self.wide} {self.high}" role="img" aria-label="{escape(self.words)}">'
        )
        return "\n".join([head, f"<style>\n{STYLE}\n</style>", *self.shapes, "</svg>", ""])


def middle(y: float, row: int) -> float:
    """The height of the middle of a table's row, counted from 0 below the names of its columns."""
    return y + ROW * (row + 1.5)


def units() -> str:
    """One row as the unit, and all rows of a patient as the unit."""
    d = Drawing(
        700,
        196,
        "Two neighbouring databases. With the unit rows 1, one row of visits is there or not. With the unit "
        "column patient, all three visits of patient 7 and the row of patient 7 in patients are there or not.",
    )
    visits = ["patient ward cost", "3 eye 120", "7 heart 900", "7 eye 80", "8 skin 60", "7 heart 400"]
    d.text(10, 18, "unit: {rows: 1}", "head")
    d.table(10, 50, "visits", [60, 60, 50], visits, {2})
    d.text(10, 190, "neighbours differ in one row", "mark")
    d.text(270, 18, "unit: {column: patient}", "head")
    d.table(270, 50, "visits", [60, 60, 50], visits, {1, 2, 4})
    d.table(490, 50, "patients", [60, 50, 60], ["patient age region", "3 44 north", "7 61 south", "8 29 north"], {1})
    d.text(270, 190, "neighbours differ in all rows of one patient, in all tables of the unit", "mark")
    return d.svg()


def joins() -> str:
    """What one row becomes in three joins."""
    d = Drawing(
        700,
        402,
        "Three joins. With a public table that has each key once, one row stays one row. With a public table that "
        "has a key twice, one row becomes two. With another private table, joined on something else, one row meets "
        "three rows.",
    )
    d.text(10, 18, "a public table, each key once: 1 row stays 1 row", "head")
    _join(d, 50, ["shop amount", "B 10", "A 30"], 1, ("shops", ["shop city", "A Bern", "B Genf"], [0]))
    d.text(10, 142, "a public table with a key up to m = 2 times: 1 row becomes 2", "head")
    _join(d, 174, ["shop amount", "B 10", "A 30"], 1, ("opening", ["shop day", "A Mon", "A Tue", "B Mon"], [0, 1]))
    d.text(10, 286, "another private table on something else, f = 3 rows a key: 1 row meets 3, of other people", "head")
    rows = ["shop repair", "A 1", "A 2", "A 3"]
    _join(d, 318, ["shop amount", "B 10", "A 30"], 1, ("repairs", rows, [0, 1, 2]))
    return d.svg()


def _join(d: Drawing, y: float, left: list[str], changed: int, right: tuple[str, list[str], list[int]]) -> None:
    """Draw one join of `orders`, of which the row `changed` comes or goes, and its result."""
    name, rows, met = right
    d.table(10, y, "orders", [60, 70], left, {changed})
    d.table(230, y, name, [60, 70], rows)
    other = 1 - changed
    key = left[other + 1].split()[0]
    partner = [number for number, row in enumerate(rows[1:]) if row.split()[0] == key]
    result = [f"{left[0]} {rows[0].split()[1]}"]
    result += [f"{left[other + 1]} {rows[number + 1].split()[1]}" for number in partner]
    marked = range(len(partner), len(partner) + len(met))
    result += [f"{left[changed + 1]} {rows[number + 1].split()[1]}" for number in met]
    for number in partner:
        d.line(140, middle(y, other), 230, middle(y, number))
    for number in met:
        d.line(140, middle(y, changed), 230, middle(y, number), "hot")
    d.line(360, middle(y, 0), 470, middle(y, 0))
    d.table(470, y, "joined", [60, 70, 70], result, set(marked))


def stability() -> str:
    """A plan from the bottom to the top, with what one unit changes at each step."""
    steps = [
        ("scan visits", "1 row", "the rows of one patient"),
        ("WHERE cost < 500", "1 row", "rows of one patient"),
        ("JOIN wards (each ward once)", "1 row", "rows of one patient"),
        ("at most 4 rows of each patient, by weights", "–", "rows that weigh 4 together"),
        ("GROUP BY region, COUNT(*), SUM(cost)", "a count by 1, a sum by 500", "counts by 4, sums by 4 · 500"),
        ("noise of the scale that hides this, then everything public", "", ""),
    ]
    d = Drawing(
        700, 44 + 34 * len(steps), "A plan, and beside each step how much one row or one patient can change in it."
    )
    d.text(330, 18, "unit: a row", "head")
    d.text(520, 18, "unit: a patient", "head")
    for number, (step, row, person) in enumerate(steps):
        y = 30 + 34 * number
        d.box(10, y, 300 if row else 400, 24, "box")
        d.text(18, y + 16, step)
        d.text(330, y + 16, row, "mark")
        d.text(520, y + 16, person, "mark")
        if number:
            d.line(30, y - 10, 30, y)
    return d.svg()


def scaling() -> str:
    """Eight rows of one person in four groups under limits of 2 rows a group and 2 groups: drawn, and scaled."""
    groups = {"A": 4, "B": 2, "C": 1, "D": 1}
    panels: list[tuple[str, Callable[[str, int], float]]] = [
        ("all 8 rows of one person", lambda group, n: n),
        ("one draw: ≤ 2 rows in each of 2 groups", lambda group, n: min(n, 2) if group in "AD" else 0),
        ("another draw", lambda group, n: min(n, 2) if group in "BC" else 0),
        ("scaled: the mean of all draws, every time", lambda group, n: min(n, 2) * 2 / 4),
    ]
    d = Drawing(
        720,
        182,
        "Bars of how much a person counts in four groups: 4, 2, 1 and 1 rows; in one draw 2 and 1 in groups A and D, "
        "in another 2 and 1 in groups B and C; scaled 1, 1, one half and one half.",
    )
    for place, (title, value) in enumerate(panels):
        x = 10 + 178 * place
        for word, text in enumerate(_wrapped(title)):
            d.text(x, 18 + 15 * word, text, "head")
        for number, (group, rows) in enumerate(groups.items()):
            at = x + 36 * number
            d.box(at, 150 - 25 * rows, 24, 25 * rows, "cut")
            d.box(at, 150 - 25 * value(group, rows), 24, 25 * value(group, rows), "bar")
            d.text(at + 8, 168, group, "dim")
    return d.svg()


def _wrapped(text: str, width: int = 22) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


PICTURES: dict[str, Callable[[], str]] = {
    "docs/images/units.svg": units,
    "docs/images/joins.svg": joins,
    "docs/images/stability.svg": stability,
    "docs/images/scaling.svg": scaling,
}
